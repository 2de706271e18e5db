"""Gradient rules: for each op, the gradients of its sources as nodes.

Sections: Gradient rules; Gradients of arithmetic; Gradients of functions, at the level of
functions; Gradients of movement ops; Gradients of REDUCE_AXIS, by the op that it combines with;
The gradient rule of each op, and the reason of each op without one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.base.dtypes import DType, dtypes
from workbench.ir.gradient.occurrences import own_gradient
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Gradient rules: their type, and the parts that several of them share.

GradientRule = Callable[..., tuple[UOp | None, ...] | None]
"""Called with `g`, the gradient of a node, the node, and its sources. Returns a gradient for each
source, in its shape and dtype (None where nothing flows), or None if the node has no gradient."""


def summed(g: UOp, axes: tuple[int, ...]) -> UOp:
    """Return `g` summed over `axes`, which keep size 1; low-precision floats sum as float32."""
    if not axes:
        return g
    wide = wide_dtype(g.dtype)
    return construct.reduce_axis(g.cast(wide), axes, Ops.ADD).cast(g.dtype)


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that sums of `dtype` are computed in."""
    return dtypes.float32 if dtype.is_low_precision else dtype


def reshaped(value: UOp, shape: tuple[int, ...]) -> UOp:
    """Return `value` in `shape`, which has as many elements."""
    if value.shape == shape:
        return value
    return UOp(Ops.RESHAPE, value.dtype, (value,), shape)


def expanded(value: UOp, shape: tuple[int, ...]) -> UOp:
    """Return `value` broadcast to `shape`, which must fit."""
    if value.shape == shape:
        return value
    return UOp(Ops.EXPAND, value.dtype, (value,), shape)


# --------------------------------------------------------------------------------------------------
# Gradients of arithmetic. `g` is the gradient of the node `n`, whose sources are `x`, `y`, ..
#
# If the sources of MAX or MIN are equal, each gets half; if one is a constant, the right one gets
# all. So relu, MAX(x, 0), has gradient 0 at 0 and 1 at NaN, and clip, MAX(low, x), has gradient 1
# at its limit and 0 at NaN, as in PyTorch.


def greatest(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of MAX or MIN: all to the source that is the result."""
    loses = (x < y) if n.op is Ops.MAX else (y < x)
    wins = (y < x) if n.op is Ops.MAX else (x < y)
    if n.src[0].is_const:
        return wins.where(g, g.like(0)), (loses | x.eq(y)).where(g, g.like(0))
    # NaN is neither less nor greater: both sources get all, as in PyTorch.
    if n.src[1].is_const:
        return (loses | x.eq(y)).where(g.like(0), g), wins.where(g.like(0), g)
    half = x.eq(y).where(g * 0.5, g)
    return loses.where(g.like(0), half), wins.where(g.like(0), half)


def chosen_by(g: UOp, n: UOp, b: UOp, x: UOp, y: UOp) -> tuple[UOp | None, UOp, UOp]:
    """Return the gradients of WHERE: each branch gets `g` at the elements taken from it."""
    return None, b.where(g, g.like(0)), b.where(g.like(0), g)


# fmt: off
ARITHMETIC: dict[Ops, GradientRule] = {
    Ops.ADD:   lambda g, n, x, y: (g, g),
    Ops.MUL:   lambda g, n, x, y: (g * y, g * x),
    Ops.NEG:   lambda g, n, x: (-g,),
    Ops.FDIV:  lambda g, n, x, y: (g / y, -g * n / y),
    Ops.FMOD:  lambda g, n, x, y: (g, -g * (x / y).trunc()),
    Ops.RECIP: lambda g, n, x: (-g * n * n,),
    Ops.MAX:   greatest,
    Ops.MIN:   greatest,
    Ops.WHERE: chosen_by,
    Ops.CAST:  lambda g, n, x: (g.cast(x.dtype),),
}
# fmt: on


# --------------------------------------------------------------------------------------------------
# Gradients of functions, at the level of functions: the gradient of TANH uses TANH, not its
# formula. `g` is the gradient of the node `n`, whose source is `x`.


def rsqrt(x: UOp) -> UOp:
    """Return 1 / sqrt(x)."""
    return x.sqrt().recip()


def power(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of x ** y: y * x ** (y - 1), and x ** y * log(x), which is 0 where x is
    0 and y is not negative."""
    to_base = g * (y * x.alu(Ops.POW, y - 1.0))
    to_exponent = g * (n * x.alu(Ops.LOG))
    is_zero = x.eq(0.0) & (y >= 0.0)
    return (y.eq(0.0).where(g.like(0), to_base), is_zero.where(g.like(0), to_exponent))


def with_sign(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of COPYSIGN: for x `g`, or -`g` where x and the result n differ in sign;
    for y 0."""
    return ((x < 0.0) ^ (n < 0.0)).where(-g, g), g.like(0)


# fmt: off
FUNCTIONS: dict[Ops, GradientRule] = {
    Ops.EXP2:      lambda g, n, x: (g * (n * math.log(2)),),
    Ops.LOG2:      lambda g, n, x: (g / (x * math.log(2)),),
    Ops.EXP:       lambda g, n, x: (g * n,),
    Ops.LOG:       lambda g, n, x: (g / x,),
    Ops.SQRT:      lambda g, n, x: (g / (n * 2.0),),
    Ops.SIN:       lambda g, n, x: (g * x.cos(),),
    Ops.COS:       lambda g, n, x: (-g * x.sin(),),
    Ops.TAN:       lambda g, n, x: (g * (n * n + 1.0),),
    Ops.ASIN:      lambda g, n, x: (g * rsqrt(1.0 - x * x),),
    Ops.ACOS:      lambda g, n, x: (-g * rsqrt(1.0 - x * x),),
    Ops.ATAN:      lambda g, n, x: (g / (x * x + 1.0),),
    Ops.SINH:      lambda g, n, x: (g * x.alu(Ops.COSH),),
    Ops.COSH:      lambda g, n, x: (g * x.alu(Ops.SINH),),
    Ops.ASINH:     lambda g, n, x: (g * rsqrt(x * x + 1.0),),
    Ops.ACOSH:     lambda g, n, x: (g * rsqrt(x * x - 1.0),),
    Ops.ATANH:     lambda g, n, x: (g / (1.0 - x * x),),
    Ops.SIGMOID:   lambda g, n, x: (g * (n * (1.0 - n)),),
    Ops.SOFTPLUS:  lambda g, n, x: (g * x.alu(Ops.SIGMOID),),
    Ops.TANH:      lambda g, n, x: (g * (1.0 - n * n),),
    Ops.ERF:       lambda g, n, x: (g * ((-(x * x)).alu(Ops.EXP) * (2 / math.sqrt(math.pi))),),
    Ops.POW:       power,
    Ops.ABS:       lambda g, n, x: ((x.like(0) < x).where(g, (x < 0.0).where(-g, g.like(0))),),
    Ops.COPYSIGN:  with_sign,
    Ops.TRUNC:     lambda g, n, x: (g.like(0),),
}
# fmt: on


# --------------------------------------------------------------------------------------------------
# Gradients of movement ops: the gradient moves back, and the gradients of copies are summed. `g` is
# the gradient of the node `n`, whose source is `x`.


def permuted_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` with its axes in the order of the source."""
    order = tuple(n.arg.index(axis) for axis in range(len(n.arg)))
    return (UOp(Ops.PERMUTE, g.dtype, (g,), order),)


def summed_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` summed over the axes that EXPAND repeated."""
    new = len(n.shape) - len(x.shape)
    sizes = zip(x.shape, n.shape[new:], strict=True)
    repeated = [new + i for i, (size, wide) in enumerate(sizes) if size != wide]
    return (reshaped(summed(g, (*range(new), *repeated)), x.shape),)


def padded_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` with 0 for the elements that SHRINK left out."""
    box = tuple((lo, size - hi) for (lo, hi), size in zip(n.arg, x.shape, strict=True))
    return (UOp(Ops.PAD, g.dtype, (g,), box),)


def cut_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` without the elements that PAD added."""
    box = tuple((lo, lo + size) for (lo, _), size in zip(n.arg, x.shape, strict=True))
    return (UOp(Ops.SHRINK, g.dtype, (g,), box),)


def copied_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` on the device that the value was copied from; as it is where no memory is read."""
    memory = (m for m in reversed(x.toposort()) if m.op in (Ops.COPY, Ops.BUFFER))
    source = next(memory, None)
    if source is None:
        return (g,)
    return (UOp(Ops.COPY, g.dtype, (g,), source.device),)


# fmt: off
MOVEMENT: dict[Ops, GradientRule] = {
    Ops.RESHAPE:    lambda g, n, x: (reshaped(g, x.shape),),
    Ops.PERMUTE:    permuted_back,
    Ops.EXPAND:     summed_back,
    Ops.SHRINK:     padded_back,
    Ops.PAD:        cut_back,
    Ops.FLIP:       lambda g, n, x: (UOp(Ops.FLIP, g.dtype, (g,), n.arg),),
    Ops.CONTIGUOUS: lambda g, n, x: (g,),
    Ops.COPY:       copied_back,
}
# fmt: on


# --------------------------------------------------------------------------------------------------
# Gradients of REDUCE_AXIS, by the op that it combines with. `g` is the gradient of the node `n`,
# whose source is `x`.

BLOCK = 16
"""Elements of a block. The product of all elements but one is the product of the others in its
block, times the products of the other blocks."""


def of_sum(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g`, repeated for each summand."""
    return (expanded(g, x.shape),)


def of_greatest(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` for the element that is the result; several such elements share it equally."""
    result = expanded(n, x.shape)
    # NaN equals nothing: where the result is NaN, all NaNs share the gradient.
    is_result = x.eq(result) | (x.ne(x) & result.ne(result))
    one = is_result.where(expanded(x.like(1), x.shape), x.like(0))
    count = expanded(summed(one, n.reduced_axes), x.shape)
    return (is_result.where(expanded(g, x.shape) / count, x.like(0)),)


def of_product(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` times the product of all other elements, without a division: x may be 0."""
    axes = n.reduced_axes
    others = tuple(a for a in range(len(x.shape)) if a not in axes)
    order = (*others, *axes)
    length = math.prod(x.shape[a] for a in axes)
    lead = tuple(x.shape[a] for a in others)
    rows = reshaped(UOp(Ops.PERMUTE, x.dtype, (x,), order), (*lead, length))
    rest = reshaped(_product_of_others(rows), tuple(x.shape[a] for a in order))
    back = tuple(order.index(a) for a in range(len(order)))
    return (expanded(g, x.shape) * UOp(Ops.PERMUTE, x.dtype, (rest,), back),)


def _product_of_others(x: UOp) -> UOp:
    """Return, for each element of the last axis, the product of all others along it."""
    *lead, size = x.shape
    if size <= BLOCK:
        return _others_directly(x)
    count = -(-size // BLOCK)
    none = ((0, 0),) * len(lead)
    missing = (*none, (0, count * BLOCK - size))
    padded = UOp(Ops.PAD, x.dtype, (x,), missing)
    everywhere = expanded(UOp.const(dtypes.bool, True), x.shape)
    inside = UOp(Ops.PAD, dtypes.bool, (everywhere,), missing)
    blocks = reshaped(inside.where(padded, x.like(1)), (*lead, count, BLOCK))
    products = construct.reduce_axis(blocks, (len(lead) + 1,), Ops.MUL)
    outer = _product_of_others(reshaped(products, (*lead, count)))
    rest = _others_directly(blocks) * expanded(reshaped(outer, (*lead, count, 1)), blocks.shape)
    box = (*((0, n) for n in lead), (0, size))
    return UOp(Ops.SHRINK, x.dtype, (reshaped(rest, (*lead, count * BLOCK)),), tuple(box))


def _others_directly(x: UOp) -> UOp:
    """Return the same by one reduction for each element, in quadratic time."""
    *lead, size = x.shape
    square = (*lead, size, size)
    numbers = UOp(Ops.IOTA, dtypes.int32, (), size)
    column = expanded(reshaped(numbers, (size, 1)), (size, size))
    row = expanded(reshaped(numbers, (1, size)), (size, size))
    is_other = expanded(row.ne(column), square)
    values = expanded(reshaped(x, (*lead, 1, size)), square)
    others = is_other.where(values, x.like(1))
    product = construct.reduce_axis(others, (len(lead) + 1,), Ops.MUL)
    return reshaped(product, x.shape)


REDUCTIONS: dict[Ops, GradientRule] = {
    Ops.ADD: of_sum,
    Ops.MUL: of_product,
    Ops.MAX: of_greatest,
    Ops.MIN: of_greatest,
}


def reduction(g: UOp, n: UOp, x: UOp) -> tuple[UOp | None, ...] | None:
    """Return the gradient of a REDUCE_AXIS, by its combining op."""
    return REDUCTIONS[n.combines](g, n, x)


# --------------------------------------------------------------------------------------------------
# The gradient rule of each op, and the reason of each op without one.

GRADIENTS: dict[Ops, GradientRule] = {
    **ARITHMETIC,
    **FUNCTIONS,
    **MOVEMENT,
    Ops.REDUCE_AXIS: reduction,
    Ops.DETACH: own_gradient,
}
"""A float op of the tensor level without a row has no gradient: a request raises an error that
names the op."""
OF_RESULT = frozenset(
    {Ops.RECIP, Ops.EXP2, Ops.EXP, Ops.SQRT, Ops.TAN, Ops.SIGMOID, Ops.TANH, Ops.POW}
)
"""Ops whose rule uses their result, so that the gradient can be differentiated by the result."""
