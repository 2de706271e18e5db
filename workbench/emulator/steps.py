"""A step of a work-group on the emulator, and the trace of a kernel's run.

Sections: A step of a work-group; The trace of a kernel's run on the emulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.backends.program.launch import LaunchShape
from workbench.base.errors import AxisError, WorkbenchError, plural
from workbench.base.target import Target
from workbench.emulator.accesses import AccessCount
from workbench.emulator.findings import Finding, Inefficiency, along
from workbench.emulator.history import (
    CellUse,
    GroupHistory,
    MemoryCells,
    StepAccess,
    cells_at,
    of_item,
)
from workbench.ir.nest.accesses import name_of
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import ProgramLine, line_at, program_lines

# --------------------------------------------------------------------------------------------------
# A step of a work-group.

LANES = 32
"""Work-items in a row of the text."""
MOST_ROWS = 8
MOST_COLUMNS = 8


@dataclass(frozen=True)
class HistoryStep:
    """A step of a work-group, with the state after it."""

    history: GroupHistory
    number: int

    @property
    def position(self) -> int:
        """The position of its node in the linear program."""
        return int(self.history.positions[self.number])

    @property
    def node(self) -> UOp:
        """The node that was executed."""
        return self.history.linear[self.position]

    @property
    def line(self) -> ProgramLine:
        """The line of the program that has the node."""
        return self.history.lines[self.history.line_of[self.position]]

    @property
    def rounds(self) -> dict[str, int]:
        """The round of each loop around the step, by the loop's name."""
        counters = self.history.rounds.items()
        return {
            axis.axis_name: int(rounds[self.number])
            for axis, rounds in counters
            if rounds[self.number] >= 0
        }

    @property
    def active(self) -> NDArray[np.bool_]:
        """The mask of the group's active work-items."""
        mask: NDArray[np.bool_] = self.history.masks[self.history.mask_of[self.number]]
        return mask

    @property
    def access(self) -> StepAccess | None:
        """The access to memory; None where there is none."""
        return self.history.accesses.get(self.number)

    def partner(self, item: int) -> int | None:
        """Return the work-item whose value work-item `item` takes in a shuffle; None in other
        steps, and where the group has no such work-item."""
        line = self.history.line_of[self.position]
        place = self.history.shuffles.get(line)
        distance = 0 if place is None else int(self.history.linear[place].arg)
        partner = item ^ distance
        return partner if distance and partner < self.history.items else None

    def registers(self, item: int) -> dict[str, Any]:
        """Return the values that a work-item holds, by name: numbers of groups and work-items,
        rounds of loops, registers, and values with a line of their own. None is a value that
        depends on unwritten memory."""
        names = self.history.names
        values_by_name: dict[str, Any] = {}
        for node, of_node in self.history.values.items():
            place = int(np.searchsorted(of_node.steps, self.number, "right")) - 1
            if place < 0:
                continue
            undefined = of_node.undefined[place]
            is_known = undefined is None or not of_item(undefined, item).any()
            values_by_name[names[node]] = of_item(of_node.values[place], item) if is_known else None
        return values_by_name | self.rounds

    def cells(self, memory: str, item: int = 0) -> MemoryCells:
        """Return the cells of a memory after the step; for memory of a work-item, those of `item`.

        Errors: KeyError for an unknown name, and for global memory.
        """
        return cells_at(self.history, memory, self.number, item)

    def uses(self, memory: str, element: int, item: int = 0) -> list[CellUse]:
        """Return all reads and writes of a cell, up to this step."""
        uses = []
        for step, access in self.history.accesses.items():
            if step > self.number or access.name != memory:
                continue
            for who, lane in np.argwhere(access.elements == element):
                if access.space != "private" or who == item:
                    value = access.values[who, lane]
                    uses.append(CellUse(step, int(who), access.is_store, value))
        return uses

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(self, item: int = 0) -> str:
        """Return the step as text, with the values of a work-item."""
        return _text(self, item)


def _text(step: HistoryStep, item: int) -> str:
    """Return a step as text: the program with a mark at its line, the active work-items, the
    access, the values of a work-item, and shared memory."""
    history = step.history
    group = along(history.group, history.launch.grid)
    rounds = "".join(f", {name} = {at}" for name, at in step.rounds.items())
    lines = [f"step {step.number:,} of {len(history):,}, group {group}{rounds}"]
    at = history.line_of[step.position]
    for number, line in enumerate(history.lines):
        mark = ">" if number == at else " "
        lines.append(f"{mark} {'  ' * line.depth}{line.text}")
    lines += _lanes(step.active)
    if step.access is not None:
        lines.append(_access_words(step.access))
    partner = step.partner(item)
    if partner is not None:
        what = f"takes the value of work-item {along(partner, history.launch.group)}"
        lines.append(f"work-item {along(item, history.launch.group)} {what}")
    values_by_name = ", ".join(f"{n} = {_value(v)}" for n, v in step.registers(item).items())
    lines.append(f"work-item {along(item, history.launch.group)}: {values_by_name}")
    for memory in history.memories:
        if memory.space == "shared":
            lines += _cells(step, name_of(memory), memory.memory_shape)
    return "\n".join(lines)


def _access_words(access: StepAccess) -> str:
    """Return an access and its costs in words."""
    verb = "writes" if access.is_store else "reads"
    words = f"{verb} {access.name}: {int(access.takes_part.any(1).sum())} work-items"
    if access.space == "global":
        words += f", {access.transactions} transactions, {access.bytes_wanted:,} bytes"
        words += f" wanted, {access.bytes_moved:,} moved"
    elif access.space == "shared":
        words += f", {access.transactions} passes, {access.conflicts} for conflicts"
    return words


def _lanes(active: Any) -> list[str]:
    rows = [active[i : i + LANES] for i in range(0, len(active), LANES)]
    pictures = ["".join("#" if on else "." for on in row) for row in rows]
    alike = [pictures[0]] if len(set(pictures)) == 1 else pictures
    repeated = f"  in each of {len(pictures)} rows" if len(alike) < len(pictures) else ""
    total = f"on: {int(active.sum())} of {len(active)} work-items"
    return [total, *(f"  {row}{repeated}" for row in alike)]


def _cells(step: HistoryStep, name: str, shape: tuple[int, ...]) -> list[str]:
    cells = step.cells(name)
    written = cells.writers >= 0
    head = f"{name}: {int(written.sum())} of {written.size} cells written"
    if not written.any():
        return [head]
    columns = shape[-1] if shape else 1
    rows = []
    for first in range(0, written.size, columns)[:MOST_ROWS]:
        last = first + min(columns, MOST_COLUMNS)
        words = [_value(cells.values[i]) if written[i] else "-" for i in range(first, last)]
        more = " .." if columns > MOST_COLUMNS else ""
        rows.append("  " + " ".join(f"{w:>9}" for w in words) + more)
    if written.size // columns > MOST_ROWS:
        rows.append("  ..")
    return [head, *rows]


def _value(value: Any) -> str:
    if value is None:
        return "unwritten"
    array = np.asarray(value)
    if array.ndim:
        return "(" + ", ".join(_value(part) for part in array) + ")"
    return f"{float(array):.5g}" if array.dtype.kind == "f" else str(array)


# --------------------------------------------------------------------------------------------------
# The trace of a kernel's run on the emulator.

SPACES = "global", "shared"
"""The spaces whose accesses are counted."""


@dataclass(frozen=True)
class GroupSample:
    """The work-groups of a launch whose outputs were compared, where it is too large for all:
    `groups` by number; `elements` that they wrote; `why` the others did not run, and `limit`, the
    number of work-items that could. `unwritten` names an element that they wrote before the edit
    and no longer do, though another group may ("": none)."""

    groups: tuple[int, ...]
    elements: int
    why: str
    limit: int
    unwritten: str = ""

    def words(self, launch: LaunchShape) -> str:
        """Return what was compared, what was not and why, and what to try."""
        ran, total = len(self.groups), int(np.prod(launch.grid))
        items = total * int(np.prod(launch.group))
        words = f"{ran:,} of {plural(total, 'work-group')} ran on the emulator"
        words += " (the corners of the launch, then random ones)" if ran > 1 else ""
        words += f", and no wrong element is among the {self.elements:,} that they write"
        if self.unwritten:
            words += f"; before the edit they wrote {self.unwritten}, too: does another group now?"
        words += "" if self.unwritten else "."
        words += f" The others did not run, because {self.why}"
        return f"{words}. Try smaller tensors: of {items:,} work-items about {self.limit:,} can run"


@dataclass(frozen=True)
class Trace:
    """A run of a kernel on the emulator.
    `linear` is the program, `launch` its shape, `target` the machine. Counts are by position in the
    program: `accesses` to global and shared memory; `executed`: work-items; `divergent`: warps of
    which only a part enters an IF; `barriers`: groups that waited; `shuffles`: warps. `findings`
    are the defects, `inefficiencies` the correct but slow accesses and branches; `outputs` are the
    written arrays, by slot; `history` has the steps of one work-group, if requested. Unless the run
    `is_whole`, counts are of that group alone, and of an edited program only what the groups of
    `sample` write was compared. `listing` has the lines of the text that the program was read from;
    () for a program of the compiler.
    """

    linear: tuple[UOp, ...]
    launch: LaunchShape
    accesses: Mapping[int, AccessCount]
    executed: Mapping[int, int]
    divergent: Mapping[int, int]
    barriers: Mapping[int, int]
    shuffles: Mapping[int, int]
    findings: tuple[Finding, ...]
    inefficiencies: tuple[Inefficiency, ...]
    outputs: Mapping[int, NDArray[Any]]
    history: GroupHistory | None = None
    is_whole: bool = True
    target: Target | None = None
    listing: tuple[ProgramLine, ...] = ()
    sample: GroupSample | None = None

    @property
    def lines(self) -> Sequence[ProgramLine]:
        """The lines of the program: of the text, if it was read from one."""
        return self.listing or program_lines(self.linear)

    def step(self, number: int) -> HistoryStep:
        """Return a step of the history, by number; a negative one counts from the end.

        Errors: WorkbenchError without a history, and for a number that is not an integer;
        AxisError, an IndexError, beyond the last step.
        """
        if self.history is None:
            what, because = "there are no steps", "this run noted none"
            raise WorkbenchError(what, because, "emulate(kernel, history=True)")
        if not isinstance(number, (int, np.integer)):
            what, because = (f"there is no step {number!r:.60}", "steps have whole numbers")
            raise WorkbenchError(what, because, "trace.step(0)")
        count = len(self.history)
        if not -count <= number < count:
            what, because = f"there is no step {number}", f"there are {count:,} steps"
            raise AxisError(what, because, f"0 to {count - 1}, or -1, the last one")
        return HistoryStep(self.history, number % count)

    @property
    def code(self) -> str:
        """The text of the program; edited, it runs by `emulate(kernel, code=text)`."""
        return to_text(self.linear)

    def total(self, space: str) -> AccessCount:
        """Return the counts of all accesses to a space, "global" or "shared".

        Errors: WorkbenchError for another space.
        """
        if space not in SPACES:
            what, because = f"there is no space {space!r:.60}", "it has no transactions"
            raise WorkbenchError(what, because, " or ".join(map(repr, SPACES)))
        whole = _sum(c for c in self.accesses.values() if c.space == space)
        whole.space = space
        return whole

    def __repr__(self) -> str:
        return self.text()

    def __str__(self) -> str:
        groups, items = int(np.prod(self.launch.grid)), int(np.prod(self.launch.group))
        main, shared = self.total("global"), self.total("shared")
        useful, moved = main.bytes_wanted, main.bytes_moved
        waits, divergent = sum(self.barriers.values()), sum(self.divergent.values())
        shuffles = sum(self.shuffles.values())
        lines = [
            f"{plural(groups, 'group')} of {plural(items, 'work-item')}",
            f"global memory: {main.transactions:,} transactions, {useful:,} bytes wanted,"
            f" {moved:,} moved",
            f"shared memory: {shared.transactions:,} passes, {shared.conflicts:,} of them for"
            " conflicts",
            f"barriers: {waits:,}, divergent warps: {divergent:,}"
            + (f", warp shuffles: {shuffles:,}" if shuffles else ""),
        ]
        return "\n".join([*lines, *map(self.with_lines, self.findings)])

    def numbers(self, finding: Finding) -> list[int]:
        """Return the lines of the text that a finding is at, from 1; none for a program that was
        not read from a text."""
        places = [line_at(self.listing, position) for position in finding.positions]
        return [*dict.fromkeys(self.listing[p].number for p in places if p is not None)]

    def with_lines(self, finding: Finding | Inefficiency) -> str:
        """Return a finding or inefficiency in words, with the op and the line of each position."""
        if isinstance(finding, Finding):
            positions = finding.positions
        else:
            positions = (finding.position,)
        texts = [str(finding)]
        line_of = {p: line.text for line in self.lines for p in line.positions}
        for position in dict.fromkeys(positions):
            place = line_at(self.listing, position)
            if place is not None:
                line = self.listing[place]
                texts.append(f"  line {line.number}:  {line.text}")
                continue
            op = self.linear[position].op.name
            texts.append(f"  {op} in  {line_of.get(position, '')}")
        return "\n".join(texts)

    def text(self) -> str:
        """Return the run as text, with the costs of each line of the program: sectors of global
        memory, the used share of their bytes, passes for bank conflicts."""
        head = f"{'sectors':>10} {'used':>5} {'conflicts':>10}"
        lines = [str(self), head]
        for line in self.lines:
            counts = [self.accesses[p] for p in line.positions if p in self.accesses]
            main = _sum(count for count in counts if count.space == "global")
            shared = _sum(count for count in counts if count.space == "shared")
            sectors = f"{main.transactions:,}" if main.requests else ""
            used = f"{main.bytes_wanted * 100 // (main.bytes_moved or 1)}%"
            conflicts = f"{shared.conflicts:,}" if shared.requests else ""
            row = f"{sectors:>10} {used if sectors else '':>5} {conflicts:>10}"
            lines.append(f"{row}  {'  ' * line.depth}{line.text}".rstrip())
        return "\n".join([*lines, *map(self.with_lines, self.inefficiencies)])


def _sum(counts: Iterable[AccessCount]) -> AccessCount:
    whole = AccessCount("", False)
    for count in counts:
        whole.requests += count.requests
        whole.transactions += count.transactions
        whole.least += count.least
        whole.conflicts += count.conflicts
        whole.bytes_wanted += count.bytes_wanted
        whole.bytes_moved += count.bytes_moved
    return whole
