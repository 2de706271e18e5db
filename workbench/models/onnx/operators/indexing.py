"""Gathers and scatters: elements by their positions, which count from the end if negative."""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.models.onnx.table import row
from workbench.models.onnx.values import axis_of
from workbench.tensor.tensor import Tensor

NOWHERE = 1 << 62
"""A position that no tensor has."""


@row("Gather")
def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return x[(slice(None),) * axis_of(axis, x.ndim) + (indices,)]


@row("GatherElements", since=11)
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return x.gather(axis, indices)


@row("GatherND", since=11)
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The parts of `x` at the positions that the last axis of `indices` has."""
    depth = indices.shape[-1]
    batch, indexed = x.shape[:batch_dims], x.shape[batch_dims : batch_dims + depth]
    rest = x.shape[batch_dims + depth :]
    flat = x.reshape((math.prod(batch) * math.prod(indexed), *rest))
    place = _flat_places(indices, indexed)
    if batch_dims:
        starts = Tensor.arange(math.prod(batch), dtype=dtypes.int64) * math.prod(indexed)
        place = place + starts.reshape(batch + (1,) * (place.ndim - batch_dims))
    return flat[place]


@row("ScatterElements", "Scatter", since=9)
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    if reduction == "none":
        return x.scatter(axis, indices, updates)
    return x.scatter_reduce(axis, indices, updates, REDUCTIONS[reduction])


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""How values for one element are combined, by ONNX's names."""


@row("ScatterND", since=11)
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """`x` with parts replaced at the positions that the last axis of `indices` has."""
    depth = indices.shape[-1]
    indexed, rest = x.shape[:depth], x.shape[depth:]
    width = math.prod(rest)
    place = _flat_places(indices, indexed).reshape((-1, 1))
    values = updates.reshape((place.shape[0], width))
    flat = x.reshape((math.prod(indexed), width))
    index = place.expand(values.shape)
    if reduction == "none":
        result = flat.scatter(0, index, values)
    else:
        result = flat.scatter_reduce(0, index, values, REDUCTIONS[reduction])
    return result.reshape(x.shape)


def _flat_places(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the row-major position in `shape` of each index along the last axis; NOWHERE for one
    that is out of range on any axis."""
    place = Tensor.zeros(*indices.shape[:-1], dtype=dtypes.int64)
    for axis, size in enumerate(shape):
        index = indices[..., axis].cast(dtypes.int64)
        index = (index < 0).where(index + size, index)
        is_inside = (index >= 0) & (index < size) & (place < NOWHERE)
        place = is_inside.where(place * size + index, NOWHERE)
    return place


@row("ReverseSequence", since=10)
def reverse_sequence(
    x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    """Each sequence of a batch with its first elements in reverse order."""
    size = x.shape[time_axis]
    shape = [1] * x.ndim
    shape[batch_axis] = x.shape[batch_axis]
    ends = lengths.cast(dtypes.int64).reshape(tuple(shape))
    shape = [1] * x.ndim
    shape[time_axis] = size
    steps = Tensor.arange(size, dtype=dtypes.int64).reshape(tuple(shape))
    place = (steps < ends).where(ends - 1 - steps, steps)
    return x.gather(time_axis, place.expand(x.shape))


@row("TensorScatter", since=24)
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    """A cache with new elements of each sequence written from its position on."""
    axis = axis_of(axis, cache.ndim)
    size, count = cache.shape[axis], update.shape[axis]
    shape = [1] * cache.ndim
    shape[axis] = size
    steps = Tensor.arange(size, dtype=dtypes.int64).reshape(tuple(shape))
    if write_indices is not None:
        starts = write_indices.cast(dtypes.int64).reshape((-1,) + (1,) * (cache.ndim - 1))
        steps = steps - starts
    if mode == "circular":
        steps = (steps < 0).where(steps + size, steps)
    is_new = (steps >= 0) & (steps < count)
    whole = cache.shape[:axis] + (size,) + cache.shape[axis + 1 :]
    place = steps.clamp(0, count - 1).expand(whole)
    return is_new.where(update.gather(axis, place), cache)
