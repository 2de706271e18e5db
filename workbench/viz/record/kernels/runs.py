"""Times of the kernels of a plan with the default opts: predicted, and measured where known. Equal
kernels share one run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress

from workbench.backends.device import Device
from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz.record.changes import Changes
from workbench.viz.record.variants import cost_rows
from workbench.viz.schema.plan import PlanRun
from workbench.viz.schema.record import PageRecord


class KernelRuns:
    """The rows of `record.plan.runs`; `kernels` has the Kernel per variant."""

    def __init__(self, record: PageRecord, changes: Changes, kernels: Sequence[Kernel]):
        self._record, self._changes, self._kernels = record, changes, kernels
        # a model of equal layers has equal kernels
        self._defaults: dict[Hashable, Kernel] = {}
        self._times: dict[tuple[str, int], tuple[float, float]] = {}
        """Median and spread of what was measured, by device and kernel."""

    def predict(self, speeds: Speeds | None, most: int | None = None) -> Iterator[int]:
        """Add the predicted time of kernels, of the first `most` that differ; yield the place of
        each."""
        info = Device[self._record.device]
        if info.is_emulator and not info.is_elsewhere:
            return  # its time is not a processor's
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

    def set_time(self, number: int, median_s: float, spread: float) -> None:
        """Set the time of a kernel. Those equal to it share it, until they have one of their
        own."""
        for place in {number, self._record.plan.runs[number].like}:
            earlier = self._times.get((self._record.device, place))
            if place == number or earlier is None:
                self._times[self._record.device, place] = median_s, spread
                self._put(place, median_s, spread)

    def _put(self, number: int, median_s: float, spread: float) -> None:
        run = "plan", "runs", number
        self._changes.put((*run, "measured_s"), median_s)
        self._changes.put((*run, "spread"), spread)

    def show_timing(self, variant: int) -> None:
        """Where a variant is a kernel with the default opts, let the kernel have its time."""
        row = self._record.variants[variant]
        if row.timing is None or row.timing.emulator or row.edited:
            return
        if self._kernels[variant].ast is self.default(row.kernel).ast:
            self.set_time(row.kernel, row.timing.median_s, row.timing.spread)

    def show_device(self) -> None:
        """Let each kernel have the time that was measured on the device of the record, and none of
        another device."""
        plain = [self._kernels[row.root] for row in self._record.kernels]
        self._changes.put(("plan", "runs"), run_rows(plain))
        for (device, number), time in self._times.items():
            if device == self._record.device:
                self._put(number, *time)

    def default(self, number: int) -> Kernel:
        """Return a kernel with the default opts, which equal kernels share."""
        number = self._record.plan.runs[number].like
        kernel = self._kernels[self._record.kernels[number].root]
        same = structure_of(kernel)
        if same not in self._defaults:
            self._defaults[same] = kernel.optimized()
        return self._defaults[same]


def run_rows(kernels: Sequence[Kernel]) -> list[PlanRun]:
    """Return a row for each kernel, without times."""
    firsts: dict[Hashable, int] = {}
    return [
        PlanRun(firsts.setdefault(structure_of(kernel), number), None, None, None)
        for number, kernel in enumerate(kernels)
    ]


def structure_of(kernel: Kernel) -> Hashable:
    """Return what two kernels must share to run alike."""
    return kernel.original, kernel.device, kernel.rules_off


def likeness_of(kernel: Kernel) -> Hashable:
    """Return what two kernels share that compute alike: all but constants among their values."""
    original, *others = kernel.original, kernel.device, kernel.rules_off
    zeros = {
        node: node.like(0)
        for node in original.toposort()
        if node.op is Ops.CONST and node.dtype != dtypes.index
    }
    return original.substitute(zeros), *others
