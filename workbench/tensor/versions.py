"""Memory that several tensors stand for, and its versions.

A value is its expression and never changes; memory does. Tensors that are views of one piece of
memory share a `VersionedMemory`; a write puts the expression of the whole, with the new elements in
it, in the place of the present version, and every tensor of the memory is a view of that from then
on. What was built of an older version keeps that version. Nothing is computed here, and nothing is
overwritten: whether the new version is written over the old one is decided when it is computed
(`workbench/execution/placement.py`).
Source of the idea: static single assignment, of arrays (Knobe and Sarkar 1998).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import ref

from workbench.base.dtypes import dtypes
from workbench.ir.gradient.custom import duplicate
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.portable import Portable, portable
from workbench.tensor.autograd.leaves import leaf_node, plain_value
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.refuse import shape_error

_writes: ContextVar[list[VersionedMemory] | None] = ContextVar("writes", default=None)


@contextmanager
def noting_writes() -> Iterator[list[VersionedMemory]]:
    """Record, in order, the memory that is written in the block."""
    writes: list[VersionedMemory] = []
    token = _writes.set(writes)
    try:
        yield writes
    finally:
        _writes.reset(token)


class _Replacements:
    """How often a tensor got other memory by Tensor.replace(): captures look whether it was one of
    theirs."""

    count = 0


replacements = _Replacements()


class VersionedMemory:
    """The memory of one tensor and its views.

    `value` is the node of its present version, whole, on `device`; `leaf` is the number
    of the tensor if gradients are asked for it (0: they are not). `old` is the BUFFER that holds
    the version which was computed last, while a newer one waits to be computed; `expression` the
    node of the present version before it was computed.
    """

    __slots__ = (
        "__weakref__", "device", "expression", "is_written", "leaf", "old", "value",
    )  # fmt: skip

    def __init__(self, value: UOp, device: str, leaf: int):
        self.value, self.device, self.leaf = value, device, leaf
        self.old: UOp | None = None
        self.expression: ref[UOp] | None = None
        self.is_written = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle its value, once for all its views. In another process it is another memory."""
        return _restored, (portable(self.value), self.device)

    def write(self, value: UOp) -> None:
        """Make `value`, of the same shape and dtype, the present version."""
        under = self.value
        while under.op in (Ops.RESHAPE, Ops.DETACH):
            under = under.src[0]
        if under.op is Ops.BUFFER:
            self.old = under
        self.value = leaf_node(self.leaf, value) if self.leaf else value
        self.is_written, self.expression = True, None
        writes = _writes.get()
        if writes is not None:
            writes.append(self)

    def renew(self, value: UOp) -> None:
        """Let `value`, what was computed, be the present version."""
        if self.leaf:
            self.value = leaf_node(self.leaf, value)
        elif plain_value(self.value) is not value:
            own = value if value.op is Ops.BUFFER else duplicate(value)
            self.expression, self.value = ref(self.value), own


def _restored(graph: Portable, device: str) -> VersionedMemory:
    (value,) = graph.restored()
    return VersionedMemory(duplicate(value), device, 0)


def rebased(view: UOp, whole: UOp, version: UOp) -> UOp:
    """Return the view of `version` that `view` is of `whole`."""
    for step in reversed(list(steps_to(view, whole))):
        version = step.replace(src=(version,))
    return version


def is_detached(view: UOp, whole: UOp) -> bool:
    """Whether no gradient flows from `view` to `whole`."""
    return any(step.op is Ops.DETACH for step in steps_to(view, whole))


def with_view_written(whole: UOp, view: UOp, value: UOp) -> UOp:
    """Return `whole` with the elements of `view` replaced by those of `value`, of its shape.

    Errors: ShapeError where several elements of the view are one of the whole.
    """
    inside = expanded(UOp.const(dtypes.bool, True), view.shape)
    is_part = False
    for step in steps_to(view, whole):
        value, inside = _undone(step, value), _undone(step, inside)
        is_part |= step.op in (Ops.SHRINK, Ops.PAD)
    return inside.where(value, whole) if is_part else value


def steps_to(view: UOp, whole: UOp) -> Iterator[UOp]:
    """Yield the movement from `view` down to `whole`."""
    while view is not whole:
        yield view
        view = view.src[0]


def _undone(step: UOp, value: UOp) -> UOp:
    """Return `value`, of the shape of `step`, where it lies in the source of `step`: the rest is
    zeros."""
    source = step.src[0].shape
    if step.op is Ops.DETACH:
        return value
    if step.op is Ops.EXPAND and step.size != step.src[0].size:
        raise shape_error(
            f"cannot write to a view of shape {step.shape}",
            f"it repeats elements of shape {source}: several of its elements are one in memory",
            "write to the tensor before .expand(), or to a .clone()",
        )
    arg: object
    match step.op:
        case Ops.PERMUTE:
            op, arg = Ops.PERMUTE, tuple(step.arg.index(a) for a in range(len(source)))
        case Ops.SHRINK:
            ends = zip(step.arg, source, strict=True)
            op, arg = Ops.PAD, tuple((lo, size - hi) for (lo, hi), size in ends)
        case Ops.PAD:
            ends = zip(step.arg, source, strict=True)
            op, arg = Ops.SHRINK, tuple((lo, lo + size) for (lo, _), size in ends)
        case Ops.FLIP:
            op, arg = Ops.FLIP, step.arg
        case _:
            op, arg = Ops.RESHAPE, source
    return UOp(op, value.dtype, (value,), arg)
