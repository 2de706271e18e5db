"""The performance of a kernel: its cost by its loop nest, and its time, alone and beside others.
`Kernel`'s methods call these functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.cost.kernel_cost import RunCost, float_kind
from workbench.cost.predicted_cost import bottleneck_of, predicted_cost
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.compiled import compiled_registers
from workbench.kernel.run import computing
from workbench.kernel.runnable import RunnableKernel
from workbench.measure.kernel_time import Calibration, Timing, calibration, measure_kernel
from workbench.measure.side_by_side import SideBySide, side_by_side
from workbench.measure.speeds import Speeds, beaten, speeds

Run = Callable[[], object]


def costs_target(device: str) -> Target:
    """Return the target of costs: the device's own if it is this machine's processor, or has
    published figures; for another device's kernels that of this machine's processor, whose speeds
    are measured."""
    info = Device[device].source_device
    is_own = info.is_processor or info.has_hardware
    return (info if is_own else Device.processor).target


def cost_of(
    kernel: RunnableKernel, device: str, machine: Speeds | None, registers: int | None = None
) -> RunCost:
    """Return the cost of a run on a device, on a machine of these speeds, or for one that has them
    by its published figures; `registers` of a work-item are those that a compiler said: by default
    the one for the device, if it is here."""
    target = costs_target(device)
    with without(kernel.rules_off):
        if registers is None:
            registers = compiled_registers(kernel.ast, device)
        own = None if Device[device].source_device.has_hardware else machine
        return predicted_cost(kernel.ast, target, own, kernel.original, registers)


def timed(kernel: RunnableKernel, device: str, budget_s: float, cold: bool) -> Timing:
    """Return the time of a kernel; on a device that is not an emulator, with its bottleneck.

    Errors: DeviceError for a machine that is not here.
    """
    require_times(device)
    with unobserved():
        built, run = kernel.built(device), kernel.launch(device)
        beside = calibration_beside(device, built.source.launch.threads)
        timing = measure_kernel(run, device, kernel.estimates, budget_s, cold, beside)
        key = kernel.ast, kernel.rules_off, device
        medians = kernel.data.medians.setdefault(key, [])
        timing = replace(timing, on_random_inputs=not kernel.has_data, earlier_s=tuple(medians))
        medians.append(timing.median_s)
        if not Device[device].is_processor:
            return timing
        kind, threads = float_kind(kernel.original), built.source.launch.threads
        speed = timing.gflops * 1e9
        try:
            machine = beaten(speeds(), kind, threads, speed)
            waits = bottleneck_of(
                cost_of(kernel, device, machine), costs_target(device), timing.min_s
            )
        except WorkbenchError:  # the time is useful without it
            return timing
        share = machine.share(kind, threads, speed)
        return replace(timing, fraction_of_peak=share, bound=str(waits))


def calibration_beside(device: str, threads: int) -> Calibration | None:
    """Return a calibration for a kernel on a device; None on a device that is not this machine's
    processor, and where that cannot be measured."""
    if not Device[device].is_processor:
        return None
    try:
        return calibration(speeds(), threads)
    except WorkbenchError:  # the time is useful without it
        return None


def require_times(device: str) -> None:
    """Errors: DeviceError for a machine that is not here, whose times are predicted."""
    info = Device[device]
    if isinstance(info, Elsewhere):
        raise info.no_times()


def beside(
    kernel: RunnableKernel, others: Mapping[str, RunnableKernel | Run], device: str, budget_s: float
) -> SideBySide:
    """Return a kernel's times ("this") beside those of other kernels and functions.

    Errors: WorkbenchError for a value that is neither; DeviceError for a machine that is not here.
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
