"""Arithmetic of a linear program, for all work-items at once, and the values that depend on
unwritten memory.

Sections: Arithmetic of a linear program, for all work-items at once, and the values that depend
on unwritten memory; Low-precision floats of a program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from inspect import unwrap
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.tiles import exchanged, multiplied, undefined_products
from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.node.ops import OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype

# --------------------------------------------------------------------------------------------------
# Arithmetic of a linear program, for all work-items at once, and the values that depend on
# unwritten memory.

_ELEMENTWISE: dict[Ops, Callable[..., Array]] = {
    op: unwrap(row.python) for op, row in OPS.items() if row.python is not None
}


def computed(node: UOp, sources: Sequence[Array]) -> Array:
    """Return the value of a node: (groups, items), or with a last dimension for the lanes of a
    vector. Dimensions may have size 1."""
    op, count = node.op, node.dtype.count
    if op is Ops.HREDUCE:
        whole = whole_vector(sources[0], node.src[0].dtype.count)
        total = REDUCTIONS[node.combines].ufunc.reduce(whole, -1)
        return total.astype(node.dtype.numpy)
    if op is Ops.WMMA:
        return multiplied(node.arg, *whole_sources(node, sources))
    if op is Ops.EXCHANGE:
        return exchanged(*node.arg, *whole_sources(node, sources))
    moved = _moved_lanes(node, sources)
    if moved is not None:
        return moved
    parts = [with_lanes(value, s, count) for value, s in zip(sources, node.src, strict=True)]
    if op in (Ops.CAST, Ops.BITCAST):
        convert = cast_array if op is Ops.CAST else bitcast_array
        kinds = node.src[0].dtype.scalar, node.dtype.scalar
        return convert(np.asarray(parts[0]), *kinds)
    return _ELEMENTWISE[op](*parts)


def undefined(node: UOp, sources: Sequence[Array], shadows: Sequence[Array]) -> Array:
    """Return which values of a node depend on unwritten memory; `shadows` has the same of each
    source. A choice depends on its condition, and on the chosen value."""
    op, count = node.op, node.dtype.count
    if op is Ops.HREDUCE:
        return whole_vector(shadows[0], node.src[0].dtype.count).any(-1)
    if op is Ops.WMMA:
        return undefined_products(node.arg, *whole_sources(node, shadows))
    if op is Ops.EXCHANGE:
        return exchanged(*node.arg, *whole_sources(node, shadows))
    moved = _moved_lanes(node, shadows)
    if moved is not None:
        return moved
    parts = [with_lanes(shadow, s, count) for shadow, s in zip(shadows, node.src, strict=True)]
    if op is Ops.WHERE:
        condition = with_lanes(sources[0], node.src[0], count)
        return parts[0] | np.where(condition, parts[1], parts[2])
    if op in (Ops.AND, Ops.OR) and node.dtype.scalar is dtypes.bool:
        one, other = (
            with_lanes(value, s, count) != (op is Ops.OR)
            for value, s in zip(sources, node.src, strict=True)
        )
        # false and anything is false, true or anything is true
        return (parts[0] | parts[1]) & (parts[0] | one) & (parts[1] | other)
    total = parts[0]
    for part in parts[1:]:
        total = total | part
    return total


class Exchange:
    """The partners of a group's work-items in a shuffle over a distance: for each work-item the
    partner's lane in the warp, its number in the group, and whether it exists (`is_there`)."""

    def __init__(self, count: int, warp_lanes: int, distance: int):
        numbers = np.arange(count)
        own = numbers % warp_lanes
        self.lanes = own ^ distance
        self.items = numbers - own + self.lanes
        self.is_there = (self.lanes < warp_lanes) & (self.items < count)

    def of_partners(self, values: Array) -> Array:
        """Return the values (groups, items, ..) of the partners."""
        return values[:, np.where(self.is_there, self.items, 0)]


def _moved_lanes(node: UOp, sources: Sequence[Array]) -> Array | None:
    """Return the value of a node that only moves lanes; None for any other node."""
    op = node.op
    if op is Ops.BROADCAST:
        return np.asarray(sources[0])[..., None]
    if op is Ops.STACK:
        return np.stack(np.broadcast_arrays(*map(np.asarray, sources)), -1)
    if op is Ops.EXTRACT:
        return whole_vector(sources[0], node.src[0].dtype.count)[..., node.arg]
    if op is Ops.SHUFFLE:
        width = node.src[0].dtype.count
        both = [whole_vector(value, width) for value in sources]
        shape = np.broadcast_shapes(*[value.shape for value in both])
        whole = np.concatenate([np.broadcast_to(v, shape) for v in both], -1)
        return whole[..., list(node.arg)]
    return None


def whole_sources(node: UOp, sources: Sequence[Array]) -> list[Array]:
    """Return the sources of a WMMA or EXCHANGE, each with all elements: (.., lanes, elements)."""
    return [
        whole_vector(value if s.dtype.count > 1 else np.asarray(value)[..., None], s.dtype.count)
        for value, s in zip(sources, node.src, strict=True)
    ]


def whole_vector(value: Array, count: int) -> Array:
    """Return a vector with all its lanes."""
    value = np.asarray(value)
    return np.broadcast_to(value, (*value.shape[:-1], count))


def with_lanes(value: Array, node: UOp, count: int) -> Array:
    """Return a value with a dimension for lanes, if the operation has lanes (`count` > 1)."""
    return np.asarray(value)[..., None] if node.dtype.count == 1 and count > 1 else value


def spread(value: Array, node: UOp, shape: tuple[int, ...]) -> Array:
    """Return a value for all work-items, and lanes."""
    if len(shape) == 3 and node.dtype.count == 1:
        value = np.asarray(value)[..., None]
    return np.broadcast_to(value, shape)


# --------------------------------------------------------------------------------------------------
# Low-precision floats of a program: the values and memories that hold them.
#
# Lowering turns a float that a device does not convert itself into its bits: unsigned integers in
# registers and memory. The dtypes of the arguments, and of tensor cores' operands, say which
# integers are the bits of which dtype; loads, stores and moves of lanes pass this on.

_ELEMENT_MOVES = frozenset({Ops.STACK, Ops.EXTRACT, Ops.SHUFFLE, Ops.BROADCAST, Ops.AFTER, Ops.SET})
"""Ops whose value consists of unchanged elements of their sources."""


def stored_floats(linear: Sequence[UOp], arguments: Mapping[int, DType]) -> dict[UOp, DType]:
    """Return the dtype of each value and memory that has low-precision floats, or their bits;
    `arguments` are the dtypes of the arguments that the program is called with, by slot."""
    dtype_of: dict[UOp, DType] = {}
    neighbours: defaultdict[UOp, list[UOp]] = defaultdict(list)
    for node in linear:
        for one, other in _same_bits(node):
            neighbours[one].append(other)
            neighbours[other].append(one)
    starts = [*_argument_floats(linear, arguments), *_tile_floats(linear)]
    starts += _own_floats(linear)
    while starts:
        node, dtype = starts.pop()
        if node in dtype_of or not _has_bits_of(node, dtype):
            continue
        dtype_of[node] = dtype
        starts += [(other, dtype) for other in neighbours[node]]
    return dtype_of


def numbers(bits: Array, dtype: DType | None) -> Array:
    """Return `bits` as numbers of a dtype; unchanged for None, and if they have that dtype."""
    if dtype is None:
        return bits
    whole = np.ascontiguousarray(bits)
    if whole.dtype != dtype.numpy:
        whole = whole.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    return whole.reshape(np.shape(bits))


def _argument_floats(
    linear: Sequence[UOp], arguments: Mapping[int, DType]
) -> list[tuple[UOp, DType]]:
    memories = {n.place.param for n in linear if n.op in (Ops.LOAD, Ops.STORE)}
    return [
        (node, arguments[node.slot])
        for node in memories
        if node.op is Ops.PARAM and node.slot in arguments
    ]


def _tile_floats(linear: Sequence[UOp]) -> list[tuple[UOp, DType]]:
    products = [n for n in linear if n.op is Ops.WMMA]
    return [(tile, n.arg.operand) for n in products for tile in n.src[:2]]


def _own_floats(linear: Sequence[UOp]) -> list[tuple[UOp, DType]]:
    """Return the values and memories whose own dtype is a low-precision float."""
    memories = [n.place.param for n in linear if n.op in (Ops.LOAD, Ops.STORE)]
    values = [value for n in linear for value in (n, *n.src)]
    nodes = dict.fromkeys((*memories, *values))
    return [
        (n, n.dtype.scalar)
        for n in nodes
        if n.dtype.is_low_precision and n.op not in (Ops.CONST, Ops.INDEX)
    ]


def _same_bits(node: UOp) -> list[tuple[UOp, UOp]]:
    """Return the pairs of values and memories to which a node gives the same bits. Constants are
    left out: other values share them."""
    pairs: list[tuple[UOp, UOp]] = []
    if node.op is Ops.LOAD:
        pairs = [(node, node.place.param)]
    elif node.op is Ops.STORE:
        pairs = [(node.src[1], node.place.param)]
    elif node.op is Ops.SET:
        pairs = [(node.src[0], node.src[1])]
    elif node.op is Ops.WHERE:
        pairs = [(node, source) for source in node.src[1:]]
    elif node.op in _ELEMENT_MOVES:
        pairs = [(node, source) for source in node.src[:1]]
        if node.op in (Ops.STACK, Ops.SHUFFLE):
            pairs = [(node, source) for source in node.src]
    return [pair for pair in pairs if Ops.CONST not in (pair[0].op, pair[1].op)]


def _has_bits_of(node: UOp, dtype: DType) -> bool:
    scalar = node.dtype.scalar
    is_bits = scalar in dtypes.uints and scalar.itemsize == dtype.itemsize
    return dtype.is_low_precision and (is_bits or scalar is dtype)
