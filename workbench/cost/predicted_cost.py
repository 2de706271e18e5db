"""The predicted cost of a kernel on any machine: this one by its measured speeds, others by their
published figures.

Sections: The predicted cost of a kernel on any machine; The predicted speed-up of an opt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.interrupts import free_lock
from workbench.base.target import Hardware, Target
from workbench.base.trace import unobserved
from workbench.cost.bottleneck import bottleneck, sums_needed
from workbench.cost.core_time import LoopWork
from workbench.cost.gpu.gpu_cost import (
    LEAST_DIFFERENCE,
    GpuCost,
    gpu_bottleneck,
    gpu_change,
    gpu_cost,
)
from workbench.cost.kernel_cost import Bottleneck, Cost, RunCost, cost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.measure.speeds import Rate, Speeds
from workbench.measure.timing import bytes_text, number_text

# --------------------------------------------------------------------------------------------------
# The predicted cost of a kernel on any machine.

KEPT_COSTS = 512
"""The number of memoised costs, the last computed ones: a page requests the same kernels again."""
LEVEL_STEP = 2.0
"""How much slower each cache is than the one before, if its speed is not published."""
_lock = free_lock()
Key = tuple[UOp, Target, UOp, RulesInForce, int | None]
_costs: dict[Key, tuple[Speeds | None, RunCost]] = {}


def predicted_cost(
    kernel: UOp,
    target: Target,
    speeds: Speeds | None = None,
    original: UOp | None = None,
    registers: int | None = None,
) -> RunCost:
    """Return the cost of a kernel (a SINK) for a target, memoised for equal kernels.

    `speeds` are those of this machine; another machine has published figures instead. `original` is
    the kernel without opts: its operations and bytes are those of the algorithm. `registers` is the
    number for a work-item that a compiler reported, if it did. Errors: CompileError if the kernel
    cannot be lowered; DeviceError for a work-group that is too large; WorkbenchError for source
    text, whose loops are unknown, and if neither speeds nor published figures are known.
    """
    if kernel.code is not None:
        what = f"the kernel {kernel.arg.name} has no predicted cost"
        because = f"it is written in {kernel.code.language}, and its loops are not known"
        raise WorkbenchError(what, because, ".time() measures it")
    plain = kernel if original is None else original
    key = kernel, target, plain, rules_in_force(), registers
    memoised = _costs.get(key)
    if memoised is not None and memoised[0] == speeds:
        return memoised[1]
    result = _cost(kernel, target, speeds, plain, registers)
    if key[3] == rules_in_force():  # otherwise the rules have changed meanwhile
        with _lock:
            _costs.pop(key, None)
            _costs[key] = speeds, result
            while len(_costs) > KEPT_COSTS:
                del _costs[next(iter(_costs))]
    return result


def bottleneck_of(cost: RunCost, target: Target, measured_s: float | None = None) -> Bottleneck:
    """Return the bottleneck of a kernel of this cost. `measured_s` is the measured time of a run;
    it is not used for a GPU."""
    if isinstance(cost, GpuCost):
        return gpu_bottleneck(cost)
    assert isinstance(cost, Cost)
    return bottleneck(cost, target, measured_s)


def _cost(
    kernel: UOp, target: Target, speeds: Speeds | None, original: UOp, registers: int | None
) -> RunCost:
    hardware = target.hardware
    if hardware is not None and target.has_groups:
        return gpu_cost(kernel, target, original, registers)
    machine = speeds if hardware is None else published_speeds(hardware, target)
    if machine is None or target.has_groups:
        what = f"there is no predicted cost for {target.device}"
        raise WorkbenchError(what, "its figures are not known", "a machine that has them")
    return cost(kernel, target, machine, original)


def published_speeds(hardware: Hardware, target: Target) -> Speeds:
    """Return the speeds of another processor by its published figures. A cache whose speed is not
    published is LEVEL_STEP times slower than the one before, but not slower than memory."""
    units, clock = hardware.units, hardware.clock_hz
    peak = {
        kind: Rate(hardware.peak(dtype) / units, hardware.peak(dtype))
        for kind, dtype in (("f32", "float32"), ("f64", "float64"))
    }
    dram = hardware.bandwidth("DRAM")
    speed = hardware.bandwidth("L1") or 32 * clock * units
    read: dict[str, Rate] = {}
    for level, _ in target.caches:
        speed = hardware.bandwidth(level) or speed
        read[level] = Rate(speed / units, speed)
        speed = max(dram, speed / LEVEL_STEP)
    read["memory"] = Rate(min(dram, 4 * dram / units), dram)
    sizes = [4, *(n for n in (16, 32, 64) if n <= target.vector_bytes)]
    each = {str(n): 1 / (clock * target.starts(n)) for n in sizes}
    return Speeds(
        peak, read, read, target.fma_cycles / clock, each["4"], 1e-6, hardware.launch_s,
        cycle_s=1 / clock, each_s=each,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# The predicted speed-up of an opt: the factor, and the reason.


class PredictedSpeedup(NamedTuple):
    """The prediction for opts. `ratio` is how many times as fast the kernel is with them (2.0: half
    the time); None if one is not legal or they have no predicted cost. `why` is the number that
    changes most, or ""."""

    opts: tuple[Opt, ...]
    ratio: float | None
    why: str


def predicted_speedups(
    kernel: UOp, lists: Iterable[tuple[Opt, ...]], target: Target, speeds: Speeds | None
) -> Iterator[PredictedSpeedup]:
    """Yield the prediction for each list of opts, in their order, on a machine of these speeds
    (None: by its published figures). Each takes some milliseconds, so a caller may stop early.

    Errors: those of `predicted_cost` for the kernel itself.
    """
    now = predicted_cost(kernel, target, speeds)
    for opts in lists:
        after = kernel
        try:
            with unobserved():
                for opt in opts:
                    after, _ = apply_opt(after, opt, target)
            then = predicted_cost(after, target, speeds)
        except WorkbenchError:
            yield PredictedSpeedup(opts, None, "")
            continue
        ratio = now.predicted_s / then.predicted_s
        yield PredictedSpeedup(opts, ratio, _change(now, then, target))


def _change(now: RunCost, then: RunCost, target: Target) -> str:
    if isinstance(now, GpuCost) and isinstance(then, GpuCost):
        return gpu_change(now, then)
    assert isinstance(now, Cost) and isinstance(then, Cost)
    return change(now, then, target)


def change(now: Cost, then: Cost, target: Target) -> str:
    """Return a number that changes from one cost to another: the threads, else a number of the
    slowest part of `now`, else one of the slowest part of `then`. "" if none changes, or the times
    are nearly equal."""
    if then.threads != now.threads:
        return f"threads: {now.threads} -> {then.threads}"
    if abs(now.predicted_s / then.predicted_s - 1) < LEAST_DIFFERENCE:
        return ""
    for part in (now.slowest, then.slowest):
        before, after = now.seconds[part], then.seconds[part]
        if abs(before - after) < LEAST_DIFFERENCE * max(before, after):
            continue
        if part != "core":
            return f"from {part}: {_traffic_change(part, now, then)}"
        loop = now.work.hottest()[0]
        same = then.work.find(loop.axis) or then.work.hottest()[0]
        return _in_core(loop, same, then, target)
    return ""


def _traffic_change(part: str, now: Cost, then: Cost) -> str:
    """Return the change of the bytes from a level; of their rate, if as many come as before."""
    moved = [bytes_text(c.bytes_from[part]) for c in (now, then)]
    if moved[0] != moved[1]:
        return " -> ".join(moved)
    rates = [number_text(c.bytes_from[part] / c.seconds[part] / 1e9) for c in (now, then)]
    return f"{moved[0]} at {rates[0]} -> {rates[1]} GB/s"


def _in_core(now: LoopWork, then: LoopWork, cost: Cost, target: Target) -> str:
    registers = target.vector_registers
    if then.live > registers and then.live > now.live:
        return f"{then.live} values at once, {registers} registers"
    widths = [loop.width for loop in (now, then)]
    if widths[0] != widths[1]:
        return f"elements per instruction: {widths[0]} -> {widths[1]}"
    if now.sums != then.sums and "chain" in (now.limit, then.limit):
        if not then.sums:
            return "accumulators in memory: none waits for itself"
        needed = sums_needed(then, cost.speeds)
        return f"independent accumulators: {now.sums} -> {then.sums}, needs {needed}"
    rates = [loop.loads / max(1, loop.arithmetic) for loop in (now, then)]
    if abs(rates[0] - rates[1]) > LEAST_DIFFERENCE:
        return f"loads per instruction: {rates[0]:.2g} -> {rates[1]:.2g}"
    return ""
