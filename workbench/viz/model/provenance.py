"""Provenance of code: line of source -> node of the program -> kernel -> tensor -> user's line.

    links = links_of(compiled, exploration.passes, exploration.lines)
    links.of_line(12).lines          # the user's lines that line 12 of the source computes
    links.of_assembly(compiled.assembly_lines)     # the origin of each instruction

Kernels share their nodes with equal kernels of other cells, so a node alone is not a key: the links
are those of this compilation and of the schedule before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.backends.native.program import AsmLine, code_loops
from workbench.base.interrupts import once
from workbench.base.sequences import common_prefix
from workbench.base.source import SourceLine
from workbench.base.trace import PassRecord, ProvenanceEdge
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import DECIDE, RANGEIFY, SIMPLIFY_TENSOR
from workbench.kernel.kernel import Compiled
from workbench.viz.model.ancestry import Ancestry, Cause
from workbench.viz.model.lines import UserLines, with_inner

NO_LINES = UserLines()


class Members(Sequence[UOp]):
    """Some nodes of a table, in its order; `mask` has a bit for each node of the table."""

    __slots__ = ("_mask", "_table")

    def __init__(self, table: Sequence[UOp] = (), mask: int = 0):
        self._table, self._mask = table, mask

    def __len__(self) -> int:
        return self._mask.bit_count()

    def __iter__(self) -> Iterator[UOp]:
        return (self._table[place] for place in _places(self._mask))

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a piece of code. `axes`: the loops around it, outermost first, then its lanes;
    `kernel`: nodes of the un-optimised kernel, readers before their sources; `tensor`: nodes of the
    scheduled tensor graph, likewise; `lines`: the user's, those in called functions last."""

    axes: tuple[str, ...] = ()
    kernel: Members = Members()
    tensor: Members = Members()
    lines: tuple[SourceLine, ...] = ()


class _Tables(NamedTuple):
    """The meaning of the bits of a mask: first axes, then nodes of the kernel, nodes of the tensor
    graph, and lines in the order in which they are found. A set is one number, so that a union is
    cheap however many nodes there are, and each node of an ancestry is visited once."""

    axes: list[str]
    kernel: Sequence[UOp]
    tensor: Sequence[UOp]
    lines: list[SourceLine]

    def parts(self, mask: int) -> tuple[int, int, int, int]:
        """Return the mask of each table."""
        masks = []
        for table in self[:3]:
            masks.append(mask & ((1 << len(table)) - 1))
            mask >>= len(table)
        return masks[0], masks[1], masks[2], mask


_NO_AXES: frozenset[str] = frozenset()


def _chain(line: SourceLine) -> tuple[SourceLine, ...]:
    """Return the key of a line: two runs of one line may have called different lines."""
    return line, *line.inner


def _places(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, eq=False)
class Links:
    """The origins of the code of one compiled kernel. `linear` is its program; `positions` has, for
    each line of its source, the positions in the program of the nodes that the line computes."""

    linear: tuple[UOp, ...]
    positions: tuple[tuple[int, ...], ...]
    ancestry: Ancestry
    kernel: Sequence[UOp]
    tensor: Sequence[UOp]
    tree: frozenset[UOp]
    lines: UserLines

    def of(self, *nodes: UOp) -> Origin:
        """Return the origin of nodes of any state of the compilation, with the axes that they
        depend on."""
        mask = 0
        for node in nodes:
            mask |= self._mask(node)
        own = {r.axis_name for node in nodes for r in node.ranges}
        return self._origin(mask, own)

    def below(self, node: UOp) -> Origin:
        """Return the origin of a node and of all values below it."""
        masks = self._masks_below
        for each in node.toposort(lambda n: n not in masks):
            if each not in masks:
                mask = 0 if each.dtype.kind == "index" else self._mask(each)
                for source in each.src:
                    mask |= masks[source]
                masks[each] = mask
        return self._origin(masks[node], {r.axis_name for r in node.ranges})

    def _origin(self, mask: int, more_axes: AbstractSet[str]) -> Origin:
        tables = self._tables
        axes, kernel, tensor, lines = tables.parts(mask)
        return Origin(
            self._axes_of(axes, more_axes),
            Members(tables.kernel, kernel),
            Members(tables.tensor, tensor),
            self._lines_of(lines),
        )

    def _axes_of(self, mask: int, more_axes: AbstractSet[str]) -> tuple[str, ...]:
        names = {self._tables.axes[place] for place in _places(mask)}
        return tuple(sorted(more_axes | names))

    def _lines_of(self, mask: int) -> tuple[SourceLine, ...]:
        """Return the lines of a mask; equal masks share a tuple, since much code has equal ones."""
        lines = self._line_sets.get(mask)
        if lines is None:
            places = _places(mask)
            lines = with_inner([self._tables.lines[place] for place in places])
            self._line_sets[mask] = lines
        return lines

    @once
    def _line_sets(self) -> dict[int, tuple[SourceLine, ...]]:
        return {}

    def _mask(self, node: UOp) -> int:
        """Return the mask of a node and all its ancestors."""
        mask = self._masks.get(node)
        if mask is None:
            self.ancestry.unions(node, self._own, self._masks)
            mask = self._masks[node]
        return mask

    @once
    def _masks(self) -> dict[UOp, int]:
        """The masks of nodes that were asked for, and of their ancestors."""
        return {}

    @once
    def _masks_below(self) -> dict[UOp, int]:
        return {}

    @once
    def _own(self) -> Callable[[UOp], int]:
        """The function that returns the mask of a node without its ancestors."""
        tables = self._tables
        start, bits = 0, list[dict[Any, int]]()
        for table in tables[:3]:
            bits.append({row: 1 << place for place, row in enumerate(table, start)})
            start += len(table)
        axes, kernel, tensor = bits
        lines: dict[tuple[SourceLine, ...], int] = {}

        def own(node: UOp) -> int:
            mask = kernel.get(node, 0) | tensor.get(node, 0)
            if node in self.tree:
                for r in node.ranges:
                    mask |= axes[r.axis_name]
            for line in self.lines.own(node):
                chain = _chain(line)
                if chain not in lines:
                    lines[chain] = 1 << (start + len(lines))
                    tables.lines.append(line)
                mask |= lines[chain]
            return mask

        return own

    @once
    def _tables(self) -> _Tables:
        axes = {r.axis_name for n in self.tree for r in n.ranges}
        return _Tables(sorted(axes), self.kernel, self.tensor, [])

    def why(self, *nodes: UOp) -> list[Cause]:
        """Return the causes of nodes, and of the indexes at which they read or write, the latest
        first. The `place` of a cause counts the passes of the schedule, then those of the
        compilation."""
        return self.ancestry.why(*nodes, *(i for n in nodes for i in _indexes(n)))

    def at(self, *positions: int) -> Origin:
        """Return the origin of the nodes at some positions of the program, within the loops around
        the first one. Indexes, which many nodes share, count only if there are no other nodes."""
        if not positions:
            return Origin()
        nodes = [self.linear[p] for p in positions]
        values = [n for n in nodes if n.dtype.kind != "index"] or nodes
        mask = mask_of_axes = 0
        for node in nodes:
            mask_of_axes |= self._mask(node)
        for node in values:
            mask |= self._mask(node)
        own = {r.axis_name for node in nodes for r in node.ranges}
        axes = self._axes_of(self._tables.parts(mask_of_axes)[0], own)
        lanes = [axis for axis in axes if axis in self._lanes]
        origin = self._origin(mask, _NO_AXES)
        return replace(origin, axes=(*self.loops[positions[0]], *lanes))

    def of_line(self, number: int) -> Origin:
        """Return the origin of line `number` of the source, counted from 1."""
        inside = 0 < number <= len(self.positions)
        return self._origins[number - 1] if inside else Origin()

    def of_assembly(self, lines: Sequence[AsmLine]) -> tuple[Origin, ...]:
        """Return the origin of every line of a kernel's assembly.

        An instruction without a line (a constant that is loaded again, a spilled register) belongs
        to the loops that the other instructions in its loop of the machine code share.
        """
        around = [self._loops_of(line) for line in lines]
        origins = [self.of_line(line.source_line or 0) for line in lines]
        for loop in code_loops(lines):
            loop_origins = [a for place in loop if (a := around[place]) is not None]
            if loop_origins:
                shared = Origin(common_prefix(*loop_origins))
                unknown = [p for p in loop if around[p] is None]
                for place in unknown:
                    origins[place] = Origin() if lines[place].is_label else shared
        return tuple(origins)

    def _loops_of(self, line: AsmLine) -> tuple[str, ...] | None:
        """Return the loops around an instruction; None if they are unknown."""
        number = line.source_line or 0
        places = self.positions[number - 1] if number else ()
        return self.loops[places[0]] if places else None

    @once
    def _origins(self) -> tuple[Origin, ...]:
        return tuple(self.at(*places) for places in self.positions)

    @once
    def loops(self) -> list[tuple[str, ...]]:
        """The names of the loops around each position of the program; a loop is around itself."""
        paths = []
        path: tuple[str, ...] = ()
        for node in self.linear:
            if node.op is Ops.LOOP:
                path = (*path, node.axis.axis_name)
            paths.append(path)
            if node.op is Ops.ENDLOOP:
                path = path[:-1]
        return paths

    @once
    def _lanes(self) -> frozenset[str]:
        ranges = (n for n in self.tree if n.op is Ops.RANGE)
        return frozenset(r.axis_name for r in ranges if r.axis_kind.is_lane)


def links_of(
    compiled: Compiled,
    schedule: Sequence[PassRecord] = (),
    lines: UserLines = NO_LINES,
    value: UOp | None = None,
    kernels: ScheduledKernels | None = None,
) -> Links:
    """Return the links of a compiled kernel. `schedule` are the passes that led to it, `lines` the
    user's lines of its Exploration (without them no line is known). `kernels` are the kernels of
    the schedule, given when several of them are linked.

    `value` is the tensor node that the kernel stores, by which equal kernels differ.
    """
    original: UOp = compiled.passes[0].before
    kernels = kernels or ScheduledKernels(schedule)
    entries = [
        entry
        for entry in kernels.entries
        if entry.kernel is original and value in (None, entry.stored)
    ]
    base = kernels.shared(entries[0]) if entries else None
    ancestry = Ancestry(base)
    tensor: dict[UOp, None] = {}
    for number, entry in enumerate(entries):
        first = entry.shared if number == 0 else 0
        for place, record in list(zip(entry.places, entry.records, strict=True))[first:]:
            ancestry.add(record, place)
        for record in entry.records:
            if record.name == DECIDE.name:
                tensor.update(dict.fromkeys(reversed([*record.before.toposort()])))
    for place, record in enumerate(compiled.passes, len(schedule)):
        ancestry.add(record, place)
    return Links(
        compiled.built.linear,
        compiled.built.source.lines,
        ancestry,
        tuple(reversed([*original.toposort()])),
        tuple(tensor),
        frozenset(compiled.built.lowered.toposort()),
        lines,
    )


class Scheduled(NamedTuple):
    """A kernel of a schedule, the value it stores, the records of the passes between the two, and
    their positions in the record of the whole schedule. The first `shared` records are common to
    all kernels of its device."""

    stored: UOp
    kernel: UOp
    records: tuple[PassRecord, ...]
    places: tuple[int, ...]
    shared: int


class ScheduledKernels:
    """The kernels of a schedule, with one ancestry of the passes that they share."""

    def __init__(self, schedule: Iterable[PassRecord]):
        self.entries = tuple(scheduled(schedule))
        self._ancestries: dict[tuple[int, ...], Ancestry] = {}

    def shared(self, entry: Scheduled) -> Ancestry:
        """Return the ancestry of the passes that a kernel shares with all kernels of its device."""
        rows = list(zip(entry.places, entry.records, strict=True))[: entry.shared]
        key = entry.places[: entry.shared]
        if key not in self._ancestries:
            self._ancestries[key] = ancestry = Ancestry()
            for place, record in rows:
                ancestry.add(record, place)
        return self._ancestries[key]


def scheduled(records: Iterable[PassRecord]) -> Iterator[Scheduled]:
    """Yield the kernels of a schedule in execution order."""
    shared: list[tuple[PassRecord, int]] = []
    parts: list[tuple[PassRecord, int]] = []
    own: list[tuple[PassRecord, int]] = []
    for place, record in enumerate((*records, None)):
        of_tensors = record is not None and record.name == SIMPLIFY_TENSOR.name
        is_first = record is not None and bool(parts) and record.before is parts[0][0].after
        if own and (record is None or of_tensors or is_first):
            outer = [r for r, _ in own if r.parent is None]
            passes, places = zip(*shared, *own, strict=True)
            kernel = outer[0].before, outer[-1].after
            yield Scheduled(*kernel, passes, places, len(shared))
            own = []
        if record is None:
            return
        if of_tensors:
            shared = []  # the passes of another device begin
        if record.name == RANGEIFY.name:
            parts = [(p, place) for p in record.edges if isinstance(p, PassRecord)]
            edges = tuple(p for p in record.edges if isinstance(p, ProvenanceEdge))
            shared.append((replace(record, edges=edges), place))
        elif is_first:
            own = [parts.pop(0), (record, place)]
        else:
            (own or shared).append((record, place))


def _indexes(node: UOp) -> tuple[UOp, ...]:
    """Return the indexes at which a node reads or writes memory."""
    place = node.src[0] if node.op in (Ops.LOAD, Ops.STORE) else node
    return place.src[1:] if place.op is Ops.INDEX else ()
