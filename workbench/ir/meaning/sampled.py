"""Sampled interpretation: a few elements of a large tensor, each computed from the elements that it
depends on.

Positions are flat and sorted. From the roots down, the needed elements of each node are determined;
from the leaves up, they are computed, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError, WorkbenchError
from workbench.ir.meaning.evaluate import Array, array_dtype, constant, elementwise, reduce
from workbench.ir.meaning.interpret import custom_value, interpret_tensors
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp

Positions = np.ndarray[Any, np.dtype[np.int64]]
PADDED_POSITION = -1
"""The position of an element of a PAD that is not in its source."""

WHOLE_ELEMENTS = 1 << 24
"""Elements up to which a value is computed as a whole, even if few of them are needed."""
WHOLE_TIMES = 16
"""A value is also computed as a whole if it has so many times the needed elements or fewer: their
positions take more memory than a value does."""


class TooManyPositions(WorkbenchError):
    """More elements are needed than may be computed."""

    def __init__(self, most: int) -> None:
        what = "too much work for these elements"
        super().__init__(what, f"more than {most:,} are needed for them")


class SampledElements:
    """Some elements of tensor-level values, and all elements that they are computed from.

    Errors: TooManyPositions where more than `most` are needed, each counted once per reader.
    """

    def __init__(self, targets: Sequence[tuple[UOp, Positions]], most: int) -> None:
        self._targets = list(targets)
        self._needed: dict[UOp, Positions] = {}
        self._order = list(UOp.sink(*[node for node, _ in targets]).toposort())[:-1]
        requests: dict[UOp, list[Positions]] = {}
        for node, positions in targets:
            requests.setdefault(node, []).append(positions)
        room = most
        for node in reversed(self._order):
            if node not in requests:  # nothing needs it
                continue
            needed = _distinct(np.concatenate(requests.pop(node)))
            self._needed[node] = needed
            if node.op is Ops.REDUCE_AXIS and node.size:
                if needed.size * (node.src[0].size // node.size) > room:
                    raise TooManyPositions(most)
            for source, positions in self._below(node):
                room -= positions.size
                if room < 0:
                    raise TooManyPositions(most)
                inside = positions[positions != PADDED_POSITION]
                requests.setdefault(source, []).append(_distinct(inside))

    @property
    def work(self) -> int:
        """The number of elements that are computed."""
        return sum(positions.size for positions in self._needed.values())

    def values(self, buffers: Mapping[UOp, Array], widen: bool = False) -> list[Array]:
        """Return the elements of each target, flat; `buffers` has the content of each BUFFER."""
        values: dict[UOp, Array] = {}
        for node in self._order:
            if node in self._needed:
                values[node] = self._value(node, values, buffers, widen)
        return [self._at(n, positions, values) for n, positions in self._targets]

    def _below(self, node: UOp) -> list[tuple[UOp, Positions]]:
        """Return, for each source, the elements that the needed elements of `node` depend on."""
        needed = self._needed[node]
        if node.op in _SAME_ORDER:
            return [(node.src[0], needed)]
        if node.op is Ops.CUSTOM:
            return [(s, np.arange(s.size)) for s in node.src]
        if node.op is Ops.REDUCE_AXIS:
            return [(node.src[0], _reduced(node, needed).reshape(-1))]
        move = _MOVES.get(node.op)
        if move is not None:
            return [(node.src[0], _moved(node, needed, move))]
        return [(s, needed if s.size == node.size else needed * 0) for s in node.src]

    def _at(self, node: UOp, positions: Positions, values: Mapping[UOp, Array]) -> Array:
        return values[node][np.searchsorted(self._needed[node], positions)]

    def _value(
        self, node: UOp, values: Mapping[UOp, Array], buffers: Mapping[UOp, Array], widen: bool
    ) -> Array:
        needed = self._needed[node]
        if node.op is Ops.CONST:
            return np.full(needed.shape, constant(node, widen))
        if node.op is Ops.BUFFER:
            array = buffers[node].reshape(-1)[needed]
            return array.astype(array_dtype(node.dtype, widen), copy=False)
        if node.op is Ops.IOTA:
            numbers = cast_array(needed, dtypes.int64, node.dtype)
            return np.asarray(numbers, array_dtype(node.dtype, widen))
        below = self._below(node)
        if node.op in ELEMENTWISE:
            return elementwise(node, [self._at(*b, values) for b in below], widen)
        if node.op is Ops.CUSTOM:
            whole = [values[s].reshape(s.shape) for s in node.src]
            return custom_value(node, whole, widen).reshape(-1)[needed]
        ((source, positions),) = below
        if node.op is Ops.PAD:
            inside = positions != PADDED_POSITION
            result = np.zeros(needed.shape, values[source].dtype)
            result[inside] = self._at(source, positions[inside], values)
            return result
        elements = self._at(source, positions, values)
        if node.op is Ops.REDUCE_AXIS:
            rows = elements.reshape(needed.size, -1)
            return reduce(node.combines, rows, (1,), node.dtype, keepdims=False)
        if node.op in _SAME_ORDER or node.op in _MOVES:
            return elements
        raise VerifyError(f"{node.op.name} is not an op of tensor-level values")


def interpret_needed(roots: Sequence[UOp], buffers: Mapping[UOp, Array]) -> list[Array]:
    """Return the values of several roots, as `interpret_tensors` does. If a value below them is far
    larger, as one that is padded and cut again, only the elements that they need are computed."""
    most = max((root.size for root in roots), default=0)
    if largest_size(roots) <= max(WHOLE_ELEMENTS, WHOLE_TIMES * most):
        return interpret_tensors(roots, buffers)
    targets = [(root, np.arange(root.size)) for root in roots]
    values = SampledElements(targets, 1 << 62).values(buffers)
    return [value.reshape(root.shape) for value, root in zip(values, roots, strict=True)]


def largest_size(roots: Sequence[UOp]) -> int:
    """Return the number of elements of the largest value of a graph."""
    graph = UOp.sink(*roots).toposort()
    return max((node.size for node in graph if node.op is not Ops.SINK), default=0)


_SAME_ORDER = frozenset({Ops.RESHAPE, Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH})
"""Ops whose elements are those of their source, in the same order."""
Coordinates = Sequence[Positions]


def _reduced(node: UOp, needed: Positions) -> Positions:
    """Return a row for each needed element of a reduction: the elements that it combines."""
    shape = node.src[0].shape
    begins = _flat(_coordinates(needed, node.shape), shape)
    axes = sorted(node.reduced_axes)
    inner = np.arange(math.prod(shape[a] for a in axes))
    steps = _coordinates(inner, [shape[a] for a in axes])
    at = [inner * 0] * len(shape)
    for axis, positions in zip(axes, steps, strict=True):
        at[axis] = positions
    return begins[:, None] + _flat(at, shape)[None, :]


def _moved(
    node: UOp, needed: Positions, move: Callable[[UOp, Coordinates], Coordinates]
) -> Positions:
    """Return, for each needed element, its position in the source of a movement op."""
    shape = node.src[0].shape
    at = move(node, _coordinates(needed, node.shape))
    positions = _flat(at, shape) if shape else needed * 0
    if node.op is Ops.PAD:
        outside = np.zeros(needed.shape, bool)
        for axis, size in zip(at, shape, strict=True):
            outside |= (axis < 0) | (axis >= size)
        positions[outside] = PADDED_POSITION
    return positions


def _distinct(positions: Positions) -> Positions:
    """Return the different positions, sorted. `np.unique` hashes, which takes far more time for
    millions of positions that are nearly sorted."""
    ordered = np.sort(positions)
    distinct: Positions = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def _coordinates(positions: Positions, shape: Sequence[int]) -> Coordinates:
    return np.unravel_index(positions, shape) if shape else []


def _flat(at: Coordinates, shape: Sequence[int]) -> Positions:
    flat = np.zeros(at[0].shape if at else 1, np.int64)
    for axis, extent in zip(at, shape, strict=True):
        flat = flat * extent + axis
    return flat


def _permuted(node: UOp, at: Coordinates) -> Coordinates:
    return [at[node.arg.index(axis)] for axis in range(len(at))]


def _expanded(node: UOp, at: Coordinates) -> Coordinates:
    sizes = node.src[0].shape
    at = at[len(at) - len(sizes) :]
    return [a * 0 if n == 1 else a for a, n in zip(at, sizes, strict=True)]


_MOVES: dict[Ops, Callable[[UOp, Coordinates], Coordinates]] = {
    Ops.PERMUTE: _permuted,
    Ops.EXPAND: _expanded,
    Ops.SHRINK: lambda node, at: [a + low for a, (low, _) in zip(at, node.arg, strict=True)],
    Ops.PAD: lambda node, at: [a - low for a, (low, _) in zip(at, node.arg, strict=True)],
    Ops.FLIP: lambda node, at: [
        size - 1 - a if axis in node.arg else a
        for axis, (a, size) in enumerate(zip(at, node.shape, strict=True))
    ],
}
"""From the coordinates of an element to the coordinates of its element in the source."""
