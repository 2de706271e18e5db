"""Modes of training and of gradients, which a `with` block or a decorated function sets."""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from itertools import count

from workbench.base.context import TRAINING
from workbench.base.interrupts import DynamicScope, scope
from workbench.ir.gradient.occurrences import alias
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_numbers = count(1)
"""Numbers of detached values; those of leaves are positive."""
_FLOWS: ContextVar[bool] = ContextVar("gradients_flow", default=True)


class Training(DynamicScope[None]):
    """A block, or a function that it decorates, in which `Tensor.training` has a value."""

    def __init__(self, mode: bool = True):
        self._value = int(mode)
        super().__init__(self._block)

    def _block(self) -> Generator[None, None, None]:
        before = TRAINING.value
        TRAINING.set(self._value)
        try:
            yield
        finally:
            TRAINING.set(before)


class TensorClass(type):
    """The class of `Tensor`, which has `Tensor.training`: a setting that one can assign to."""

    @property
    def training(cls) -> bool:
        """Whether a model is trained: the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.set(int(mode))


@scope
def flow(is_on: bool) -> Generator[None, None, None]:
    """Return a block, or a decorator, in which results have gradients, or have none."""
    token = _FLOWS.set(is_on)
    try:
        yield
    finally:
        _FLOWS.reset(token)


def gradients_flow() -> bool:
    """Whether results have gradients here."""
    return _FLOWS.get()


def detached(value: UOp) -> UOp:
    """Return `value`, through which no gradient flows; a node of its own, but for a number."""
    if value.is_const or not value.dtype.is_float:
        return value
    return UOp(Ops.DETACH, value.dtype, (value,), -next(_numbers))


def occurrence(value: UOp) -> UOp:
    """Return `value` as that of one tensor, told from all others: of a float, a node of its own."""
    return alias(value) if gradients_flow() else detached(value)
