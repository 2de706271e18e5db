"""Layers: Linear, Embedding, LSTMCell, convolutions and normalisations.

Sections: Checks of the inputs of layers; Layers of one matrix product; Convolution layers;
Normalisation layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.base.context import TRAINING
from workbench.base.dtypes import dtypes
from workbench.ir.node.views import Shape
from workbench.pickles import pickled
from workbench.tensor.movement.windows import per_axis, windows_of
from workbench.tensor.operands.arguments import (
    dtype_error,
    finite,
    flag,
    listed,
    shape_error,
    short,
    whole,
)
from workbench.tensor.reductions.convolution import check_output_padding
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# Checks of the inputs of layers.


def tensor_input(value: object, layer: object) -> Tensor:
    """Return the input of a layer. Errors: DTypeError for a value that is not a tensor."""
    if isinstance(value, Tensor):
        return value
    name, kind = type(layer).__name__, type(value).__name__
    raise dtype_error(
        f"cannot apply {name} to {short(value)}",
        f"the input of a layer must be a tensor, and this is {kind}",
        "Tensor(x)",
    )


# --------------------------------------------------------------------------------------------------
# Layers of one matrix product: Linear, Embedding, LSTMCell.


@pickled
class Linear:
    """x @ weight.T + bias.

    Shapes: (.., in_features) -> (.., out_features); weight (out_features, in_features).
    Initial values: weight and bias are uniform within 1 / sqrt(in_features) of 0.
    Errors: ShapeError for another number of features.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        inputs = whole(in_features, "Linear: in_features", 1)
        outputs = whole(out_features, "Linear: out_features", 1)
        bound = 1 / math.sqrt(inputs)
        self.weight = Tensor.uniform(outputs, inputs, low=-bound, high=bound)
        self.bias: Tensor | None = None
        if flag(bias, "Linear: bias"):
            self.bias = Tensor.uniform(outputs, low=-bound, high=bound)

    def __call__(self, x: Tensor) -> Tensor:
        features = self.weight.shape[1]
        x = tensor_input(x, self)
        if x.shape[-1:] != (features,):
            raise shape_error(
                f"cannot apply Linear({features}, {self.weight.shape[0]}) to shape {x.shape}",
                f"the last axis is the features, and there must be {features}",
                f"an input of shape (.., {features})",
            )
        return x.linear(self.weight.transpose(), self.bias)


@pickled
class Embedding:
    """A row of a table for each index.

    Shapes: (..) -> (.., embed_size); weight (vocab_size, embed_size).
    Initial values: uniform within sqrt(6 / (vocab_size + embed_size)) of 0.
    Errors: DTypeError unless the index is of integers; AxisError for one out of range that is in
    memory (one that is not computed yet gives 0).
    Source: Glorot and Bengio 2010, for the initial values.
    """

    def __init__(self, vocab_size: int, embed_size: int):
        rows = whole(vocab_size, "Embedding: vocab_size", 1)
        columns = whole(embed_size, "Embedding: embed_size", 1)
        self.weight = Tensor.glorot_uniform(rows, columns)

    def __call__(self, idx: Tensor) -> Tensor:
        idx = tensor_input(idx, self)
        if not idx.dtype.is_int:
            raise dtype_error(
                f"cannot look up rows by {idx.dtype}",
                "an index of an Embedding must be an integer",
                ".cast(dtypes.int32)",
            )
        return self.weight[idx]


@pickled
class LSTMCell:
    """One step of a long short-term memory.

    Shapes: x (batch, input_size), hidden and cell state (batch, hidden_size) -> the next hidden and
    cell state. States that are not passed are 0.
    Initial values: weights are uniform within 1 / sqrt(hidden_size) of 0, biases 0.
    Errors: ShapeError for another shape of x or of a state; DTypeError where the states are no pair
    of tensors.
    Source: Hochreiter and Schmidhuber 1997.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        inputs = whole(input_size, "LSTMCell: input_size", 1)
        hidden = whole(hidden_size, "LSTMCell: hidden_size", 1)
        bound = 1 / math.sqrt(hidden)
        self.weight_ih = Tensor.uniform(4 * hidden, inputs, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(4 * hidden, hidden, low=-bound, high=bound)
        self.bias_ih: Tensor | None = None
        self.bias_hh: Tensor | None = None
        if flag(bias, "LSTMCell: bias"):
            self.bias_ih = Tensor.zeros(4 * hidden)
            self.bias_hh = Tensor.zeros(4 * hidden)

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, inputs = self.weight_hh.shape[1], self.weight_ih.shape[1]
        x = tensor_input(x, self)
        if x.ndim != 2 or x.shape[1] != inputs:
            raise shape_error(
                f"cannot apply LSTMCell({inputs}, {hidden}) to shape {x.shape}",
                f"the input must be (batch, {inputs})",
                f"LSTMCell({short(x.shape[-1:])[1:-2] or 1}, {hidden})",
            )
        shape = x.shape[0], hidden
        if hc is None:
            zeros = Tensor.zeros(*shape, dtype=x.dtype)
            hc = zeros, zeros
        elif not isinstance(hc, list | tuple) or len(hc) != 2:
            raise dtype_error(
                f"cannot apply LSTMCell({inputs}, {hidden}) to states {short(hc)}",
                "they must be two tensors, the hidden and the cell state",
                "cell(x, (h, c))",
            )
        for state in (tensor_input(state, self) for state in hc):
            if state.shape != shape:  # one that is broadcast would be an answer, and a wrong one
                raise shape_error(
                    f"cannot apply LSTMCell({inputs}, {hidden}) to a state of shape {state.shape}",
                    f"with x of shape {x.shape} a state must be {shape}",
                    f"Tensor.zeros{shape}",
                )
        gates = x.linear(self.weight_ih.transpose(), self.bias_ih)
        gates = gates + hc[0].linear(self.weight_hh.transpose(), self.bias_hh)
        input_gate, forget_gate, update, output_gate = gates.chunk(4, dim=1)
        cell = forget_gate.sigmoid() * hc[1] + input_gate.sigmoid() * update.tanh()
        return output_gate.sigmoid() * cell.tanh(), cell


# --------------------------------------------------------------------------------------------------
# Convolution layers.

Sizes = int | Sequence[int]


@pickled
class Conv2d:
    """The convolution of images with `weight`, plus `bias`.

    Shapes: (batch, in_channels, y, x) -> (batch, out_channels, ..); weight (out_channels,
    in_channels / groups, ky, kx). A `kernel_size` of one or of three sizes is for 1-D or 3-D
    images. `padding="same"` keeps the sizes of an image.
    Initial values: weight and bias are uniform within 1 / sqrt(in_channels * ky * kx) of 0.
    Errors: ShapeError for groups that do not divide both numbers of channels, for another text than
    "same", for "same" with a stride, and for sizes that `conv2d` refuses.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        what = type(self).__name__
        self.kernel_size = _sizes(kernel_size, 2, f"{what}: kernel_size")
        if len(self.kernel_size) not in (1, 2, 3):
            because = "an image has one, two or three axes"
            raise shape_error(
                f"{what}: kernel_size = {short(kernel_size)} does not fit", because, "3"
            )
        self.stride, self.dilation = stride, dilation
        self.groups = whole(groups, f"{what}: groups", 1)
        inputs = whole(in_channels, f"{what}: in_channels", 1)
        outputs = whole(out_channels, f"{what}: out_channels", 1)
        if inputs % self.groups or outputs % self.groups:
            raise shape_error(
                f"cannot make {what}({inputs}, {outputs}, ..) of {self.groups} groups",
                f"the groups must divide both {inputs} and {outputs} channels",
                f"groups={math.gcd(inputs, outputs)}",
            )
        self.padding: Sizes = self._same(padding) if isinstance(padding, str) else padding
        windows_of(what, self.kernel_size, stride, dilation, self.padding)  # it refuses others
        self._bound = 1 / math.sqrt(inputs * math.prod(self.kernel_size))
        self.weight = self._uniform(outputs, inputs // self.groups, *self.kernel_size)
        self.bias: Tensor | None = None
        if flag(bias, f"{what}: bias"):
            self.bias = self._uniform(outputs)

    def _uniform(self, *shape: int) -> Tensor:
        return Tensor.uniform(*shape, low=-self._bound, high=self._bound)

    def _same(self, padding: str) -> tuple[int, ...]:
        """Return the padding, in PyTorch's flat form, that keeps the sizes of an image."""
        what = type(self).__name__
        if padding.lower() != "same":
            because = 'the padding must be a number, numbers, or "same"'
            raise shape_error(f"{what}: padding={short(padding)}", because, 'padding="same"')
        axes = len(self.kernel_size)
        if any(step != 1 for step in per_axis(what, "stride", self.stride, axes)):
            because = "with a stride an image becomes smaller, whatever the padding"
            raise shape_error(f'{what}: padding="same"', because, "stride=1")
        dilation = per_axis(what, "dilation", self.dilation, axes)
        pairs = [
            (total // 2, total - total // 2)
            for total in (d * (k - 1) for d, k in zip(dilation, self.kernel_size, strict=True))
        ]
        return tuple(side for pair in reversed(pairs) for side in pair)

    def __call__(self, x: Tensor) -> Tensor:
        return tensor_input(x, self).conv2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding
        )


class ConvTranspose2d(Conv2d):
    """The transposed convolution of images with `weight`, plus `bias`: the gradient of Conv2d with
    respect to its input, as a layer.

    Shapes: (batch, in_channels, y, x) -> (batch, out_channels, ..); weight (in_channels,
    out_channels / groups, ky, kx). `padding` is cut off the output, `output_padding` added at the
    end of each axis.
    Initial values: as those of Conv2d.
    Errors: as those of Conv2d; ShapeError for `padding` in words, and for an `output_padding` that
    is neither below `stride` nor below `dilation`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        what = type(self).__name__
        if isinstance(padding, str):
            because = "the padding of a transposed convolution must be a number, or numbers"
            raise shape_error(f"{what}: padding={short(padding)}", because, "padding=1")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        each = windows_of(what, self.kernel_size, stride, dilation, padding)
        check_output_padding(what, output_padding, each)
        self.output_padding = output_padding
        # A second draw, as tinygrad's: the same seed gives the same weights.
        columns = out_channels // self.groups
        self.weight = self._uniform(in_channels, columns, *self.kernel_size)

    def __call__(self, x: Tensor) -> Tensor:
        return tensor_input(x, self).conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation,
            self.padding, self.output_padding,
        )  # fmt: skip


def Conv1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> Conv2d:
    """Return a Conv2d for 1-D images.

    Shapes: (batch, in_channels, x) -> (batch, out_channels, ..).
    """
    return Conv2d(
        in_channels, out_channels, (kernel_size,), stride, padding, dilation, groups, bias
    )


def ConvTranspose1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> ConvTranspose2d:
    """Return a ConvTranspose2d for 1-D images.

    Shapes: (batch, in_channels, x) -> (batch, out_channels, ..).
    """
    return ConvTranspose2d(
        in_channels, out_channels, (kernel_size,), stride, padding, output_padding,
        dilation, groups, bias,
    )  # fmt: skip


def _sizes(value: Sizes, count: int, name: str) -> Shape:
    """Return `value` for each of `count` axes; several values as they are."""
    if isinstance(value, int | np.integer):
        return (whole(value, name, 1),) * count
    return tuple(whole(item, name, 1) for item in listed(value, name))


# --------------------------------------------------------------------------------------------------
# Normalisation layers: mean 0 and variance 1 over some axes, then a scale and a shift.


@pickled
class BatchNorm:
    """Normalisation of each channel over the batch, and over the axes after the channels.

    In training (`with Context(TRAINING=1):`), and always without running statistics, it uses the
    mean and the variance of the batch; in training these also move the running statistics by
    `momentum`. Otherwise it uses the running statistics. The sum of squares of a batch is divided
    by the number of elements, for the running variance by one less.

    Shapes: (batch, sz, ..), unchanged.
    Initial values: weight and running variance 1, bias and running mean 0.
    Errors: ShapeError for another number of channels.
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
        self.eps = finite(eps, "BatchNorm: eps", 0)
        self.momentum = finite(momentum, "BatchNorm: momentum")
        self.track_running_stats = flag(track_running_stats, "BatchNorm: track_running_stats")
        self.weight, self.bias = _affine((size,), affine)
        if self.track_running_stats:
            # state, which no optimiser changes
            self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64).requires_grad_(False)
            self.running_mean = Tensor.zeros(size).requires_grad_(False)
            self.running_var = Tensor.ones(size).requires_grad_(False)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of each channel by which `x` is normalised."""
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
        """Move the running statistics towards those of a batch with `count` elements a channel."""
        unbiased = variance * (count / (count - 1)) if count > 1 else variance
        for running, batch in ((self.running_mean, mean), (self.running_var, unbiased)):
            value = (1 - self.momentum) * running + self.momentum * batch
            running.assign(value.cast(running.dtype))
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)


BatchNorm2d = BatchNorm
BatchNorm3d = BatchNorm


@pickled
class GroupNorm:
    """Normalisation of each image over groups of channels and the axes after them.

    Shapes: (batch, num_channels, ..), unchanged. Initial values: weight 1, bias 0.
    Errors: ShapeError unless the groups divide the channels, and for another number of channels.
    Source: Wu and He 2018.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        self.num_groups = whole(num_groups, "GroupNorm: num_groups", 1)
        self.num_channels = whole(num_channels, "GroupNorm: num_channels", 1)
        if self.num_channels % self.num_groups:
            raise shape_error(
                f"cannot make GroupNorm({num_groups}, {num_channels})",
                f"the groups must divide the {num_channels} channels",
                f"GroupNorm({math.gcd(self.num_groups, self.num_channels)}, {num_channels})",
            )
        self.eps = finite(eps, "GroupNorm: eps", 0)
        self.weight, self.bias = _affine((self.num_channels,), affine)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        _check_channels(x, self.num_channels, "GroupNorm")
        y = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps)
        return _scaled(y.reshape(x.shape), self.weight, self.bias)


@pickled
class InstanceNorm:
    """Normalisation of each channel of each image over the axes after the channels.

    Shapes: (batch, num_features, ..), unchanged. Initial values: weight 1, bias 0.
    Errors: ShapeError for another number of channels.
    Source: Ulyanov, Vedaldi and Lempitsky 2016.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
        self.num_features = whole(num_features, "InstanceNorm: num_features", 1)
        self.eps = finite(eps, "InstanceNorm: eps", 0)
        self.weight, self.bias = _affine((self.num_features,), affine)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        _check_channels(x, self.num_features, "InstanceNorm")
        y = x.reshape(x.shape[0], self.num_features, -1).layernorm(eps=self.eps)
        return _scaled(y.reshape(x.shape), self.weight, self.bias)


@pickled
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
        what = type(self).__name__
        name = f"{what}: normalized_shape"
        sizes = (
            (normalized_shape,)
            if isinstance(normalized_shape, int | np.integer)
            else listed(normalized_shape, name)
        )
        self.normalized_shape = tuple(whole(size, name, 1) for size in sizes)
        if not sizes:
            raise shape_error(
                f"{name} = {short(sizes)} does not fit", "it has one size or more", "(4,)"
            )
        self.axis = tuple(-1 - axis for axis in range(len(self.normalized_shape)))
        self.eps = finite(eps, f"{what}: eps", 0)
        self.weight, self.bias = _affine(self.normalized_shape, elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        sizes = self.normalized_shape
        x = tensor_input(x, self)
        if x.shape[x.ndim - len(sizes) :] != sizes:
            raise shape_error(
                f"cannot apply LayerNorm({sizes}) to shape {x.shape}",
                f"the last axes must be {sizes}",
                f"LayerNorm({short(x.shape[-1:])}), of the size of the last axis",
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


@pickled
class RMSNorm:
    """Division by the root of the mean square over the last axis, computed in float32.

    Shapes: (.., dim), unchanged. Initial values: weight 1.
    Errors: ShapeError for another last axis. Source: Zhang and Sennrich 2019.
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
        self.dim = whole(dim, "RMSNorm: dim", 1)
        self.eps = finite(eps, "RMSNorm: eps", 0)
        self.weight, _ = _affine((self.dim,), elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        x = tensor_input(x, self)
        if x.shape[-1:] != (self.dim,):
            raise shape_error(
                f"cannot apply RMSNorm({self.dim}) to shape {x.shape}",
                f"the last axis must have {self.dim} elements",
                f"RMSNorm({x.shape[-1]})" if x.ndim else "a tensor with axes",
            )
        wide = x.float()
        scale = (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        y = (wide * scale).cast(x.dtype)
        return y if self.weight is None else y * self.weight


def _affine(shape: tuple[int, ...], is_there: bool) -> tuple[Tensor | None, Tensor | None]:
    """Return a scale of ones and a shift of zeros; (None, None) where there are none."""
    if not flag(is_there, "affine"):
        return None, None
    return Tensor.ones(*shape), Tensor.zeros(*shape)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return `x` with a scale and a shift for each channel, the second axis."""
    if weight is None or bias is None:
        return x
    column = (1, -1, *(1,) * (x.ndim - 2))
    return x * weight.reshape(column) + bias.reshape(column)


def _check_channels(x: Tensor, channels: int, what: str) -> None:
    if x.ndim < 2 or x.shape[1] != channels:
        raise shape_error(
            f"cannot apply {what} of {channels} channels to shape {x.shape}",
            f"it must be (batch, {channels}, ..)",
            f"{what} of {x.shape[1]} channels" if x.ndim > 1 else "a batch: x.reshape(1, -1)",
        )
