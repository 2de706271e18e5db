"""Operators of ONNX Runtime (com.microsoft) that exported transformers have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.elementwise import hard_sigmoid, leaky_relu
from workbench.models.onnx.operators.normalization import layer_norm, simplified_layer_norm
from workbench.models.onnx.operators.products import Windows, conv
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


@row("FusedConv", domain=MICROSOFT, shared=Windows)
def fused_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    more: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    group: int = 1,
    **options: Any,
) -> Tensor:
    """A convolution, what is added to it, and a function of that."""
    y = conv(x, weight, bias, group=group, **options)
    y = y if more is None else y + more
    if not activation:
        return y
    if activation not in ACTIVATIONS:
        raise ModelError("cannot convolve", f"there is no activation {activation!r} here")
    return ACTIVATIONS[activation](y, *activation_params)


ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "Clip": lambda x, low, high: x.clamp(low, high),
    "HardSigmoid": lambda x, alpha, beta: hard_sigmoid(x, alpha=alpha, beta=beta),
    "LeakyRelu": lambda x, alpha: leaky_relu(x, alpha=alpha),
    "Relu": lambda x: x.relu(),
    "Sigmoid": lambda x: x.sigmoid(),
    "Tanh": lambda x: x.tanh(),
}
"""Functions that follow a convolution, with their parameters."""


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
