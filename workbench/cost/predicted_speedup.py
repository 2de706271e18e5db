"""The predicted speed-up of an opt: the factor, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.cost.bottleneck import sums_needed
from workbench.cost.core_time import LoopWork
from workbench.cost.gpu.gpu_bottleneck import gpu_change
from workbench.cost.gpu.gpu_cost import GpuCost
from workbench.cost.kernel_cost import Cost
from workbench.cost.predicted_cost import predicted_cost
from workbench.cost.run_cost import RunCost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt
from workbench.measure.speeds import Speeds
from workbench.measure.units import bytes_text

SAME = 0.02
"""A smaller relative difference counts as none."""


class PredictedSpeedup(NamedTuple):
    """The prediction for an opt. `ratio`: how many times as fast, so that 2.0 is half the time;
    None where the result cannot be lowered. `why`: the number that changes most; "" for none."""

    opt: Opt
    ratio: float | None
    why: str


def predicted_speedups(
    kernel: UOp, opts: Iterable[Opt], target: Target, speeds: Speeds | None
) -> Iterator[PredictedSpeedup]:
    """Yield the prediction for each opt on a machine of these speeds (None: of its published
    figures), in the order of `opts`. Each takes some milliseconds, so a caller may stop early.

    Errors: CompileError where the kernel itself cannot be lowered.
    """
    now = predicted_cost(kernel, target, speeds)
    for opt in opts:
        try:
            with unobserved():
                after, _ = apply_opt(kernel, opt, target)
            then = predicted_cost(after, target, speeds)
        except WorkbenchError:
            yield PredictedSpeedup(opt, None, "")
            continue
        yield PredictedSpeedup(opt, now.predicted_s / then.predicted_s, _change(now, then, target))


def _change(now: RunCost, then: RunCost, target: Target) -> str:
    if isinstance(now, GpuCost) and isinstance(then, GpuCost):
        return gpu_change(now, then)
    assert isinstance(now, Cost) and isinstance(then, Cost)
    return change(now, then, target)


def change(now: Cost, then: Cost, target: Target) -> str:
    """Return the number that changes most from one cost to another: of the part that `now` waits
    for, else of the part that `then` waits for; "" where none changes."""
    if then.threads != now.threads:
        return f"threads: {now.threads} -> {then.threads}"
    if abs(now.predicted_s / then.predicted_s - 1) < SAME:
        return ""
    for part in (now.limit, then.limit):
        before, after = now.seconds[part], then.seconds[part]
        if abs(before - after) < SAME * max(before, after):
            continue
        if part != "core":
            moved = (bytes_text(c.bytes_from[part]) for c in (now, then))
            return f"from {part}: " + " -> ".join(moved)
        loop = now.work.hottest()[0]
        same = then.work.find(loop.axis) or then.work.hottest()[0]
        return _in_core(loop, same, then, target)
    return ""


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
    if abs(rates[0] - rates[1]) > SAME:
        return f"loads per instruction: {rates[0]:.2g} -> {rates[1]:.2g}"
    return ""
