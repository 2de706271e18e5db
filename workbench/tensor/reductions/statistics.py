"""Reductions built on others: variance and softmax."""

from __future__ import annotations

import math
from typing import Self, TypeVar

from workbench.base.dtypes import DType, dtypes
from workbench.ir.gradient.custom import Formula, independent, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.axes import Axes, many_axes
from workbench.tensor.operands.broadcast import expanded, wide_dtype
from workbench.tensor.reductions.reduce import combined, reduced_shape


class Statistics(Base):
    """var, std, their pairs with the mean, softmax, softmin, log_softmax, logsumexp.

    Dtypes: integers and bools are taken as float32.
    """

    __slots__ = ()

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """Return the variance over `axis`: the sum of squared distances from the mean over count -
        `correction`; NaN of too few elements.

        Also known as: numpy var(ddof=correction).
        """
        return self._variance(axis, keepdim, correction, "var")

    def _variance(self, axis: Axes, keepdim: bool, correction: int, what: str) -> Self:
        """Return `var`; `what` names the method, for errors."""
        axes = many_axes(axis, self.ndim, what)
        count = math.prod(self.shape[a] for a in axes)
        lost = number(correction, f"{what}: correction")
        values, freedom = self._wide(), count - lost
        centred = values - values.mean(axis, keepdim=True)
        spread = centred.square().sum(axis, keepdim) / max(0, freedom)
        is_all = axis is None or not self.ndim
        formula = Formula("variance", (axes, freedom, is_all), _of_variance)
        value = with_formula(spread.uop, [values.uop], formula)
        return self._with(value).cast(self._fraction())

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """Return the standard deviation over `axis`: the square root of `var`."""
        return _root(self._variance(axis, keepdim, correction, "std"))

    def var_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1
    ) -> tuple[Self, Self]:
        """Return `var` and `mean` over `axis`."""
        spread = self._variance(axis, keepdim, correction, "var_mean")
        return spread, self.mean(axis, keepdim)

    def std_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1
    ) -> tuple[Self, Self]:
        """Return `std` and `mean` over `axis`."""
        spread = self._variance(axis, keepdim, correction, "std_mean")
        return _root(spread), self.mean(axis, keepdim)

    def softmax(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """Return e ** self over its sum along `axis`; with `dtype` the values are cast before.

        The greatest value is subtracted first, so that nothing overflows.
        """
        value = self if dtype is None else self.cast(dtype)
        powers = value._below_greatest(axis, "softmax").exp()
        return (powers / powers.sum(axis, keepdim=True)).cast(value._fraction())

    def softmin(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """Return `softmax` of -self. Dtypes: unsigned integers are taken as float32 first."""
        many_axes(axis, self.ndim, "softmin")
        value = self if self.dtype.kind == "int" else self.cast(self._fraction())
        return value.neg().softmax(axis, dtype)

    def log_softmax(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """Return the logarithm of `softmax`, without its loss of precision."""
        value = self if dtype is None else self.cast(dtype)
        shifted = value._below_greatest(axis, "log_softmax")
        total = shifted.exp().sum(axis, keepdim=True)
        return (shifted - total.log()).cast(value._fraction())

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Return log(sum(e ** self)) over `axis`; minus infinity over no elements.

        The greatest value is subtracted first and added last; an infinite one as it is.
        """
        axes, value = many_axes(axis, self.ndim, "logsumexp"), self._wide()
        if any(self.shape[a] == 0 for a in axes):
            nothing = value.uop.like(-math.inf)
            shape = reduced_shape(self.shape, axes, keepdim)
            constant = independent(expanded(nothing, shape), value.uop)
            return self._with(constant).cast(self._fraction())
        greatest = value.max(axis, keepdim=True).detach()
        # Infinity minus infinity would be NaN.
        finite = greatest.abs().lt(math.inf)
        shift = finite.where(greatest, 0.0)
        total = (value - shift).exp().sum(axis, keepdim=True).log() + shift
        shape = reduced_shape(self.shape, axes, keepdim)
        return total.reshape(shape).cast(self._fraction())

    def _below_greatest(self, axis: int, what: str) -> Self:
        value = self._wide()
        if any(self.shape[a] == 0 for a in many_axes(axis, self.ndim, what)):
            return value
        # The results do not depend on what is subtracted, so neither do their gradients.
        return value - value.max(axis, keepdim=True).detach()

    def _fraction(self) -> DType:
        """Return the dtype of results that are fractions."""
        return self.dtype if self.dtype.is_float else dtypes.default_float

    def _wide(self) -> Self:
        """Return the values as a float of at least 32 bits, to compute with."""
        return self.cast(wide_dtype(self._fraction()))


T = TypeVar("T", bound=Statistics)


def _of_variance(g: UOp, parameter: tuple[tuple[int, ...], float, bool], x: UOp) -> list[UOp]:
    """Return the gradient of a variance: 2 / (count - correction) times the distance from the mean.
    Where the count is not above the correction, the variance is infinite or NaN; then its gradient
    is torch's: that formula along axes, and of all elements infinity, or NaN at the mean."""
    axes, freedom, is_all = parameter
    count = math.prod(x.shape[a] for a in axes)
    total = combined(Ops.ADD, x, axes)
    centred = x - expanded(total / float(count), x.shape)
    wide = expanded(reshaped(g, reduced_shape(x.shape, axes, True)), x.shape)
    if freedom <= 0 and is_all:
        return [wide * centred.eq(0.0).where(x.like(math.nan), x.like(math.inf))]
    return [wide * (centred * (2.0 / freedom if freedom else math.inf))]


def _root(variance: T) -> T:
    """Return the square root of a variance, whose gradient is 0 where it is: all values are equal,
    and a change of one adds the square of a difference."""
    root = variance.sqrt()
    formula = Formula("standard-deviation", None, _of_root)
    return root._with(with_formula(root.uop, [variance.uop], formula), variance)


def _of_root(g: UOp, _: None, variance: UOp) -> list[UOp]:
    # Not of a root of 0, whose own gradient is infinite.
    is_zero = variance.eq(0.0)
    root = is_zero.where(variance.like(1), variance).sqrt()
    return [is_zero.where(g.like(0), g / (root * 2.0))]
