"""Attention as ONNX Runtime has it (com.microsoft): fused with products, caches and masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.indexing import tensor_scatter
from workbench.models.onnx.operators.quantization import matmul_to_float
from workbench.models.onnx.table import MICROSOFT, row
from workbench.models.onnx.values import Array
from workbench.tensor.tensor import Tensor


@row("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(
    x: Tensor,
    position_ids: Tensor,
    cosines: Tensor,
    sines: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """Pairs of features turned by the angles of their position."""
    if scale != 1 or is_packed_batching:
        raise ModelError("cannot rotate", "scales and packed batches are not built here")
    shape, half = x.shape, cosines.shape[1]
    if x.ndim == 3:
        batch, length, hidden = x.shape
        width = hidden // num_heads if num_heads and rotary_embedding_dim else 2 * half
        x = x.reshape((batch, length, hidden // width, width)).transpose(1, 2)
    length = x.shape[2]
    places = position_ids.cast(dtypes.int64)
    if places.numel() == 1:  # the position of the first element of each sequence
        places = places.reshape((1, 1)) + Tensor.arange(length, dtype=dtypes.int64).unsqueeze(0)
    y = _rotated(x, places, cosines, sines, bool(interleaved))
    return y.transpose(1, 2).reshape(shape) if len(shape) == 3 else y


def _rotated(x: Tensor, places: Tensor, cosines: Tensor, sines: Tensor, pairs: bool) -> Tensor:
    """Return heads (batch, heads, length, features), turned. Features that belong together are
    neighbours with `pairs`, else half of the features apart; those beyond the angles' stay."""
    half = cosines.shape[1]
    cos, sin = (t[places].unsqueeze(1) for t in (cosines, sines))
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if pairs:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    real, imaginary = first * cos - second * sin, first * sin + second * cos
    if pairs:
        turned = real.stack(imaginary, dim=-1).reshape(turned.shape)
    else:
        turned = real.cat(imaginary, dim=-1)
    return turned.cat(rest, dim=-1) if rest.shape[-1] else turned


@row("Attention", domain=MICROSOFT)
def attention(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_length: Tensor | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Any = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    """Attention with the weights of query, key and value in one matrix; and keys and values."""
    if do_rotary or past_present_share_buffer or past_length is not None:
        because = "rotary embeddings and shared buffers inside of it are not built here"
        raise ModelError("cannot compute attention", because)
    products = x @ weight
    products = products if bias is None else products + bias
    sizes = list(qkv_hidden_sizes or [weight.shape[1] // 3] * 3)
    heads = [_heads(part, num_heads) for part in products.split(sizes, 2)]
    options = mask_filter_value, scale, unidirectional
    return _with_past(heads, past, mask, attention_bias, *options)


@row("QAttention", domain=MICROSOFT)
def attention_of_integers(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    weight_scale: Tensor,
    mask: Tensor | None = None,
    x_zero: Tensor | None = None,
    weight_zero: Tensor | None = None,
    past: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    """Attention whose queries, keys and values are products of integers."""
    products = matmul_to_float(x, weight, x_scale, weight_scale, x_zero, weight_zero, bias)
    heads = [_heads(part, num_heads) for part in products.chunk(3, 2)]
    return _with_past(heads, past, mask, None, mask_filter_value, scale, unidirectional)


def _with_past(
    heads: Sequence[Tensor], past: Tensor | None, mask: Tensor | None, *options: Any
) -> Any:
    """Return attention, and keys and values with those of before in one tensor."""
    query, key, value = heads
    if past is not None:
        key, value = past[0].cat(key, dim=2), past[1].cat(value, dim=2)
    present = key.stack(value, dim=0) if key.shape == value.shape else None
    return _joined(_attended(query, key, value, mask, *options)), present


@row("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    """Attention of queries, keys and values of shape (batch, length, features)."""
    if key is None:  # packed: an axis of query, key and value of each head
        query, key, value = _unpacked(query, 3)
    elif value is None:
        key, value = _unpacked(key, 2)
    assert value is not None
    if bias is not None:
        parts = bias.split([query.shape[-1], key.shape[-1], value.shape[-1]], 0)
        query, key, value = (t + b for t, b in zip((query, key, value), parts, strict=True))
    q, k, v = (t if t.ndim == 4 else _heads(t, num_heads) for t in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    y = _attended(q, k, v, mask, attention_bias, mask_filter_value, scale, unidirectional)
    return _joined(y), k, v


@row("GroupQueryAttention", domain=MICROSOFT, known=("total",))
def group_query_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    last_places: Tensor,
    total: Array,
    cosines: Tensor | None = None,
    sines: Tensor | None = None,
    position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    do_rotary: int = 0,
    local_window_size: int = -1,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> Any:
    """Causal attention whose keys and values belong to several queries each, with the cache of
    them. A sequence of the batch ends at its place in `last_places`; all are `total` long."""
    if smooth_softmax > 0:
        raise ModelError("cannot compute attention", "smooth softmax is not built here")
    counts = num_heads, kv_num_heads, kv_num_heads
    if key is None or value is None:
        width = query.shape[2] // sum(counts)
        query, key, value = query.split([width * count for count in counts], 2)
    q, k, v = (_heads(t, count) for t, count in zip((query, key, value), counts, strict=True))
    length, size = query.shape[1], int(total.item())
    starts = last_places.cast(dtypes.int64).reshape((-1,)) + (1 - length)
    if length == size:  # the first call: padding follows the sequences
        starts = starts * 0
    steps = Tensor.arange(length, dtype=dtypes.int64).unsqueeze(0)
    places = starts.unsqueeze(1) + steps
    if do_rotary:
        if cosines is None or sines is None:
            raise ModelError("cannot compute attention", "it has no cosines and sines")
        turns = places if position_ids is None else position_ids.cast(dtypes.int64)
        q, k = (_rotated(t, turns, cosines, sines, bool(rotary_interleaved)) for t in (q, k))
    k, v = _cached(past_key, k, starts, size), _cached(past_value, v, starts, size)
    keys, values = (t.repeat_interleave(num_heads // kv_num_heads, 1) for t in (k, v))
    scores = _scores(q, keys, scale)
    scores = scores if softcap == 0 else (scores / softcap).tanh() * softcap
    scores = scores if attention_bias is None else scores + attention_bias
    shares = _seen(places, k.shape[2], local_window_size).where(scores, -math.inf).softmax(-1)
    return _joined(shares.cast(q.dtype) @ values), k, v


def _seen(places: Tensor, total: int, window: int) -> Tensor:
    """Return whether a query at each place of a sequence sees each key: those up to it, and of
    these the last ones if there is a window."""
    last = places.unsqueeze(1).unsqueeze(3)
    every = Tensor.arange(total, dtype=dtypes.int64)
    return (every <= last) & (every > last - window) if window >= 0 else every <= last


def _cached(past: Tensor | None, new: Tensor, starts: Tensor, total: int) -> Tensor:
    """Return a cache of at least `total` places, with new ones of each sequence from its start."""
    if past is None:
        past = new[:, :, :0]
    room = max(0, total - past.shape[2])
    return tensor_scatter(past.pad([(0, 0), (0, 0), (0, room), (0, 0)]), new, starts)


def _unpacked(x: Tensor, count: int) -> list[Tensor]:
    """Return tensors of shape (batch, length, features) of one of (batch, length, heads, count,
    features of a head)."""
    if x.ndim != 5 or x.shape[3] != count:
        because = f"its packed input has shape {x.shape}"
        raise ModelError("cannot compute attention", because)
    return [x[:, :, :, n].flatten(2) for n in range(count)]


def _heads(x: Tensor, count: int) -> Tensor:
    batch, length, hidden = x.shape
    return x.reshape((batch, length, count, hidden // count)).transpose(1, 2)


def _joined(x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape((batch, length, heads * width))


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    filter_value: float,
    scale: float,
    is_causal: int,
) -> Tensor:
    length, total = query.shape[2], key.shape[2]
    scores = _scores(query, key, scale)
    if mask is not None:
        scores = scores + _masked(mask, total, scores).where(0, filter_value)
    if bias is not None:
        scores = scores + bias
    if is_causal:
        keys, queries = Tensor.arange(total), Tensor.arange(length) + (total - length)
        is_seen = keys.unsqueeze(0) <= queries.unsqueeze(1)
        scores = is_seen.where(scores, filter_value)
    return scores.softmax(-1).cast(query.dtype) @ value


def _scores(query: Tensor, key: Tensor, scale: float) -> Tensor:
    return wide(query @ key.transpose(-2, -1)) * (scale or 1 / math.sqrt(query.shape[-1]))


def _masked(mask: Tensor, total: int, scores: Tensor) -> Tensor:
    """Return whether each key counts: by a mask of its keys, or by the lengths of sequences."""
    if mask.ndim == 1 and mask.shape[0] == scores.shape[0]:
        steps = Tensor.arange(total, dtype=dtypes.int32).unsqueeze(0)
        return (steps < mask.cast(dtypes.int32).unsqueeze(1)).reshape((-1, 1, 1, total))
    if mask.ndim == 2 and mask.shape[1] == total:
        return mask.ne(0).reshape((-1, 1, 1, total))
    if mask.ndim == 3:
        return mask.ne(0).unsqueeze(1)
    raise ModelError("cannot compute attention", f"a mask of shape {mask.shape} is not built here")
