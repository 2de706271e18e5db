"""A linear program run by the emulator: `emulated` gives the Trace of a run, and a WorkItemProgram
is the Program of a kernel for a machine that is not here."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.backends.memory import Buffer
from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.emulator.cells import NO_ITEM
from workbench.emulator.checks import (
    emulation_s,
    find_wrong_values,
    inefficiencies,
    params_of,
    require_fit,
    require_time,
    written_elements,
)
from workbench.emulator.findings import Finding, among_all
from workbench.emulator.history import GroupHistory, history_of
from workbench.emulator.machine import EmulatorError, Machine, NotEnded, written_slots
from workbench.emulator.source.program import (
    NO_ANNOTATIONS,
    Annotations,
    TextProgram,
    annotations_of,
)
from workbench.emulator.steps import GroupSample, Trace
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import line_at

Array = np.ndarray[Any, Any]
NO_OUTPUTS: Mapping[int, Array] = MappingProxyType({})
MOST_S = 20.0
"""Most seconds of a launch; a longer one is refused."""
MOST_TEXT_S = 30.0
"""Most seconds of the run of a program from a text, whose loops may not end."""
MOST_SAMPLED = 4096
"""Most random work-groups of a launch that is too large for all."""
MOST_STEPS_BYTES = 4 << 20
"""Most bytes of a group's steps in a page."""


def emulated(
    linear: Sequence[UOp],
    arrays: Sequence[Array],
    target: Target,
    history: bool | Sequence[int] = False,
    expected: Mapping[int, Array] = NO_OUTPUTS,
    fresh: Set[int] = frozenset(),
    text: TextProgram | None = None,
    most_s: float | None = None,
) -> Trace:
    """Return the Trace of a linear program over `arrays`, one for each slot, which it writes to;
    `history` as in `emulate`; `text` is the text that the program was read from. A run is ended
    after `most_s` seconds (None: that of a text after MOST_TEXT_S).

    `expected` are the right outputs, by slot: a difference is a finding. The contents of the slots
    `fresh` before the run count as unwritten.

    Errors: DeviceError for a program that is too large for the target or takes too long;
    WorkbenchError for a group that does not exist.
    """
    require_fit(linear, target)
    memory = _memory(linear, arrays, target)
    before = [array.copy() for array in memory] if history is not False else []
    annotations = annotations_of(text)
    machine = Machine(linear, memory, target, fresh, annotations=annotations)
    require_time(linear, target, annotations=annotations)
    limit_s = math.inf if text is None else MOST_TEXT_S
    with _line_of_error(text):
        machine.run(most_s=limit_s if most_s is None else most_s)
    find_wrong_values(machine, expected)
    steps = None
    if history is not False:
        number = _group(machine.launch, history, machine.findings.all)
        arguments = _dtypes_of(arrays)
        with _line_of_error(text):
            steps = history_of(
                linear, before, target, number, fresh, arguments=arguments, text=text
            )
    return _trace(machine, arrays, target, steps, text=text)


def steps_emulated(
    linear: Sequence[UOp],
    arrays: Sequence[Array],
    gpu: Target,
    group: bool | Sequence[int],
    most_s: float,
    fresh: Set[int],
    expected: Mapping[int, Array] = NO_OUTPUTS,
    text: TextProgram | None = None,
    unedited: Sequence[UOp] = (),
) -> Trace:
    """Return the Trace of a run with the steps of a group, as many as a page can have. If the
    launch takes more than `most_s` seconds, only that group runs; where there are `expected`
    outputs, a sample of groups runs first, what these write is compared, and their first finding
    chooses the group. `text` as in `emulated`; `unedited` is the program before an edit.

    Errors: DeviceError if that group takes too long, too.
    """
    run = _Rerun(linear, arrays, gpu, fresh, annotations_of(text))
    before, machine = run.before, run.machine()
    whole_s, group_s = (math.inf, math.inf) if text is None else (most_s, MOST_TEXT_S)
    seconds, why, sample = emulation_s(linear, annotations=run.annotations), "", None
    if seconds > most_s:
        why = f"all take about {seconds:.3g} seconds, and {most_s:g} are allowed"
    else:
        try:
            machine.run(most_s=whole_s)
        except NotEnded:  # a loop that does not end, or a machine that is busy: one group tells
            why = f"all did not end within {most_s:g} seconds"
    if not why:
        find_wrong_values(machine, expected)
        findings = machine.findings.all
    else:
        require_time(linear, gpu, groups=1, annotations=run.annotations)
        first, findings = _group(machine.launch, group, ()), []
        if expected:
            with _line_of_error(text):
                sample, findings = _run_sample(run, unedited, first, most_s / 2, expected, why)
        machine = run.machine()
        with _line_of_error(text):
            machine.run([_group(machine.launch, group, findings)], group_s)
        find_wrong_values(machine, expected, is_whole=False)
        findings = [*dict.fromkeys([*findings, *machine.findings.all])]
    number = _group(machine.launch, group, findings)
    limits = MOST_STEPS_BYTES, _dtypes_of(arrays)
    with _line_of_error(text):
        steps = history_of(linear, before, gpu, number, fresh, *limits, text)
    trace = _trace(machine, arrays, gpu, steps, not why, text)
    return replace(trace, findings=tuple(findings), sample=sample)


class _Rerun:
    """A program whose memory is as before for each machine that runs it."""

    def __init__(
        self,
        linear: Sequence[UOp],
        arrays: Sequence[Array],
        target: Target,
        fresh: Set[int],
        annotations: Annotations,
    ):
        self.linear, self.arrays, self.target = linear, arrays, target
        self.fresh, self.annotations = fresh, annotations
        self.memory = _memory(linear, arrays, target)
        self.before = [array.copy() for array in self.memory]

    def machine(self) -> Machine:
        """Return a machine that has run nothing."""
        self.reset()
        return Machine(
            self.linear, self.memory, self.target, self.fresh, annotations=self.annotations
        )

    def reset(self) -> None:
        """Make the memory as it was before."""
        for array, contents in zip(self.memory, self.before, strict=True):
            array[...] = contents


def _run_sample(
    run: _Rerun,
    unedited: Sequence[UOp],
    first: int,
    most_s: float,
    expected: Mapping[int, Array],
    why: str,
) -> tuple[GroupSample, list[Finding]]:
    """Run a sample of work-groups for about `most_s` seconds, the group `first` among them; return
    it with the findings, of which one is an element that these groups wrote before the edit, and
    that is left unwritten. Where they write others instead, another group may write it."""
    machine = run.machine()
    numbers = _run_for(machine, _sampled(machine.launch, first), most_s)
    find_wrong_values(machine, expected, is_whole=False)
    written = {slot: written_elements(machine, slot, right) for slot, right in expected.items()}
    count = sum(int(each.sum()) for each in written.values())
    lost = ""
    if unedited and _sizes(launch_shape(unedited)) == _sizes(machine.launch):
        run.reset()  # the memory is that of the program before the edit, too
        own = _Rerun(unedited, run.arrays, run.target, run.fresh, NO_ANNOTATIONS).machine()
        own.run(numbers)
        before = {slot: written_elements(own, slot, right) for slot, right in expected.items()}
        has_corners = set(_corners(machine.launch)) <= set(numbers)
        lost = _lost(machine, before, written, expected, has_corners)
    limit = _groups_within(run, 2 * most_s) * machine.group_items
    return GroupSample(tuple(numbers), count, why, limit, lost), machine.findings.all


def _lost(
    machine: Machine,
    before: Mapping[int, Array],
    written: Mapping[int, Array],
    expected: Mapping[int, Array],
    has_corners: bool,
) -> str:
    """Add a finding for an element that groups wrote before an edit, and no longer do; return its
    name instead where the edit may have moved it to another group: they write others now, or no
    corner of the launch is known."""
    is_moved = any((written[slot] & ~before[slot]).any() for slot in expected)
    for slot, right in expected.items():
        missing = np.flatnonzero(before[slot] & ~written[slot])
        if missing.size:
            element = int(missing[0])
            if is_moved or not has_corners:
                return f"p{slot}[{element}]"
            machine.findings.wrong(f"p{slot}", element, NO_ITEM, 0, (None, right[element]))
    return ""


def _run_for(machine: Machine, numbers: Sequence[int], seconds: float) -> list[int]:
    """Run as many of some work-groups as end in some seconds, at least one; return their ascending
    numbers. The clock decides, since a busy machine takes longer than is predicted."""
    begin, count, done = time.monotonic(), min(len(_corners(machine.launch)) + 1, len(numbers)), 0
    while True:
        machine.run(sorted(numbers[done : done + count]), MOST_TEXT_S)
        done += count
        took_s = time.monotonic() - begin
        count = min(len(numbers) - done, int(done * (seconds / took_s - 1)))
        if count < 1:
            return sorted(numbers[:done])


def _groups_within(run: _Rerun, seconds: float) -> int:
    """Return how many work-groups are predicted to run in some seconds, at least one."""
    total = math.prod(launch_shape(run.linear).grid)
    counts = range(1, total + 1)
    key = partial(emulation_s, run.linear, annotations=run.annotations)
    return max(1, bisect_right(counts, seconds, key=key))


def _sampled(launch: LaunchShape, first: int) -> list[int]:
    """Return numbers of work-groups: the first one, those at the corners of the launch, where the
    elements of an edge are, and then random ones."""
    others = np.random.default_rng(0).integers(0, math.prod(launch.grid), MOST_SAMPLED)
    return [*dict.fromkeys([first, *_corners(launch), *map(int, others)])]


def _sizes(launch: LaunchShape) -> tuple[tuple[int, ...], ...]:
    return tuple(launch.grid), tuple(launch.group)


def _corners(launch: LaunchShape) -> list[int]:
    ends = ((0, size - 1) for size in reversed(launch.grid))
    return [among_all(corner, launch.grid) for corner in product(*ends)]


@contextmanager
def _line_of_error(text: TextProgram | None) -> Iterator[None]:
    """Add to an error of the block its line in the text: of a NotEnded that of the loop."""
    try:
        yield
    except (NotEnded, EmulatorError) as error:
        lines = () if text is None else text.lines
        found = [line for line in lines if error.position in line.positions and line.number]
        if not found and isinstance(error, EmulatorError):
            number = line_at(lines, error.position)  # a step that has no line, before one that has
            found = [] if number is None else [lines[number]]
        if found and found[0].number:
            error.line = found[0].number
            where = "in the loop of" if isinstance(error, NotEnded) else "at"
            error.because += f": it is {where} line {error.line}, {found[0].text[:60]}"
        raise


def _memory(linear: Sequence[UOp], arrays: Sequence[Array], target: Target) -> list[Array]:
    return [
        array.view(dtype.numpy) if dtype.bits else array
        for array, (dtype, _) in zip(arrays, params_of(linear, target), strict=False)
    ]


def _dtypes_of(arrays: Sequence[Array]) -> dict[int, DType]:
    return {slot: dtypes.from_numpy(a.dtype) for slot, a in enumerate(arrays)}


def _trace(
    machine: Machine,
    arrays: Sequence[Array],
    target: Target,
    steps: GroupHistory | None,
    is_whole: bool = True,
    text: TextProgram | None = None,
) -> Trace:
    """Return the Trace of a run over `arrays`, whose bits the machine may have used."""
    totals = machine.totals
    lines = () if text is None else text.lines
    listed = {position for line in lines for position in line.positions}
    slow = (each for each in inefficiencies(machine) if not lines or each.position in listed)
    return Trace(
        machine.linear,
        machine.launch,
        machine.memory.counts,
        totals.executed,
        totals.divergent,
        totals.barriers,
        totals.shuffles,
        tuple(machine.findings.all),
        tuple(slow),
        {slot: arrays[slot] for slot in sorted(written_slots(machine.linear))},
        steps,
        is_whole,
        target,
        lines,
    )


def _group(launch: LaunchShape, group: bool | Sequence[int], findings: Sequence[Finding]) -> int:
    if isinstance(group, bool):
        items = [item for finding in findings[:1] for item in finding.items]
        return among_all(items[0].group, launch.grid) if items else 0
    sizes = [*reversed(launch.grid)]
    numbers = [*group, 0, 0, 0][: len(sizes)]
    fits = len(group) <= max(3, len(sizes)) and not any(group[len(sizes) :])
    if not fits or any(not 0 <= n < size for n, size in zip(numbers, sizes, strict=True)):
        grid = " x ".join(map(str, sizes)) or "1"
        what, last = f"there is no group {tuple(group)}", tuple(n - 1 for n in sizes)
        hint = f"history={(0,) * len(sizes)} to {last}, along x, y and z; or history=True"
        raise WorkbenchError(what, f"the grid is {grid}", hint if sizes else "history=True")
    return among_all(numbers, launch.grid)


class WorkItemProgram:
    """A linear program for a target, run by the emulator."""

    def __init__(self, linear: Sequence[UOp], target: Target, source: Source):
        self.linear, self.target, self.source = tuple(linear), target, source

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> WorkItemLaunch:
        """Return the kernel with its memory. Errors: as `require_room`."""
        self.require_room()
        return WorkItemLaunch(self, [*buffers])

    def require_room(self) -> None:
        """Errors: DeviceError for a program that is too large to be emulated."""
        require_time(self.linear, self.target, MOST_S)


class WorkItemLaunch:
    """A program and its memory."""

    def __init__(self, program: WorkItemProgram, buffers: list[Buffer]):
        self.program, self.buffers = program, buffers

    def __call__(self, wait: bool = True) -> None:
        """Run. Errors: WorkbenchError for a race, a read of unwritten memory and other findings."""
        program, arrays = self.program, [buffer.array for buffer in self.buffers]
        findings = emulated(program.linear, arrays, program.target).findings
        if findings:
            what = f"the kernel {program.source.name} is wrong on {program.target.device}"
            more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
            raise WorkbenchError(what, f"{findings[0]}{more}", "emulate(kernel)")

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
