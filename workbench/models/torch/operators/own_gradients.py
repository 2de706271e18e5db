"""Operators that PyTorch differentiates by a formula of their own: it decomposes them into others,
whose gradients are NaN where functions end, or take another side where they bend.

So they are left whole, and each has the gradient that PyTorch gives it.
"""

from __future__ import annotations

import math
from typing import Any

from workbench.base.dtypes import DType
from workbench.ir.gradient.occurrences import Formula, as_source, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.models.torch.operators.elementwise import floats
from workbench.models.torch.operators.reductions import Dims, mean, total, var
from workbench.models.torch.table import whole_row
from workbench.tensor.numpy import formulas
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.reductions.normalization import root_of_variance
from workbench.tensor.tensor import Tensor

LEAST_LOG = -100.0
"""The least logarithm in `binary_cross_entropy`."""
LEAST_SPREAD = 1e-12
"""The least x * (1 - x) in the gradient of `binary_cross_entropy`."""


@whole_row("mish")
def mish(x: Tensor) -> Tensor:
    return x.mish()


@whole_row("hardswish")
def hardswish(x: Tensor) -> Tensor:
    return x.hardswish()


@whole_row("hardsigmoid")
def hardsigmoid(x: Tensor) -> Tensor:
    return (x + 3).relu6() / 6


@whole_row("softplus")
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    is_line = x * beta > threshold
    return is_line.where(x, is_line.where(0.0, x).softplus(beta))


@whole_row("std.correction")
def std(
    x: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return root_of_variance(var(x, dim, correction=correction, keepdim=keepdim))


@whole_row("std_mean.correction")
def std_mean(
    x: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return std(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@whole_row("hypot")
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The length of (x, y); at the origin its gradient is NaN."""
    x, y = floats(x), floats(y)
    value: Tensor = formulas.hypot(x, y)
    sources = [expanded(each.uop, value.shape) for each in (x, y, value.detach())]
    return value._with(with_formula(value.uop, sources, Formula("hypot", None, _of_hypot)), x, y)


def _of_hypot(g: UOp, _: None, x: UOp, y: UOp, length: UOp) -> list[UOp | None]:
    return [g * (x / length), g * (y / length), None]


@whole_row("special_entr")
def entr(x: Tensor) -> Tensor:
    """-x * log(x), and 0 where x is 0, -inf below."""
    x = floats(x)
    value = (x < 0).where(-math.inf, -x * x.eq(0).where(1.0, x).log())
    return value._with(with_formula(value.uop, [x.uop], Formula("entropy", None, _of_entr)), x)


def _of_entr(g: UOp, _: None, x: UOp) -> list[UOp]:
    return [g * (-x.alu(Ops.LOG) - 1.0)]


@whole_row("nansum")
def nansum(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum of what is not NaN; gradients are multiplied by whether it is."""
    if x.dtype.is_float:
        is_nan = x.isnan()
        kept, masked = is_nan.where(0, x), x * (~is_nan).cast(x.dtype)
        x = kept._with(as_source(kept.uop, masked.uop), x)
    return total(x, dim, keepdim, dtype=dtype)


@whole_row("logcumsumexp")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """The logarithms of running sums of e ** x; gradients of infinite ones are NaN."""
    if not x.ndim:
        return x
    is_end = x.logcumsumexp(dim).eq(-math.inf) | x.eq(math.inf)
    formula = Formula("nan-at-ends", None, _of_ends)
    return x._with(with_formula(x.uop, [x.uop, is_end.uop], formula), x).logcumsumexp(dim)


def _of_ends(g: UOp, _: None, x: UOp, is_end: UOp) -> list[UOp | None]:
    return [is_end.where(g.like(math.nan), g), None]


@whole_row("sinc")
def sinc(x: Tensor) -> Tensor:
    x = floats(x)
    is_zero = x.eq(0)
    angle = is_zero.where(1.0, x) * math.pi
    return is_zero.where(1.0, angle.sin() / angle)


@whole_row("logit")
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    x = floats(x) if eps is None else floats(x).clamp(eps, 1 - eps)
    value: Tensor = x.log() - formulas.log1p(-x)
    return value


@whole_row("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), and 0 where x is 0, unless y is NaN."""
    x, y = _pair(x, y)
    return _times_log(x, y.log(), y)


@whole_row("special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar")
def xlog1py(x: Any, y: Any) -> Tensor:
    """x * log(1 + y), and 0 where x is 0, unless y is NaN."""
    x, y = _pair(x, y)
    return _times_log(x, formulas.log1p(y), y + 1)


def _times_log(x: Tensor, log: Tensor, y: Tensor) -> Tensor:
    """x * log, where log is log(y): 0 where x is 0, unless y is NaN."""
    value = (x.eq(0) & ~y.isnan()).where(0.0, x * log)
    sources = [expanded(each.uop, value.shape) for each in (x, log.detach(), y)]
    node = with_formula(value.uop, sources, Formula("times-log", None, _of_times_log))
    return value._with(node, x, y)


def _of_times_log(g: UOp, _: None, x: UOp, log: UOp, y: UOp) -> list[UOp | None]:
    is_masked = x.eq(0.0) & ((y < 0.0) | y.eq(0.0))
    return [is_masked.where(g.like(0), g * log), None, g * (x / y)]


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return two operands as Tensors of floating-point numbers; one of them may be a number."""
    if not isinstance(x, Tensor):
        return Tensor(float(x), dtype=floats(y).dtype), floats(y)
    if not isinstance(y, Tensor):
        return floats(x), Tensor(float(y), dtype=floats(x).dtype)
    return floats(x), floats(y)


@whole_row("binary_cross_entropy")
def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    below: Tensor = formulas.log1p(-x)
    own, other = x.log().maximum(LEAST_LOG), below.maximum(LEAST_LOG)
    loss = -(target * own + (1 - target) * other)
    formula = Formula("binary-cross-entropy", None, _of_cross_entropy)
    loss = loss._with(with_formula(loss.uop, [x.uop, target.uop], formula), x, target)
    loss = loss if weight is None else loss * weight
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _of_cross_entropy(g: UOp, _: None, x: UOp, target: UOp) -> list[UOp]:
    spread = ((1.0 - x) * x).max(LEAST_SPREAD)
    return [g * (x - target) / spread, g * ((1.0 - x).alu(Ops.LOG) - x.alu(Ops.LOG))]
