"""Decomposition: what no machine does in one instruction, in terms of what every machine does.

EXP2 and LOG2 become branch-free polynomials, so they vectorise like any other arithmetic;
IDIV, MOD and shifts get the guards that their meaning asks for, as few as bounds allow; a
float product that is added becomes an FMA. Nothing here loops or calls a library.

The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to
the float at hand); each table names its function and its error. Source of the reductions:
Cody and Waite (exp2), fdlibm's log (log2 in float64).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from workbench.dtypes import DType, dtypes
from workbench.ir.ops import Ops
from workbench.ir.patterns import Pat, const, op, var
from workbench.ir.rewrite import Rule, RuleSet
from workbench.ir.uop import UOp


class FloatFormat(NamedTuple):
    """How a float type keeps its bits: `uint` is the integer of its width; a value is
    2**(exponent - bias) * 1.fraction. `least` is the least normal number; `half_root` the
    bits of sqrt(1/2)."""

    uint: DType
    fraction_bits: int
    bias: int
    least: float
    half_root: int


FORMATS = {
    dtypes.float32: FloatFormat(dtypes.uint32, 23, 127, 2.0**-126, 0x3F3504F3),
    dtypes.float64: FloatFormat(
        dtypes.uint64, 52, 1023, 2.0**-1022, 0x3FE6A09E667F3BCD
    ),
}

# (2**f - 1) / f on [-1/2, 1/2], lowest power first. Error of 1 + f*p(f) relative to 2**f:
# 2**-28.9 and 2**-58.0.
EXP2 = {
    dtypes.float32: (
        0.6931471824645996, 0.24022647738456726, 0.055503323674201965,
        0.00961843691766262, 0.0013398873852565885, 0.00015353361959569156,
    ),
    dtypes.float64: (
        0.6931471805599453, 0.2402265069591013, 0.055504108664820084,
        0.00961812910759412, 0.0013333558146774623, 0.00015403530457111994,
        1.5252733493125617e-05, 1.3215435282355252e-06, 1.0178199572916699e-07,
        7.0737832408016595e-09, 4.4347711022828345e-10,
    ),
}  # fmt: skip

# float32: (log2(1 + t) - t/ln 2) / t**2 for 1 + t in [sqrt(1/2), sqrt(2)]; error relative to
# log2(1 + t): 2**-27.9.
LOG2_FLOAT32 = (
    -0.7213473320007324, 0.4808982312679291, -0.36069658398628235,
    0.2885674834251404, -0.23961840569972992, 0.2046004831790924,
    -0.19105593860149384, 0.18617165088653564, -0.10995902121067047,
)  # fmt: skip

# float64: (2*atanh(s)/s - 2) / s**2 as a polynomial in s**2, for s = t / (2 + t) and the same
# t; error relative to log(1 + t): 2**-59.5.
LOG2_FLOAT64 = (
    0.6666666666666734, 0.39999999999414676, 0.28571428742388133, 0.22222198573116778,
    0.18183564330322546, 0.15314050429515497, 0.1479595106060354,
)  # fmt: skip

# 1 / ln 2 as a float and what that float lacks.
PER_LN2 = {
    dtypes.float32: (1.4426950216293335, 1.925963033500011e-08),
    dtypes.float64: (1.4426950408889634, 2.0355273740931033e-17),
}


def exp2(x: UOp) -> UOp:
    """2**x is 2**n * 2**f with n the nearest integer and |f| <= 1/2: a polynomial for 2**f,
    exponent bits for 2**n, in two steps so that subnormals are rounded once."""
    form = FORMATS[x.dtype]
    x = _clamp(x, -form.bias - form.fraction_bits - 3, form.bias + 3)
    # Adding 1.5 * 2**fraction_bits leaves no room for a fraction: n is in the low bits.
    shift = 1.5 * 2.0**form.fraction_bits
    shifted = x + shift
    n = shifted + -shift
    f = x + -n
    power = _fma(f, _polynomial(f, EXP2[x.dtype]), x.like(1.0))
    # 2 * bias + n is positive; its halves (rounded down, up) are the two exponents.
    both = shifted.bitcast(form.uint) + (2 * form.bias - _bits(shift, form))
    for exponent in (_shr(both, 1), _shr(both + 1, 1)):
        power = power * _power_of_two(exponent, form, x.dtype)
    return power


def log2(x: UOp) -> UOp:
    """log2(2**e * m) is e + log2(m) with m in [sqrt(1/2), sqrt(2)), so that no digit is lost
    near 1; subnormals are scaled first; 0, negative, infinite and NaN are chosen last."""
    form = FORMATS[x.dtype]
    width = form.fraction_bits
    small = x < form.least
    normal = small.where(x * 2.0**width, x)
    one = form.bias << width
    bits = normal.bitcast(form.uint) + (one - form.half_root)
    mantissa = (bits & ((1 << width) - 1)) + form.half_root
    t = mantissa.bitcast(x.dtype) + -1.0
    # The biased exponent, or-ed into the fraction of 2**width, is a float without a cast.
    exponent = (_shr(bits, width) | ((form.bias + width) << width)).bitcast(x.dtype)
    bias = 2.0**width + form.bias
    exponent = exponent + small.where(x.like(-(bias + width)), x.like(-bias))
    return _log2_edges(x, exponent + _log2_near_one(t))


def _log2_near_one(t: UOp) -> UOp:
    """log2(1 + t) for 1 + t in [sqrt(1/2), sqrt(2)): t / ln 2, exact to twice the width, plus
    a small rest."""
    high, low = (t.like(part) for part in PER_LN2[t.dtype])
    if t.dtype is dtypes.float32:
        rest = t * _fma(t, _polynomial(t, LOG2_FLOAT32), low)
    else:
        half_square = t * t * 0.5
        s = t.alu(Ops.FDIV, t + 2.0)
        z = s * s
        # log(1 + t) is t - h + s*(h + z*p(z)), with h half the square of t.
        inner = _fma(z, _polynomial(z, LOG2_FLOAT64), half_square)
        rest = _fma(t, low, _fma(s, inner, -half_square) * high)
    return _fma(t, high, rest)


def _log2_edges(x: UOp, inside: UOp) -> UOp:
    outside = x.alu(Ops.CMPEQ, x.like(0.0)).where(x.like(-math.inf), x.like(math.nan))
    above = (x < math.inf).where(inside, x)
    return (x.like(0.0) < x).where(above, outside)


def _clamp(x: UOp, low: float, high: float) -> UOp:
    """x within [low, high]; comparisons instead of MAX and MIN let NaN through for free."""
    x = (x < low).where(x.like(low), x)
    return (x.like(high) < x).where(x.like(high), x)


def _polynomial(x: UOp, coefficients: Sequence[float]) -> UOp:
    *rest, value = [x.like(c) for c in coefficients]
    for coefficient in reversed(rest):
        value = _fma(value, x, coefficient)
    return value


def _fma(a: UOp, b: UOp, c: UOp) -> UOp:
    return a.alu(Ops.FMA, b, c)


def _shr(x: UOp, amount: int) -> UOp:
    return x.alu(Ops.SHR, x.like(amount))


def _power_of_two(biased: UOp, form: FloatFormat, dtype: DType) -> UOp:
    return biased.alu(Ops.SHL, biased.like(form.fraction_bits)).bitcast(dtype)


def _bits(value: float, form: FloatFormat) -> int:
    """The bits of a positive normal float."""
    fraction, exponent = math.frexp(value)
    mantissa = int(math.ldexp(fraction, form.fraction_bits + 1))
    return ((exponent - 2 + form.bias) << form.fraction_bits) + mantissa


def both_nonnegative(x: UOp, y: UOp) -> bool:
    return x.vmin >= 0 and y.vmin > 0


def is_power_of_two(c: UOp) -> bool:
    return int(c.arg) > 0 and int(c.arg) & (int(c.arg) - 1) == 0


def shift_for_div(x: UOp, c: UOp) -> UOp:
    """x // 2**k is x >> k: an arithmetic shift floors."""
    return _shr(x, int(c.arg).bit_length() - 1)


def mask_for_mod(x: UOp, c: UOp) -> UOp:
    """x % 2**k is the low k bits, for negative x too."""
    return x & (int(c.arg) - 1)


def floor_div(x: UOp, y: UOp) -> UOp:
    """Divide by a divisor made safe, correct truncation to floor, then put in the answers for
    divisors 0 and -1; guards that bounds make needless are left out."""
    safe = _safe_divisor(x, y)
    quotient = x.alu(Ops.CDIV, safe)
    if _rest_sign_may_differ(x, y):
        down = _differs(x.alu(Ops.CMOD, safe), safe)
        quotient = quotient + down.where(x.like(-1), x.like(0))
    if _overflows(x, y):
        quotient = y.alu(Ops.CMPEQ, y.like(-1)).where(-x, quotient)
    return _zero_if_by_zero(y, quotient)


def floor_mod(x: UOp, y: UOp) -> UOp:
    """The rest of a truncated division by a safe divisor, moved to the divisor's sign."""
    safe = _safe_divisor(x, y)
    rest = x.alu(Ops.CMOD, safe)
    if _rest_sign_may_differ(x, y):
        rest = rest + _differs(rest, safe).where(safe, x.like(0))
    return _zero_if_by_zero(y, rest)


def _rest_sign_may_differ(x: UOp, y: UOp) -> bool:
    return (x.vmin < 0 or y.vmin < 0) and not (x.vmax <= 0 and y.vmax <= 0)


def _differs(rest: UOp, divisor: UOp) -> UOp:
    """Whether the rest is not 0 and has the other sign than the divisor."""
    if divisor.vmin > 0:
        return rest < 0
    signs_differ = rest.alu(Ops.XOR, divisor) < 0
    return signs_differ & rest.alu(Ops.CMPNE, rest.like(0))


def _overflows(x: UOp, y: UOp) -> bool:
    """Whether x // y may be the one quotient that does not fit: least // -1."""
    return y.vmin <= -1 <= y.vmax and bool(x.vmin == x.dtype.min)


def _safe_divisor(x: UOp, y: UOp) -> UOp:
    unsafe: UOp | None = None
    if y.vmin <= 0 <= y.vmax:
        unsafe = y.alu(Ops.CMPEQ, y.like(0))
    if _overflows(x, y):
        minus = y.alu(Ops.CMPEQ, y.like(-1))
        unsafe = minus if unsafe is None else unsafe | minus
    return y if unsafe is None else unsafe.where(y.like(1), y)


def _zero_if_by_zero(y: UOp, value: UOp) -> UOp:
    if not y.vmin <= 0 <= y.vmax:
        return value
    return y.alu(Ops.CMPEQ, y.like(0)).where(value.like(0), value)


def may_exceed_width(y: UOp) -> bool:
    return y.vmin < 0 or y.vmax >= y.dtype.bits


def guard_shift(n: UOp, x: UOp, y: UOp) -> UOp:
    """Shift by the amount clamped to the width; where that changed the amount, give 0."""
    amount = y.alu(Ops.MAX, y.like(0)).alu(Ops.MIN, y.like(y.dtype.bits - 1))
    return y.alu(Ops.CMPEQ, amount).where(x.alu(n.op, amount), n.like(0))


a, b, c = var("a", "float"), var("b", "float"), var("c", "float")
x, y, k = var("x", "integer"), var("y", "integer"), const("c", "integer")
xf = var("x", "float")

# fmt: off
DECOMPOSE_RULES = RuleSet("decompose", [
    Rule("exp2-polynomial",   op(Ops.EXP2, xf), exp2),
    Rule("log2-polynomial",   op(Ops.LOG2, xf), log2),
    Rule("idiv-by-shift",     x // k, shift_for_div, where=is_power_of_two),
    Rule("mod-by-mask",       x % k, mask_for_mod, where=is_power_of_two),
    Rule("idiv-nonnegative",  x // y, op(Ops.CDIV, x, y), where=both_nonnegative,
         doc="where nothing is negative, floor is truncation"),
    Rule("mod-nonnegative",   x % y, op(Ops.CMOD, x, y), where=both_nonnegative,
         doc="where nothing is negative, the rest has the sign of the divisor"),
    Rule("idiv-floor",        x // y, floor_div),
    Rule("mod-floor",         x % y, floor_mod),
    Rule("guard-shift",       Pat((Ops.SHL, Ops.SHR), (x, y), name="n"), guard_shift,
         where=may_exceed_width),
    Rule("form-fma",          a * b + c, op(Ops.FMA, a, b, c),
         doc="one rounding instead of two"),
    Rule("form-fma-right",    c + a * b, op(Ops.FMA, a, b, c),
         doc="one rounding instead of two, with the product on the right"),
    Rule("form-fma-negated",  c + -(a * b), op(Ops.FMA, -a, b, c),
         doc="a difference: the sign moves to a factor, where it is free"),
    Rule("form-fma-subtract", -(a * b) + c, op(Ops.FMA, -a, b, c),
         doc="a difference, with the product on the left"),
])
# fmt: on
