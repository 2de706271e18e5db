"""Occupancy: the number of warps that a unit of a GPU holds at a time, and the limit that binds it.

A unit holds whole work-groups, as many as each of its limits allows: registers, which are handed
out to warps in the unit's parts, shared memory, work-items, and work-groups. Source of the rules:
NVIDIA, CUDA Occupancy Calculator (cuda_occupancy.h of the CUDA Toolkit 13.0); those of other makers
have the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.base.display import Printed
from workbench.base.errors import DeviceError
from workbench.base.target import Hardware, Target
from workbench.base.words import plural

UNKNOWN_ITEMS = 1024
"""Work-items that a unit holds where that is not published."""


@dataclass(frozen=True, slots=True)
class GroupUse:
    """What a work-group takes of a unit: its work-items, 32-bit registers of each, and bytes of
    shared memory."""

    items: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Occupancy(Printed):
    """The work-groups, and their warps, that a unit holds at a time, of at most `most_warps`.
    `limits` has the groups that each limit allows; `use` is what a group takes."""

    groups: int
    warps: int
    most_warps: int
    limits: Mapping[str, int]
    use: GroupUse

    @property
    def share(self) -> float:
        """The warps as a share of the most."""
        return self.warps / self.most_warps

    @property
    def limit(self) -> str:
        """The limit that binds, the first of several."""
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
    """Return the occupancy of a GPU by groups.

    Errors: DeviceError, with the numbers, for a group that is too large for a unit, and for a
    target without published figures.
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
            limits["shared memory"] = room // _up(needed, hardware.shared_block)
    groups = min(limits.values())
    if not groups:
        raise _too_large(target, hardware, use, limits)
    return Occupancy(groups, groups * warps, most_warps, limits, use)


def _by_registers(hardware: Hardware, lanes: int, warps: int, registers: int) -> int:
    """Return the groups that registers allow. Each part of a unit has its own, and a group is
    refused that would not fit if all parts had as many of its warps."""
    of_warp = _up(max(1, registers) * lanes, hardware.register_block)
    parts = hardware.partitions
    in_parts = hardware.unit_registers // parts // of_warp * parts
    is_refused = of_warp * _up(warps, parts) > hardware.unit_registers
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


def _up(value: int, block: int) -> int:
    return -(-value // block) * block
