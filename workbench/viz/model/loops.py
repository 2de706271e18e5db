"""The loop nest of a kernel as an ordered list of rows: what opts act on, with its memory.

A row is a loop, a lane axis (computed together, no loop) or a statement. Loops and lanes say,
for each buffer, how far one step moves in it (in elements) and how many bytes one whole run
of the loop touches: the figure to hold against the sizes of the caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.ir.nest.accesses import (
    MemoryAccess,
    accesses,
    buffers_of,
    lanes_of,
    name_of,
    size_of,
    vector_of,
)
from workbench.ir.nest.footprint import strides, touched
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.readable import to_expr
from workbench.pipeline import stages
from workbench.viz.model.words import bytes_text


class BufferInfo(NamedTuple):
    """A buffer of a kernel: an argument ("in", "out", "in and out") or "scratch"."""

    name: str
    dtype: str
    size: int
    role: str


class Use(NamedTuple):
    """How a loop uses a buffer. `strides`: elements per step, one per different access; None
    where a step is not always the same. `size_bytes`: touched by one run of the loop, an upper
    bound where not `exact`."""

    strides: tuple[int, ...] | None
    size_bytes: int
    exact: bool

    @property
    def stride_text(self) -> str:
        """The strides as text, in elements: "1", "0,64", "varies"."""
        return "varies" if self.strides is None else ",".join(map(str, self.strides))

    @property
    def bytes_text(self) -> str:
        """The bytes as text: "32 KiB", "<= 32 KiB" where it is a bound."""
        return ("" if self.exact else "<= ") + bytes_text(self.size_bytes)


@dataclass(frozen=True, slots=True)
class LoopRow:
    """One row. `kind` is "loop", "lanes" or "statement"; `around` are the kinds of the loops and
    lanes it stands in, outermost first; `text` is a statement's, over one or more lines; `node`
    is the RANGE, or the statement, that it shows."""

    kind: Literal["loop", "lanes", "statement"]
    around: tuple[AxisType, ...]
    text: str
    axis: str = ""
    axis_kind: AxisType | None = None
    size: int = 0
    uses: Mapping[str, Use] = field(default_factory=dict)
    is_vector: bool = False
    node: UOp | None = None

    @property
    def depth(self) -> int:
        """How many loops and lanes it stands in."""
        return len(self.around)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The rows of a kernel, top to bottom, and its buffers, the output first."""

    name: str
    buffers: tuple[BufferInfo, ...]
    rows: tuple[LoopRow, ...]


def loop_nest(kernel: UOp, target: Target) -> LoopNest:
    """Return the loop nest of a kernel (a SINK) as lowering for `target` makes it.

    Errors: CompileError where the kernel needs more scratch than the target gives.
    """
    with unobserved():
        return tree_nest(stages(kernel, target, upto="tree").tree)


def tree_nest(block: UOp) -> LoopNest:
    """Return the loop nest of a statement tree."""
    buffers = buffers_of(block)
    reader = _NestReader(buffers)
    rows = _body_rows(block.src, (), reader)
    written = {
        a.buffer for s in tree_statements(block) for a in reader.accesses(s) if a.writes
    }
    read = {
        a.buffer
        for s in tree_statements(block)
        for a in reader.accesses(s)
        if not a.writes
    }
    infos = tuple(_info(b, b in written, b in read) for b in buffers)
    return LoopNest(block.arg.name, infos, tuple(rows))


def to_text(nest: LoopNest) -> str:
    """Return the rows as aligned text: per buffer `stride | bytes`."""
    names = [b.name for b in nest.buffers]
    heads = [f"{b.name} {b.role}" for b in nest.buffers]
    cells = [
        (_axis_text(r), [_use_text(r.uses.get(n)) for n in names]) for r in nest.rows
    ]
    axes = [(a, c) for (a, c), r in zip(cells, nest.rows, strict=True) if r.axis_kind]
    first = max([len("loop"), *[len(a) for a, _ in axes]])
    widths = [max([len(h), *[len(c[i]) for _, c in axes]]) for i, h in enumerate(heads)]
    lines = [_aligned("loop", heads, first, widths)]
    for (axis, uses), row in zip(cells, nest.rows, strict=True):
        if row.axis_kind:
            lines.append(_aligned(axis, uses, first, widths))
        else:
            lines += ["  " * row.depth + line for line in row.text.split("\n")]
    return "\n".join(lines)


def _aligned(
    first: str, cells: Sequence[str], width: int, widths: Sequence[int]
) -> str:
    parts = [f"{c:{w}}" for c, w in zip(cells, widths, strict=True)]
    return "   ".join([f"{first:{width}}", *parts]).rstrip()


def _axis_text(row: LoopRow) -> str:
    if row.axis_kind is None:
        return ""
    note = " (vector)" if row.is_vector else ""
    return f"{'  ' * row.depth}{row.axis_kind.badge} {row.axis} x{row.size}{note}"


def _use_text(use: Use | None) -> str:
    return "" if use is None else f"{use.stride_text} | {use.bytes_text}"


class _NestReader:
    """Finds what statements access; each statement is walked once."""

    def __init__(self, buffers: Sequence[UOp]):
        self.buffers = buffers
        self._by_statement: dict[UOp, tuple[MemoryAccess, ...]] = {}

    def accesses(self, statement: UOp) -> tuple[MemoryAccess, ...]:
        if statement not in self._by_statement:
            self._by_statement[statement] = accesses(statement)
        return self._by_statement[statement]

    def uses(
        self, statements: Sequence[UOp], inside: set[UOp], axis: UOp
    ) -> dict[str, Use]:
        """Return how the loop over `axis` around `statements` uses each buffer."""
        by_buffer: dict[UOp, list[UOp]] = {b: [] for b in self.buffers}
        for statement in statements:
            for access in self.accesses(statement):
                by_buffer[access.buffer].append(access.flat)
        uses = {}
        for buffer, indexes in by_buffer.items():
            if indexes:
                count = touched(indexes, inside, size_of(buffer))
                size_bytes = count.elements * buffer.dtype.itemsize
                use = Use(strides(indexes, axis), size_bytes, count.exact)
                uses[name_of(buffer)] = use
        return uses


def _body_rows(
    body: Sequence[UOp], around: tuple[AxisType, ...], reader: _NestReader
) -> list[LoopRow]:
    rows: list[LoopRow] = []
    group: list[UOp] = []
    for node in body:
        if node.op is Ops.LOOP:
            rows += _group_rows(group, around, reader)
            group = []
            rows += _loop_rows(node, around, reader)
        elif group and lanes_of(node) != lanes_of(group[0]):
            rows += _group_rows(group, around, reader)
            group = [node]
        else:
            group.append(node)
    return rows + _group_rows(group, around, reader)


def _loop_rows(
    loop: UOp, around: tuple[AxisType, ...], reader: _NestReader
) -> list[LoopRow]:
    axis = loop.src[0]
    below = tree_statements(loop)
    inside = {n.src[0] for n in loop.toposort() if n.op is Ops.LOOP}
    inside.update(lane for s in below for lane in lanes_of(s))
    uses = reader.uses(below, inside, axis)
    name, kind, size = axis.axis_name, axis.axis_kind, axis.extent
    row = LoopRow("loop", around, "", name, kind, size, uses, node=axis)
    return [row, *_body_rows(loop.src[1:], (*around, axis.axis_kind), reader)]


def _group_rows(
    group: Sequence[UOp], around: tuple[AxisType, ...], reader: _NestReader
) -> list[LoopRow]:
    """Return rows for neighbouring statements with the same lanes: the lanes, if the statements
    touch memory with them, then the statements."""
    rows: list[LoopRow] = []
    if any(reader.accesses(s) for s in group):
        lanes = lanes_of(group[0])
        for place, lane in enumerate(lanes):
            uses = reader.uses(group, set(lanes[place:]), lane)
            is_vector = any(vector_of(s) == lane.axis_name for s in group)
            rows.append(
                LoopRow(
                    "lanes", around, "", lane.axis_name, lane.axis_kind,
                    lane.extent, uses, is_vector, lane,
                )
            )  # fmt: skip
            around = (*around, lane.axis_kind)
    return rows + [
        LoopRow("statement", around, _statement_text(s), node=s) for s in group
    ]


def _statement_text(statement: UOp) -> str:
    return to_expr(UOp(Ops.BLOCK, dtypes.void, (statement,)))


def _info(buffer: UOp, written: bool, read: bool) -> BufferInfo:
    role = "in and out" if written and read else "out" if written else "in"
    if buffer.op is Ops.DEFINE:
        role = "scratch"
    return BufferInfo(name_of(buffer), str(buffer.dtype), size_of(buffer), role)
