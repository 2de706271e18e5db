"""Shapes, slices, joining and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor


@row("view", "reshape", "_unsafe_view", "_reshape_copy", "view_copy")
def view(x: Tensor, size: Sequence[int]) -> Tensor:
    return x.reshape(tuple(size))


@row("permute", "permute_copy")
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.permute(tuple(dims)) if dims else x


@row("transpose.int")
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    return x.transpose(dim0, dim1) if x.ndim else x


@row("expand", "expand_copy")
def expand(x: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    lead = len(size) - x.ndim
    shape = [x.shape[a - lead] if n == -1 else n for a, n in enumerate(size)]
    return x.reshape((1,) * lead + x.shape).expand(tuple(shape))


@row("unsqueeze", "unsqueeze_copy")
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    return x.unsqueeze(dim)


@row("squeeze.dim")
def squeeze_dim(x: Tensor, dim: int) -> Tensor:
    return squeeze_dims(x, (dim,))


@row("squeeze.dims")
def squeeze_dims(x: Tensor, dim: Sequence[int]) -> Tensor:
    gone = {d % x.ndim for d in dim} if x.ndim else set()
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone or n != 1))


@row("squeeze")
def squeeze(x: Tensor) -> Tensor:
    return squeeze_dims(x, range(x.ndim))


@row("flip")
def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.flip(tuple(dims)) if dims and x.ndim else x


@row("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return x.repeat(tuple(repeats)) if repeats else x


@row("cat")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    full = [t for t in tensors if t.shape != (0,)] or [tensors[0]]  # ATen skips empty ones
    return full[0].cat(*full[1:], dim=dim)


@row("split_with_sizes")
def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(x.split(list(split_sizes), dim))


@row("slice.Tensor")
def slice_of(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return x[_along(x, dim, slice(start, end, step))]


@row("select.int")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    return x[_along(x, dim, index)]


@row("narrow_copy")
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return slice_of(x, dim, start, start + length)


@row("unbind_copy.int")
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(x, dim, index) for index in range(x.shape[dim]))


@row("slice_scatter")
def slice_scatter(
    x: Tensor,
    source: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    size = x.shape[dim]
    first, last, step = slice(start, end, step).indices(size)
    count = len(range(first, last, step))
    if not count:
        return x
    positions = Tensor.arange(size, dtype=dtypes.int64)
    inside = (positions >= first) & (positions < first + count * step)
    inside = inside & ((positions - first) % step).eq(0)
    places = ((positions - first) // step).clamp(0, count - 1)
    shape = [1] * x.ndim
    shape[dim] = size
    spread = source.cast(x.dtype)[_along(source, dim, places)]
    return inside.reshape(tuple(shape)).where(spread, x)


@row("select_scatter")
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    index %= x.shape[dim]
    return slice_scatter(x, source.unsqueeze(dim % x.ndim), dim, index, index + 1)


@row("diagonal", "diagonal_copy")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return x.diagonal(offset, dim1, dim2)


@row("constant_pad_nd")
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """Pad, and cut where a number is negative; pairs are from the last axis on."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    cut = x.shrink([(max(0, -a), n - max(0, -b)) for (a, b), n in zip(pairs, x.shape, strict=True)])
    grown = [(max(0, a), max(0, b)) for a, b in pairs]
    return cut.pad(grown, value=value) if any(map(any, grown)) else cut


@row("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    return _padded(x, padding, "reflect")


@row("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    return _padded(x, padding, "replicate")


def _padded(x: Tensor, padding: Sequence[int], mode: str) -> Tensor:
    pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    return x.pad([(0, 0)] * (x.ndim - len(pairs)) + pairs, mode=mode)


@row("as_strided")
def as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Elements of a contiguous tensor by their places in memory."""
    places = Tensor.full((), storage_offset or 0, dtype=dtypes.int64).reshape((1,) * len(size))
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = n
        places = places + (Tensor.arange(n, dtype=dtypes.int64) * step).reshape(tuple(shape))
    flat = places.expand(tuple(size)).reshape((math.prod(size),))
    return x.flatten()[flat].reshape(tuple(size))


@row("unfold")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return x.unfold(dimension, size, step)


@row("col2im")
def col2im(
    x: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """Add the columns of windows to the picture that they were cut from."""
    single = x.ndim == 2
    x = x.unsqueeze(0) if single else x
    taps = math.prod(kernel_size)
    channels = x.shape[1] // taps
    padded = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    spans = [
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(padded, dilation, kernel_size, stride, strict=True)
    ]
    places = Tensor.arange(math.prod(padded), dtype=dtypes.int64).reshape((1, 1, *padded))
    windows = [
        places[
            :,
            :,
            dy * dilation[0] : dy * dilation[0] + (spans[0] - 1) * stride[0] + 1 : stride[0],
            dx * dilation[1] : dx * dilation[1] + (spans[1] - 1) * stride[1] + 1 : stride[1],
        ].flatten()
        for dy in range(kernel_size[0])
        for dx in range(kernel_size[1])
    ]
    index = windows[0].cat(*windows[1:]) if len(windows) > 1 else windows[0]
    values = x.reshape((x.shape[0] * channels, -1))
    into = Tensor.zeros(values.shape[0], math.prod(padded), dtype=x.dtype)
    whole = into.scatter_reduce(1, index.reshape((1, -1)).expand(values.shape), values, "sum")
    picture = whole.reshape((x.shape[0], channels, *padded))
    inside = [(p, p + n) for p, n in zip(padding, output_size, strict=True)]
    picture = picture.shrink([(0, x.shape[0]), (0, channels), *inside])
    return picture.squeeze(0) if single else picture


def _along(x: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * (dim % x.ndim) + (index,)
