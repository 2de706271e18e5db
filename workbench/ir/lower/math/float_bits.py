"""The bit layout of floats, and arithmetic that the polynomials of functions share."""

from __future__ import annotations

import math
from typing import NamedTuple

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp


class FloatFormat(NamedTuple):
    """The bit layout of a float dtype: `uint` is the integer of its width; a value is 2**(exponent
    - bias) * 1.fraction. `least` is the least normal number."""

    uint: DType
    fraction_bits: int
    bias: int
    least: float

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.fraction_bits

    def bits(self, value: float) -> int:
        """Return the bits of a positive normal float."""
        fraction, exponent = math.frexp(value)
        mantissa = int(math.ldexp(fraction, self.fraction_bits + 1))
        return ((exponent - 2 + self.bias) << self.fraction_bits) + mantissa


FORMATS = {
    dtypes.float32: FloatFormat(dtypes.uint32, 23, 127, 2.0**-126),
    dtypes.float64: FloatFormat(dtypes.uint64, 52, 1023, 2.0**-1022),
}


def shl(x: UOp, amount: int | UOp) -> UOp:
    """Return x << amount; the amount is known to be less than the width."""
    return x << amount


def shr(x: UOp, amount: int | UOp) -> UOp:
    """Return x >> amount; the amount is less than the width, and the sign bit is repeated if x is
    signed."""
    return x >> amount
