"""Training or not, gradients or not: what a `with` block or a decorated function sets."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from itertools import count

from workbench.base.context import TRAINING
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_numbers = count(1)
"""Numbers of detached values; those of leaves are positive."""
_FLOWS: ContextVar[bool] = ContextVar("gradients_flow", default=True)


class _Mode(ContextDecorator):
    """A block, or a function that it decorates, in which a mode has a value."""

    def __init__(self, mode: ContextVar[bool], value: bool):
        self._mode, self._value = mode, value
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(self._mode.set(self._value))

    def __exit__(self, *_: object) -> None:
        self._mode.reset(self._tokens.pop())


class Training(ContextDecorator):
    """A block, or a function that it decorates, in which `Tensor.training` has a value."""

    def __init__(self, mode: bool = True):
        self._value = int(mode)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(TRAINING.value)
        TRAINING.set(self._value)

    def __exit__(self, *_: object) -> None:
        TRAINING.set(self._before.pop())


class TensorClass(type):
    """The class of `Tensor`, which has `Tensor.training`: a setting that one can assign to."""

    @property
    def training(cls) -> bool:
        """Whether a model is trained: the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.set(int(mode))


def flow(is_on: bool) -> ContextDecorator:
    """Return a block in which results have gradients, or have none."""
    return _Mode(_FLOWS, is_on)


def gradients_flow() -> bool:
    """Whether results have gradients here."""
    return _FLOWS.get()


def detached(value: UOp) -> UOp:
    """Return `value`, through which no gradient flows; a node of its own, but for a number."""
    if value.is_const or not value.dtype.is_float:
        return value
    return UOp(Ops.DETACH, value.dtype, (value,), -next(_numbers))
