"""Bits read as another dtype, which may be wider or narrower: parts of a word, the lowest first."""

from __future__ import annotations

from functools import reduce

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp
from workbench.tensor.movement.movement import reshaped, shrunk
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.numbered import numbered

_WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
"""The unsigned type of a number of bytes."""


def bits_as(value: UOp, dtype: DType) -> UOp:
    """Return the bits of `value` as `dtype`, along the last axis, whose bytes stay."""
    own, size = value.dtype.itemsize, dtype.itemsize
    if own == size:
        return value.bitcast(dtype)
    words = value.bitcast(_WORDS[own])
    words = _joined(words, size) if own < size else _cut(words, size)
    return words.bitcast(dtype)


def _cut(words: UOp, size: int) -> UOp:
    """Return words of `size` bytes, several of each element."""
    *lead, count = words.shape
    parts = words.dtype.itemsize // size
    shape = (*lead, count, parts)
    place = numbered(parts, words.dtype) * (8 * size)
    shifts = expanded(reshaped(place, (1,) * len(words.shape) + (parts,)), shape)
    wide = expanded(reshaped(words, (*words.shape, 1)), shape)
    return reshaped((wide >> shifts).cast(_WORDS[size]), (*lead, count * parts))


def _joined(words: UOp, size: int) -> UOp:
    """Return words of `size` bytes, each of several elements."""
    *lead, count = words.shape
    own, wide = words.dtype.itemsize, _WORDS[size]
    parts = size // own
    shape = (*lead, count // parts)
    rows = reshaped(words, (*shape, parts)).cast(wide)
    box = tuple((0, n) for n in shape)
    lanes = [
        reshaped(shrunk(rows, (*box, (i, i + 1))), shape) << 8 * own * i
        for i in range(parts)
    ]
    return reduce(lambda a, b: a | b, lanes)
