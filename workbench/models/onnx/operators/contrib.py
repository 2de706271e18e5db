"""Operators of ONNX Runtime (com.microsoft) that exported transformers have."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.normalization import layer_norm, simplified_layer_norm
from workbench.models.onnx.operators.quantization import bits_unpacked
from workbench.models.onnx.table import MICROSOFT, row
from workbench.tensor.tensor import Tensor

row("LayerNormalization", domain=MICROSOFT)(layer_norm)
row("SimplifiedLayerNormalization", domain=MICROSOFT)(simplified_layer_norm)


@row("Gelu", domain=MICROSOFT)
def gelu(x: Tensor) -> Tensor:
    return wide(x).gelu("none").cast(x.dtype)


@row("BiasGelu", domain=MICROSOFT)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return gelu(x + bias)


@row("FastGelu", domain=MICROSOFT)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return wide(x if bias is None else x + bias).gelu("tanh").cast(x.dtype)


@row("QuickGelu", domain=MICROSOFT)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return (wide(x) * (wide(x) * alpha).sigmoid()).cast(x.dtype)


@row("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    x: Tensor,
    skip: Tensor,
    scale: Tensor,
    shift: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
) -> Any:
    """The normalized sum, its mean, its inverse deviation, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    return (*layer_norm(total, scale, shift, epsilon=epsilon), total)


@row("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12
) -> Any:
    total = x + skip if bias is None else x + skip + bias
    y, inverse = simplified_layer_norm(total, scale, epsilon=epsilon)
    return y, None, inverse, total


@row("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    words: Tensor,
    positions: Tensor,
    segments: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Any:
    """The normalized sum of embeddings, the lengths that a mask has, and the sum."""
    batch, length = input_ids.shape
    places = Tensor.arange(length, dtype=dtypes.int64) if position_ids is None else position_ids
    total = words[input_ids] + positions[places]
    if segments is not None and segment_ids is not None:
        total = total + segments[segment_ids]
    lengths = Tensor.zeros(batch, dtype=dtypes.int32)
    if mask is not None:
        lengths = mask.cast(dtypes.int32).sum(1).cast(dtypes.int32)
    return layer_norm(total, scale, shift, epsilon=epsilon)[0], lengths, total


@row("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    if transBatchA or transBatchB:
        raise ModelError("cannot multiply matrices", "transposed batches are not built here")
    a = a.transpose(-2, -1) if transA and a.ndim > 1 else a
    b = b.transpose(-2, -1) if transB and b.ndim > 1 else b
    return ((a @ b) * alpha).cast(a.dtype)


@row("MatMulNBits", domain=MICROSOFT)
def matmul_bits(
    a: Tensor,
    b: Tensor,
    scales: Tensor,
    zero_points: Tensor | None = None,
    group_index: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    block_size: int,
    bits: int = 4,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Tensor:
    """The product with a matrix whose rows are blocks of integers, each block with a scale."""
    if bits not in (2, 4, 8) or group_index is not None or weight_prepacked:
        because = f"it has {bits} bits, groups or a layout of its own"
        raise ModelError("cannot multiply a quantized matrix", because)
    blocks = -(-K // block_size)
    whole = bits_unpacked(b.reshape((N, -1)), bits).reshape((N, blocks, block_size))
    zeros = Tensor.full((1,), 1 << (bits - 1), dtype=dtypes.float32)
    if zero_points is not None and zero_points.dtype is dtypes.uint8:
        zeros = bits_unpacked(zero_points.reshape((N, -1)), bits)[:, :blocks].unsqueeze(2)
        zeros = zeros.cast(dtypes.float32)
    elif zero_points is not None:
        zeros = zero_points.reshape((N, blocks, 1)).cast(dtypes.float32)
    factors = scales.reshape((N, blocks, 1)).cast(dtypes.float32)
    weight = ((whole.cast(dtypes.float32) - zeros) * factors).reshape((N, -1))[:, :K]
    y = (a @ weight.cast(a.dtype).T).cast(a.dtype)
    return y if bias is None else y + bias


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
    shape, half = x.shape, cosines.shape[1]
    if x.ndim == 3:
        batch, length, hidden = x.shape
        width = hidden // num_heads if num_heads and rotary_embedding_dim else 2 * half
        x = x.reshape((batch, length, hidden // width, width)).transpose(1, 2)
    length = x.shape[2]
    places = position_ids.cast(dtypes.int64)
    if places.numel() == 1:  # the position of the first element of each sequence
        places = places.reshape((1, 1)) + Tensor.arange(length, dtype=dtypes.int64).unsqueeze(0)
    cos, sin = (t[places].unsqueeze(1) for t in (cosines, sines))
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    real, imaginary = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        turned = real.stack(imaginary, dim=-1).reshape(turned.shape)
    else:
        turned = real.cat(imaginary, dim=-1)
    y = turned.cat(rest, dim=-1) if rest.shape[-1] else turned
    return y.transpose(1, 2).reshape(shape) if len(shape) == 3 else y


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
    query, key, value = (_heads(part, num_heads) for part in products.split(sizes, 2))
    if past is not None:
        key, value = past[0].cat(key, dim=2), past[1].cat(value, dim=2)
    present = None
    if key.shape == value.shape:
        present = key.stack(value, dim=0)
    y = _attended(query, key, value, mask, attention_bias, mask_filter_value, scale, unidirectional)
    return _joined(y), present


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
    if key is None or value is None or query.ndim != 3 or key.ndim != 3 or value.ndim != 3:
        raise ModelError("cannot compute attention", "packed inputs are not built here")
    if bias is not None:
        parts = bias.split([query.shape[2], key.shape[2], value.shape[2]], 0)
        query, key, value = (t + b for t, b in zip((query, key, value), parts, strict=True))
    q, k, v = (_heads(t, num_heads) for t in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    y = _attended(q, k, v, mask, attention_bias, mask_filter_value, scale, unidirectional)
    return _joined(y), k, v


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
    scores = wide(query @ key.transpose(-2, -1)) * (scale or 1 / math.sqrt(query.shape[-1]))
    if mask is not None:
        scores = scores + _masked(mask, total, scores).where(0, filter_value)
    if bias is not None:
        scores = scores + bias
    if is_causal:
        keys, queries = Tensor.arange(total), Tensor.arange(length) + (total - length)
        is_seen = keys.unsqueeze(0) <= queries.unsqueeze(1)
        scores = is_seen.where(scores, filter_value)
    return scores.softmax(-1).cast(query.dtype) @ value


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
