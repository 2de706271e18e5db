"""The axes of a product along the rows, the columns and the reduction of a tensor core's tile.

A product of matrices has one choice, or the other way round. A convolution has many: its rows may
be images, lines or pixels, and its steps channels or places of a window. Each comes with what it
costs to have its operands in tiles: elements that memory moves beside those that are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from workbench.base.target import Target
from workbench.base.tensor_cores.tensor_core import TensorCore
from workbench.base.trace import unobserved
from workbench.ir.nest.footprint import runs, touched
from workbench.ir.nest.fragments import core_of
from workbench.ir.nest.transactions import SECTOR_BYTES
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.heuristic.strides import FAR, loads, reduces, strides
from workbench.ir.opt.heuristic.work_groups.plan import OptPlan
from workbench.ir.opt.kinds.tc import PADS, axis_choices, on_target
from workbench.ir.opt.opt import Opt, OptOps, ranges, store_strides

MOST_WASTE = 2.0
"""Computed for useful outputs, at most: tensor cores are several times as fast as other units."""


class TensorAxes(NamedTuple):
    """A tile of a tensor core on a kernel: its `opt`, and the extents of its axes. `beside` is the
    nearest other axis of the operand with the columns, None where there is none: the lines of an
    image beside its pixels. `moved` are the elements that memory moves for a wanted one: of the
    operand with the rows, of that with the columns, and of the results."""

    opt: Opt
    kernel: UOp
    core: TensorCore
    extents: tuple[int, ...]
    beside: UOp | None
    moved: tuple[float, float, float]

    @property
    def names(self) -> list[str]:
        """The names of rows, columns and steps."""
        return str(self.opt.axis).split()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes of the tile."""
        return self.core.m, self.core.n, self.core.k

    @property
    def waste_of_steps(self) -> float:
        """The steps that are computed for one that is useful."""
        return self.tiles[2] * self.core.k / self.extents[2]

    @property
    def waste(self) -> float:
        """What is computed for what is useful."""
        whole = zip(self.tiles, self.sizes, self.extents, strict=True)
        return math.prod(count * size / extent for count, size, extent in whole)

    @property
    def tiles(self) -> tuple[int, ...]:
        """How many tiles the rows, columns and steps have."""
        sizes = zip(self.extents, self.sizes, strict=True)
        return tuple(-(-extent // size) for extent, size in sizes)


def tensor_axes(kernel: UOp, target: Target) -> Iterator[TensorAxes]:
    """Yield the tiles, one for each choice of axes, that do not pad too much."""
    for names in axis_choices(kernel):
        axis = " ".join(names)
        with unobserved():
            opt = on_target(kernel, Opt(OptOps.TC, axis, PADS), target)
        tiled = OptPlan(kernel, target)
        if not isinstance(opt.arg, str) or not tiled.apply(OptOps.TC, axis, opt.arg):
            continue
        core = core_of(tiled.kernel, target)
        assert core is not None
        extents = tuple(ranges(kernel)[name].extent for name in names)
        moved, beside = _moved(kernel, names), _beside(kernel, names)
        choice = TensorAxes(opt, kernel, core, extents, beside, moved)
        if choice.waste <= MOST_WASTE:
            yield choice


def _beside(kernel: UOp, names: tuple[str, str, str]) -> UOp | None:
    rows, columns, _ = (ranges(kernel)[name] for name in names)
    (total,) = reduces(kernel)
    (with_columns, *others) = [n for n in loads(total) if columns in n.ranges]
    (with_rows, *more) = [n for n in loads(total) if rows in n.ranges]
    if others or more:
        return None
    steps = strides(with_columns)
    axes = [
        r
        for r in with_columns.ranges - with_rows.ranges - {columns}
        if r.axis_kind is AxisType.GLOBAL
    ]
    return min(axes, key=lambda r: abs(steps.get(r, FAR)), default=None)


def _moved(kernel: UOp, names: tuple[str, str, str]) -> tuple[float, float, float]:
    rows, columns, _ = (ranges(kernel)[name] for name in names)
    (total,) = reduces(kernel)
    of_rows, of_columns = (
        max(_sectors(n, {axis, *total.src[1:]}) for n in loads(total) if axis in n.ranges)
        for axis in (rows, columns)
    )
    most = SECTOR_BYTES // kernel.stores[0].value.dtype.itemsize
    stride = abs(store_strides(kernel).get(columns, most))
    return of_rows, of_columns, float(min(max(1, stride), most))


def _sectors(load: UOp, inside: set[UOp]) -> float:
    """Return the elements in the sectors that a load touches while axes run, for one of them."""
    index = split_gate(load.place.flat_index)[0]
    line = max(1, SECTOR_BYTES // load.dtype.itemsize)
    moved = sum(n * -(-length // line) * line for n, length, _ in runs([index], inside, line))
    elements = touched([index], inside, load.place.memory.length).elements
    return max(1.0, moved / max(1, elements))
