"""Normalisation, statistics such as variance, and attention: reductions built on others.

Sections: Normalisation; Reductions built on others; Attention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Never, Self, TypeVar

from workbench.base.dtypes import DType, dtypes, promote
from workbench.ir.gradient.occurrences import Formula, independent, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import (
    dtype_error,
    finite,
    flag,
    number,
    refuse_keywords,
    shape_error,
)
from workbench.tensor.operands.axes import Axes, iota, many_axes, one_axis
from workbench.tensor.operands.broadcast import expanded, wide_dtype
from workbench.tensor.reductions.reduce import combined, exponential_total, reduced_shape

# --------------------------------------------------------------------------------------------------
# Normalisation: values shifted and scaled to a fixed mean and variance.


class Normalization(Base):
    """layernorm, batchnorm, normalize. Dtypes: integers and bools are taken as float32."""

    __slots__ = ()

    def layernorm(self, axis: Axes = -1, eps: float = 1e-5) -> Self:
        """Return (self - mean) / sqrt(variance + `eps`) over `axis`; the variance is a sum divided
        by the number of elements (`correction` 0)."""
        many_axes(axis, self.ndim, "layernorm")
        small, value = finite(eps, "layernorm: eps", 0), self._wide()
        centred = value - value.mean(axis, keepdim=True)
        spread = centred.square().mean(axis, keepdim=True) + small
        return (centred * spread.rsqrt()).cast(self._fraction())

    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | Sequence[int] = 1,
    ) -> Self:
        """Return (self - `mean`) * `invstd` * `weight` + `bias`; each of the four has a value for
        each place along `axis`.

        Shapes: each has self's sizes along `axis`, in order, or all of self's axes, others of
        size 1.
        Errors: ShapeError for another shape.
        """
        axes = many_axes(axis, self.ndim, "batchnorm")
        columns = {
            name: self._channels(operand, axes, name)
            for name, operand in (("mean", mean), ("invstd", invstd))
        }
        scale = columns["invstd"]
        if weight is not None:
            scale = scale * self._channels(weight, axes, "weight")
        value = (self - columns["mean"]) * scale
        return value if bias is None else value + self._channels(bias, axes, "bias")

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Return self divided by its `p`-norm along `dim`, or by `eps` where the norm is less.

        `p` is 0 (the number of elements that are not 0), infinity (the greatest |self|), minus
        infinity (the least), or another number (the p-th root of the sum of |self| ** p).
        """
        power, least = number(p, "normalize: p"), number(eps, "normalize: eps")
        one_axis(dim, self.ndim, "normalize")
        value = self._wide()
        norm = value._norm(power, dim).maximum(least)
        return (value / norm).cast(self._fraction())

    def _norm(self, power: float, dim: int) -> Self:
        if power == 0:
            return self.ne(0).sum(dim, keepdim=True).cast(self.dtype)
        size = self if power % 2 == 0 else self.abs()
        if math.isinf(power):
            return (size.max if power > 0 else size.min)(dim, keepdim=True)
        total = size.pow(power).sum(dim, keepdim=True)
        # The root of 0 has no finite gradient: 0 is replaced before the root, and after it.
        is_zero = total.eq(0)
        return is_zero.where(0.0, is_zero.where(1.0, total).pow(1.0 / power))

    def _channels(self, operand: Self, axes: tuple[int, ...], name: str) -> Self:
        """Return `operand` in the shape that broadcasts along all axes but `axes`."""
        column = self._lift(operand, "normalise")
        sizes = tuple(self.shape[a] for a in axes)
        full = tuple(n if i in axes else 1 for i, n in enumerate(self.shape))
        if column.shape == sizes or _has_shape(column.shape, full):
            return column.reshape(full)
        raise shape_error(
            f"batchnorm: {name} of shape {column.shape} does not fit shape {self.shape}",
            f"it has a value for each place along axis {', '.join(map(str, axes))}",
            f"a {name} of shape {sizes}",
        )


def _has_shape(shape: Shape, full: Shape) -> bool:
    """Whether a shape is the full one, perhaps without leading axes of size 1."""
    return math.prod(shape) == math.prod(full) and full[len(full) - len(shape) :] == shape


# --------------------------------------------------------------------------------------------------
# Reductions built on others: variance and softmax.


class Statistics(Base):
    """var, std, their pairs with the mean, softmax, softmin, log_softmax, logsumexp.

    Dtypes: integers and bools are taken as float32.
    """

    __slots__ = ()

    def var(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, **others: Never
    ) -> Self:
        """Return the variance over `axis`: the sum of squared distances from the mean, divided by
        count - `correction`; NaN or infinite if that is not above 0.

        Also known as: numpy var(ddof=correction).
        """
        if others:
            refuse_keywords(Statistics.var, others)
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

    def std(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1, **others: Never
    ) -> Self:
        """Return the standard deviation over `axis`: the square root of `var`."""
        if others:
            refuse_keywords(Statistics.std, others)
        return root_of_variance(self._variance(axis, keepdim, correction, "std"))

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
        return root_of_variance(spread), self.mean(axis, keepdim)

    def softmax(self, axis: int = -1, dtype: DType | str | None = None, **others: Never) -> Self:
        """Return e ** self divided by its sum along `axis`; with `dtype` self is cast before.

        The greatest value is subtracted first, so that nothing overflows.
        """
        if others:
            refuse_keywords(Statistics.softmax, others)
        value = self if dtype is None else self.cast(dtype)
        powers = value._below_greatest(axis, "softmax").exp()
        return (powers / powers.sum(axis, keepdim=True)).cast(value._fraction())

    def softmin(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """Return `softmax` of -self. Dtypes: unsigned integers are taken as float32 first."""
        many_axes(axis, self.ndim, "softmin")
        value = self if self.dtype.kind == "int" else self.cast(self._fraction())
        return value.neg().softmax(axis, dtype)

    def log_softmax(
        self, axis: int = -1, dtype: DType | str | None = None, **others: Never
    ) -> Self:
        """Return the logarithm of `softmax`, without its loss of precision."""
        if others:
            refuse_keywords(Statistics.log_softmax, others)
        value = self if dtype is None else self.cast(dtype)
        shifted = value._below_greatest(axis, "log_softmax")
        total = shifted.exp().sum(axis, keepdim=True)
        return (shifted - total.log()).cast(value._fraction())

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Return log(sum(e ** self)) over `axis`; minus infinity over no elements.

        The greatest value is subtracted first and added last, unless it is infinite.
        """
        axes, value = many_axes(axis, self.ndim, "logsumexp"), self._wide()
        if any(self.shape[a] == 0 for a in axes):
            nothing = value.uop.like(-math.inf)
            shape = reduced_shape(self.shape, axes, keepdim)
            constant = independent(expanded(nothing, shape), value.uop)
            return self._with(constant).cast(self._fraction())
        total = exponential_total(value.uop, axes)
        shape = reduced_shape(self.shape, axes, keepdim)
        return self._with(reshaped(total, shape)).cast(self._fraction())

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
    If the count is not above the correction, the variance is infinite or NaN, and its gradient is
    PyTorch's: along axes the same formula; over all elements infinity, or NaN where x is the
    mean."""
    axes, freedom, is_all = parameter
    count = math.prod(x.shape[a] for a in axes)
    total = combined(Ops.ADD, x, axes)
    centred = x - expanded(total / float(count), x.shape)
    wide = expanded(reshaped(g, reduced_shape(x.shape, axes, True)), x.shape)
    if freedom <= 0 and is_all:
        return [wide * centred.eq(0.0).where(x.like(math.nan), x.like(math.inf))]
    return [wide * (centred * (2.0 / freedom if freedom else math.inf))]


def root_of_variance(variance: T) -> T:
    """Return the square root of a variance. Its gradient is 0 where the variance is 0: all values
    are equal there, and a change of one adds the square of a difference."""
    root = variance.sqrt()
    formula = Formula("standard-deviation", None, _of_root)
    return root._with(with_formula(root.uop, [variance.uop], formula), variance)


def _of_root(g: UOp, _: None, variance: UOp) -> list[UOp]:
    # The gradient of the root itself is infinite at 0.
    is_zero = variance.eq(0.0)
    root = is_zero.where(variance.like(1), variance).sqrt()
    return [is_zero.where(g.like(0), g / (root * 2.0))]


# --------------------------------------------------------------------------------------------------
# Attention: an average of values, weighted by the match of their keys with a query.


class Attention(Base):
    """scaled_dot_product_attention."""

    __slots__ = ()

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """Return softmax(self @ key.T / sqrt(width)) @ value: self has the queries.

        Shapes: queries (.., heads, L, width), keys (.., heads, S, width), values
        (.., heads, S, depth) -> (.., heads, L, depth); leading axes broadcast. `attn_mask`
        broadcasts to (.., L, S): False in a mask of bools hides a key from a query, and a mask of
        floats is added to the products. With `is_causal` query i sees the keys up to i. With
        `enable_gqa` there are fewer heads of keys and values, each for several neighbouring heads
        of queries. A query that sees no key gets 0. `dropout_p` is the probability that a weight is
        dropped, in training.
        Errors: ShapeError if the shapes do not fit, or `attn_mask` and `is_causal` are both given;
        DTypeError for a mask of integers.
        Source: Vaswani et al. 2017.
        """
        what = "scaled_dot_product_attention"
        chance = number(dropout_p, f"{what}: dropout_p")
        causal = flag(is_causal, f"{what}: is_causal")
        keys, values = self._lift(key, "attend"), self._lift(value, "attend")
        if flag(enable_gqa, f"{what}: enable_gqa"):
            keys, values = self._for_heads(keys), self._for_heads(values)
        _check(self.shape, keys.shape, values.shape)
        if causal and attn_mask is not None:
            raise shape_error(
                f"{what}: attn_mask and is_causal=True",
                "only one of them can say which keys a query sees",
                "attn_mask alone, with .tril() for a causal one",
            )
        kind = promote(promote(self.dtype, keys.dtype), values.dtype)
        wide = wide_dtype(kind if kind.is_float else self._fraction())
        factor = 1 / math.sqrt(max(1, self.shape[-1]))
        scores = self.cast(wide).matmul(keys.cast(wide).transpose(-1, -2)) * factor
        if causal:
            weights = scores._causal().where(scores, -math.inf).softmax(-1)
        else:
            weights = scores._attended(attn_mask)
        if chance:
            weights = weights.dropout(chance)
        if kind.is_float:  # rounded as the values are, so that the product is of narrow operands
            weights = weights.cast(kind).cast(wide)
        output = weights.matmul(values.cast(wide))
        return output.cast(kind if kind.is_float else wide)

    def _for_heads(self, keys: Self) -> Self:
        """Return keys or values with each head repeated for the heads of queries that share it."""
        if min(self.ndim, keys.ndim) < 3 or self.shape[-3] % max(1, keys.shape[-3]):
            raise shape_error(
                f"scaled_dot_product_attention: queries of {self.shape} and keys of {keys.shape}",
                "with enable_gqa each head of keys is for equally many heads of queries (axis -3)",
                "a number of query heads that the number of key heads divides",
            )
        *lead, heads, length, width = keys.shape
        times = self.shape[-3] // max(1, heads)
        spread = keys.unsqueeze(-3).expand(*lead, heads, times, length, width)
        return spread.reshape(*lead, heads * times, length, width)

    def _causal(self) -> Self:
        """Return a mask of the last two axes: which keys are not after their query."""
        queries, keys = self.shape[-2:]
        rows = self._with(reshaped(iota(queries), (queries, 1)))
        return rows.ge(self._with(iota(keys)))

    def _attended(self, mask: Self | None) -> Self:
        """Return the softmax of scores along the last axis; it is 0 where `mask` hides a key."""
        if mask is None:
            return self.softmax(-1)
        visible = self._lift(mask, "mask")
        if not (visible.dtype.is_bool or visible.dtype.is_float):
            raise dtype_error(
                f"scaled_dot_product_attention: a mask of {visible.dtype}",
                "a mask is bool (True: is seen) or a float, which is added",
                ".bool() first",
            )
        if visible.dtype.is_bool:
            scores = visible.where(self, -math.inf)
        else:
            scores = self + visible.cast(self.dtype)
        if scores.shape != self.shape:
            raise shape_error(
                f"scaled_dot_product_attention: a mask of shape {visible.shape}",
                f"the products of queries and keys have the shape {self.shape}",
                "a mask that broadcasts to it",
            )
        if not self.shape[-1]:
            return scores
        greatest = scores.max(-1, keepdim=True).detach()
        # Where no key is seen the greatest is minus infinity, and the difference would be NaN.
        powers = (scores - greatest.eq(-math.inf).where(0.0, greatest)).exp()
        # Elsewhere the greatest power is 1, and the bound changes nothing.
        return powers / powers.sum(-1, keepdim=True).maximum(0.5)


def _check(query: Shape, key: Shape, value: Shape) -> None:
    because = ""
    if min(map(len, (query, key, value))) < 2:
        because = "each has an axis of positions and one of features"
    elif query[-1] != key[-1]:
        because = f"a query has {query[-1]} features, and a key {key[-1]}"
    elif key[-2] != value[-2]:
        because = f"there are {key[-2]} keys, and {value[-2]} values"
    if because:
        raise shape_error(
            f"scaled_dot_product_attention: shapes {query}, {key} and {value} do not fit",
            because,
            "queries (.., L, width), keys (.., S, width), values (.., S, depth)",
        )
