"""Normalizations over a batch, a layer or a group, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.models.arithmetic import moments, wide
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor

Triple = tuple[Tensor, Tensor, Tensor]


@row("native_layer_norm")
def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Triple:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    mine = wide(x)
    centre, scale = moments(mine, axes, eps)
    y = (mine - centre) * scale
    return _affine(y, weight, bias).cast(x.dtype), centre.cast(x.dtype), scale.cast(x.dtype)


@row("native_group_norm")
def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    n: int,
    c: int,
    hxw: int,
    group: int,
    eps: float,
) -> Triple:
    mine = wide(x).reshape((n, group, (c // group) * hxw))
    centre, scale = moments(mine, (2,), eps)
    y = ((mine - centre) * scale).reshape(x.shape)
    y = _affine(y, _channels(weight, x), _channels(bias, x)).cast(x.dtype)
    return y, centre.squeeze(2).cast(x.dtype), scale.squeeze(2).cast(x.dtype)


@row("_native_batch_norm_legit_no_training")
def batch_norm_fixed(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Triple:
    y = _normalized(x, running_mean, (running_var + eps).rsqrt(), weight, bias)
    return y, Tensor.zeros(0), Tensor.zeros(0)


@row("_native_batch_norm_legit_functional", "_native_batch_norm_legit")
def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Normalize by the moments of the batch in training, else by the running ones; return the new
    running moments last."""
    if not training:
        fixed = batch_norm_fixed(x, weight, bias, running_mean, running_var, momentum, eps)
        return (*fixed, running_mean, running_var)
    y, centre, scale = batch_norm_alone(x, weight, bias, True, momentum, eps)
    count = x.numel() // x.shape[1]
    axes = tuple(a for a in range(x.ndim) if a != 1)
    variance = wide(x).var(axes, correction=1) if count > 1 else wide(x).sum(axes) * math.nan
    kept = 1 - momentum
    return (
        y,
        centre,
        scale,
        (running_mean * kept + centre * momentum).cast(running_mean.dtype),
        (running_var * kept + variance * momentum).cast(running_var.dtype),
    )


@row("_native_batch_norm_legit.no_stats")
def batch_norm_alone(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Triple:
    axes = tuple(a for a in range(x.ndim) if a != 1)
    centre, scale = (m.reshape((x.shape[1],)) for m in moments(wide(x), axes, eps))
    return _normalized(x, centre, scale, weight, bias), centre, scale


@row("_fused_rms_norm")
def rms_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    mine = wide(x)
    least = {dtypes.float16: 2**-10, dtypes.float64: 2**-52}.get(x.dtype, 2**-23)
    scale = ((mine * mine).mean(axes, keepdim=True) + (least if eps is None else eps)).rsqrt()
    return _affine(mine * scale, weight, None).cast(x.dtype), scale


@row("native_layer_norm_backward")
def layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    normalized_shape: Sequence[int],
    centre: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    lead = tuple(range(x.ndim - len(normalized_shape)))
    mine, over = wide(x), wide(grad)
    y = (mine - centre) * scale
    inner = over if weight is None else over * weight
    of_x = _through_moments(inner, y, scale, axes).cast(x.dtype)
    of_weight, of_bias = (
        (over * y).sum(lead) if lead else over * y,
        over.sum(lead) if lead else over,
    )
    return (
        of_x if output_mask[0] else None,
        of_weight.cast(x.dtype) if output_mask[1] else None,
        of_bias.cast(x.dtype) if output_mask[2] else None,
    )


@row("native_group_norm_backward")
def group_norm_backward(
    grad: Tensor,
    x: Tensor,
    centre: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    n: int,
    c: int,
    hxw: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    shape = (n, group, c // group, hxw)
    mine, over = wide(x).reshape(shape), wide(grad).reshape(shape)
    centre, scale = centre.reshape((n, group, 1, 1)), scale.reshape((n, group, 1, 1))
    y = (mine - centre) * scale
    inner = over if weight is None else over * weight.reshape((1, group, c // group, 1))
    of_x = _through_moments(inner, y, scale, (2, 3)).reshape(x.shape).cast(x.dtype)
    of_weight = (over * y).sum((0, 3)).reshape((c,)).cast(x.dtype)
    of_bias = over.sum((0, 3)).reshape((c,)).cast(x.dtype)
    return (
        of_x if output_mask[0] else None,
        of_weight if output_mask[1] else None,
        of_bias if output_mask[2] else None,
    )


@row("native_batch_norm_backward")
def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    axes = tuple(a for a in range(x.ndim) if a != 1)
    mine, over = wide(x), wide(grad)
    if train:
        assert save_mean is not None and save_invstd is not None
        centre, scale = _channels(save_mean, x), _channels(save_invstd, x)
    else:
        assert running_mean is not None and running_var is not None
        centre, scale = _channels(running_mean, x), _channels((running_var + eps).rsqrt(), x)
    assert centre is not None and scale is not None
    y = (mine - centre) * scale
    inner = over if weight is None else over * _channels(weight, x)
    of_x = _through_moments(inner, y, scale, axes) if train else inner * scale
    return (
        of_x.cast(x.dtype) if output_mask[0] else None,
        (over * y).sum(axes).cast(x.dtype) if output_mask[1] else None,
        over.sum(axes).cast(x.dtype) if output_mask[2] else None,
    )


def _through_moments(inner: Tensor, y: Tensor, scale: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the gradient of x for that of y = (x - mean) * scale, both of the axes' moments."""
    return scale * (
        inner - inner.mean(axes, keepdim=True) - y * (inner * y).mean(axes, keepdim=True)
    )


def _normalized(
    x: Tensor, centre: Tensor, scale: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    y = (wide(x) - _channels(centre, x)) * _channels(scale, x)
    return _affine(y, _channels(weight, x), _channels(bias, x)).cast(x.dtype)


def _affine(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _channels(values: Tensor | None, x: Tensor) -> Any:
    return None if values is None else values.reshape((1, x.shape[1]) + (1,) * (x.ndim - 2))
