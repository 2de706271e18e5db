"""Conversions of low-precision floats from and to float32, by integer arithmetic on their bits.

Nothing branches or calls a library. Source: Giesen 2012, "Float->half conversion variants".
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.base.dtypes import DType, dtypes
from workbench.ir.lower.math.float_bits import FORMATS, shl, shr
from workbench.ir.node.uop import UOp

_U32 = dtypes.uint32
_F32 = dtypes.float32
_SINGLE = FORMATS[_F32]
# masks of a float32 in a uint32, and the bits of infinity
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


class StorageFormat(NamedTuple):
    """The layout of a float whose exponent has fewer bits than a float32's, and its last codes.

    `word` is the integer of its width. Codes from `special` on are infinity or NaN. A float32 of
    `limit` or more becomes the code `large`, a NaN the code `nan`.
    """

    word: DType
    fraction_bits: int
    bias: int
    special: int
    limit: float
    large: int
    nan: int

    @property
    def cut(self) -> int:
        """How many bits of a float32's fraction it lacks."""
        return _SINGLE.fraction_bits - self.fraction_bits

    def widen(self, bits: UOp) -> UOp:
        """Moved to a float32's exponent and fraction, the bits are a value some power of two too
        small; a product corrects that, for subnormals too. Infinity and NaN are selected apart."""
        bits, sign = bits.cast(_U32), 1 << self.word.bits - 1
        placed = shl(bits & sign - 1, self.cut)
        scaled = placed.bitcast(_F32) * 2.0 ** (_SINGLE.bias - self.bias)
        is_number = placed < (self.special << self.cut)
        value = is_number.where(scaled.bitcast(_U32), placed | _INFINITY)
        return (value | shl(bits & sign, 32 - self.word.bits)).bitcast(_F32)

    def round(self, x: UOp) -> UOp:
        """Three ranges, each computed and one selected: normal numbers round as bfloat16 does, with
        the exponent moved; adding a power of two to smaller ones makes the sum's rounding that of
        subnormals; above both there are infinity, or the greatest number, and NaN."""
        bits = x.bitcast(_U32)
        size = bits & _MAGNITUDE
        is_nan = size.like(_INFINITY) < size
        large = is_nan.where(size.like(self.nan), size.like(self.large))
        is_subnormal = size < _SINGLE.bits(2.0 ** (1 - self.bias))
        finite = is_subnormal.where(self._subnormal(size), self._normal(size))
        rounded = (size < _SINGLE.bits(self.limit)).where(finite, large)
        return (rounded | shr(bits & _SIGN, 32 - self.word.bits)).cast(self.word)

    def _normal(self, size: UOp) -> UOp:
        moved = (_SINGLE.bias - self.bias) << _SINGLE.fraction_bits
        half = (1 << self.cut - 1) - 1
        return shr(size + (half - moved) + (shr(size, self.cut) & 1), self.cut)

    def _subnormal(self, size: UOp) -> UOp:
        """The last place of the sum is that of subnormals: there they are integers."""
        shift = 2.0 ** (1 - self.bias + self.cut)
        return (size.bitcast(_F32) + shift).bitcast(_U32) + -_SINGLE.bits(shift)


def widen_bfloat16(bits: UOp) -> UOp:
    """The bits are the upper half of a float32."""
    return shl(bits.cast(_U32), 16).bitcast(_F32)


def round_bfloat16(x: UOp) -> UOp:
    """Add just under half of what is cut off, and one more where the result would be odd: a
    carry goes on into the exponent, up to infinity. A NaN could carry too, and is set apart."""
    bits = x.bitcast(_U32)
    rounded = shr(bits + 0x7FFF + (shr(bits, 16) & 1), 16)
    is_nan = bits.like(_INFINITY) < (bits & _MAGNITUDE)
    return is_nan.where(shr(bits, 16) | 0x40, rounded).cast(dtypes.uint16)


_u8 = dtypes.uint8
FLOAT16 = StorageFormat(dtypes.uint16, 10, 15, 0x7C00, 65536.0, 0x7C00, 0x7E00)
FP8E5M2 = StorageFormat(_u8, 2, 15, special=0x7C, limit=65536.0, large=0x7C, nan=0x7F)
FP8E4M3 = StorageFormat(_u8, 3, 7, special=0x7F, limit=448.0, large=0x7E, nan=0x7F)
"""It has no infinity: what is too large is the greatest number, 448."""
