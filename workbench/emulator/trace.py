"""The trace of a kernel's run on the emulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.backends.program.launch import LaunchShape
from workbench.base.errors import AxisError, WorkbenchError, plural
from workbench.base.target import Target
from workbench.emulator.accesses import AccessCount
from workbench.emulator.findings import Finding, Inefficiency
from workbench.emulator.history import GroupHistory
from workbench.emulator.steps import HistoryStep
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import program_lines

SPACES = "global", "shared"
"""Where memory is whose accesses are counted."""


@dataclass(frozen=True)
class Trace:
    """What happened in a run.

    `linear` is the program, `launch` its shape. Counts are by position in the program:
    `accesses` of global and shared memory, `executed` work-items, `divergent` warps at an IF,
    `barriers` that groups waited at, `shuffles` of warps. `findings` are its defects,
    `inefficiencies` what is right and slow; `outputs` the arrays that it wrote, by slot; `history`
    the steps of one work-group, where they were asked for. Where a run is not whole, only that
    group ran. `target` is what it ran for.
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

    def step(self, number: int) -> HistoryStep:
        """Return a step of the work-group whose history there is; it prints itself.

        Errors: WorkbenchError where there is none, and unless `number` is a whole number;
        AxisError, an IndexError, beyond the last one.
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
        """The text of the program: edited, it runs by `emulate(kernel, code=text)`."""
        return to_text(self.linear)

    def total(self, space: str) -> AccessCount:
        """Return the sum of all accesses of a space, "global" or "shared".

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

    def with_lines(self, finding: Finding | Inefficiency) -> str:
        """Return a finding in words, with the op and the line at each of its positions."""
        if isinstance(finding, Finding):
            positions = finding.positions
        else:
            positions = (finding.position,)
        texts = [str(finding)]
        listed = program_lines(self.linear)
        line_of = {p: line.text for line in listed for p in line.positions}
        for position in dict.fromkeys(positions):
            op = self.linear[position].op.name
            texts.append(f"  {op} in  {line_of.get(position, '')}")
        return "\n".join(texts)

    def text(self) -> str:
        """Return the run as text, with the program and what each of its lines costs: sectors of
        global memory, the share of their bytes that was wanted, passes over banks for conflicts."""
        head = f"{'sectors':>10} {'used':>5} {'conflicts':>10}"
        lines = [str(self), head]
        for line in program_lines(self.linear):
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
