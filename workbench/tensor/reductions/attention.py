"""Attention: an average of values, weighted by the match of their keys with a query."""

from __future__ import annotations

import math
from typing import Self

from workbench.base.dtypes import promote
from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import flag, number
from workbench.tensor.operands.broadcast import wide_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import dtype_error, shape_error


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
        broadcasts to (.., L, S): where a bool is False a query does not see a key, and a float is
        added to the product. With `is_causal` query i sees the keys up to i. With `enable_gqa`
        there are fewer heads of keys and values, each for several neighbouring heads of queries.
        A query that sees no key gets 0. `dropout_p` is the chance of a weight to be dropped, in
        training.
        Errors: ShapeError if the shapes do not fit, or `attn_mask` and `is_causal` are both given.
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
        if kind.is_float:  # as exact as the values: a product of two narrow operands
            weights = weights.cast(kind).cast(wide)
        output = weights.matmul(values.cast(wide))
        return output.cast(kind if kind.is_float else wide)

    def _for_heads(self, keys: Self) -> Self:
        """Return keys or values, of which each head stands beside those queries that share it."""
        if min(self.ndim, keys.ndim) < 3 or self.shape[-3] % max(1, keys.shape[-3]):
            raise shape_error(
                f"scaled_dot_product_attention: queries of {self.shape} and keys of {keys.shape}",
                "with enable_gqa heads of queries (axis -3) share those of keys, equally many each",
                "a number of heads of queries that those of keys divide",
            )
        *lead, heads, length, width = keys.shape
        times = self.shape[-3] // max(1, heads)
        spread = keys.unsqueeze(-3).expand(*lead, heads, times, length, width)
        return spread.reshape(*lead, heads * times, length, width)

    def _causal(self) -> Self:
        """Return a mask of the last two axes: which keys are not after their query."""
        queries, keys = self.shape[-2:]
        rows = self._with(reshaped(numbered(queries), (queries, 1)))
        return rows.ge(self._with(numbered(keys)))

    def _attended(self, mask: Self | None) -> Self:
        """Return the softmax along the last axis of scores, of which those that `mask` hides are
        0."""
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
