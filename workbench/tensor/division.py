"""Division of nodes that are one dtype and shape: true, truncated, floored, and what is left."""

from __future__ import annotations

import math

from workbench.dtypes import DType, dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.tensor.broadcast import cast_to, filled
from workbench.tensor.rounding import rounded
from workbench.tensor.signs import magnitude, with_sign_of


def divided(a: UOp, b: UOp, rounding: str | None) -> UOp:
    """Return a / b; with `rounding` "trunc" or "floor" rounded so. No bools.

    Dtypes: integers give float32; rounded, they stay integers.
    """
    if rounding is None and not a.dtype.is_float:
        a, b = cast_to(a, dtypes.default_float), cast_to(b, dtypes.default_float)
    if not a.dtype.is_float:
        return a.alu(Ops.IDIV, b) if rounding == "floor" else _truncated(a, b)
    if rounding == "floor":
        return _floored(a, b)[0]
    quotient = a.alu(Ops.FDIV, b)
    return quotient if rounding is None else quotient.alu(Ops.TRUNC)


def remainder(a: UOp, b: UOp) -> UOp:
    """Return a - floor(a / b) * b, which has the sign of b. No bools.

    Of floats it is exact, whatever their sizes, and rounded once.
    """
    return _floored(a, b)[1] if a.dtype.is_float else a.alu(Ops.MOD, b)


def _floored(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return floor(a / b) of floats, and what is left, as numpy has them at the infinities."""
    kind = a.dtype
    steps = _steps(a, b)
    a, b = filled(a, b)
    a, b = cast_to(a, dtypes.float64), cast_to(b, dtypes.float64)
    left, by = magnitude(a), magnitude(b)
    infinite = by.like(math.inf)
    is_infinite = by.alu(Ops.CMPEQ, infinite).alu(Ops.AND, left < infinite)
    rest = is_infinite.where(left, _left_over(left, by, kind, steps))
    direct = a.alu(Ops.FDIV, b)
    times = rounded((left + rest.alu(Ops.NEG)).alu(Ops.FDIV, by))
    # Against the sign it goes once more, and what is left is what it then exceeds a by.
    against = (
        (a < 0.0)
        .alu(Ops.XOR, b < 0.0)
        .alu(Ops.AND, rest.alu(Ops.CMPNE, rest.like(0.0)))
    )
    rest = with_sign_of(against.where(by + rest.alu(Ops.NEG), rest), b)
    whole = with_sign_of(against.where(times + 1.0, times), direct)
    by_infinity = against.where(direct.like(-1.0), direct)
    whole = is_infinite.where(
        by_infinity, b.alu(Ops.CMPEQ, b.like(0.0)).where(direct, whole)
    )
    return cast_to(whole, kind), cast_to(rest, kind)


_STEP_BITS = {
    dtypes.float16: 40,
    dtypes.bfloat16: 43,
    dtypes.float32: 28,
    dtypes.float64: 26,
}
"""Bits of a quotient so short that its product with a divisor is exact in float64: for a divisor
of float64, with either half of its bits."""
_ROUND = 27
"""Steps that are taken with one inverse: the quotient of a float64 may be 2**2098."""


def _steps(a: UOp, b: UOp) -> int:
    """Return in how many steps of _STEP_BITS all quotients of a and b are found."""
    kind = a.dtype
    greatest = {dtypes.float16: 16, dtypes.float64: 1024}.get(kind, 128)
    least = 2 - greatest - kind.fraction_bits
    if a.is_const and 0 < abs(a.arg) < math.inf:
        greatest = math.frexp(a.arg)[1]
    if b.is_const and 0 < abs(b.arg) < math.inf:
        least = math.frexp(b.arg)[1] - 1
    return -(-max(1, greatest - least) // _STEP_BITS[kind])


def _left_over(left: UOp, by: UOp, kind: DType, steps: int) -> UOp:
    """Return what is left of `left` after all whole multiples of `by`; both are not negative."""
    if kind is dtypes.float64:
        # The multiple that is nearest to a very large number may be infinite: halves are taken.
        large = left.like(2.0**1023) <= left
        half = _least_left(large.where(left * 0.5, left), by, kind, steps)
        beyond = by + half.alu(Ops.NEG)
        twice = (half < beyond).where(half + half, half + beyond.alu(Ops.NEG))
        return large.where(twice, half)
    return _least_left(left, by, kind, steps)


def _least_left(left: UOp, by: UOp, kind: DType, steps: int) -> UOp:
    rest, width = left, _STEP_BITS[kind]
    for first in reversed(range(0, steps, _ROUND)):
        divisor = by
        for _ in range(0, first, _ROUND):
            divisor = divisor * 2.0 ** (width * _ROUND)
        taken = _taken(rest, divisor, kind, min(steps - first, _ROUND))
        # where the divisor is infinite there is nothing to take
        rest = (divisor < math.inf).where(taken, rest) if first else taken
    return (rest < 0.0).where(rest + by, rest)


def _taken(rest: UOp, by: UOp, kind: DType, steps: int) -> UOp:
    """Return `rest`, less the nearest multiple of `by`; the quotient fits in `steps` steps.

    From the top, each step takes multiples by a quotient of few bits, and all of it is exact.
    Adding 1.5 * 2**(52 + n) leaves no room for what is below 2**n. A quotient that is rounded
    may be off, and leave a little more than half of the divisor; the next step takes that.
    """
    halves: tuple[UOp, ...] = (by,)
    if kind is dtypes.float64:
        # the inverse of a very small number would be infinite
        small = (by < 2.0**-500).alu(Ops.AND, by.like(0.0) < by)
        factor = small.where(by.like(2.0**250), by.like(1.0))
        rest, by = rest * factor * factor, by * factor * factor
        halves = _halves(by)
    inverse = by.alu(Ops.RECIP)
    for step in reversed(range(steps)):
        shift = 1.5 * 2.0 ** (52 + _STEP_BITS[kind] * step)
        times = (rest * inverse + shift) + -shift
        for half in halves:
            rest = rest + (times * half).alu(Ops.NEG)
    if kind is dtypes.float64:
        back = small.where(by.like(2.0**-250), by.like(1.0))
        rest = rest * back * back
    return rest


def _halves(x: UOp) -> tuple[UOp, UOp]:
    """Return two float64 of half as many bits each, whose sum is x."""
    bits = x.bitcast(dtypes.int64).alu(Ops.AND, UOp.const(dtypes.int64, -1 << 27))
    high = bits.bitcast(dtypes.float64)
    return high, x + high.alu(Ops.NEG)


def _truncated(a: UOp, b: UOp) -> UOp:
    """Return the integer quotient rounded towards zero.

    Floored and truncated differ by one where the signs differ and something is left over.
    """
    a, b = filled(a, b)
    quotient = a.alu(Ops.IDIV, b)
    left_over = a.alu(Ops.MOD, b).alu(Ops.CMPNE, a.like(0))
    differ = (a < 0).alu(Ops.XOR, b < 0)
    up = left_over.alu(Ops.AND, differ)
    return up.where(quotient + a.like(1), quotient)
