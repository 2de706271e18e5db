"""The memory accesses of a kernel's loop: which elements of each operand its steps touch, in which
order, on how many cache lines and pages, and in which banks of shared memory.

The idea of a picture of a tile's accesses is triton-viz's; here it is of any loop, work-item or
lane of a kernel, on every device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.native.machine import line_bytes
from workbench.base.errors import WorkbenchError, plural, require, shape_text
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.ir.nest.access_order import OrderedAccesses, axes_of, ordered_accesses, statements_of
from workbench.ir.nest.accesses import name_of
from workbench.ir.nest.transactions import BANK_BYTES, BANKS
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]

PAGE_BYTES = 4096
MOST_STEPS = 8
"""Steps that are listed if no number is asked for, and most that are printed."""
PICTURE_ROWS, PICTURE_COLUMNS = 16, 64
"""Most rows and columns of a printed picture of a buffer."""
COUNT_WIDTH = 9


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What one step of a loop touches of a buffer: distinct elements, cache lines and pages, and
    the lines that no earlier listed step touched."""

    step: int
    accesses: int
    elements: int
    lines: int
    new_lines: int
    pages: int


@dataclass(frozen=True, slots=True, repr=False)
class BufferAccesses(Printed):
    """The accesses of a buffer by the listed steps of a loop, in order: `steps` and `elements` have
    the step and the number of the element of each, and `writes` whether it is written. `space` is
    "memory", "shared" or "scratch", `user` the user's name. `unknown` counts the places whose index
    depends on memory, which are not listed."""

    name: str
    user: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    space: str
    steps: Array
    elements: Array
    writes: Array
    statements: Array
    unknown: int
    line_bytes: int

    @property
    def lines(self) -> Array:
        """The number of the cache line of each access, if the buffer begins with one."""
        return self.elements * self.itemsize // self.line_bytes

    @property
    def banks(self) -> Array:
        """The bank of each access, if the buffer were shared memory that begins with bank 0."""
        return self.elements * self.itemsize // BANK_BYTES % BANKS

    @property
    def counts(self) -> tuple[StepCounts, ...]:
        """What each step touches."""
        seen: set[int] = set()
        rows = []
        for step in np.unique(self.steps).tolist():
            of_step = self.steps == step
            elements = np.unique(self.elements[of_step])
            lines = set(np.unique(self.lines[of_step]).tolist())
            pages = np.unique(elements * self.itemsize // PAGE_BYTES)
            sizes = int(of_step.sum()), len(elements), len(lines), len(lines - seen), len(pages)
            rows.append(StepCounts(step, *sizes))
            seen |= lines
        return tuple(rows)

    @property
    def picture(self) -> str:
        """The buffer as rows of its last dimension, a character an element: the last digit of the
        first step that touches it, * for one that several steps touch, and . for the others. A
        larger buffer is cut around its first access."""
        columns = self.shape[-1] if self.shape else 1
        rows = math.prod(self.shape) // max(1, columns)
        first = int(self.elements[0]) if len(self.elements) else 0
        top = max(0, min(first // columns, rows - PICTURE_ROWS))
        left = max(0, min(first % columns, columns - PICTURE_COLUMNS))
        steps_of: dict[int, set[int]] = {}
        for element, step in zip(self.elements.tolist(), self.steps.tolist(), strict=True):
            steps_of.setdefault(element, set()).add(step)
        lines = []
        for row in range(top, min(rows, top + PICTURE_ROWS)):
            places = range(left, min(columns, left + PICTURE_COLUMNS))
            found = [steps_of.get(row * columns + column, set()) for column in places]
            lines.append("".join(_character(steps) for steps in found))
        shown = (
            f"rows {top} to {top + len(lines) - 1}, columns {left} to {left + len(lines[0]) - 1}"
        )
        is_cut = len(lines) < rows or PICTURE_COLUMNS < columns
        return "\n".join([*_without_repeats(lines), *([shown] if is_cut else [])])

    def __str__(self) -> str:
        name = f"{self.user} ({self.name})" if self.user else self.name
        does = [
            word for word, mask in (("read", ~self.writes), ("written", self.writes)) if mask.any()
        ]
        about = ", ".join([f"{self.dtype} {shape_text(self.shape)}", self.space, *does])
        head = f"{name}: {about}"
        heads = ["step", "accesses", "elements", "lines", "new lines", "pages"]
        lines = [head, _aligned(heads)]
        lines += [_aligned([f"{n:,}" for n in astuple(row)]) for row in self.counts[:MOST_STEPS]]
        if self.unknown:
            places = plural(self.unknown, "place")
            lines.append(f"  and {places} whose index depends on memory")
        return "\n".join([*lines, *(f"  {line}" for line in self.picture.split("\n"))])


def _without_repeats(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines; of several equal ones in a row only the first, and how many follow."""
    for line, equal in groupby(lines):
        more = len([*equal]) - 1
        yield line
        yield from [line] if more == 1 else [f"and {more} more such rows"] if more else []


def _aligned(cells: Sequence[str]) -> str:
    return "  " + "  ".join(f"{cell:>{COUNT_WIDTH}}" for cell in cells)


def _character(steps: set[int]) -> str:
    if not steps:
        return "."
    return "*" if len(steps) > 1 else str(min(steps) % 10)


@dataclass(frozen=True, slots=True, repr=False)
class AxisAccesses(Printed):
    """The accesses of `steps` steps of the loop or lane axis `axis`, from `first` on, of `extent`
    in all; the axes around it stand at `at`. `buffers` has those that it touches, and `statements`
    those of the whole kernel that access memory."""

    axis: str
    kind: str
    extent: int
    first: int
    at: Mapping[str, int]
    buffers: tuple[BufferAccesses, ...]
    statements: tuple[UOp, ...]

    def __getitem__(self, name: str) -> BufferAccesses:
        """Return the accesses of a buffer by its name in the kernel or the user's. Errors:
        WorkbenchError for one that the loop does not touch."""
        for buffer in self.buffers:
            if name in (buffer.name, buffer.user):
                return buffer
        because = "it touches " + (", ".join(b.name for b in self.buffers) or "none")
        hint = self.buffers[0].name if self.buffers else "another axis"
        raise WorkbenchError(f"{self.axis} does not touch {name!r:.40}", because, repr(hint))

    def __str__(self) -> str:
        stands = "".join(f", {name}={place}" for name, place in self.at.items())
        head = f"{self.axis} ({self.kind}): {plural(self.extent, 'step')}{stands}"
        if self.first:
            head += f", from step {self.first}"
        return "\n\n".join([head, *map(str, self.buffers)])


def loop_accesses(
    kernel: RunnableKernel, axis: str, at: Mapping[str, int], first: int, steps: int
) -> AxisAccesses:
    """Return the accesses of `steps` steps of an axis of a kernel, from step `first` on.

    Errors: WorkbenchError for an axis that its loop nest does not have, for a position or a number
    of steps out of range, and for more accesses than can be listed.
    """
    require(axis, str, "accesses: axis", '"g0"')
    require(at, Mapping, "accesses: at", 'at={"g0": 1}')
    tree = _tree(kernel)
    axes = axes_of(tree)
    extent = axes[axis].extent if axis in axes else 0
    for what, value, least, most in (("first", first, 0, extent - 1), ("steps", steps, 1, 1 << 20)):
        if axis in axes and (type(value) is not int or not least <= value <= most):
            because = f"{what} must be an integer from {least} to {most}"
            raise WorkbenchError(
                f"cannot list {what}={value!r:.40} of {axis}", because, f"{what}={least}"
            )
    found = ordered_accesses(tree, axis, at, first, steps)
    line = line_bytes()
    buffers = tuple(_of_buffer(kernel, accesses, line) for accesses in found)
    kind, statements = axes[axis].axis_kind.name.lower(), tuple(statements_of(tree))
    return AxisAccesses(axis, kind, extent, first, dict(at), buffers, statements)


def nest_axes(kernel: RunnableKernel) -> dict[str, UOp]:
    """Return the axes whose accesses can be listed, RANGEs by name: loops, then lanes."""
    axes = axes_of(_tree(kernel))
    return dict(sorted(axes.items(), key=lambda row: row[1].axis_kind.is_lane))


def innermost(kernel: RunnableKernel) -> str:
    """Return the name of the innermost loop of a kernel; of one without loops its last lane axis,
    or "" if it has none."""
    axes = nest_axes(kernel)
    loops = [name for name, axis in axes.items() if not axis.axis_kind.is_lane]
    return ([""] + [*axes] if not loops else loops)[-1]


def buffer_of(kernel: RunnableKernel, buffer: UOp) -> BufferAccesses:
    """Return a buffer of a kernel, without accesses."""
    nothing = np.zeros(0, np.int64)
    none = OrderedAccesses(buffer, nothing, nothing, nothing.astype(bool), nothing)
    return _of_buffer(kernel, none, line_bytes())


def _tree(kernel: RunnableKernel) -> UOp:
    target = Device[kernel.device].target
    with unobserved(), without(kernel.rules_off):
        return stages(kernel.ast, target, upto="tree").tree


def _of_buffer(kernel: RunnableKernel, found: OrderedAccesses, line: int) -> BufferAccesses:
    buffer = found.buffer
    is_argument = buffer.op is Ops.PARAM
    user = kernel.names[buffer.slot] if is_argument and buffer.slot < len(kernel.names) else ""
    space = "memory" if is_argument else "shared" if buffer.space == "shared" else "scratch"
    return BufferAccesses(
        name_of(buffer), user, str(buffer.dtype), buffer.dtype.itemsize, _shape(kernel, buffer),
        space, found.steps, found.elements, found.writes, found.statements, found.unknown, line,
    )  # fmt: skip


def _shape(kernel: RunnableKernel, buffer: UOp) -> tuple[int, ...]:
    """Return the shape of a buffer as the user sees it; flat where that is not known."""
    if buffer.op is not Ops.PARAM:
        return tuple(buffer.memory_shape)
    if buffer.slot in kernel.original.outputs:
        return kernel.shapes[kernel.original.outputs.index(buffer.slot)]
    if isinstance(kernel.data, FromSchedule):
        shape = kernel.data.run.items[kernel.data.number].buffers[buffer.slot].shape
        if math.prod(shape) == buffer.length:
            return tuple(shape)
    return (buffer.length,)
