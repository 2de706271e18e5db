"""The predicted cost of a run on any GPU, by the linear program of a kernel and published figures.

A run takes as long as the slowest part and a share of the others. The parts are arithmetic, tensor
cores, the instructions of warps, the pipe to shared memory and the first cache, each level of
memory, and latency: the time of a group that is alone on its unit, times the turns in which groups
run. Units that are idle while the last groups run are counted. Source of the idea: S. Hong and
H. Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level Parallelism
Awareness, 2009; and the roofline.

Sections: Occupancy; The cost of a run on a GPU; The bottleneck on a GPU, and the effect of an opt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.backends.program.launch import launch_shape
from workbench.base.errors import DeviceError, plural
from workbench.base.target import Hardware, Target
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.cost.gpu.group_time import (
    GLOBAL_CYCLES,
    NO_FLOAT64,
    TENSOR,
    GroupCycles,
    group_cycles,
    pipe_cycles,
)
from workbench.cost.gpu.item_work import ItemWork, estimated_registers, item_work
from workbench.cost.gpu.memory_traffic import (
    Residency,
    WarpAccess,
    bytes_from,
    level_speeds,
    warp_accesses,
)
from workbench.cost.kernel_cost import Bottleneck, RunCost
from workbench.ir.lower.launch import barriers
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.estimates import count, estimate
from workbench.ir.nest.transactions import BANKS
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import bytes_text, number_text
from workbench.pipeline import stages

# --------------------------------------------------------------------------------------------------
# Occupancy: the number of warps that a unit of a GPU holds at a time, and the limit that binds it.
#
# A unit holds whole work-groups, as many as each of its limits allows: registers, which each part
# of the unit allocates to its warps; shared memory; work-items; and work-groups. Source of the
# rules: NVIDIA, CUDA Occupancy Calculator (cuda_occupancy.h of the CUDA Toolkit 13.0). GPUs of
# other makers have rules of the same kind.

UNKNOWN_ITEMS = 1024
"""Work-items that a unit holds, if that is not published."""


@dataclass(frozen=True, slots=True)
class GroupUse:
    """What a work-group uses of a unit: its work-items, the 32-bit registers of each, and bytes of
    shared memory."""

    items: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Occupancy(Printed):
    """The work-groups that a unit holds at a time, and their warps, at most `most_warps`. `limits`
    has the groups that each limit allows; `use` is what a group uses."""

    groups: int
    warps: int
    most_warps: int
    limits: Mapping[str, int]
    use: GroupUse

    @property
    def share(self) -> float:
        """The warps as a share of `most_warps`."""
        return self.warps / self.most_warps

    @property
    def limit(self) -> str:
        """The limit that allows the fewest groups, the first of several."""
        return min(self.limits, key=lambda name: self.limits[name])

    def __str__(self) -> str:
        amount = {
            "registers": f"{self.use.registers} of each work-item",
            "shared memory": f"{self.use.shared_bytes:,} bytes of each group",
            "work-items": f"{self.use.items} of each group",
        }.get(self.limit, "")
        why = self.limit + (f", {amount}" if amount else "")
        return (
            f"{self.share:.0%}: a unit holds {self.warps} of {plural(self.most_warps, 'warp')},"
            f" {plural(self.groups, 'work-group')}; limited by {why}"
        )


def occupancy(target: Target, use: GroupUse) -> Occupancy:
    """Return the occupancy of a GPU by groups of this use.

    Errors: DeviceError, with the numbers, for a group that is too large for a unit, and for a
    target without work-groups or published figures.
    """
    hardware = _hardware(target)
    lanes = target.warp_lanes
    warps = -(-use.items // lanes)
    most_warps = (hardware.unit_items or UNKNOWN_ITEMS) // lanes
    limits = {"work-items": most_warps // warps}
    if hardware.unit_groups:
        limits["work-groups"] = hardware.unit_groups
    if hardware.unit_registers:
        limits["registers"] = _by_registers(hardware, lanes, warps, use.registers)
    if hardware.unit_shared_bytes:
        room = hardware.unit_shared_bytes
        needed = use.shared_bytes + hardware.group_shared_bytes
        if needed:
            limits["shared memory"] = room // _rounded_up(needed, hardware.shared_block)
    groups = min(limits.values())
    if not groups:
        raise _too_large(target, hardware, use, limits)
    return Occupancy(groups, groups * warps, most_warps, limits, use)


def _by_registers(hardware: Hardware, lanes: int, warps: int, registers: int) -> int:
    """Return the groups that registers allow. Each part of a unit has its own registers; 0 for a
    group that would not fit with equally many of its warps in each part."""
    of_warp = _rounded_up(max(1, registers) * lanes, hardware.register_block)
    parts = hardware.partitions
    in_parts = hardware.unit_registers // parts // of_warp * parts
    is_refused = of_warp * _rounded_up(warps, parts) > hardware.unit_registers
    if is_refused or registers > hardware.item_registers:
        return 0
    return in_parts // warps


def _too_large(
    target: Target, hardware: Hardware, use: GroupUse, limits: Mapping[str, int]
) -> DeviceError:
    reasons = {
        "work-items": f"{use.items:,} work-items, and a unit holds {hardware.unit_items:,}",
        "registers": f"{use.items:,} work-items of {use.registers} registers, and a unit has"
        f" {hardware.unit_registers:,}, a work-item at most {hardware.item_registers}",
        "shared memory": f"{use.shared_bytes:,} bytes of shared memory, and a unit has"
        f" {hardware.unit_shared_bytes:,}",
    }
    limit = next(name for name, groups in limits.items() if not groups)
    return DeviceError(
        f"the kernel is too large for {target.device}",
        f"a work-group takes {reasons[limit]}",
        "a smaller work-group, or fewer values in each work-item",
    )


def _hardware(target: Target) -> Hardware:
    if target.hardware is None or not target.has_groups:
        because = "it has no work-groups"
        if target.has_groups:
            because = "its figures are not known"
        what = f"there is no occupancy of {target.device}"
        raise DeviceError(what, because, "a machine with published figures")
    return target.hardware


def _rounded_up(value: int, block: int) -> int:
    return -(-value // block) * block


# --------------------------------------------------------------------------------------------------
# The cost of a run on a GPU, by the linear program of a kernel and published figures.

LATENCY_MARGIN = 1.25
"""Latency is the limit if its time is more than this many times that of the slowest other part."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a run: transactions with global memory, passes over the banks of shared
    memory, and the least number of each that could move the same data."""

    transactions: int
    least_transactions: int
    passes: int
    least_passes: int


@dataclass(frozen=True, slots=True, repr=False)
class GpuCost(RunCost):
    """The predicted cost of a run on a GPU.

    `groups` work-groups run in `turns`; `busy` is the average share of units that work. The
    registers of a work-item are `estimated`, unless a compiler reported them; `spilled` of them
    do not fit, and go to memory.
    """

    target: Target
    occupancy: Occupancy
    accesses: Accesses
    groups: int
    turns: int
    busy: float
    estimated: bool
    spilled: int

    @property
    def hardware(self) -> Hardware:
        """The figures of the machine."""
        assert self.target.hardware is not None
        return self.target.hardware

    @property
    def warps(self) -> int:
        """The warps of a group."""
        return -(-self.occupancy.use.items // self.target.warp_lanes)

    @property
    def slowest(self) -> str:
        """The slowest part. A group alone takes at least its share of each other part, so latency
        is the limit only if it takes clearly more."""
        others = {part: s for part, s in self.seconds.items() if part != "latency"}
        slowest = max(others, key=lambda part: others[part])
        waits = self.seconds["latency"] > LATENCY_MARGIN * others[slowest]
        return "latency" if waits else slowest

    @property
    def launch_s(self) -> float:
        return self.hardware.launch_s

    @property
    def parallel(self) -> tuple[int, str]:
        return min(self.groups, self.hardware.units), "unit"

    @property
    def peak(self) -> float:
        """The greatest operations per second of the kernel's kind of arithmetic."""
        return peaks(self.target)[self.kind]

    @property
    def has_products(self) -> bool:
        """Whether the kernel uses tensor cores."""
        return TENSOR in self.seconds

    @property
    def ceilings(self) -> tuple[float, float]:
        *_, memory = level_speeds(self.hardware).values()
        return self.peak, memory

    def roofs(self) -> dict[str, float]:
        flops = self.estimates.flops
        limits = {self.kind if self.has_products else "peak": self.peak}
        speeds = level_speeds(self.hardware)
        for level, moved in self.bytes_from.items():
            if moved and flops:
                limits[level] = flops / moved * speeds[level]
        return limits

    def notes(self) -> list[str]:
        lines = [f"occupancy {self.occupancy}{' (registers estimated)' if self.estimated else ''}"]
        if self.spilled:
            lines.append(f"{plural(self.spilled, 'register')} of each work-item go to memory")
        rows = self.accesses
        if rows.transactions > rows.least_transactions:
            lines.append(
                f"global memory: {rows.transactions:,} transactions,"
                f" {rows.least_transactions:,} would do"
            )
        if rows.passes > rows.least_passes:
            lines.append(
                f"shared memory: {rows.passes:,} passes, {rows.least_passes:,} without conflicts"
            )
        if self.busy < 0.95:
            lines.append(
                f"{self.busy:.0%} of the units work on the average: {plural(self.groups, 'group')}"
                f" for {self.hardware.units} units"
            )
        return lines

    def __str__(self) -> str:
        lines = [
            f"{self.estimates.flops:,} operations, {bytes_text(self.estimates.bytes)}:"
            f" {number_text(self.intensity)} operations per byte",
            f"predicted {seconds_text(self.predicted_s)} on {self.target.device}, not measured,"
            f" limited by {self.limit}",
        ]
        for part, seconds in self.seconds.items():
            moved = self.bytes_from.get(part)
            more = "" if moved is None else f"  {bytes_text(moved)}"
            lines.append(f"  {part:14}  {seconds_text(seconds):>8}{more}")
        return "\n".join([*lines, *self.notes()])


def gpu_cost(kernel: UOp, target: Target, original: UOp, registers: int | None = None) -> GpuCost:
    """Return the cost of a kernel (a SINK) on a machine with work-groups and published figures.

    `registers` is the number for a work-item that a compiler reported, if it did. Errors:
    CompileError if the kernel cannot be lowered, DeviceError for a group that is too large.
    """
    assert target.hardware is not None
    with unobserved():
        linear = stages(kernel, target, upto="linear").linear
    hardware, launch = target.hardware, launch_shape(linear)
    items, groups = math.prod(launch.group), math.prod(launch.grid)
    shared = [n for n in linear if n.op is Ops.DEFINE and n.space == "shared"]
    needed = estimated_registers(linear) if registers is None else registers
    most = _most_registers(hardware, items, target.warp_lanes)
    registers_used = min(needed, most) if most else needed
    use = GroupUse(items, registers_used, sum(size_of(n) * n.dtype.itemsize for n in shared))
    units = occupancy(target, use)
    at_once = min(groups, units.groups * hardware.units)
    residency = Residency(groups, units.groups, at_once)
    accesses = warp_accesses(linear, target.warp_lanes)
    moved = bytes_from(linear, accesses, target, residency)
    busy = groups / (-(-groups // hardware.units) * hardware.units)
    turns = -(-groups // (units.groups * hardware.units))
    warps = -(-items // target.warp_lanes)
    group = GroupCycles(target, warps, min(groups, hardware.units), moved)
    work = item_work(linear)
    seconds = _seconds(linear, accesses, group, work, groups, busy)
    speeds = level_speeds(hardware)
    for level, size in moved.items():
        seconds[level] = max(seconds.get(level, 0.0), size / speeds[level])
    pipe = pipe_cycles(linear, accesses, target)
    uses = group.uses(linear, accesses, pipe)
    cycles = group_cycles(linear, uses, target.copies_async)
    seconds["latency"] = turns * cycles / hardware.clock_hz
    counts = count(linear, barriers(kernel, target), target.has_groups)
    return GpuCost(
        estimate(original), counts, moved, seconds, _kind(original, work), target, units,
        _totals(accesses, groups), groups, turns, busy, registers is None,
        needed - registers_used,
    )  # fmt: skip


def _totals(accesses: Sequence[WarpAccess], groups: int) -> Accesses:
    of_global = [a for a in accesses if a.place == "global"]
    of_shared = [a for a in accesses if a.place == "shared"]
    return Accesses(
        groups * sum(a.transactions for a in of_global),
        groups * sum(a.least for a in of_global),
        groups * sum(a.transactions for a in of_shared),
        groups * sum(a.least for a in of_shared),
    )


def _seconds(
    linear: Sequence[UOp],
    accesses: Sequence[WarpAccess],
    group: GroupCycles,
    work: ItemWork,
    groups: int,
    busy: float,
) -> dict[str, float]:
    """Return the seconds of each part of the units for all groups. "shared memory" includes "L1",
    which uses the same pipe."""
    target = group.target
    assert target.hardware is not None
    whole = groups / (target.hardware.units * target.hardware.clock_hz) / busy
    parts = group.of_parts(work)
    pipe = pipe_cycles(linear, accesses, target)
    rows = [*zip(pipe, accesses, strict=True)]
    parts["L1"] = sum(cycles for cycles, a in rows if a.place != "shared")
    shared = sum(cycles for cycles, a in rows if a.place == "shared")
    shared += group.warps * work.shuffles * -(-target.warp_lanes // BANKS)
    if shared:
        parts["shared memory"] = shared + parts["L1"]
    return {part: whole * cycles for part, cycles in parts.items()}


def peaks(target: Target) -> dict[str, float]:
    """Return the peaks of a machine in operations per second: of its kinds of float, and of its
    tensor cores by the format of their operands."""
    hardware = target.hardware
    assert hardware is not None
    single = hardware.peak("float32")
    double = hardware.peak("float64") or single * NO_FLOAT64
    tensor = {
        _tensor_kind(core.operand_format): hardware.tensor_peak(core.operand_format)
        for core in target.tensor_cores
    }
    return {"f32": single, "f64": double} | tensor


def _most_registers(hardware: Hardware, items: int, lanes: int) -> int:
    """Return the most registers per work-item with which a group of `items` work-items still runs;
    0 if unknown. A compiler that knows the size of the group uses no more, and spills the rest."""
    if not hardware.unit_registers:
        return 0
    parts = hardware.partitions
    warps = -(-items // lanes)
    in_part = -(-warps // parts)
    of_warp = hardware.unit_registers // parts // in_part
    whole = of_warp // hardware.register_block * hardware.register_block
    return min(whole // lanes, hardware.item_registers)


def _kind(kernel: UOp, work: ItemWork) -> str:
    for operand_format in work.products:
        return _tensor_kind(operand_format)
    doubles = any(n.dtype.is_float and n.dtype.bits == 64 for n in kernel.toposort())
    return "f64" if doubles else "f32"


def _tensor_kind(operand_format: str) -> str:
    return f"{operand_format} {TENSOR}"


# --------------------------------------------------------------------------------------------------
# The bottleneck on a GPU, and the effect of an opt, both by the predicted cost.

LEAST_DIFFERENCE = 0.02
"""A smaller relative difference counts as none."""
FEW_GROUPS = 0.75
"""With a smaller share of the units busy, too few work-groups are named as the bottleneck."""


def gpu_bottleneck(cost: GpuCost) -> Bottleneck:
    """Return the predicted bottleneck of a kernel on a GPU."""
    part = cost.limit
    if part == "launch":
        why = f"it takes {seconds_text(cost.launch_s)}, the work {seconds_text(cost.work_s)}"
        return Bottleneck(part, why)
    slowest = cost.seconds[part]
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
    """Return in words the part whose time changes most from one cost to another, with its number;
    "" if the times are nearly equal."""
    gain = now.predicted_s - then.predicted_s
    if abs(now.predicted_s / then.predicted_s - 1) < LEAST_DIFFERENCE:
        return ""
    before, after = now.contributions, then.contributions
    changes = {
        part: before.get(part, 0.0) - after.get(part, 0.0)
        for part in dict.fromkeys([*before, *after])
    }
    part = max(changes, key=lambda name: changes[name] if gain > 0 else -changes[name])
    return _change_of(part, now, then)


def _change_of(part: str, now: GpuCost, then: GpuCost) -> str:
    """Return the change in a part of a run as the number that explains most of it."""
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
    if abs(now.busy - then.busy) > LEAST_DIFFERENCE and (then.busy > now.busy) == is_faster:
        return f"units that work: {now.busy:.0%} -> {then.busy:.0%}"
    return f"{part}: {times}"


def _is_change(numbers: Sequence[int], is_faster: bool) -> bool:
    """Whether a number changes in the direction of the time."""
    before, after = numbers
    return abs(before - after) > LEAST_DIFFERENCE * before and (after < before) == is_faster
