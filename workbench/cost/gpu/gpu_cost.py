"""The cost of a run on any GPU, by the linear program of a kernel and published figures.

A run takes as long as the slowest part: arithmetic, tensor cores, the instructions of warps, the
pipe to shared memory and the first cache, each level of memory, or the time that a group takes
where no other is in its way, for all the turns in which groups run. Units that wait for the last
groups are counted. Source of the idea:
S. Hong and H. Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level
Parallelism Awareness, 2009; and the roofline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.backends.program.launch import launch_shape
from workbench.base.target import Hardware, Target
from workbench.base.trace import unobserved
from workbench.base.words import plural
from workbench.cost.gpu.group_cycles import NO_FLOAT64, TENSOR, GroupCycles, pipe_cycles
from workbench.cost.gpu.group_time import group_cycles
from workbench.cost.gpu.item_work import ItemWork, item_work
from workbench.cost.gpu.memory_traffic import Residency, bytes_from, level_speeds
from workbench.cost.gpu.occupancy import GroupUse, Occupancy, occupancy
from workbench.cost.gpu.registers import estimated_registers
from workbench.cost.gpu.warp_accesses import WarpAccess, warp_accesses
from workbench.cost.run_cost import RunCost
from workbench.ir.lower.launch.barriers import barriers
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.estimates import count, estimate
from workbench.ir.nest.transactions import BANKS
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.measure.kernel_time import seconds_text
from workbench.measure.units import bytes_text, number_text
from workbench.pipeline import stages

WAITING = 1.25
"""How much longer a group alone takes than the slowest unit does where it waits."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """What a run's accesses cost in all: transactions with global memory, passes over the banks of
    shared memory, and those of each that would do."""

    transactions: int
    least_transactions: int
    passes: int
    least_passes: int


@dataclass(frozen=True, slots=True, repr=False)
class GpuCost(RunCost):
    """The predicted cost of a run on a GPU.

    `groups` work-groups run in `turns`; `busy` is the share of units that work while any does;
    registers of a work-item are `estimated` by the program, unless a compiler said them, and
    `spilled` are those for which there is no room.
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
    def limit(self) -> str:
        """The slowest part. A group alone takes no less than its share of each other part, so that
        waiting is the limit only where it takes clearly more."""
        others = {part: s for part, s in self.seconds.items() if part != "latency"}
        slowest = max(others, key=lambda part: others[part])
        waits = self.seconds["latency"] > WAITING * others[slowest]
        return "latency" if waits else slowest

    @property
    def launch_s(self) -> float:
        return self.hardware.launch_s

    @property
    def parallel(self) -> tuple[int, str]:
        return min(self.groups, self.hardware.units), "unit"

    @property
    def peak(self) -> float:
        """The operations per second of its kind of arithmetic."""
        return peaks(self.target)[self.kind]

    @property
    def has_products(self) -> bool:
        """Whether it uses tensor cores."""
        return TENSOR in self.seconds

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

    `registers` of a work-item are those that a compiler said, if it did. Errors: CompileError where
    it cannot be lowered, DeviceError for a group that is too large for a unit.
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
    counts = count(linear, barriers(kernel, target))
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
    """Return the seconds of each part of the units for all groups: with shared memory is what takes
    the same pipe."""
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
    """Return the peaks of a machine by kind of float, and of tensor cores by the format of their
    operands, in operations per second."""
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
    """Return the most registers with which a group of `items` work-items still runs: compilers that
    know its size keep to that, and the rest goes to memory."""
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
