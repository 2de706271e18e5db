"""The meaning of WMMA: the product that a tensor core computes from the fragments of all lanes.

A value has the shape (.., work-items, elements), and each run of `core.lanes` work-items is a warp.
The tiles are assembled from the fragments, multiplied, and cut into fragments again: so a wrong
layout gives wrong results, as on a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.errors import WorkbenchError
from workbench.base.tensor_cores import TILE_AXES, Fragment, TensorCore
from workbench.base.terminal import Printed

Array = Any  # numpy arrays of any dtype
TF32_MASK = np.uint32(0xFFFFE000)
"""The bits of a float32 that a tensor core uses for tf32: sign, exponent, 10 bits of fraction."""


@dataclass(frozen=True, eq=False, repr=False)
class LaneMap(Printed):
    """The places of a tile's elements in lanes. `rows` and `columns` have the position of each
    (lane, element) in the tile; `holders` has the (lane, element) at each (row, column): of the
    first lane, if several have copies. `title` names the tile and its tensor core. In a notebook
    it is a picture.
    """

    title: str
    rows: Array
    columns: Array
    holders: Array

    def __str__(self) -> str:
        """The tile as a table: for each element "lane.element", such as "6.3"."""
        words = [[f"{lane}.{element}" for lane, element in row] for row in self.holders]
        width = max(len(word) for row in words for word in row)
        return "\n".join(" ".join(word.rjust(width) for word in row) for row in words)


def lane_map(core: TensorCore, tile: str) -> LaneMap:
    """Return the lane and its element for each element of tile "a", "b" or "c" of a tensor core,
    such as `Device["H100"].target.tensor_cores[0]`.

    Errors: WorkbenchError if `core` is not a tensor core, or has no such tile.
    """
    if not isinstance(core, TensorCore):
        because = f"{type(core).__name__} is not a tensor core"
        hint = 'lane_map(Device["H100"].target.tensor_cores[0], "a")'
        raise WorkbenchError(f"there is no lane map of {core!r:.40}", because, hint)
    if tile not in TILE_AXES:
        because = f"a tensor core has {', '.join(TILE_AXES)}"
        raise WorkbenchError(f"there is no tile {tile!r:.40}", because, 'the tile "a"')
    return _lane_map(core, tile)


@cache
def _lane_map(core: TensorCore, tile: str) -> LaneMap:
    fragment = core.fragments[tile]
    down, across = TILE_AXES[tile]
    shape = core.lanes, fragment.per_lane
    positions = [
        [fragment.position(lane, element) for element in range(fragment.per_lane)]
        for lane in range(core.lanes)
    ]
    rows, columns = (
        np.array([[at.get(axis, 0) for at in line] for line in positions]).reshape(shape)
        for axis in (down, across)
    )
    holders = np.zeros((fragment.size(down), fragment.size(across), 2), np.int64)
    for lane, element in reversed([*np.ndindex(shape)]):
        holders[rows[lane, element], columns[lane, element]] = lane, element
    title = f"{tile.upper()} of {core}"
    return LaneMap(title, rows, columns, holders)


def multiplied(core: TensorCore, a: Array, b: Array, c: Array) -> Array:
    """Return C + A @ B as fragments of C; `a`, `b` and `c` are fragments. Products are exact; sums
    have the accumulator's dtype, and numpy's order."""
    tiles = [
        tile_of(core, name, _values(core, fragment, dtype))
        for name, fragment, dtype in (
            ("a", a, core.operand), ("b", b, core.operand), ("c", c, core.accumulator),
        )
    ]  # fmt: skip
    left, right, total = (tile.astype(core.accumulator.numpy) for tile in tiles)
    return fragments_of(core, "c", total + np.matmul(left, right))


def exchanged(before: Fragment, after: Fragment, values: Array) -> Array:
    """Return a tile (.., work-items, elements) in another layout."""
    places = _layout_change(before, after)
    values = np.atleast_2d(values)
    lanes, count = len(places), values.shape[-1]
    if values.shape[-2] == 1:  # the same in all lanes
        values = np.broadcast_to(values, (*values.shape[:-2], lanes, count))
    warps = values.reshape(*values.shape[:-2], -1, lanes, count)
    parts = warps[..., places[..., 0], places[..., 1]]
    result: Array = parts.reshape(*parts.shape[:-3], -1, parts.shape[-1])
    return result


@cache
def _layout_change(before: Fragment, after: Fragment) -> Array:
    """Return, for each (lane, element) of `after`, the (lane, element) of `before` that has it."""
    lanes = 1 << len(after.lane.split())
    holders = {
        tuple(sorted(before.position(lane, element).items())): (lane, element)
        for lane in reversed(range(1 << len(before.lane.split())))
        for element in range(before.per_lane)
    }
    return np.array(
        [
            [
                holders[tuple(sorted(after.position(lane, element).items()))]
                for element in range(after.per_lane)
            ]
            for lane in range(lanes)
        ]
    )


def undefined_products(core: TensorCore, a: Array, b: Array, c: Array) -> Array:
    """Return which elements of C depend on undefined ones: in their row of A, in their column of B,
    or in C itself. The arguments and the result are masks, as fragments."""
    left, right, total = (
        tile_of(core, name, np.asarray(mask, bool)) for name, mask in (("a", a), ("b", b), ("c", c))
    )
    spread = left.any(-1, keepdims=True) | right.any(-2, keepdims=True) | total
    return fragments_of(core, "c", spread)


def tile_of(core: TensorCore, tile: str, fragments: Array) -> Array:
    """Return tiles (.., warps, rows, columns) of fragments (.., work-items, elements)."""
    holders = lane_map(core, tile).holders
    fragments = np.atleast_2d(fragments)
    items, count = fragments.shape[-2:]
    if items == 1:  # the same in all lanes
        items = core.lanes
        fragments = np.broadcast_to(fragments, (*fragments.shape[:-2], items, count))
    warps = fragments.reshape(*fragments.shape[:-2], -1, core.lanes, count)
    result: Array = warps[..., holders[..., 0], holders[..., 1]]
    return result


def fragments_of(core: TensorCore, tile: str, tiles: Array) -> Array:
    """Return fragments (.., work-items, elements) of tiles (.., warps, rows, columns)."""
    where = lane_map(core, tile)
    parts = tiles[..., where.rows, where.columns]
    result: Array = parts.reshape(*parts.shape[:-3], -1, parts.shape[-1])
    return result


def _values(core: TensorCore, fragment: Array, dtype: DType) -> Array:
    """Return the numbers of a fragment as the tensor core reads them: bits as `dtype`, tf32 cut."""
    array = np.asarray(fragment)
    if array.dtype.kind == "u" and dtype.is_float:
        array = np.ascontiguousarray(array).view(dtype.numpy)
    if core.rounds_to == "tf32" and dtype is core.operand:
        shortened: Array = (np.ascontiguousarray(array).view(np.uint32) & TF32_MASK).view(
            np.float32
        )
        return shortened
    return array
