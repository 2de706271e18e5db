"""Gathers and scatters: elements by their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.ir.gradient.occurrences import as_source
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor


@row("embedding")
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table; the options change their gradients alone."""
    rows = weight[indices]
    if padding_idx >= 0:
        rows = indices.eq(padding_idx).unsqueeze(-1).where(rows.detach(), rows)
    if scale_grad_by_freq:
        flat = indices.flatten()
        ones = Tensor.ones(flat.numel(), dtype=weight.dtype)
        counts = Tensor.zeros(weight.shape[0], dtype=weight.dtype)
        share = counts.scatter_reduce(0, flat, ones, "sum")[indices].unsqueeze(-1).reciprocal()
        scaled = rows.detach() + (rows - rows.detach()) * share
        rows = rows.isfinite().where(scaled, rows)
    return rows


@row("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if not x.ndim:
        return x
    return x[(slice(None),) * (dim % x.ndim) + (index.flatten(),)]


@row("gather")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    return x.gather(dim, index) if x.ndim and index.ndim else x.expand(index.shape)


@row("scatter.value", "scatter.src")
def scatter(x: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    return x.scatter(dim, index, src)


@row("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return x.scatter_reduce(dim, index, src, "sum")


@row("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    value = x.scatter_reduce(dim, index, src, reduce, include_self)
    is_extreme = reduce in ("amax", "amin") and value.dtype.is_float and value.ndim > 0
    return _shared(value, x, dim, index, src, include_self) if is_extreme else value


def _shared(
    value: Tensor, x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool
) -> Tensor:
    """Return an extreme `value`, whose gradient is shared evenly by all elements that equal it.

    They are counted with those of `x`, even where these are left out, as PyTorch does.
    """
    src = src[tuple(slice(n) for n in index.shape)]
    own = x.eq(value).cast(x.dtype)
    of_src = src.eq(value.gather(dim, index)).cast(x.dtype)
    count = own.scatter_reduce(dim, index, of_src, "sum")
    own = own if include_self else own.scatter(dim, index, 0)
    mean = (x * own / count).scatter_reduce(
        dim, index, src * of_src / count.gather(dim, index), "sum"
    )
    return value._with(as_source(value.uop, mean.uop), x, src)


@row("scatter.reduce", "scatter.value_reduce")
def scatter_by(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> Tensor:
    source = src if isinstance(src, Tensor) else Tensor.full(index.shape, src, dtype=x.dtype)
    return x.scatter_reduce(dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


@row("index_reduce")
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    axis = dim % max(1, source.ndim)
    along = tuple(n if a == axis else 1 for a, n in enumerate(source.shape))
    places = index.reshape(along).expand(source.shape)
    return scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


@row("diagonal_scatter")
def diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    places = Tensor.arange(x.numel(), dtype=dtypes.int64).reshape(x.shape)
    chosen = places.diagonal(offset, dim1, dim2).flatten()
    return x.flatten().scatter(0, chosen, source.flatten()).reshape(x.shape)


@row("searchsorted.Tensor")
def searchsorted(
    sorted_sequence: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements belong in a sorted sequence: how many of its elements are before each."""
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    row_of = sorted_sequence.unsqueeze(-2) if sorted_sequence.ndim > 1 else sorted_sequence
    each = x.unsqueeze(-1)
    before = row_of <= each if right or side == "right" else row_of < each
    return before.sum(-1, dtype=dtypes.int32 if out_int32 else dtypes.int64)


@row("index.Tensor", "_unsafe_index.Tensor")
def index_of(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return x[tuple(slice(None) if i is None else i for i in indices)]


@row("index_put", "_unsafe_index_put")
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Return `x` with elements at positions replaced by `values`, or with them added."""
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype is dtypes.bool:
        mask = indices[0].reshape(indices[0].shape + (1,) * (x.ndim - indices[0].ndim))
        if values.numel() == 1 or values.ndim <= x.ndim - indices[0].ndim:
            value = values.cast(x.dtype)
            return mask.where(x + value if accumulate else value, x)
    places = Tensor.arange(x.numel(), dtype=dtypes.int64).reshape(x.shape)
    chosen = index_of(places, indices)
    source = values.cast(x.dtype).expand(chosen.shape).flatten()
    flat = x.flatten()
    if accumulate:
        return flat.scatter_reduce(0, chosen.flatten(), source, "sum").reshape(x.shape)
    return flat.scatter(0, chosen.flatten(), source).reshape(x.shape)


@row("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`x` with elements replaced, counted through all its axes, or with others added to them."""
    flat, places, values = (each.flatten() for each in (x, index, source))
    if accumulate:
        return flat.scatter_reduce(0, places, values, "sum").reshape(x.shape)
    return flat.scatter(0, places, values).reshape(x.shape)


@row("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    x, mask = x.expand(shape), mask.expand(shape)
    places = mask.flatten().cast(dtypes.int64).cumsum(0) - 1
    flat = source.flatten()[places.clamp(0, max(0, source.numel() - 1))]
    return mask.where(flat.reshape(x.shape), x)


@row("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return mask.where(value, x)


@row("embedding_dense_backward")
def embedding_dense_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    width = grad.shape[-1]
    rows, flat = grad.reshape((-1, width)), indices.flatten()
    if padding_idx >= 0:
        rows = flat.eq(padding_idx).reshape((-1, 1)).where(0, rows)
    into = Tensor.zeros(num_weights, width, dtype=grad.dtype)
    if scale_grad_by_freq:
        ones = Tensor.ones(flat.numel(), dtype=grad.dtype)
        counts = Tensor.zeros(num_weights, dtype=grad.dtype).scatter_reduce(0, flat, ones, "sum")
        rows = rows / counts[flat].reshape((-1, 1))
    index = flat.reshape((-1, 1)).expand(rows.shape)
    return into.scatter_reduce(0, index, rows, "sum")


@row("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sum (mode 0), average (1) or maximise (2) the rows of each bag, indices[offsets[b]:
    offsets[b + 1]]: a mask says which index is in which bag."""
    starts = offsets[:-1] if include_last_offset else offsets
    count = indices.numel()
    last = Tensor.full((1,), count, dtype=starts.dtype)
    ends = starts[1:].cat(offsets[-1:] if include_last_offset else last)
    positions = Tensor.arange(count, dtype=starts.dtype).reshape((1, -1))
    inside = (positions >= starts.reshape((-1, 1))) & (positions < ends.reshape((-1, 1)))
    if padding_idx >= 0:
        inside = inside & indices.ne(padding_idx).reshape((1, -1))
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape((-1, 1))
    sizes = inside.cast(dtypes.int64).sum(1)
    if mode == 2:
        spread = inside.unsqueeze(2).where(rows.unsqueeze(0), float("-inf"))
        bags = sizes.eq(0).unsqueeze(1).where(0, spread.max(1))
    else:
        bags = inside.cast(rows.dtype) @ rows
        bags = bags if mode == 0 else bags / sizes.clamp(1).cast(rows.dtype).unsqueeze(1)
    bag_of = (inside.cast(dtypes.int64) * Tensor.arange(starts.numel()).reshape((-1, 1))).sum(0)
    greatest = sizes
    if mode == 2:
        greatest = indices[spread.argmax(1)]
    return bags.cast(weight.dtype), bag_of, sizes, greatest
