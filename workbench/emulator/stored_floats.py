"""Low-precision floats of a program: the values and memories that hold them.

Of a float that a device does not convert itself, lowering leaves the bits, unsigned integers in
registers and memory. What the arguments of the program hold, and what tensor cores take, says which
of them are bits of which dtype; they stay so as far as values are loaded, stored, and put together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype
_TOGETHER = frozenset({Ops.STACK, Ops.EXTRACT, Ops.SHUFFLE, Ops.BROADCAST, Ops.AFTER, Ops.SET})
"""Ops that give elements of their sources as they are."""


def stored_floats(linear: Sequence[UOp], arguments: Mapping[int, DType]) -> dict[UOp, DType]:
    """Return the dtype of each value and memory that has low-precision floats, or their bits;
    `arguments` are the dtypes of what the program is called with, by slot."""
    dtype_of: dict[UOp, DType] = {}
    neighbours: defaultdict[UOp, list[UOp]] = defaultdict(list)
    for node in linear:
        for one, other in _same_bits(node):
            neighbours[one].append(other)
            neighbours[other].append(one)
    starts = [*_of_arguments(linear, arguments), *_of_tensor_cores(linear)]
    starts += _of_themselves(linear)
    while starts:
        node, dtype = starts.pop()
        if node in dtype_of or not _has_bits_of(node, dtype):
            continue
        dtype_of[node] = dtype
        starts += [(other, dtype) for other in neighbours[node]]
    return dtype_of


def numbers(bits: Array, dtype: DType | None) -> Array:
    """Return the numbers of a dtype whose `bits` they are, or that have it; what they are, for
    None."""
    if dtype is None:
        return bits
    whole = np.ascontiguousarray(bits)
    if whole.dtype != dtype.numpy:
        whole = whole.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    return whole.reshape(np.shape(bits))


def _of_arguments(linear: Sequence[UOp], arguments: Mapping[int, DType]) -> list[tuple[UOp, DType]]:
    memories = {n.place.param for n in linear if n.op in (Ops.LOAD, Ops.STORE)}
    return [
        (node, arguments[node.slot])
        for node in memories
        if node.op is Ops.PARAM and node.slot in arguments
    ]


def _of_tensor_cores(linear: Sequence[UOp]) -> list[tuple[UOp, DType]]:
    products = [n for n in linear if n.op is Ops.WMMA]
    return [(tile, n.arg.operand) for n in products for tile in n.src[:2]]


def _of_themselves(linear: Sequence[UOp]) -> list[tuple[UOp, DType]]:
    """Return what has the dtype of a low-precision float."""
    memories = [n.place.param for n in linear if n.op in (Ops.LOAD, Ops.STORE)]
    values = [value for n in linear for value in (n, *n.src)]
    nodes = dict.fromkeys((*memories, *values))
    return [
        (n, n.dtype.scalar)
        for n in nodes
        if n.dtype.is_low_precision and n.op not in (Ops.CONST, Ops.INDEX)
    ]


def _same_bits(node: UOp) -> list[tuple[UOp, UOp]]:
    """Return the pairs of values and memories that have the same bits by a node. A constant is none
    of these: other values share it."""
    pairs: list[tuple[UOp, UOp]] = []
    if node.op is Ops.LOAD:
        pairs = [(node, node.place.param)]
    elif node.op is Ops.STORE:
        pairs = [(node.src[1], node.place.param)]
    elif node.op is Ops.SET:
        pairs = [(node.src[0], node.src[1])]
    elif node.op is Ops.WHERE:
        pairs = [(node, source) for source in node.src[1:]]
    elif node.op in _TOGETHER:
        pairs = [(node, source) for source in node.src[:1]]
        if node.op in (Ops.STACK, Ops.SHUFFLE):
            pairs = [(node, source) for source in node.src]
    return [pair for pair in pairs if Ops.CONST not in (pair[0].op, pair[1].op)]


def _has_bits_of(node: UOp, dtype: DType) -> bool:
    scalar = node.dtype.scalar
    is_bits = scalar in dtypes.uints and scalar.itemsize == dtype.itemsize
    return dtype.is_low_precision and (is_bits or scalar is dtype)
