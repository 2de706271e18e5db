"""The kernels of a plan in a record: folds, times, and runs on the emulator.

Sections: Times of the kernels of a plan with the default opts; The folds of a plan's kernels;
Runs on the emulator without a request, for a pane that is shown alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from workbench.backends.device import Device
from workbench.base.dtypes import dtypes
from workbench.base.sequences import Repeat, common_prefix, repeats
from workbench.emulator.emulate import emulate_for_steps, seconds_for_steps, target_of
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz.model.decisions import draws_numbers, folded_kernels
from workbench.viz.model.phases import FORWARD, weights_title
from workbench.viz.model.words import short
from workbench.viz.record.changes import Changes
from workbench.viz.record.nodes import bounded
from workbench.viz.record.variants import cost_rows
from workbench.viz.schema.plan import PlanRepeat, PlanRun
from workbench.viz.schema.record import PageRecord

# --------------------------------------------------------------------------------------------------
# Times of the kernels of a plan with the default opts: predicted, and measured where known. Equal
# kernels share one run.


class KernelRuns:
    """The rows of `record.plan.runs`; `kernels` has the Kernel per variant."""

    def __init__(self, record: PageRecord, changes: Changes, kernels: Sequence[Kernel]):
        self._record, self._changes, self._kernels = record, changes, kernels
        # a model of equal layers has equal kernels
        self._defaults: dict[Hashable, Kernel] = {}
        self._times: dict[tuple[str, int], tuple[float, float, bool]] = {}
        """Median, spread and certainty of each measured time, by device and kernel."""

    def predict(self, speeds: Speeds | None, most: int | None = None) -> Iterator[int]:
        """Predict the times of the first `most` different kernels (None: of all) that have no
        prediction; yield the place of each."""
        info = Device[self._record.device]
        if info.is_emulator and not info.is_elsewhere:
            return  # the model is of processors and of machines with published figures
        runs = self._record.plan.runs
        firsts = [place for place, run in enumerate(runs) if run.like == place]
        for number in firsts[:most]:
            if runs[number].predicted_s is not None:
                continue
            with suppress(Exception):  # its own variant shows the error
                costs = cost_rows(self.default(number), speeds, None)
                seconds = None if costs is None else costs[1].predicted_s
                self._changes.put(("plan", "runs", number, "predicted_s"), seconds)
            yield number

    def set_time(
        self, number: int, median_s: float, spread: float, had: float | None, is_certain: bool
    ) -> None:
        """Set the time of a kernel, and of the first kernel equal to it if that has none. Equal
        kernels without a time show that of the first. If it `had` only a share of its cores, a time
        that it has stays: shares of all kernels' time are of undisturbed times alone."""
        if had is not None:
            if self._record.plan.runs[number].measured_s is None:
                self._changes.put(("plan", "runs", number, "busy_s"), median_s)
            return
        for place in {number, self._record.plan.runs[number].like}:
            earlier = self._times.get((self._record.device, place))
            if place == number or earlier is None:
                self._times[self._record.device, place] = median_s, spread, is_certain
                self._put(place, median_s, spread, is_certain)

    def _put(self, number: int, median_s: float, spread: float, is_certain: bool) -> None:
        run = "plan", "runs", number
        self._changes.put((*run, "measured_s"), median_s)
        self._changes.put((*run, "spread"), spread)
        self._changes.put((*run, "busy_s"), None)
        self._changes.put((*run, "is_certain"), is_certain)

    def show_timing(self, variant: int) -> None:
        """Use the timing of a variant with the default opts as the time of its kernel."""
        row = self._record.variants[variant]
        if row.timing is None or row.timing.emulator or row.edited:
            return
        if self._kernels[variant].ast is self.default(row.kernel).ast:
            timing = row.timing
            is_certain = not timing.doubts
            self.set_time(row.kernel, timing.median_s, timing.spread, timing.had, is_certain)

    def show_device(self) -> None:
        """Make new rows, with the times that were measured on the device of the record."""
        plain = [self._kernels[row.root] for row in self._record.kernels]
        self._changes.put(("plan", "runs"), run_rows(plain))
        for (device, number), time in self._times.items():
            if device == self._record.device:
                self._put(number, *time)

    def default(self, number: int) -> Kernel:
        """Return a kernel with the default opts, which equal kernels share."""
        number = self._record.plan.runs[number].like
        kernel = self._kernels[self._record.kernels[number].root]
        key = structure_of(kernel)
        if key not in self._defaults:
            self._defaults[key] = kernel.optimized()
        return self._defaults[key]


def run_rows(kernels: Sequence[Kernel]) -> list[PlanRun]:
    """Return a row for each kernel, without times."""
    firsts: dict[Hashable, int] = {}
    return [
        PlanRun(firsts.setdefault(structure_of(kernel), number), None, None, None)
        for number, kernel in enumerate(kernels)
    ]


def structure_of(kernel: Kernel) -> Hashable:
    """Return a key that two kernels share if they run alike."""
    return kernel.original, kernel.device, kernel.rules_off


def likeness_of(kernel: Kernel) -> Hashable:
    """Return a key that two kernels share if they are equal but for constants of their values."""
    original, *others = kernel.original, kernel.device, kernel.rules_off
    zeros = {
        node: node.like(0)
        for node in original.toposort()
        if node.op is Ops.CONST and node.dtype != dtypes.index
    }
    return original.substitute(zeros), *others


# --------------------------------------------------------------------------------------------------
# The folds of a plan's kernels: repeated kernels, and kernels of one module of the user's.
#
# The kernels of a module that run one after the other are one fold, unless it would cross a
# repeat. Two folds are disjoint, or one is in the other.

MOST_NAMED = 2
"""Most titles in the name of a sequence of kernels; further ones are counted."""
FEW_KERNELS = 4
"""Most kernels of a plan in which no module is folded."""
Parts = tuple[str, ...]
Module = tuple[int, int, str]
"""Kernels of one module: the first, the one after the last, and its path."""


def fold_rows(kernels: Sequence[Kernel]) -> list[PlanRepeat]:
    """Return the folds of a plan, outer ones first: sequences of kernels that are repeated, equal
    but for constants of their values, and modules with several kernels. A repeat whose rounds
    would cut a module begins later; if that does not help, it is left out. The kernels that draw
    weights are one fold, with none in it."""
    weights = folded_kernels(kernels)
    count = len(weights) if weights == [*range(len(weights))] else 0
    first = [PlanRepeat(0, count, 1, weights_title(count), "")] if count else []
    others = [replace(row, first=row.first + count) for row in _fold_rows(kernels[count:])]
    return [*first, *others]


def _fold_rows(kernels: Sequence[Kernel]) -> list[PlanRepeat]:
    titles = [bounded(kernel.title or kernel.name) for kernel in kernels]
    paths = [_parts(kernel) for kernel in kernels]
    modules = _modules(paths) if len(kernels) > FEW_KERNELS else []
    alike = [likeness_of(kernel) for kernel in kernels]
    random = [draws_numbers(kernel.original) for kernel in kernels]
    aligned = [_aligned(repeat, alike, modules) for repeat in repeats(alike)]
    all_repeats = _nested(filter(None, aligned))
    rows = [
        PlanRepeat(
            repeat.first,
            repeat.size,
            repeat.times,
            _title(repeat, titles, random),
            _path(common_prefix(*paths[repeat.first : repeat.end])),
        )
        for repeat in all_repeats
    ]
    rows += [
        PlanRepeat(first, end - first, 1, path, path)
        for first, end, path in modules
        if not any(_crosses(first, end, repeat) for repeat in all_repeats)
    ]
    return sorted(rows, key=lambda row: (row.first, -row.size * row.times, -row.times))


def _aligned(repeat: Repeat, alike: Sequence[object], modules: Sequence[Module]) -> Repeat | None:
    """Return a repeat whose rounds cut no module, moved to a later start if necessary; None where
    fewer than two rounds are left."""
    size = repeat.size
    for first in range(repeat.first, repeat.first + size):
        first_round, times = alike[first : first + size], 1
        while alike[first + times * size : first + (times + 1) * size] == first_round:
            times += 1
        moved = Repeat(first, size, times)
        if times > 1 and not any(_cuts(begin, end, moved) for begin, end, _ in modules):
            return moved
    return None


def _cuts(begin: int, end: int, repeat: Repeat) -> bool:
    """Whether a module overlaps a repeat, but neither contains it, nor is in one round, nor
    consists of whole rounds."""
    if end <= repeat.first or repeat.end <= begin:
        return False
    if begin <= repeat.first and repeat.end <= end:
        return False
    if begin < repeat.first or repeat.end < end:
        return True
    first_round = (begin - repeat.first) // repeat.size
    last_round = (end - 1 - repeat.first) // repeat.size
    if first_round == last_round:
        return False
    return bool((begin - repeat.first) % repeat.size or (end - repeat.first) % repeat.size)


def _nested(some: Iterable[Repeat]) -> list[Repeat]:
    listed: list[Repeat] = []
    for repeat in sorted(set(some), key=lambda r: (-r.size * r.times, r.first)):
        if not any(_crosses(repeat.first, repeat.end, other) for other in listed):
            listed.append(repeat)
    return listed


def _title(repeat: Repeat, titles: Sequence[str], random: Sequence[bool]) -> str:
    """Return the name of a repeat. Kernels that only draw random numbers are not named, unless all
    do."""
    first_round = range(repeat.first, repeat.first + repeat.size)
    computing = [place for place in first_round if not random[place]]
    return repeat_title([titles[place] for place in computing or first_round])


def repeat_title(titles: Sequence[str]) -> str:
    """Return the name of a sequence of kernels: the first titles, and how many others."""
    named = list(dict.fromkeys(titles))
    listed = ", ".join(short(title) for title in named[:MOST_NAMED])
    more = len(named) - MOST_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def _parts(kernel: Kernel) -> Parts:
    """Return a kernel's phases, then the parts of its module's path; () without a module."""
    if not kernel.modules:
        return ()
    path = kernel.modules[0].path
    return (", ".join(kernel.phases), *bounded(path).split(".")) if path else ()


def _path(parts: Parts) -> str:
    """Return parts as a path, followed by the phases if they are not the forward alone."""
    path = ".".join(parts[1:])
    return f"{path}, {parts[0]}" if path and parts[0] not in ("", FORWARD) else path


def _modules(paths: Sequence[Parts]) -> list[Module]:
    """Return (first, end, path) of each run of several kernels of one module. Of modules with the
    same kernels the innermost counts; a module with all kernels is left out."""
    folds = {}
    for depth in range(2, max(map(len, paths)) + 1):
        for first, end in _runs([path[:depth] for path in paths]):
            if end - first > 1 and len(paths[first]) >= depth:
                folds[first, end] = _path(paths[first][:depth])
    folds.pop((0, len(paths)), None)
    return [(first, end, path) for (first, end), path in folds.items()]


def _runs(items: Sequence[Parts]) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of each run of equal items."""
    first = 0
    for place in range(1, len(items) + 1):
        if place == len(items) or items[place] != items[first]:
            yield first, place
            first = place


def _crosses(first: int, end: int, repeat: Repeat) -> bool:
    """Whether a fold equals a repeat, or overlaps it, but neither contains it nor is in one
    round."""
    if end <= repeat.first or repeat.end <= first:
        return False
    if (first, end) == (repeat.first, repeat.end):
        return True
    if first <= repeat.first and repeat.end <= end:
        return False
    place = (first - repeat.first) // repeat.size
    begin = repeat.first + place * repeat.size
    return not (repeat.first <= first and end <= begin + repeat.size)


# --------------------------------------------------------------------------------------------------
# Runs on the emulator without a request, for a pane that is shown alone.

MOST_KERNELS = 4
"""Most kernels that are run."""
MOST_S = 0.5
"""Most seconds of a run. Of a kernel that takes longer one group runs, if that takes less."""


def unasked_run(kernel: Kernel) -> Trace | None:
    """Return the run of a kernel on the emulator, with the steps of a group; None where one group
    takes more than MOST_S.

    Errors: WorkbenchError where its data are not here; DeviceError where its device has too little
    memory.
    """
    if seconds_for_steps(kernel) > MOST_S:
        return None
    return emulate_for_steps(kernel, target_of(kernel), most_s=MOST_S)
