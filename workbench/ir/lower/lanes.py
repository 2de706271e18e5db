"""Lane axes: the width of their vectors, their order, and their registers.

A lane axis has no loop: its elements are lanes of vector registers, or several registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.ir.nest.vectors import width
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves

At = Mapping[UOp, int]
"""A position on every lane axis."""
Value = Callable[[UOp, "UOp | None", At], UOp]
"""Return a value of the tree at a position: a scalar, or the vector that begins there along a
vector axis."""


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """An accumulator in registers: its lane dimensions, and the one along which its vectors of
    `width` elements run, None for scalars."""

    name: str
    dtype: DType
    dims: tuple[UOp, ...]
    vector: UOp | None
    width: int

    def at(self, lanes: At) -> tuple[UOp, int]:
        """Return the REG that has an element, and the position of the element in it."""
        flat, inner = 0, 0
        for dim in self.dims:
            value = lanes[dim]
            if dim is self.vector:
                inner = value % self.width
                value -= inner
            flat = flat * dim.extent + value
        register = construct.register(self.dtype.vec(self.width), self.name, flat)
        return register, inner

    def element(self, lanes: At) -> UOp:
        """Return one element as a scalar."""
        register, position = self.at(lanes)
        if register.dtype.count == 1:
            return register
        return UOp(Ops.EXTRACT, register.dtype.scalar, (register,), position)


def lane_widths(axes: list[UOp], itemsize: int, target: Target) -> dict[str, int]:
    """Return the vector width of every lane axis, one for the whole kernel."""
    widest = target.vector_width(itemsize)
    return {a.axis_name: width(a.extent, widest) for a in axes}


def copy_widths(nodes: Iterable[UOp], target: Target) -> dict[str, int]:
    """Return the vector width of lane axes along which elements are only copied, from arguments to
    shared memory: vectors are as long as the size of the elements allows."""
    statements = [n for n in nodes if n.op in (Ops.STORE, Ops.ACCUMULATE)]
    copies = [n for n in statements if n.op is Ops.STORE and _is_copy(n)]
    sizes: dict[UOp, int] = {}
    for statement in copies:
        size = statement.value.dtype.itemsize
        for axis in statement.ranges:
            if axis.axis_kind.is_lane:
                sizes[axis] = max(sizes.get(axis, 0), size)
    for statement in statements:
        if statement not in copies:
            for axis in statement.ranges:
                sizes.pop(axis, None)
    return {
        axis.axis_name: width(axis.extent, target.vector_width(size))
        for axis, size in sizes.items()
    }


def _is_copy(store: UOp) -> bool:
    memory, value = store.place.param, store.value
    is_shared = memory.op is Ops.DEFINE and memory.space == "shared"
    return is_shared and value.op is Ops.LOAD and value.place.param.op is Ops.PARAM


def statement_lanes(
    statement: UOp, widths: Mapping[str, int]
) -> tuple[list[UOp], list[UOp], UOp | None]:
    """Return the lane axes along which a statement writes, those that it only combines, both sorted
    by name, and the axis of its vectors, one of the former; None for scalars."""
    target, value = statement.src
    lanes = sorted((r for r in target.ranges if r.axis_kind.is_lane), key=_name)
    rest = (r for r in value.ranges if r.axis_kind.is_lane and r not in lanes)
    vector = next((r for r in lanes if r.axis_name == statement.vector), None)
    if vector is not None and widths[vector.axis_name] == 1:
        vector = None
    return lanes, sorted(rest, key=_name), vector


def _name(axis: UOp) -> str:
    return axis.axis_name


def starts(axis: UOp | None, widths: Mapping[str, int]) -> range:
    """Return the positions at which the vectors along an axis begin; only 0 without an axis."""
    if axis is None:
        return range(1)
    return range(0, axis.extent, widths[axis.axis_name])


def spread(
    axes: list[UOp], vector: UOp | None, widths: Mapping[str, int]
) -> Iterator[dict[UOp, int]]:
    """Yield lane assignments, the axis with most registers outermost: so the inner axes have few
    operands, which stay in registers."""
    steps = {a: starts(a, widths) if a is vector else range(a.extent) for a in axes}
    ordered = sorted(axes, key=lambda a: (-len(steps[a]), a is vector))
    for values in product(*[steps[a] for a in ordered]):
        yield dict(zip(ordered, values, strict=True))


def has_lanes(node: UOp) -> bool:
    """Whether a value differs between lanes."""
    return any(r.axis_kind.is_lane for r in node.ranges)


def is_value(node: UOp) -> bool:
    """Whether an index is computed from a number in memory, or from one combined over lanes."""
    if node.op is Ops.RANGE:
        return False
    return any(leaves([node], Ops.LOAD)) or any(leaves([node], Ops.REDUCE))


def widened(parts: list[UOp], count: int) -> list[UOp]:
    """Return operands, all `count` lanes wide; scalar indexes beside 32-bit lanes become 32
    bits."""
    lane_types = {p.dtype.scalar for p in parts if p.dtype.count > 1}
    out = []
    for part in parts:
        if part.dtype.count == 1:
            if part.dtype.kind == "index" and dtypes.int32 in lane_types:
                part = narrow(part)
            part = UOp(Ops.BROADCAST, part.dtype.vec(count), (part,))
        out.append(part)
    return out


def narrow(part: UOp) -> UOp:
    """Return an index in 32 bits."""
    return UOp.const(dtypes.int32, part.arg) if part.is_const else part.cast(dtypes.int32)
