"""The bottleneck of a kernel on a GPU by its predicted cost, and the effect of an opt on it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.words import plural
from workbench.cost.gpu.gpu_cost import GpuCost
from workbench.cost.gpu.group_cycles import TENSOR
from workbench.cost.gpu.group_time import GLOBAL_CYCLES
from workbench.cost.gpu.memory_traffic import level_speeds
from workbench.cost.run_cost import Bottleneck
from workbench.measure.kernel_time import seconds_text
from workbench.measure.units import bytes_text, number_text

SAME = 0.02
"""A smaller relative difference counts as none."""
FEW_GROUPS = 0.75
"""With a smaller share of the units busy, too few groups are said to be the reason."""


def gpu_bottleneck(cost: GpuCost) -> Bottleneck:
    """Return the predicted bottleneck of a kernel on a GPU."""
    part = cost.limit
    slowest = cost.seconds[part]
    if cost.launch_s > slowest:
        why = f"it takes {seconds_text(cost.launch_s)}, the work {seconds_text(slowest)}"
        return Bottleneck("launch", why)
    if part == "latency":
        return _latency(cost)
    if part in cost.bytes_from:
        return _level(cost, part)
    if cost.busy < FEW_GROUPS:
        units = cost.hardware.units
        why = f"{cost.groups:,} for {units} units, {cost.busy:.0%} of which work on the average"
        return Bottleneck("work-groups", why)
    if part == "shared memory":
        passes, least = cost.accesses.passes, cost.accesses.least_passes
        conflicts = f", {least:,} without bank conflicts" if passes > least else ""
        return Bottleneck(part, f"{passes:,} passes over its banks{conflicts}")
    if part == "instructions":
        why = f"{cost.occupancy.use.items} work-items in {plural(cost.warps, 'warp')} of a group"
        full = cost.occupancy.use.items / cost.warps / cost.target.warp_lanes
        if full < 1:
            return Bottleneck("idle lanes", f"{why}: {1 - full:.0%} of the lanes do nothing")
        return Bottleneck(part, "warps begin one in each cycle and part of a unit")
    if part == "arithmetic" and cost.has_products:
        products = seconds_text(cost.seconds[TENSOR])
        why = f"it takes {seconds_text(slowest)}, the {cost.kind} beside it {products}"
        return Bottleneck(part, why)
    peak = cost.peak
    reached = cost.estimates.flops / slowest / peak
    return Bottleneck(
        part,
        f"the {number_text(peak / 1e12)} TFLOP/s of {cost.kind}, {reached:.0%} by the algorithm",
    )


def _latency(cost: GpuCost) -> Bottleneck:
    units, each = cost.hardware.units, cost.occupancy
    if cost.turns > 1:
        why = (
            f"{cost.groups:,} groups take {cost.turns:,} turns, and {each.warps} warps in a unit"
            f" hide too little of the {GLOBAL_CYCLES} cycles of a load"
        )
    else:
        why = (
            f"{plural(cost.groups, 'group')} of {plural(cost.warps, 'warp')} on {units} units hide"
            f" too little of the {GLOBAL_CYCLES} cycles of a load"
        )
    return Bottleneck("latency", why)


def _level(cost: GpuCost, level: str) -> Bottleneck:
    moved = bytes_text(cost.bytes_from[level])
    speed = level_speeds(cost.hardware)[level]
    why = f"{moved} at the {number_text(speed / 1e9)} GB/s"
    rows = cost.accesses
    if rows.transactions > 1.1 * rows.least_transactions:
        why += f"; {rows.transactions:,} transactions, {rows.least_transactions:,} would do"
    return Bottleneck(level if level == "memory" else f"{level} bandwidth", why)


def gpu_change(now: GpuCost, then: GpuCost) -> str:
    """Return the number that is most of the gain from one cost to another, or of the loss; "" where
    there is neither."""
    gain = now.predicted_s - then.predicted_s
    if abs(now.predicted_s / then.predicted_s - 1) < SAME:
        return ""
    before, after = now.contributions, then.contributions
    changes = {
        part: before.get(part, 0.0) - after.get(part, 0.0)
        for part in dict.fromkeys([*before, *after])
    }
    part = max(changes, key=lambda name: changes[name] if gain > 0 else -changes[name])
    return _change_of(part, now, then)


def _change_of(part: str, now: GpuCost, then: GpuCost) -> str:
    """Return what changes in a part of a run, in the number that says most of it."""
    rows, is_faster = (now.accesses, then.accesses), then.predicted_s < now.predicted_s
    seconds = [cost.seconds.get(part, 0.0) for cost in (now, then)]
    times = " -> ".join(map(seconds_text, seconds))
    if part == "latency":
        if now.turns != then.turns and (then.turns < now.turns) == is_faster:
            return f"turns of groups: {now.turns:,} -> {then.turns:,}"
        return f"a group waits {'less' if is_faster else 'longer'}: {times}"
    numbers = [r.transactions for r in rows]
    if part in ("L1", "L2") and _is_change(numbers, is_faster):
        return f"transactions: {numbers[0]:,} -> {numbers[1]:,}"
    moved = [bytes_text(c.bytes_from.get(part, 0)) for c in (now, then)]
    if part in now.bytes_from and moved[0] != moved[1] and part != "L1":
        return f"from {part}: {moved[0]} -> {moved[1]}"
    passes = [r.passes for r in rows]
    if part == "shared memory" and _is_change(passes, is_faster):
        return f"passes over banks: {passes[0]:,} -> {passes[1]:,}"
    if abs(now.busy - then.busy) > SAME and (then.busy > now.busy) == is_faster:
        return f"units that work: {now.busy:.0%} -> {then.busy:.0%}"
    return f"{part}: {times}"


def _is_change(numbers: Sequence[int], is_faster: bool) -> bool:
    """Whether a number changes, and as the time does."""
    before, after = numbers
    return abs(before - after) > SAME * before and (after < before) == is_faster
