"""Normalisation layers: mean 0 and variance 1 over some axes, then a scale and a shift."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.context import TRAINING
from workbench.base.dtypes import dtypes
from workbench.nn.linear import tensor_input
from workbench.tensor.operands.arguments import flag, listed, whole
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.tensor import Tensor


class BatchNorm:
    """Normalisation of each channel over the batch, and over the axes after the channels.

    With TRAINING (`with Context(TRAINING=1):`), and always without running statistics, by the
    mean and the variance of the batch; these move the running ones by `momentum`. Else by the
    running statistics. The variance is that of all elements; the running one is unbiased.

    Shapes: (batch, sz, ..), unchanged.
    Initial values: weight and running variance 1, bias and running mean 0.
    Source: Ioffe and Szegedy 2015.
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float = 0.1,
    ):
        self.size = size = whole(sz, "BatchNorm: sz", 1)
        self.eps, self.momentum = eps, momentum
        self.track_running_stats = flag(track_running_stats, "BatchNorm: track")
        self.weight, self.bias = _affine((size,), affine)
        if self.track_running_stats:
            self.num_batches_tracked = _state(Tensor.zeros(dtype=dtypes.int64))
            self.running_mean = _state(Tensor.zeros(size))
            self.running_var = _state(Tensor.ones(size))

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of each channel that `x` is normalised by."""
        if self.track_running_stats and not TRAINING.value:
            return self.running_mean, self.running_var
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        return x.mean(axes), x.var(axes, correction=0)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        _check_channels(x, self.size, "BatchNorm")
        mean, variance = self.calc_stats(x)
        if self.track_running_stats and TRAINING.value:
            self._track(mean.detach(), variance.detach(), x.numel() // self.size)
        scale = (variance + self.eps).rsqrt()
        return x.batchnorm(self.weight, self.bias, mean, scale)

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics towards those of a batch of `count` elements a channel."""
        unbiased = variance * (count / (count - 1)) if count > 1 else variance
        for running, batch in ((self.running_mean, mean), (self.running_var, unbiased)):
            value = (1 - self.momentum) * running + self.momentum * batch
            running.assign(value.cast(running.dtype))
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)


BatchNorm2d = BatchNorm
BatchNorm3d = BatchNorm


class GroupNorm:
    """Normalisation over groups of channels, and the axes after them, of each image alone.

    Shapes: (batch, num_channels, ..), unchanged. Initial values: weight 1, bias 0.
    Source: Wu and He 2018.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        self.num_groups = whole(num_groups, "GroupNorm: num_groups", 1)
        self.num_channels = whole(num_channels, "GroupNorm: num_channels", 1)
        if self.num_channels % self.num_groups:
            raise shape_error(
                f"cannot make GroupNorm({num_groups}, {num_channels})",
                f"the groups must divide the {num_channels} channels",
            )
        self.eps = eps
        self.weight, self.bias = _affine((self.num_channels,), affine)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        _check_channels(x, self.num_channels, "GroupNorm")
        y = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps)
        return _scaled(y.reshape(x.shape), self.weight, self.bias)


class InstanceNorm:
    """Normalisation of each channel of each image alone.

    Shapes: (batch, num_features, ..), unchanged. Initial values: weight 1, bias 0.
    Source: Ulyanov, Vedaldi and Lempitsky 2016.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
        self.num_features = whole(num_features, "InstanceNorm: num_features", 1)
        self.eps = eps
        self.weight, self.bias = _affine((self.num_features,), affine)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        _check_channels(x, self.num_features, "InstanceNorm")
        y = x.reshape(x.shape[0], self.num_features, -1).layernorm(eps=self.eps)
        return _scaled(y.reshape(x.shape), self.weight, self.bias)


class LayerNorm:
    """Normalisation over the last axes.

    Shapes: (.., *normalized_shape), unchanged. Initial values: weight 1, bias 0.
    Errors: ShapeError for other last axes. Source: Ba, Kiros and Hinton 2016.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
    ):
        name = "LayerNorm: normalized_shape"
        sizes = (
            (normalized_shape,)
            if isinstance(normalized_shape, int)
            else listed(normalized_shape, name)
        )
        self.normalized_shape = tuple(whole(size, name, 1) for size in sizes)
        self.axis = tuple(-1 - axis for axis in range(len(self.normalized_shape)))
        self.eps = eps
        self.weight, self.bias = _affine(self.normalized_shape, elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        sizes = self.normalized_shape
        x = tensor_input(x, self)
        if x.shape[x.ndim - len(sizes) :] != sizes:
            raise shape_error(
                f"cannot apply LayerNorm({sizes}) to shape {x.shape}",
                f"the last axes must be {sizes}",
            )
        y = x.layernorm(self.axis, self.eps)
        return y if self.weight is None or self.bias is None else y * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels of images.

    Shapes: (batch, channels, y, x), unchanged.
    """

    def __call__(self, x: Tensor) -> Tensor:
        channels_last = tensor_input(x, self).permute(0, 2, 3, 1)
        return super().__call__(channels_last).permute(0, 3, 1, 2)


class RMSNorm:
    """Division by the root of the mean square over the last axis, which float32 computes.

    Shapes: (.., dim), unchanged. Initial values: weight 1. Source: Zhang and Sennrich 2019.
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
        self.eps = eps
        self.weight, _ = _affine((whole(dim, "RMSNorm: dim", 1),), elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        wide = tensor_input(x, self).float()
        scale = (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        y = (wide * scale).cast(x.dtype)
        return y if self.weight is None else y * self.weight


def _affine(shape: tuple[int, ...], is_there: bool) -> tuple[Tensor | None, Tensor | None]:
    """Return a scale and a shift that change nothing; None, None for none."""
    if not flag(is_there, "affine"):
        return None, None
    return Tensor.ones(*shape), Tensor.zeros(*shape)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return `x` with a scale and a shift for each channel, the second axis."""
    if weight is None or bias is None:
        return x
    column = (1, -1, *(1,) * (x.ndim - 2))
    return x * weight.reshape(column) + bias.reshape(column)


def _state(tensor: Tensor) -> Tensor:
    """Return a tensor as state, which an optimiser leaves alone."""
    tensor.requires_grad = False
    return tensor


def _check_channels(x: Tensor, channels: int, what: str) -> None:
    if x.ndim < 2 or x.shape[1] != channels:
        raise shape_error(
            f"cannot apply {what} of {channels} channels to shape {x.shape}",
            f"it must be (batch, {channels}, ..)",
        )
