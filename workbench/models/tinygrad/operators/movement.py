"""Movement of elements, joins and reductions."""

from __future__ import annotations

from typing import Any

from workbench.models.tinygrad.table import first_source, row
from workbench.models.tinygrad.values import sizes_of
from workbench.tensor.tensor import Tensor


@row("RESHAPE", operands=first_source)
def reshape(node: Any, x: Tensor) -> Tensor:
    return x.reshape(sizes_of(node.marg))


@row("EXPAND", operands=first_source)
def expand(node: Any, x: Tensor) -> Tensor:
    """It adds axes before those of `x`."""
    return x.expand(*sizes_of(node.marg), *x.shape)


@row("PERMUTE")
def permute(node: Any, x: Tensor) -> Tensor:
    return x.permute(node.arg)


@row("FLIP")
def flip(node: Any, x: Tensor) -> Tensor:
    return x.flip([axis for axis, is_flipped in enumerate(node.arg) if is_flipped])


@row("SHRINK", operands=first_source)
def shrink(node: Any, x: Tensor) -> Tensor:
    return x.shrink(bounds_of(node))


def bounds_of(node: Any) -> list[tuple[int, int]]:
    """Return where a shrunk node begins and ends on each axis of its source."""
    offsets, sizes = zip(*map(sizes_of, node.marg), strict=True)
    return [(at, at + size) for at, size in zip(offsets, sizes, strict=True)]


@row("PAD", operands=first_source)
def pad(node: Any, x: Tensor) -> Tensor:
    places = zip(map(sizes_of, node.marg), x.shape, strict=True)
    return x.pad([(before, size - before - own) for (before, size), own in places])


@row("STACK")
def stack(node: Any, x: Tensor, *others: Tensor) -> Tensor:
    return x.stack(*others)


@row("REDUCE", operands=first_source)
def reduce(node: Any, x: Tensor) -> Tensor:
    """It is over the first axes."""
    op, count = node.arg
    axes = tuple(range(count))
    if op.name == "MAX":
        return x.max(axes)
    return x.sum(axes, dtype=x.dtype) if op.name == "ADD" else x.prod(axes, dtype=x.dtype)
