"""A linear program run by the emulator: `emulated` gives the Trace of a run, and a WorkItemProgram
is the Program of a kernel for a machine that is not here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.backends.memory import Buffer
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.emulator.checks import (
    emulation_s,
    find_wrong_values,
    inefficiencies,
    params_of,
    require_fit,
    require_time,
)
from workbench.emulator.findings import Finding, among_all
from workbench.emulator.history import GroupHistory, history_of
from workbench.emulator.machine import EmulatorError, Machine, NotEnded, written_slots
from workbench.emulator.source.program import TextProgram, annotations_of
from workbench.emulator.steps import Trace
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import line_at

Array = np.ndarray[Any, Any]
NO_OUTPUTS: Mapping[int, Array] = MappingProxyType({})
MOST_S = 20.0
"""Most seconds of a launch; a longer one is refused."""
MOST_TEXT_S = 30.0
"""Most seconds of the run of a program from a text, whose loops may not end."""
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
) -> Trace:
    """Return the Trace of a run with the steps of a group, as many as a page can have. If the
    launch takes more than `most_s` seconds, only that group runs, and of the outputs only what it
    writes is compared with `expected`. `text` as in `emulated`.

    Errors: DeviceError if that group takes too long, too.
    """
    memory = _memory(linear, arrays, gpu)
    before = [array.copy() for array in memory]
    annotations = annotations_of(text)
    machine = Machine(linear, memory, gpu, fresh, annotations=annotations)
    whole_s, group_s = (math.inf, math.inf) if text is None else (most_s, MOST_TEXT_S)
    is_whole = emulation_s(linear, annotations=annotations) <= most_s
    if is_whole:
        try:
            machine.run(most_s=whole_s)
        except NotEnded:  # a loop that does not end, or a machine that is busy: one group tells
            is_whole = False
            for array, contents in zip(memory, before, strict=True):
                array[...] = contents
            machine = Machine(linear, memory, gpu, fresh, annotations=annotations)
    if not is_whole:
        require_time(linear, gpu, groups=1, annotations=annotations)
        with _line_of_error(text):
            machine.run(_group(machine.launch, group, ()), 1, group_s)
    find_wrong_values(machine, expected, is_whole)
    number = _group(machine.launch, group, machine.findings.all)
    limits = MOST_STEPS_BYTES, _dtypes_of(arrays)
    with _line_of_error(text):
        steps = history_of(linear, before, gpu, number, fresh, *limits, text)
    return _trace(machine, arrays, gpu, steps, is_whole, text)


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
