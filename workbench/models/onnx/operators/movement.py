"""Shapes, slices, joining and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.onnx.operators.elementwise import numbers
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array, axis_of, check_positions
from workbench.tensor.tensor import Tensor


@row("Reshape", since=5, known=("shape",))
def reshape(x: Tensor, shape: Array, *, allowzero: int = 0) -> Tensor:
    wanted = numbers(shape)
    if not allowzero:
        wanted = [x.shape[a] if n == 0 else n for a, n in enumerate(wanted)]
    if wanted.count(-1) > 1:
        raise ModelError("cannot reshape", f"{tuple(wanted)} leaves several sizes open")
    if -1 in wanted:
        rest = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = x.numel() // rest if rest else 0
    return x.reshape(tuple(wanted))


@row("Flatten", since=1)
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    axis = axis if axis == x.ndim else axis_of(axis, x.ndim)
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@row("Transpose")
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    order = tuple(range(x.ndim))[::-1] if perm is None else tuple(perm)
    return x.permute(order) if order else x


@row("Squeeze", since=1)
def squeeze_fixed(x: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    gone = {a for a, n in enumerate(x.shape) if n == 1} if axes is None else placed(axes, x.ndim)
    if bad := [a for a in gone if x.shape[a] != 1]:
        raise ModelError("cannot squeeze an axis", f"axis {bad[0]} has {x.shape[bad[0]]} elements")
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone))


@row("Squeeze", since=13, known=("axes",))
def squeeze(x: Tensor, axes: Array | None = None) -> Tensor:
    return squeeze_fixed(x, axes=None if axes is None else numbers(axes))


@row("Unsqueeze", since=1)
def unsqueeze_fixed(x: Tensor, *, axes: Sequence[int]) -> Tensor:
    rank = x.ndim + len(axes)
    ones = placed(axes, rank)
    if len(ones) != len(axes):
        raise ModelError("cannot unsqueeze", f"axes {tuple(axes)} name an axis twice")
    rest = iter(x.shape)
    return x.reshape(tuple(1 if a in ones else next(rest) for a in range(rank)))


@row("Unsqueeze", since=13, known=("axes",))
def unsqueeze(x: Tensor, axes: Array) -> Tensor:
    return unsqueeze_fixed(x, axes=numbers(axes))


def placed(axes: Sequence[int], rank: int) -> set[int]:
    """Return axes counted from the first one. Errors: ModelError for one that is not there."""
    return {axis_of(axis, rank) for axis in axes}


@row("Expand", since=8, known=("shape",))
def expand(x: Tensor, shape: Array) -> Tensor:
    whole = np.broadcast_shapes(x.shape, tuple(numbers(shape)))
    return x.reshape((1,) * (len(whole) - x.ndim) + x.shape).expand(whole)


@row("Tile", since=6, known=("repeats",))
def tile(x: Tensor, repeats: Array) -> Tensor:
    return x.repeat(tuple(numbers(repeats))) if x.ndim else x


@row("Concat", since=4)
def concat(*inputs: Tensor, axis: int) -> Tensor:
    return inputs[0].cat(*inputs[1:], dim=axis)


@row("Split", since=2)
def split_fixed(
    x: Tensor, *, axis: int = 0, split: Sequence[int] | None = None, count: int
) -> tuple[Tensor, ...]:
    """Parts along an axis, of equal sizes unless `split` has them; the last may be smaller."""
    size = x.shape[axis]
    if split is None:
        most = -(-size // count)
        split = [max(0, min(most, size - n * most)) for n in range(count)]
    if sum(split) != size or len(split) != count or min(split) < 0:
        raise ModelError("cannot split", f"parts of {tuple(split)} are not {count} of {size}")
    ends = np.cumsum(split).tolist()
    lead = (slice(None),) * axis_of(axis, x.ndim)
    return tuple(x[(*lead, slice(b - n, b))] for b, n in zip(ends, split, strict=True))


@row("Split", since=13, known=("split",))
def split(
    x: Tensor,
    split: Array | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    count: int,
) -> tuple[Tensor, ...]:
    return split_fixed(x, axis=axis, split=None if split is None else numbers(split), count=count)


@row("Slice", since=1)
def slice_fixed(
    x: Tensor, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None
) -> Tensor:
    return sliced(x, starts, ends, range(len(starts)) if axes is None else axes, [1] * len(starts))


@row("Slice", since=10, known=("starts", "ends", "axes", "steps"))
def slice_of(
    x: Tensor, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Tensor:
    count = starts.size
    along = range(count) if axes is None else numbers(axes)
    return sliced(x, numbers(starts), numbers(ends), along, numbers(steps) or [1] * count)


def sliced(
    x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int]
) -> Tensor:
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        if step < 0:  # ONNX counts from the end once; -size - 1 is before the first element
            start, end = (n + size if n < 0 else n for n in (start, end))
            start, end = min(start, size - 1), max(end, -1)
            index[axis] = (
                slice(start, None if end < 0 else end, step) if start >= 0 else slice(0, 0)
            )
        else:
            index[axis] = slice(start, end, step)
    return x[tuple(index)] if index else x


@row("Pad", since=2)
def pad_fixed(
    x: Tensor, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0
) -> Tensor:
    return padded(x, pads, range(x.ndim), mode, value)


@row("Pad", since=11, known=("pads", "value", "axes"))
def pad(
    x: Tensor,
    pads: Array,
    value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Tensor:
    along = range(x.ndim) if axes is None else [axis_of(a, x.ndim) for a in numbers(axes)]
    return padded(x, numbers(pads), along, mode, 0 if value is None else value.item())


MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
"""Modes of padding, by the names that ONNX has for them."""


def padded(
    x: Tensor, pads: Sequence[int], axes: Sequence[int], mode: str, value: Any = 0
) -> Tensor:
    """Return `x` with elements put before and after axes; negative numbers cut elements off."""
    sides = [(0, 0)] * x.ndim
    for place, axis in enumerate(axes):
        sides[axis] = pads[place], pads[place + len(axes)]
    cuts = [(max(0, -a), n - max(0, -b)) for (a, b), n in zip(sides, x.shape, strict=True)]
    x = x.shrink(cuts)
    grown = [(max(0, a), max(0, b)) for a, b in sides]
    if not any(map(any, grown)):
        return x
    if mode not in MODES:
        raise ModelError("cannot pad", f"there is no mode {mode!r}")
    if mode == "constant":
        return x.pad(grown, value=value)
    # Positions instead of modes: a side may be longer than the axis, and there are many axes.
    for axis, (before, after) in enumerate(grown):
        if before or after:
            check_positions(before + x.shape[axis] + after)
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            x = x[(slice(None),) * axis + (Tensor(places),)]
    return x


@row("DepthToSpace", since=1)
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        parts = x.reshape((n, b, b, c // b**2, h, w)).permute((0, 3, 4, 1, 5, 2))
    else:
        parts = x.reshape((n, c // b**2, b, b, h, w)).permute((0, 1, 4, 2, 5, 3))
    return parts.reshape((n, c // b**2, h * b, w * b))


@row("SpaceToDepth", since=1)
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    parts = x.reshape((n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape((n, c * b * b, h // b, w // b))


@row("Trilu", since=14, known=("k",))
def trilu(x: Tensor, k: Array | None = None, *, upper: int = 1) -> Tensor:
    """The elements on one side of a diagonal; zeros on the other."""
    diagonal = 0 if k is None else int(k.item())
    rows = Tensor.arange(x.shape[-2], dtype=dtypes.int64).unsqueeze(1)
    columns = Tensor.arange(x.shape[-1], dtype=dtypes.int64).unsqueeze(0)
    above = columns - rows
    return ((above >= diagonal) if upper else (above <= diagonal)).where(x, 0)


@row("CenterCropPad", since=18, known=("shape",))
def center_crop_pad(x: Tensor, shape: Array, *, axes: Sequence[int] | None = None) -> Tensor:
    for axis, size in zip(range(x.ndim) if axes is None else axes, numbers(shape), strict=True):
        axis = axis_of(axis, x.ndim)
        more = size - x.shape[axis]
        before = more // 2 if more >= 0 else -(-more // 2)
        x = padded(x, (before, more - before), (axis,), "constant")
    return x


@row("Col2Im", since=18, known=("image_shape", "block_shape"))
def col2im(
    x: Tensor,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Add the columns of windows to the picture that they were cut from."""
    image, block = numbers(image_shape), numbers(block_shape)
    rank = len(image)
    gaps, steps = dilations or [1] * rank, strides or [1] * rank
    sides = pads or [0] * (2 * rank)
    size = [n + sides[a] + sides[a + rank] for a, n in enumerate(image)]
    spans = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(size, gaps, block, steps, strict=True)
    ]
    check_positions(math.prod(size) + math.prod(spans) * math.prod(block))
    places = np.arange(math.prod(size)).reshape(size)
    windows = []
    for taps in np.ndindex(*block):
        index = [
            slice(t * d, t * d + (count - 1) * s + 1, s)
            for t, d, count, s in zip(taps, gaps, spans, steps, strict=True)
        ]
        windows.append(places[tuple(index)].reshape(-1))
    n, channels = x.shape[0], x.shape[1] // math.prod(block)
    values = x.reshape((n * channels, -1))
    index_of = Tensor(np.concatenate(windows)).reshape((1, -1)).expand(values.shape)
    into = Tensor.zeros(n * channels, math.prod(size), dtype=x.dtype)
    picture = into.scatter_reduce(1, index_of, values, "sum").reshape((n, channels, *size))
    return picture.shrink(
        [(0, n), (0, channels), *((sides[a], sides[a] + image[a]) for a in range(rank))]
    )
