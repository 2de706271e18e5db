"""Formulas of numpy's ufuncs that Tensor has no method for, over Tensors of the ufunc's dtypes."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.ir.gradient.occurrences import Formula, with_formula
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import expanded

T = Any  # a Tensor; this room is below the class


def like(x: T, value: float) -> T:
    """Return a number as a Tensor of the dtype of `x`."""
    return type(x)(value, dtype=x.dtype)


def is_negative(x: T) -> T:
    """Return whether the sign of floats is minus, of zeros and NaNs, too."""
    return like(x, 1.0).copysign(x) < 0


def expm1(x: T) -> T:
    """Return e ** x - 1. Source: W. Kahan's formula, right also where e ** x is close to 1."""
    u = x.exp()
    far = (u - 1).eq(-1) | u.isinf()
    inner = (far | u.eq(1)).where(like(x, 2.0), u)  # elsewhere its gradient would be NaN
    near = (inner - 1) * (x / inner.log())  # in this order no product overflows
    return u.eq(1).where(x, far.where(u - 1, near))


def log1p(x: T) -> T:
    """Return log(1 + x). Source: W. Kahan's formula, right also where x is small."""
    u = x + 1
    far = ~(x > -0.5) | u.isinf()  # there u is exact, or no number
    inner = (u.eq(1) | far).where(like(x, 2.0), u)  # elsewhere its gradient would be NaN
    near = inner.log() * (x / (inner - 1))  # in this order no product overflows
    return u.eq(1).where(x, far.where(u.log(), near))


def cbrt(x: T) -> T:
    """Return the cube root: a power, and a step of Newton's method."""
    size = x.abs()
    root = size.pow(1 / 3)
    better = root - (root * root * root - size) / (root * root * 3)
    keeps = size.eq(0) | ~size.isfinite()
    return keeps.where(size, better).copysign(x)


def hypot(x: T, y: T) -> T:
    """Return sqrt(x * x + y * y), whose squares do not overflow."""
    x, y = x.abs(), y.abs()
    large, small = x.maximum(y), x.minimum(y)
    ratio = small / large.eq(0).where(like(x, 1.0), large)
    length = large * (ratio * ratio + 1).sqrt()
    return (x.isinf() | y.isinf()).where(like(x, math.inf), length)


def arctan2(y: T, x: T) -> T:
    """Return the angle of the point (x, y), from -pi to pi; by the signs of zeros, too."""
    a, b = y.abs(), x.abs()
    large, small = a.maximum(b), a.minimum(b)
    is_same = a.eq(b) & ~large.eq(0)  # both infinite, too
    ratio = is_same.where(like(x, 1.0), small / large.eq(0).where(like(x, 1.0), large))
    angle = ratio.atan()
    angle = (a > b).where(math.pi / 2 - angle, angle)
    angle = is_negative(x).where(math.pi - angle, angle)
    nan = x.isnan() | y.isnan()
    angle = nan.where(like(x, math.nan), angle.copysign(y))
    sides = [expanded(y.uop, angle.shape), expanded(x.uop, angle.shape)]
    return angle._with(with_formula(angle.uop, sides, Formula("arctan2", None, _of_angle)), y, x)


def _of_angle(g: UOp, _: None, y: UOp, x: UOp) -> list[UOp]:
    # The gradients of the steps end at the axes, where the least or the greatest side changes.
    square = x * x + y * y
    is_origin = square.eq(0.0)
    part = is_origin.where(g.like(0), g / is_origin.where(g.like(1), square))
    return [x * part, -(y * part)]


def logaddexp2(x: T, y: T) -> T:
    """Return log2(2 ** x + 2 ** y), which overflows nowhere."""
    more = log1p((-(x - y).abs()).exp2()) * math.log2(math.e)
    return x.eq(y).where(x + 1, x.maximum(y) + more)


def heaviside(x: T, at_zero: T) -> T:
    """Return 0 below 0, 1 above, `at_zero` at 0."""
    step = (x < 0).where(like(x, 0), (x > 0).where(like(x, 1), at_zero))
    return x.isnan().where(like(x, math.nan), step)


def fmax(x: T, y: T) -> T:
    """Return the greater of each pair; if one is NaN, the other."""
    if not x.dtype.is_float:
        return x.maximum(y)
    return ((x >= y) | y.isnan()).where(x, y)  # of equal values the first has the gradient


def fmin(x: T, y: T) -> T:
    """Return the lesser of each pair; if one is NaN, the other."""
    if not x.dtype.is_float:
        return x.minimum(y)
    return ((x <= y) | y.isnan()).where(x, y)


def modf(x: T) -> tuple[T, T]:
    """Return what is after the point, and the whole number before it, both with the sign of x."""
    whole = x.trunc()
    rest = x.isinf().where(like(x, 0.0), x - whole)
    return rest.copysign(x), whole.copysign(x)


def nextafter(x: T, y: T) -> T:
    """Return the float beside `x` on the side of `y`: its bits, as an integer, are 1 more or less.

    Source: IEEE 754, whose floats of one sign are ordered as their bits are.
    """
    bits = x.bitcast(f"int{x.dtype.bits}")
    is_outward = (y > x).eq(x > 0)
    beside = (bits + is_outward.where(like(bits, 1), like(bits, -1))).bitcast(x.dtype)
    least = like(bits, 1).bitcast(x.dtype).copysign(y)
    result = x.eq(y).where(y, x.eq(0).where(least, beside))
    return (x.isnan() | y.isnan()).where(like(x, math.nan), result)


def whole_reciprocal(x: T) -> T:
    """Return 1 / x of integers, rounded towards zero; 0 of 0."""
    is_one = x.eq(1) if x.dtype.kind == "uint" else x.abs().eq(1)
    return is_one.where(x, like(x, 0))


def bit_count(x: T) -> T:
    """Return how many bits of |x| are 1: sums of neighbours, by twos, fours and bytes."""
    if x.dtype.is_bool:
        return x.cast(dtypes.uint8)
    size = x if x.dtype.kind == "uint" else x.abs()
    value = size.cast(dtypes.named(f"uint{x.dtype.bits}")).cast(dtypes.uint64)
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        bits = like(value, int.from_bytes(bytes([mask] * 8), "little"))
        value = (value & bits) + ((value >> shift) & bits)
    for shift in (8, 16, 32):
        value = value + (value >> shift)
    return (value & like(value, 0x7F)).cast(dtypes.uint8)


def right_shift(x: T, places: T) -> T:
    """Return x >> places; of a negative x all bits are 1 where the places are out of range."""
    shifted = x >> places
    if x.dtype.kind == "uint":
        return shifted
    is_out = (places < 0) | (places >= x.dtype.bits)
    return (is_out & (x < 0)).where(like(x, -1), shifted)


COMPARISONS = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def compared(method: str, x: T, y: T) -> T:
    """Return a comparison; int64 with uint64, which no integer type holds both, by the sign."""
    if x.dtype is y.dtype:
        return getattr(x, method)(y)
    if x.dtype.kind == "uint":
        return compared(_MIRRORED[method], y, x)
    result = getattr(x.cast(y.dtype), method)(y)
    return (x < 0) | result if method in ("lt", "le", "ne") else (x >= 0) & result


def product(x: T, y: T) -> T:
    """Return x @ y; of bools, whether a pair is true in both."""
    if x.dtype.is_bool:
        return x.cast(dtypes.int64).matmul(y.cast(dtypes.int64)).ne(0)
    return x.matmul(y)


def matvec(x: T, y: T) -> T:
    """Return matrices times vectors."""
    return product(x, y.unsqueeze(-1)).squeeze(-1)


def vecmat(x: T, y: T) -> T:
    """Return vectors times matrices."""
    return product(x.unsqueeze(-2), y).squeeze(-2)


def vecdot(x: T, y: T, axis: int = -1) -> T:
    """Return the products of vectors along an axis of both."""
    both = x * y
    return both.any(axis) if x.dtype.is_bool else both.sum(axis, dtype=x.dtype)
