"""Pools: means, maxima and norms of windows, and of whole pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.elementwise import numbers
from workbench.models.onnx.operators.movement import padded
from workbench.models.onnx.operators.products import Windows
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array
from workbench.tensor.tensor import Tensor

Numbers = Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Pool(Windows):
    """The attributes of pools."""

    ceil_mode: int = 0

    def arguments(self, x: Tensor) -> dict[str, Any]:
        """Return the arguments of the pools of Tensors. Errors: ModelError without a kernel."""
        if self.kernel_shape is None or len(self.kernel_shape) != x.ndim - 2:
            raise ModelError("cannot pool", f"its kernel_shape is {self.kernel_shape}")
        rank = len(self.kernel_shape)
        return {
            "kernel_size": tuple(self.kernel_shape),
            "stride": self.steps(rank),
            "dilation": self.gaps(rank),
            "padding": self.padding(x.shape[2:], self.kernel_shape),
            "ceil_mode": bool(self.ceil_mode),
        }


@row("MaxPool", shared=Pool)
def max_pool(x: Tensor, *, storage_order: int = 0, count: int, **options: Any) -> Any:
    """The greatest element of each window, and its position in the whole tensor."""
    arguments = Pool(**options).arguments(x)
    if count == 1:
        return x.max_pool2d(**arguments)
    greatest, places = x.max_pool2d(**arguments, return_indices=True)
    shape = x.shape[2:]
    places = places.cast(dtypes.int64)
    if storage_order == 1:  # the first axis varies fastest
        position, place, step = None, places, 1
        for size, below in zip(
            shape, [math.prod(shape[a + 1 :]) for a in range(len(shape))], strict=True
        ):
            part = (place // below) * step
            position = part if position is None else position + part
            place, step = place % below, step * size
        assert position is not None
        places = position
    starts = Tensor.arange(x.shape[0] * x.shape[1], dtype=dtypes.int64) * math.prod(shape)
    return greatest, places + starts.reshape(x.shape[:2] + (1,) * len(shape))


@row("AveragePool", since=7, shared=Pool)
def average_pool(x: Tensor, *, count_include_pad: int = 0, **options: Any) -> Tensor:
    arguments = Pool(**options).arguments(x)
    return x.avg_pool2d(**arguments, count_include_pad=bool(count_include_pad))


@row("LpPool", since=2, shared=Pool)
def lp_pool(x: Tensor, *, p: int = 2, **options: Any) -> Tensor:
    """The norm of order `p` of each window: its powers' sums are a convolution with ones."""
    arguments = Pool(**options).arguments(x)
    kernel, steps, gaps = (arguments[key] for key in ("kernel_size", "stride", "dilation"))
    rank = len(kernel)
    powers = wide(x).abs() ** p
    pictures = powers.reshape((x.shape[0] * x.shape[1], 1, *x.shape[2:]))
    if arguments["ceil_mode"]:
        sides = arguments["padding"][::-1]
        more = [
            _beyond(n + sides[2 * a] + sides[2 * a + 1], k, s, d)
            for a, (n, k, s, d) in enumerate(zip(x.shape[2:], kernel, steps, gaps, strict=True))
        ]
        pictures = padded(pictures, [0] * rank + more, range(2, 2 + rank), "constant")
    ones = Tensor.ones(1, 1, *kernel, dtype=powers.dtype)
    sums = pictures.conv2d(ones, None, 1, steps, gaps, arguments["padding"])
    return (sums ** (1 / p)).reshape((*x.shape[:2], *sums.shape[2:]))


def _beyond(size: int, kernel: int, stride: int, dilation: int) -> int:
    """Return how far the last window extends beyond the end."""
    extent = (kernel - 1) * dilation + 1
    count = -(-(size - extent) // stride) + 1
    return max(0, (count - 1) * stride + extent - size)


@row("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return x.mean(tuple(range(2, x.ndim)), keepdim=True)


@row("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.max(tuple(range(2, x.ndim)), keepdim=True)


@row("GlobalLpPool", since=2)
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    return (wide(x).abs() ** p).sum(tuple(range(2, x.ndim)), keepdim=True) ** (1 / p)


@row("MaxUnpool", since=9, known=("output_shape",))
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Numbers = None,
    strides: Numbers = None,
) -> Tensor:
    """Zeros, with elements at the positions that MaxPool returned."""
    rank = len(kernel_shape)
    sides, steps = pads or (0,) * (2 * rank), strides or (1,) * rank
    sizes = [
        (n - 1) * steps[a] - sides[a] - sides[a + rank] + kernel_shape[a]
        for a, n in enumerate(x.shape[2:])
    ]
    shape = (*x.shape[:2], *sizes)
    flat = Tensor.zeros(math.prod(shape), dtype=x.dtype)
    filled = flat.scatter(0, indices.flatten(), x.flatten()).reshape(shape)
    if output_shape is None:
        return filled
    wanted = numbers(output_shape)
    if any(n < m for n, m in zip(wanted, shape, strict=True)):
        raise ModelError("cannot unpool", f"the output shape {tuple(wanted)} is too small")
    more = [n - m for n, m in zip(wanted, shape, strict=True)]
    return padded(filled, [0] * len(more) + more, range(len(more)), "constant")
