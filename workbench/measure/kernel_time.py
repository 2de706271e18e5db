"""The time of a kernel, its spread, and its share of this machine's peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.backends.device import Device
from workbench.base.display import Printed
from workbench.base.words import plural
from workbench.ir.nest.estimates import Estimates
from workbench.measure import timing
from workbench.measure.calibration import Calibration, doubts
from workbench.measure.cold_cache import measure_cold
from workbench.measure.units import number_text, percent_text


@dataclass(frozen=True, slots=True, repr=False)
class Timing(Printed):
    """The time of one run. `samples_s` are seconds per run; `fraction_of_peak` is the share of the
    peak of as many threads: of the fastest multiply-adds that were measured on this machine, in
    this session or before (None on an emulator, and without floats); `cold_s` is the median with
    cold caches (None: not measured), `cold_spread` its spread as a share of it; `bound` is the
    predicted bottleneck ("": unknown). The times of an emulator say nothing about the kernel;
    `on_random_inputs`, because its expression was loaded without its data. `busy` is how many
    times as long a loop of known length took beside the samples as on this machine at rest (None:
    unknown, or it ran on another device). `earlier_s` are the medians of earlier calls for the same
    kernel: one call does not see how much a machine changes between two."""

    device: str
    median_s: float
    min_s: float
    samples_s: tuple[float, ...]
    gflops: float
    gbytes_per_s: float
    fraction_of_peak: float | None
    cold_s: float | None = None
    bound: str = ""
    is_emulator: bool = False
    on_random_inputs: bool = False
    cold_spread: float | None = None
    busy: float | None = None
    earlier_s: tuple[float, ...] = ()

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        return timing.Samples(self.samples_s).spread_s / self.median_s

    def __str__(self) -> str:
        peak = (
            ""
            if self.fraction_of_peak is None
            else f", {percent_text(self.fraction_of_peak)} of peak"
        )
        emulated = "   EMULATOR" if self.is_emulator else ""
        emulated += ", on random inputs" if self.on_random_inputs else ""
        cold = "" if self.cold_s is None else f", cold {seconds_text(self.cold_s)}"
        if self.cold_spread is not None:
            cold += f" ± {self.cold_spread:.1%}"
        bound = f"\nbound by {self.bound}" if self.bound else ""
        sure = doubts(self.busy, self.samples_s) + over_calls(self.median_s, self.earlier_s)
        doubt = "".join(f"\n{words}" for words in sure)
        count = len(self.samples_s)
        spread = f" ± {self.spread:.1%}" if count > 1 else ""
        return (
            f"{seconds_text(self.median_s)}{spread} "
            f"(least {seconds_text(self.min_s)}, {plural(count, 'sample')}){cold}: "
            f"{number_text(self.gflops)} GFLOP/s{peak}, {number_text(self.gbytes_per_s)} GB/s"
            f"{emulated}{doubt}{bound}"
        )


def over_calls(median_s: float, earlier_s: Sequence[float]) -> list[str]:
    """Return the range of the medians of several calls, in words; nothing of one call."""
    if not earlier_s:
        return []
    medians = sorted((*earlier_s, median_s))
    ends = f"{seconds_text(medians[0])} to {seconds_text(medians[-1])}"
    return [f"{len(medians)} calls gave {ends}"]


def seconds_text(seconds: float) -> str:
    """Return a time in the unit that suits it: "12 µs", "3.4 ms", "2.1 s"."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def measure_kernel(
    run: Callable[[], object],
    device: str,
    estimates: Estimates,
    budget_s: float,
    cold: bool = False,
    beside: Calibration | None = None,
) -> Timing:
    """Return the Timing of `run`, one launch of a kernel with these estimates; a sample of the
    calibration is taken beside each of its own."""
    before = beside.take if beside else lambda: None
    samples = timing.measure(run, budget_s=budget_s, before=before)
    flushed = measure_cold({"run": run})["run"] if cold else None
    return Timing(
        device, samples.median_s, samples.min_s, samples.samples_s,
        estimates.flops / samples.median_s / 1e9, estimates.bytes / samples.median_s / 1e9,
        None, flushed.median_s if flushed else None,
        is_emulator=Device[device].is_emulator,
        cold_spread=flushed.spread if flushed else None,
        busy=beside.busy if beside else None,
    )  # fmt: skip
