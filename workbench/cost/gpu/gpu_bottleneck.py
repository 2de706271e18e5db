"""What a kernel on a GPU waits for by its predicted cost, and what an opt changes of that."""

from __future__ import annotations

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
        why = (
            f"it takes {seconds_text(cost.launch_s)}, the work {seconds_text(slowest)}"
        )
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
            return Bottleneck(
                "idle lanes", f"{why}: {1 - full:.0%} of the lanes do nothing"
            )
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
    """Return the number that changes most from one cost to another; "" where none does."""
    if abs(now.predicted_s / then.predicted_s - 1) < SAME:
        return ""
    rows = now.accesses, then.accesses
    for part in (now.limit, then.limit):
        before, after = (cost.seconds.get(part, 0.0) for cost in (now, then))
        if abs(before - after) < SAME * max(before, after):
            continue
        if part == "latency":
            if now.turns != then.turns:
                return f"turns of groups: {now.turns:,} -> {then.turns:,}"
            if now.occupancy.warps != then.occupancy.warps:
                return (
                    f"warps in a unit: {now.occupancy.warps} -> {then.occupancy.warps}"
                )
            return f"time of a group: {seconds_text(before)} -> {seconds_text(after)}"
        if part in ("L1", "L2") and rows[0].transactions != rows[1].transactions:
            first, second = (f"{r.transactions:,}" for r in rows)
            return f"transactions: {first} -> {second}"
        if part in now.bytes_from:
            first, second = (bytes_text(c.bytes_from[part]) for c in (now, then))
            return f"from {part}: {first} -> {second}"
        if part == "shared memory":
            return f"passes over banks: {rows[0].passes:,} -> {rows[1].passes:,}"
        if abs(now.busy - then.busy) > SAME:
            return f"units that work: {now.busy:.0%} -> {then.busy:.0%}"
        return f"{part}: {seconds_text(before)} -> {seconds_text(after)}"
    return ""
