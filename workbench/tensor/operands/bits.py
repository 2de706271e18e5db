"""Bits read as another dtype, wider or narrower: parts of a word, the lowest first."""

from __future__ import annotations

from functools import reduce
from weakref import WeakKeyDictionary

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.numbered import numbered

_WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
"""The unsigned type of a number of bytes."""
_sources: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""The value whose bits a node has, which several operations take apart or join."""


def bits_as(value: UOp, dtype: DType) -> UOp:
    """Return the bits of `value` as `dtype`, along the last axis, whose bytes stay."""
    own, size = value.dtype.itemsize, dtype.itemsize
    if own == size:
        return value.bitcast(dtype)
    words = value.bitcast(_WORDS[own])
    words = _joined(words, size) if own < size else _cut(words, size)
    bits = words.bitcast(dtype)
    _sources[bits] = value
    return bits


def source_of_bits(node: UOp) -> UOp | None:
    """Return the value that `node` has the bits of; None if it is not what `bits_as` returns."""
    source = _sources.get(node)
    return node.src[0] if source is None and node.op is Ops.BITCAST else source


def _cut(words: UOp, size: int) -> UOp:
    """Return words of `size` bytes, several of each element."""
    *lead, count = words.shape
    parts = words.dtype.itemsize // size
    shape = (*lead, count, parts)
    place = numbered(parts, words.dtype) * (8 * size)
    shifts = expanded(_reshaped(place, (1,) * len(words.shape) + (parts,)), shape)
    wide = expanded(_reshaped(words, (*words.shape, 1)), shape)
    return _reshaped((wide >> shifts).cast(_WORDS[size]), (*lead, count * parts))


def _joined(words: UOp, size: int) -> UOp:
    """Return words of `size` bytes, each of several elements."""
    *lead, count = words.shape
    own, wide = words.dtype.itemsize, _WORDS[size]
    parts = size // own
    shape = (*lead, count // parts)
    rows = _reshaped(words, (*shape, parts)).cast(wide)
    box = tuple((0, n) for n in shape)
    lanes = [
        _reshaped(UOp(Ops.SHRINK, wide, (rows,), (*box, (i, i + 1))), shape) << 8 * own * i
        for i in range(parts)
    ]
    return reduce(lambda a, b: a | b, lanes)


def _reshaped(value: UOp, shape: Shape) -> UOp:
    return UOp(Ops.RESHAPE, value.dtype, (value,), shape)
