"""Quantization: integers with a scale and a zero point. Right, not fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.models.onnx.operators.elementwise import cast_to, leaky_relu
from workbench.models.onnx.operators.products import Windows, conv
from workbench.models.onnx.table import MICROSOFT, row
from workbench.models.onnx.values import axis_of, dtype_of
from workbench.tensor.tensor import Tensor


@row("QuantizeLinear", since=10)
def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    """round(x / scale) + zero_point, saturated."""
    if zero_point is not None:
        dtype = zero_point.dtype
    else:
        dtype = dtype_of(output_dtype) if output_dtype else dtypes.uint8
    factor = _spread(scale, x, axis, block_size)
    if precision:
        quotient = x.cast(dtype_of(precision)) / factor.cast(dtype_of(precision))
    else:
        quotient = x.cast(dtypes.float32) / factor.cast(dtypes.float32)
    if dtype.is_float:
        return cast_to(quotient, dtype, bool(saturate))
    zero = None if zero_point is None else _spread(zero_point, x, axis, block_size)
    return rounded(quotient, zero, dtype)


def rounded(quotient: Tensor, zero: Tensor | None, dtype: DType) -> Tensor:
    """Return the nearest integers plus a zero point, saturated."""
    whole = quotient.cast(dtypes.float64).round()
    whole = whole if zero is None else whole + zero.cast(dtypes.float64)
    return whole.clamp(dtype.min, dtype.max).cast(dtypes.int32).cast(dtype)


@row("DequantizeLinear", since=10)
def dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    """(x - zero_point) * scale."""
    dtype = dtype_of(output_dtype) if output_dtype else scale.dtype
    factor = _spread(scale, x, axis, block_size).cast(dtypes.float32)
    if x.dtype.is_float or zero_point is None:
        apart = x.cast(dtypes.float32)
    else:
        zero = _spread(zero_point, x, axis, block_size).cast(dtypes.int32)
        apart = (x.cast(dtypes.int32) - zero).cast(dtypes.float32)
    return (apart * factor).cast(dtype)


def _spread(value: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """Return a scale or zero point in the shape of `x`: one for all, an axis or its blocks."""
    if value.numel() == 1:
        return value.reshape(())
    axis = axis_of(axis, x.ndim)
    if not block_size:
        return value.reshape((-1,) + (1,) * (x.ndim - axis - 1))
    repeated = value.repeat_interleave(block_size, axis)
    return repeated[(slice(None),) * axis + (slice(0, x.shape[axis]),)]


@row("MatMulInteger", since=10)
def matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return _less(a, a_zero, -2) @ _less(b, b_zero, -1)


def _less(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """Return x - zero as int32: a zero point, or one for each place along an axis."""
    whole = x.cast(dtypes.int32)
    if zero is None:
        return whole
    zero = zero.cast(dtypes.int32)
    if zero.numel() == 1:
        return whole - zero.reshape(())
    if zero.ndim == 1:
        zero = zero.reshape((-1,) + (1,) * (-axis - 1))
    return whole - zero


@row("QLinearMatMul", since=10)
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:
    sums = matmul_integer(a, b, a_zero, b_zero).cast(dtypes.float32)
    scales = _along(a_scale, -2) * _along(b_scale, -1) / _along(y_scale, -2)
    return rounded(sums * scales, _along(y_zero, -2), y_zero.dtype)


def _along(value: Tensor, axis: int) -> Tensor:
    if value.dtype.is_float:
        value = value.cast(dtypes.float32)
    if value.numel() == 1:
        return value.reshape(())
    return value.reshape((-1,) + (1,) * (-axis - 1)) if value.ndim == 1 else value


@row("ConvInteger", since=10, shared=Windows)
def conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    *,
    group: int = 1,
    **options: Any,
) -> Tensor:
    # The border is the zero point, which is 0 after it has been subtracted.
    whole, taps = _less(x, x_zero, -1), _less(weight, w_zero, -weight.ndim)
    return conv(whole, taps, group=group, **options)


@row("QLinearConv", since=10, shared=Windows)
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
    *,
    group: int = 1,
    **options: Any,
) -> Tensor:
    sums = conv_integer(x, weight, x_zero, w_zero, group=group, **options)
    if bias is not None:
        sums = sums + bias.reshape((1, -1) + (1,) * (x.ndim - 2))
    channels = _along(w_scale, 1 - x.ndim)
    scales = _along(x_scale, -1) * channels / _along(y_scale, -1)
    return rounded(sums.cast(dtypes.float32) * scales, y_zero.reshape(()), y_zero.dtype)


@row("DynamicQuantizeLinear", since=11)
def dynamic_quantize(x: Tensor) -> Any:
    """`x` as integers of 8 bits for its range, with their scale and zero point."""
    high, low = x.max().maximum(0), x.min().minimum(0)
    scale = (high - low) / 255
    zero = (-low / scale).round().clamp(0, 255)
    zero = scale.eq(0).where(0, zero).cast(dtypes.int32).cast(dtypes.uint8)
    quotient = scale.eq(0).where(0, x / scale.eq(0).where(1, scale))
    return rounded(quotient, zero, dtypes.uint8), scale, zero


@row("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_to_float(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero: Tensor | None = None,
    b_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """The product of what integers stand for."""
    sums = matmul_integer(a, b, a_zero, b_zero).cast(a_scale.dtype)
    y = sums * (_along(a_scale, -2) * _along(b_scale, -1))
    return y if bias is None else y + bias


@row("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """The product of floats, as integers of 8 bits for their range, and integers."""
    whole, scale, zero = dynamic_quantize(a)
    return matmul_to_float(whole, b, scale, b_scale, zero, b_zero, bias)


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def computed(
        a: Tensor,
        a_scale: Tensor,
        a_zero: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero: Tensor | None,
        y_scale: Tensor,
        y_zero: Tensor | None = None,
    ) -> Tensor:
        y = function(dequantize(a, a_scale, a_zero), dequantize(b, b_scale, b_zero))
        return rounded(y / y_scale, y_zero, a.dtype)

    return computed


row("QLinearAdd", domain=MICROSOFT)(_of_two(lambda a, b: a + b))
row("QLinearMul", domain=MICROSOFT)(_of_two(lambda a, b: a * b))


@row("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None
) -> Tensor:
    return rounded(dequantize(x, x_scale, x_zero).sigmoid() / y_scale, y_zero, x.dtype)


@row("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
    *,
    alpha: float = 0.01,
) -> Tensor:
    y = leaky_relu(dequantize(x, x_scale, x_zero), alpha=alpha)
    return rounded(y / y_scale, y_zero, x.dtype)


@row("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    *,
    channels_last: int = 0,
) -> Tensor:
    axes = tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim))
    y = dequantize(x, x_scale, x_zero).mean(axes, keepdim=True)
    return rounded(y / y_scale, y_zero, x.dtype)


@row("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(y_scale: Tensor, y_zero: Tensor, *inputs: Tensor, axis: int) -> Tensor:
    """Tensors joined, of which each is followed by its scale and zero point."""
    parts = [dequantize(*inputs[n : n + 3]) for n in range(0, len(inputs), 3)]
    return rounded(parts[0].cat(*parts[1:], dim=axis) / y_scale, y_zero, y_zero.dtype)


def bits_unpacked(packed: Tensor, bits: int) -> Tensor:
    """Return the numbers of `bits` bits that bytes hold, the lowest bits first, along the last
    axis."""
    shape = packed.shape
    count = 8 // bits
    parts = [(packed >> (n * bits)) & ((1 << bits) - 1) for n in range(count)]
    both = parts[0].stack(*parts[1:], dim=-1)
    return both.reshape((*shape[:-1], math.prod(shape[-1:]) * count))
