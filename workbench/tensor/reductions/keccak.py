"""Keccak, the hash function of SHA-3 and SHAKE, as one kernel a round.

The state is 25 words of 64 bits, in rows of five. A round mixes columns, rotates each word and
moves it, and combines neighbours in a row, as FIPS 202 defines it (theta, rho, pi, chi, iota).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import dtype_error, shape_error, short, whole
from workbench.tensor.operands.axes import iota
from workbench.tensor.operands.broadcast import expanded

_CONFIGURATIONS = {"sha3_224": (144, 6), "sha3_256": (136, 6), "shake_128": (168, 31)}
"""Bytes of a block, and the byte that ends a message, by name."""
_STATE_BYTES = 200
_CHUNK = 1 << 20
_LEAF = 4096
"""Bytes of the chunks that `hash` cuts its data into, and of the leaves of a chunk."""
_UINT = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


class Keccak(Base):
    """keccak, hash."""

    __slots__ = ()

    def keccak(self, cfg: str | tuple[int, int] = "sha3_256") -> Self:
        """Return the hash of the bytes of the last axis, as uint8.

        `cfg` is "sha3_224", "sha3_256" or "shake_128" (whose hash has 16 bytes), or a pair: the
        bytes of a block, a multiple of 8, and the byte that ends a message.
        Shapes: the last axis becomes the bytes of the hash.
        Errors: ShapeError for a tensor without axes; DTypeError for another `cfg`.
        """
        rate, ending = _configuration(cfg)
        if not self.ndim:
            raise shape_error(
                "cannot keccak a tensor without axes",
                "the bytes of the last axis are hashed",
                ".reshape(1)",
            )
        rows = self._bytes().reshape(
            math.prod(self.shape[:-1]), self.shape[-1] * self.dtype.itemsize
        )
        count = (_STATE_BYTES - rate) // 2
        if not rows.shape[0]:
            return self.full((*self.shape[:-1], count), 0, dtypes.uint8, self._device)
        state = rows._absorbed(rate, ending)
        hashes = state._bytes().shrink([None, (0, count)])
        return hashes.reshape(*self.shape[:-1], count)

    def hash(self) -> Self:
        """Return a hash of 16 bytes of all elements: chunks of 1 MiB are hashed, and their hashes
        again, until one is left.

        Also known as: tinygrad hash, whose value it is.
        """
        data = self.reshape(-1)._bytes()
        chunks = -(-data.shape[0] // _CHUNK)
        while chunks > 1:
            data = data._chunk_hashes(chunks)
            chunks = -(-data.shape[0] // _CHUNK)
        return data._chunk_hashes(1)

    def _chunk_hashes(self, chunks: int) -> Self:
        """Return the hashes of chunks, end to end, the last one filled with zeros."""
        whole_chunks = self.pad([(0, chunks * _CHUNK - self.numel())])
        leaves = whole_chunks.reshape(chunks, _CHUNK // _LEAF, _LEAF).keccak("shake_128")
        return leaves.reshape(chunks, -1).keccak("shake_128").reshape(-1)

    def _bytes(self) -> Self:
        """Return the bytes of the elements along the last axis, the lowest first."""
        bits = 8 * self.dtype.itemsize
        if bits == 8:
            value = self.cast(dtypes.uint8) if self.dtype.is_bool else self
            return value.bitcast(dtypes.uint8)
        word = self.bitcast(_UINT[bits]).uop
        size = bits // 8
        wide = (*self.shape, size)
        shift = expanded(iota(size, word.dtype) * 8, wide)
        spread = self._with(word).unsqueeze(-1).expand(wide)
        parts = spread._with(spread.uop.alu(Ops.SHR, shift)).cast(dtypes.uint8)
        return parts.reshape(*self.shape[:-1], self.shape[-1] * size)

    def _absorbed(self, rate: int, ending: int) -> Self:
        """Return the state, (rows, 25), after all blocks of (rows, bytes)."""
        rows, length = self.shape
        blocks = length // rate + 1
        message = self.pad([None, (0, blocks * rate - length)])
        place = self._with(iota(blocks * rate))
        ends = place.eq(length).where(ending, 0) ^ place.eq(blocks * rate - 1).where(128, 0)
        words = (message ^ ends.cast(dtypes.uint8)).reshape(rows, blocks, rate // 8, 8)
        words = words._words().contiguous()
        constants = [self._table([n, *[0] * 24]) for n in _ROUND_CONSTANTS]
        rotations = self._table(_ROTATIONS)
        state = self.full((rows, 25), 0, dtypes.uint64, self._device)
        for block in range(blocks):
            part = words.shrink([None, (block, block + 1), None]).reshape(rows, -1)
            state = state ^ part.pad([None, (0, 25 - rate // 8)])
            for constant in constants:
                state = state._round(rotations, constant).contiguous()
        return state

    def _words(self) -> Self:
        """Return the words of the last axis, 8 bytes each, the lowest first."""
        shift = expanded(iota(8, dtypes.uint64) * 8, self.shape)
        wide = self.cast(dtypes.uint64).uop
        return self._with(wide.alu(Ops.SHL, shift)).sum(-1, dtype=dtypes.uint64)

    def _round(self, rotations: Self, constant: Self) -> Self:
        """Return the state after a round; the constant is for the first word alone."""
        rows = self.shape[0]
        square = self.reshape(rows, 5, 5)
        parity = square._row(0)
        for y in range(1, 5):
            parity = parity ^ square._row(y)
        one = self._with(self.uop.like(1))
        mixed = parity.roll(1, 1) ^ parity.roll(-1, 1)._bits_rotated(one)
        words = (square ^ mixed.unsqueeze(1)).reshape(rows, 25)
        moved = words._elements_at(1, self._with(_sources()))
        plane = moved._bits_rotated(rotations).reshape(rows, 5, 5)
        after, next_after = plane.roll(-1, 2), plane.roll(-2, 2)
        return (plane ^ (~after & next_after)).reshape(rows, 25) ^ constant

    def _row(self, y: int) -> Self:
        return self.shrink([None, (y, y + 1), None]).squeeze(1)

    def _bits_rotated(self, amount: Self) -> Self:
        """Return the words with their bits moved up by `amount`, the highest to the lowest."""
        word, shift = self.uop, expanded(amount.uop, self.shape)
        back = shift * -1 + 64
        rotated = word.alu(Ops.SHL, shift) | word.alu(Ops.SHR, back)
        return self._with(rotated, amount)

    def _table(self, words: list[int]) -> Self:
        return type(self)(np.array(words, np.uint64), device=self._device)


def _sources() -> UOp:
    """Return which word goes to each place: to (x, y) that of ((x + 3 y) mod 5, x)."""
    place = iota(25)
    x, y = place % 5, place // 5
    return x * 5 + (x + y * 3) % 5


def _rotations() -> list[int]:
    """Return the rotation, in bits, of the word that goes to each place."""
    amounts = {(0, 0): 0}
    x, y = 1, 0
    for step in range(24):
        amounts[x, y] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return [amounts[(x + 3 * y) % 5, x] for y in range(5) for x in range(5)]


def _round_constants() -> list[int]:
    """Return the constant of each round: bits of a shift register at the places 2**j - 1."""
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << ((1 << j) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return constants


_ROTATIONS = _rotations()
_ROUND_CONSTANTS = _round_constants()


def _configuration(cfg: Any) -> tuple[int, int]:
    if isinstance(cfg, str) and cfg in _CONFIGURATIONS:
        return _CONFIGURATIONS[cfg]
    if isinstance(cfg, list | tuple) and len(cfg) == 2:
        rate, ending = (whole(n, "keccak: cfg", 0) for n in cfg)
        if rate % 8 == 0 and 0 < rate < _STATE_BYTES and ending < 256:
            return rate, ending
    raise dtype_error(
        f"cannot keccak with cfg={short(cfg)}",
        "it is one of " + ", ".join(_CONFIGURATIONS) + ", or a block's bytes, a multiple of 8"
        " below 200, and the byte that ends a message",
        'cfg="sha3_256"',
    )
