"""The predicted bottleneck of a kernel on a processor, with the numbers behind it.

It follows from the cost, without a run: the slowest part, and, if that is the core, the limit of
the loop that takes most of the time.
"""

from __future__ import annotations

from workbench.base.errors import plural
from workbench.base.target import Target
from workbench.cost.core_time import LoopWork
from workbench.cost.kernel_cost import Bottleneck as Bottleneck
from workbench.cost.kernel_cost import Cost, Transfer
from workbench.measure.kernel_time import seconds_text
from workbench.measure.speeds import Speeds
from workbench.measure.timing import bytes_text, number_text

SLOWER = 1.6
"""A measured time of this many times the predicted one, or more, is unexplained: most predictions
are right within about a third."""
FASTER = 2.5
"""A measured time this many times shorter than the predicted one, or more, is unexplained, too. The
factor is larger, since the cost of some arithmetic is overestimated."""
NEARLY = 0.6
"""Another part is named, too, if it takes at least this share of the slowest one's time: parts do
not overlap completely."""
FULL_SPEED = 0.85
"""The order of the lines is named only below this share of a level's bandwidth."""
CONFLICTS = 0.5
"""Set conflicts are named if less than this share of the bytes would move without them."""
NAMES = {
    "path": "latency",
    "arithmetic": "arithmetic",
    "loads": "load ports",
    "stores": "store ports",
    "issue": "instructions",
}


def bottleneck(cost: Cost, target: Target, measured_s: float | None = None) -> Bottleneck:
    """Return the bottleneck of a kernel of this cost on a target. `measured_s` is the measured time
    of a run, if it is known: a launch cannot take longer, and a time that is far from the predicted
    one gives the bottleneck "unexplained"."""
    launch = cost.launch_s
    if measured_s is not None:
        launch = min(launch, measured_s)
    if launch > cost.work_s:
        handed = " and its hand-over to threads" if cost.threads > 1 else ""
        why = f"it{handed} takes {seconds_text(launch)}, the work {seconds_text(cost.work_s)}"
        return Bottleneck("launch", why)
    if cost.slowest == "core":
        loop, share = cost.work.hottest()
        answer = _core(loop, share / max(cost.work.total_s, 1e-12), cost, target)
    else:
        answer = _level(cost.slowest, cost, target)
    if measured_s is None or _explains(cost, measured_s):
        return Bottleneck(answer.what, answer.why + _second_slowest_text(cost))
    return Bottleneck("unexplained", f"{_comparison_text(cost, measured_s)} by {answer}")


def _explains(cost: Cost, measured_s: float) -> bool:
    return cost.predicted_s / FASTER < measured_s < SLOWER * cost.predicted_s


def _comparison_text(cost: Cost, measured_s: float) -> str:
    """Return in words how a measured time differs from the predicted one."""
    ratio, flops = measured_s / cost.predicted_s, cost.estimates.flops
    share = flops / measured_s / cost.speeds.peak[cost.kind].of(cost.threads)
    reached = f", at {share:.2g} of the peak" if share < 0.01 else f", at {share:.0%} of the peak"
    times = number_text(max(ratio, 1 / ratio))
    if ratio < 1:
        return f"{times} times faster than predicted{reached if flops else ''}, and so not limited"
    busy = "perhaps since the machine is busy, and not explained"
    return f"{times} times as long as predicted{reached if flops else ''}, {busy}"


def _second_slowest_text(cost: Cost) -> str:
    """Return in words the part that takes nearly as long as the slowest; "" for none."""
    parts = sorted(cost.seconds, key=lambda part: -cost.seconds[part])
    slowest, *others = [part for part in parts if cost.seconds[part]]
    if not others or cost.seconds[others[0]] < NEARLY * cost.seconds[slowest]:
        return ""
    share = cost.seconds[others[0]] / cost.seconds[slowest]
    if others[0] == "core":
        return f"; the core takes {share:.0%} as long"
    return f"; {bytes_text(cost.bytes_from[others[0]])} from {others[0]} take {share:.0%} as long"


def _level(level: str, cost: Cost, target: Target) -> Bottleneck:
    speed = cost.speeds.read[level].of(cost.threads)
    moved = cost.bytes_from[level]
    reached = moved / cost.seconds[level]
    what = level if level == "memory" else f"{level} bandwidth"
    together = f" of {cost.threads} threads" if cost.threads > 1 else ""
    why = f"{bytes_text(moved)} at the {number_text(speed / 1e9)} GB/s{together}"
    slowest = max(cost.transfers[level], key=lambda transfer: transfer.seconds)
    if reached > speed / FULL_SPEED:
        why = (
            f"{bytes_text(moved)} at {number_text(reached / 1e9)} GB/s{together}, where reads"
            f" alone come at {number_text(speed / 1e9)}"
        )
    elif reached < FULL_SPEED * speed and slowest.run_bytes:
        why = (
            f"{bytes_text(moved)} at {number_text(reached / 1e9)} of the"
            f" {number_text(speed / 1e9)} GB/s{together}: {_access_order(slowest, target)}"
        )
    less = cost.without_sets[level]
    if less < CONFLICTS * moved:
        names = [*cost.speeds.read]
        above = names[names.index(level) - 1]
        why += f"; {bytes_text(less)} if lines could lie anywhere in {above}, not only in their set"
    return Bottleneck(what, why)


def _access_order(transfer: Transfer, target: Target) -> str:
    """Return in words the order in which the lines of a transfer come."""
    if not transfer.jump_bytes:
        return f"runs of {bytes_text(transfer.run_bytes)}, in no order"
    text = f"runs of {transfer.run_bytes:,} bytes, {transfer.jump_bytes:,} bytes apart"
    if not transfer.sets:
        return text
    every = target.cache_sets("L1")
    return f"{text}, in {transfer.sets} of the {every} sets of L1, wait for each other"


def _core(loop: LoopWork, share: float, cost: Cost, target: Target) -> Bottleneck:
    where = "" if loop.axis is None else f" in loop {loop.axis.axis_name}"
    if share < 0.9:
        where += f" ({share:.0%} of the time)"
    spilled = loop.live - target.vector_registers
    if spilled > 0 and loop.limit in ("chain", "loads", "stores"):
        why = f"{loop.live} values at once, {target.vector_registers} registers: {spilled} go"
        return Bottleneck("registers", f"{why} through memory{where}")
    if loop.limit == "chain":
        needed = sums_needed(loop, cost.speeds)
        why = f"{plural(loop.sums, 'independent accumulator')}, needs {needed}{where}"
        return Bottleneck("FMA latency" if loop.fmas else "add latency", why)
    if not loop.vectors and loop.arithmetic and target.vector_width(loop.bits // 8) > 1:
        width = target.vector_width(loop.bits // 8)
        why = f"1 element per instruction, a register holds {width}{where}"
        return Bottleneck("no vector lanes", why)
    return Bottleneck(NAMES[loop.limit], _counts(loop) + where)


def _counts(loop: LoopWork) -> str:
    fmas = plural(loop.fmas, "multiply-add")
    if loop.limit == "loads":
        others = fmas if loop.fmas else plural(loop.arithmetic, "instruction")
        return f"{plural(loop.loads, 'load')} for {others} a step"
    if loop.limit == "stores":
        return f"{plural(loop.stores, 'store')} a step"
    if loop.limit == "path":
        return "results wait for each other, and a step is too long to overlap with the next"
    if loop.limit == "issue":
        other = loop.loads + loop.stores
        return f"{plural(loop.arithmetic, 'computation')} and {other} loads and stores a step"
    if loop.fmas == loop.arithmetic:
        return f"nothing but {fmas} a step, and the units for them are busy"
    rest = loop.arithmetic - loop.fmas
    return f"{fmas} and {rest} other instructions a step"


def sums_needed(loop: LoopWork, speeds: Speeds) -> int:
    """Return how many independent accumulators keep the units busy: as many as the instructions
    that can begin while one is in flight."""
    latency_s = speeds.fma_s if loop.fmas else speeds.addition_s
    return max(1, round(latency_s / loop.sum_s))
