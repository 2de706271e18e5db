"""Normalizations over a batch, a layer, a group or an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.base.errors import ModelError
from workbench.models.arithmetic import moments, standardized, wide
from workbench.models.onnx.table import row
from workbench.models.onnx.values import axis_of
from workbench.tensor.tensor import Tensor


@row("BatchNormalization", since=7)
def batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    training_mode: int = 0,
) -> Any:
    """`x` normalized by running moments; in training by its own, with the new running ones."""
    if not spatial:
        raise ModelError("cannot normalize a batch", "moments for each pixel are not built here")
    axes = tuple(a for a in range(x.ndim) if a != 1)
    new: tuple[Tensor, ...] = ()
    if training_mode:
        mine = wide(x)
        now, spread = mine.mean(axes), mine.var(axes, correction=0)
        kept = 1 - momentum
        new = (
            (mean * momentum + now * kept).cast(mean.dtype),
            (var * momentum + spread * kept).cast(var.dtype),
        )
        mean, var = now, spread
    shape = (1, -1) + (1,) * (x.ndim - 2)
    factor = (wide(var) + epsilon).rsqrt() * scale
    y = (wide(x) - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)
    return (y.cast(x.dtype), *new)


@row("InstanceNormalization", since=6)
def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = standardized(wide(x), tuple(range(2, x.ndim)), epsilon)
    return (y * scale.reshape(shape) + bias.reshape(shape)).cast(x.dtype)


@row("LayerNormalization")
def layer_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """`x` normalized over the axes from `axis` on, with the mean and the inverse deviation."""
    mine = wide(x)
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    mean, inverse = moments(mine, axes, epsilon)
    y = ((mine - mean) * inverse).cast(x.dtype) * scale
    y = y if bias is None else y + bias
    return y.cast(x.dtype), mean, inverse


@row("RMSNormalization", since=23)
def rms_norm(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    result: Tensor = simplified_layer_norm(x, scale, axis=axis, epsilon=epsilon)[0]
    return result


@row("SimplifiedLayerNormalization")
def simplified_layer_norm(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """`x` by the root of its mean square, with the inverse of that."""
    mine = wide(x)
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    inverse = ((mine * mine).mean(axes, keepdim=True) + epsilon).rsqrt()
    return ((mine * inverse).cast(x.dtype) * scale).cast(x.dtype), inverse


@row("GroupNormalization", since=18)
def group_norm_of_groups(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5
) -> Tensor:
    """Opset 18's, with a scale and a bias for each group."""
    size = x.shape[1] // num_groups
    spread = [t.reshape((-1, 1)).expand((num_groups, size)).flatten() for t in (scale, bias)]
    return group_norm(x, *spread, num_groups=num_groups, epsilon=epsilon)


@row("GroupNormalization", since=21)
def group_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    groups = wide(x).reshape((x.shape[0], num_groups, -1))
    y = standardized(groups, (2,), epsilon).reshape(x.shape).cast(x.dtype)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return (y * scale.reshape(shape) + bias.reshape(shape)).cast(x.dtype)


@row("LRN")
def local_response_norm(
    x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    before, after = (size - 1) // 2, size // 2
    squares = wide(x) * wide(x)
    sides = [(0, 0), (before, after)] + [(0, 0)] * (x.ndim - 2)
    windows = squares.pad(sides).unfold(1, size, 1)
    return (x / (windows.sum(-1) * (alpha / size) + bias) ** beta).cast(x.dtype)


@row("LpNormalization")
def lp_norm(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    mine = wide(x)
    if p == 1:
        norm = mine.abs().sum(axis, keepdim=True)
    else:
        norm = (mine * mine).sum(axis, keepdim=True).sqrt()
    return norm.eq(0).where(0, mine / norm.eq(0).where(1, norm)).cast(x.dtype)


@row("MeanVarianceNormalization", since=9)
def mean_variance_norm(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    mine = wide(x)
    along = tuple(axes)
    centred = mine - mine.mean(along, keepdim=True)
    deviation = (centred * centred).mean(along, keepdim=True).sqrt()
    return (centred / (deviation + 1e-9)).cast(x.dtype)
