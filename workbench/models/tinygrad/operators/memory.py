"""Constants, copies, writes to memory, and calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.tinygrad.operators.movement import bounds_of
from workbench.models.tinygrad.table import ROWS, row
from workbench.models.tinygrad.values import dtype_of, sizes_of
from workbench.tensor.tensor import Tensor


@row("CONST")
def const(node: Any) -> Tensor:
    if node.is_invalid:
        raise ModelError("cannot compute a tensor of Invalid", "its elements have no values")
    dtype = dtype_of(node.dtype)
    is_wide = dtype is dtypes.int64 and node.val > dtype.max  # a number of Python's has any size
    return Tensor.const(node.val, dtypes.uint64 if is_wide else dtype)


@row("COPY", "CONTIGUOUS_BACKWARD")
def same(node: Any, x: Tensor) -> Tensor:
    return x


@row("CONTIGUOUS")
def contiguous(node: Any, x: Tensor) -> Tensor:
    return x.contiguous()


@row("DETACH")
def detach(node: Any, x: Tensor) -> Tensor:
    return x.detach()


@row("TUPLE")
def results(node: Any, *values: Tensor) -> tuple[Tensor, ...]:
    return values


@row("GETTUPLE")
def result(node: Any, values: tuple[Tensor, ...]) -> Tensor:
    place: int = node.arg
    return values[place]


# --------------------------------------------------------------------------------------------------
# Writes. AFTER is the value of its first source after the others, which store into it or into a
# part of it. Nothing is written to memory here: it is what the memory will hold.


def _stores(node: Any) -> list[tuple[Any, Any]]:
    """Return (target, value) of what is written before a node."""
    pairs = []
    for source in node.src[1:]:
        is_store = source.op.name == "STORE"
        pairs.append((source.src[0], source.src[1] if is_store else source))
    return pairs


def _written(node: Any) -> Sequence[Any]:
    """Return the nodes of which AFTER is a function: what is there before, if the first store
    leaves a part of it, and what is stored."""
    stores = _stores(node)
    before = [] if stores and stores[0][0] is node.src[0] else [node.src[0]]
    return [*before, *(value for _, value in stores)]


@row("AFTER", operands=_written)
def after(node: Any, *values: Tensor) -> Tensor:
    stores = _stores(node)
    count = len(values) - len(stores)
    value = values[0]
    for (target, _), stored in zip(stores, values[count:], strict=True):
        value = _with_part(node.src[0], value, target, stored)
    return value.cast(dtype_of(node.dtype))


def _with_part(whole: Any, value: Tensor, target: Any, stored: Tensor) -> Tensor:
    """Return the value of `whole` after a store to `target`, a view of it."""
    if target is whole:
        return stored
    if target.op.name not in _INVERSES:
        because = f"it is {target.op.name} of memory, or of other memory"
        raise ModelError("cannot compute the value of memory after a store", because)
    source = target.src[0]
    around = _viewed(whole, value, source)
    return _with_part(whole, value, source, _INVERSES[target.op.name](target, around, stored))


def _viewed(whole: Any, value: Tensor, view: Any) -> Tensor:
    """Return the value of a view of `whole`."""
    if view is whole:
        return value
    viewed: Tensor = ROWS[view.op.name].function(view, _viewed(whole, value, view.src[0]))
    return viewed


def _fill(view: Any, around: Tensor, part: Tensor) -> Tensor:
    """Return a tensor with `part` in place of the elements that SHRINK leaves."""
    sides = [(at, n - to) for (at, to), n in zip(bounds_of(view), around.shape, strict=True)]
    is_inside = Tensor.full(part.shape, True).pad(sides)
    return is_inside.where(part.cast(around.dtype).pad(sides), around)


def _inside(view: Any, around: Tensor, part: Tensor) -> Tensor:
    """Return the elements that PAD keeps; what it adds is not in memory."""
    places = zip(map(sizes_of, view.marg), around.shape, strict=True)
    return part.shrink([(before, before + size) for (before, _), size in places])


def _unpermuted(view: Any, around: Tensor, part: Tensor) -> Tensor:
    return part.permute([view.arg.index(axis) for axis in range(len(view.arg))])


_INVERSES: dict[str, Callable[[Any, Tensor, Tensor], Tensor]] = {
    "BITCAST": lambda view, around, part: part.bitcast(around.dtype),
    "FLIP": lambda view, around, part: ROWS["FLIP"].function(view, part),
    "PAD": _inside,
    "PERMUTE": _unpermuted,
    "RESHAPE": lambda view, around, part: part.reshape(around.shape),
    "SHRINK": _fill,
}
"""For each op of a view, the value of its source from that of the view."""
