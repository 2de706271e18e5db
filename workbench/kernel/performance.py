"""The performance of a kernel: its predicted cost, its time, and comparisons with other kernels.
`Kernel`'s methods call these functions.

Sections: The performance of a kernel; Two variants of a kernel side by side.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.check.answer import compare, reduce_steps
from workbench.cost.kernel_cost import RunCost, float_kind
from workbench.cost.predicted_cost import bottleneck_of, predicted_cost
from workbench.ir.nest.estimates import Counts
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.compiled import compiled_registers
from workbench.kernel.run import computing
from workbench.kernel.runnable import RunnableKernel
from workbench.measure.kernel_time import (
    Calibration,
    Timing,
    calibration,
    least_seconds,
    measure_kernel,
)
from workbench.measure.side_by_side import SideBySide, side_by_side
from workbench.measure.speeds import Speeds, speeds, with_peak

# --------------------------------------------------------------------------------------------------
# The performance of a kernel.

Run = Callable[[], object]


def costs_target(device: str) -> Target:
    """Return the target of costs: the device's own if it is this machine's processor or has
    published figures; else the target of this machine's processor, whose speeds are measured."""
    info = Device[device].source_device
    is_own = info.is_processor or info.has_hardware
    return (info if is_own else Device.processor).target


def cost_of(
    kernel: RunnableKernel, device: str, machine: Speeds | None, registers: int | None = None
) -> RunCost:
    """Return the cost of a run on a device: by its published figures if it has them, else with the
    speeds `machine`. `registers` of a work-item are those that a compiler reported; None: the
    compiler for the device reports them, if it is here."""
    target = costs_target(device)
    with without(kernel.rules_off):
        if registers is None:
            registers = compiled_registers(kernel.ast, device)
        own = None if Device[device].source_device.has_hardware else machine
        return predicted_cost(kernel.ast, target, own, kernel.original, registers)


def timed(kernel: RunnableKernel, device: str, budget_s: float, cold: bool) -> Timing:
    """Return the time of a kernel; on this machine's processor with its bottleneck, and its share
    of the machine's peak, if the speeds can be measured.

    Errors: DeviceError for a machine that is not here.
    """
    require_times(device)
    with unobserved():
        built, run = kernel.built(device), kernel.launch(device)
        beside = calibration_beside(device, built.source.launch.threads)
        kind, threads = float_kind(kernel.original), built.source.launch.threads
        least_s = least_seconds(device, kind, threads, kernel.estimates)
        timing = measure_kernel(run, device, kernel.estimates, budget_s, cold, beside, least_s)
        key = kernel.ast, kernel.rules_off, device
        medians = kernel.data.medians.setdefault(key, [])
        timing = replace(timing, on_random_inputs=not kernel.has_data, earlier_s=tuple(medians))
        if timing.had is None:
            medians.append(timing.median_s)
        if not Device[device].is_processor:
            return timing
        # a disturbed time explains nothing, and has no share
        speed = timing.gflops * 1e9 if timing.had is None else 0.0
        measured_s = timing.min_s if timing.had is None else None
        try:
            machine = with_peak(speeds(), kind, threads, speed)
            cost = cost_of(kernel, device, machine)
            waits = bottleneck_of(cost, costs_target(device), measured_s)
        except WorkbenchError:  # the time is useful without it
            return timing
        share = machine.share(kind, threads, speed)
        return replace(timing, fraction_of_peak=share, bound=str(waits))


def calibration_beside(device: str, threads: int) -> Calibration | None:
    """Return a calibration for a kernel on a device; None if the device is not this machine's
    processor, or if it cannot be measured."""
    if not Device[device].is_processor:
        return None
    try:
        return calibration(speeds(), threads)
    except WorkbenchError:  # the time is useful without it
        return None


def require_times(device: str) -> None:
    """Errors: DeviceError for a machine that is not here: its times are only predicted."""
    info = Device[device]
    if isinstance(info, Elsewhere):
        raise info.no_times()


def with_peers(
    kernel: RunnableKernel, others: Mapping[str, RunnableKernel | Run], device: str, budget_s: float
) -> SideBySide:
    """Return a kernel's times ("this") beside those of other kernels and functions.

    Errors: WorkbenchError for a value that is neither, and for a name that is no text or "this";
    DeviceError for a machine that is not here.
    """
    require_times(device)
    hint = _comparison(kernel)
    if not isinstance(others, Mapping):
        because = f"{type(others).__name__} is not a dict from names to runs"
        raise WorkbenchError("cannot compare times", because, hint)
    for name, other in others.items():
        if not isinstance(name, str) or name == "this":
            because = f"a row needs a name, not {name!r:.40}"
            if name == "this":
                because = 'the row "this" is the kernel\'s own'
            raise WorkbenchError("cannot compare times", because, hint)
        if not callable(other) and not isinstance(other, type(kernel)):
            because = f"{name!r:.40} is a {type(other).__name__}, not a Kernel or a function"
            raise WorkbenchError("cannot compare times", because, hint)
    runs: dict[str, Run] = {"this": kernel.launch(device)}
    for name, other in others.items():
        runs[name] = computing(name, other) if callable(other) else other.launch(device)
    return side_by_side(runs, budget_s)


def _comparison(kernel: RunnableKernel) -> str:
    """Return an example of a comparison, with the user's names of what the kernel reads."""
    written = kernel.original.outputs
    names = [n for slot, n in enumerate(kernel.names) if n and slot not in written]
    names = [name for name in dict.fromkeys(names) if name.isidentifier()]
    arrays = ", ".join(f"{name}={name}.numpy()" for name in names)
    run = f"lambda {arrays}: f({', '.join(names)})" if names else "lambda: f()"
    return f'k.compare_times({{"auto": k.optimized(), "numpy": {run}}})'


# --------------------------------------------------------------------------------------------------
# Two variants of a kernel side by side: opts, counts, source, answers and, on request, times.

MOST_LINES = 40
"""The maximal number of lines of the difference that are printed."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Printed):
    """The differences of two kernels, in pairs: this one, the other. `difference` is the unified
    diff of their sources, "" if these are equal. `error` is the greatest difference of their
    answers; they are `equal` if it is within `tolerance` (None if the two compute different
    things). `times` were measured in turns: "this" and "other"."""

    device: str
    opts: tuple[str, str]
    counts: tuple[Counts, Counts]
    difference: str
    equal: bool | None
    error: float
    tolerance: float
    times: SideBySide | None = None

    def __str__(self) -> str:
        rows = [("opts", *self.opts)]
        rows += [
            (f.name.replace("_", " "), f"{one:,}", f"{other:,}")
            for f in fields(Counts)
            if (one := getattr(self.counts[0], f.name)) + (other := getattr(self.counts[1], f.name))
        ]
        widths = [max(len(r[i]) for r in rows) for i in range(2)]
        lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]
        lines += [] if self.times is None else [str(self.times)]
        lines.append(self._answers())
        diff_lines = self.difference.split("\n")
        more = len(diff_lines) - MOST_LINES
        lines += diff_lines[:MOST_LINES] if self.difference else ["the sources are equal"]
        return "\n".join([*lines, f"and {more:,} lines more"] if more > 0 else lines)

    def _answers(self) -> str:
        if self.equal is None:
            return "answers: these are different computations"
        verdict = "equal" if self.equal else "DIFFERENT"
        numbers = f"greatest difference {self.error:.3g}, tolerance {self.tolerance:.3g}"
        return f"answers: {verdict} ({numbers})"


def compared(
    one: RunnableKernel, other: RunnableKernel, device: str, budget_s: float = 0.0
) -> Comparison:
    """Return the differences of two kernels on a device; if `budget_s` is not 0, with times that
    were measured for so many seconds. Errors: WorkbenchError if `other` is not a Kernel."""
    if not isinstance(other, type(one)):
        because = f"{type(other).__name__} is not a Kernel"
        raise WorkbenchError("cannot compare", because, "k.compare(k.optimized())")
    with unobserved():
        programs = one.compile(device), other.compile(device)
    sources = [c.source.splitlines() for c in programs]
    unified = difflib.unified_diff(sources[0], sources[1], "this", "other", lineterm="", n=2)
    error, tolerance, equal = answers(one, other, (device, device))
    times = with_peers(one, {"other": other}, device, budget_s) if budget_s > 0 else None
    return Comparison(
        device, (_opts(one), _opts(other)), (programs[0].counts, programs[1].counts),
        "\n".join(unified), equal, error, tolerance, times,
    )  # fmt: skip


def _opts(kernel: RunnableKernel) -> str:
    words = [str(o) for o in kernel.applied_opts]
    words += [f"without {name}" for name in kernel.rules_off]
    return ", ".join(words) or "none"


def answers(
    one: RunnableKernel, other: RunnableKernel, devices: tuple[str, str]
) -> tuple[float, float, bool | None]:
    """Return the greatest difference of the answers of two kernels, each run on its device; the
    tolerance; and whether it is within (None: they compute different things, or on different
    data). A kernel without data of its own, such as a saved one, gets that of the other."""
    if one.original is not other.original:
        return 0.0, 0.0, None
    if not other.has_data:
        other = replace(other, data=one.data.for_device(other.device))
    elif not one.has_data:
        one = replace(one, data=other.data.for_device(one.device))
    elif not _reads_equal_data(one, other):
        return 0.0, 0.0, None
    error, tolerance = 0.0, 0.0
    steps = reduce_steps(one.original)
    for actual, expected in zip(other.run(devices[1]), one.run(devices[0]), strict=True):
        exact = expected.dtype.kind in "iub"
        wide = expected if exact else expected.astype(np.float64)
        difference, limit = compare(actual, wide, steps)
        error, tolerance = max(error, difference), max(tolerance, 2 * limit)
    if error > tolerance:
        # cancellation may have cost both much: use the tolerances of their own checks
        results = one.check(devices[0]), other.check(devices[1])
        tolerance = max(tolerance, sum(result.tolerance for result in results))
        return error, tolerance, all(results)
    return error, tolerance, True


def _reads_equal_data(one: RunnableKernel, other: RunnableKernel) -> bool:
    """Whether the inputs of two kernels of one computation are equal, element by element."""
    if one.data.for_device("") == other.data.for_device(""):
        return True
    written = one.original.outputs
    pairs = zip(*(k.data.buffers(k.original, k.device) for k in (one, other)), strict=True)
    return all(
        a.dtype == b.dtype
        and np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=a.dtype.is_float)
        for slot, (a, b) in enumerate(pairs)
        if slot not in written
    )
