"""The cycles that a work-group takes of each unit that its warps share: arithmetic pipes, tensor
cores, instruction issue, shared memory and first cache, and each level below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.base.target import Hardware, Target
from workbench.cost.gpu.instructions import INTEGER, SPECIAL_FUNCTION
from workbench.cost.gpu.item_work import ItemWork, node_work
from workbench.cost.gpu.memory_traffic import level_speeds
from workbench.cost.gpu.warp_accesses import WarpAccess
from workbench.ir.nest.accesses import async_stores
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

SPECIAL_LANES = 16
"""Special functions that a unit begins per cycle."""
TENSOR = "tensor cores"
"""What the part of a run on tensor cores is called."""
_PARTS = ("instructions", TENSOR)
NO_FLOAT64 = 1 / 64
"""Rate of a dtype without hardware, as a share of float32's."""


def accessing(linear: Sequence[UOp]) -> list[UOp]:
    return [n for n in linear if n.op in (Ops.LOAD, Ops.STORE)]


def pipe_cycles(
    linear: Sequence[UOp], accesses: Sequence[WarpAccess], target: Target
) -> list[float]:
    """Return the cycles of the pipe to the first cache and shared memory, of each access in a run
    of a group. A copy that goes on by itself only asks, and takes them where it is stored."""
    is_async = target.copies_async
    copies = {n.src[1] for n in async_stores(linear)} if is_async else set[UOp]()
    return [
        access.requests if node in copies else access.pipe
        for node, access in zip(accessing(linear), accesses, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class GroupCycles:
    """A work-group of some warps: the cycles of a unit that its work takes, where `units` work and
    a run moves the bytes `moved`."""

    target: Target
    warps: int
    units: int
    moved: Mapping[str, int]

    def of_parts(self, work: ItemWork) -> dict[str, float]:
        """Return the cycles of each part of a core for the work of all of its work-items."""
        cycles = self._core_cycles(work)
        parts = {name: cycles.pop(name) for name in _PARTS if name in cycles}
        return {"arithmetic": max(cycles.values(), default=0.0)} | parts

    def uses(
        self, linear: Sequence[UOp], accesses: Sequence[WarpAccess], pipe: Sequence[float]
    ) -> dict[UOp, dict[str, float]]:
        """Return, for each node, the cycles that all warps of a group take of what they share, each
        time that they come to it."""
        uses = {node: self._core_cycles(work) for node, _, work in node_work(linear)}
        of_bytes = self._byte_cycles()
        for node, access, cycles in zip(accessing(linear), accesses, pipe, strict=True):
            times = max(1, access.times)
            uses[node]["pipe"] = cycles / times
            for level, of_byte in of_bytes.items():
                if access.place == "global":
                    uses[node][level] = access.moved_bytes / times * of_byte
        return uses

    def _byte_cycles(self) -> dict[str, float]:
        """Return the cycles of each level below the first cache for a byte that moves there."""
        speeds, requested = level_speeds(self._hardware), max(1, self.moved["L1"])
        return {
            level: moved / requested * self.units * self._hardware.clock_hz / speeds[level]
            for level, moved in self.moved.items()
            if level != "L1"
        }

    def _core_cycles(self, work: ItemWork) -> dict[str, float]:
        hardware, lanes = self._hardware, self.warps * self.target.warp_lanes
        cycles = {"instructions": work.instructions * self.warps / hardware.partitions}
        for kind, operations in work.operations.items():
            pipe = kind if kind in (SPECIAL_FUNCTION, INTEGER) else "floats"
            of_pipe = operations * lanes / _rate(hardware, kind)
            cycles[pipe] = cycles.get(pipe, 0.0) + of_pipe
        for operand_format, number in work.products.items():
            rate = hardware.tensor_peak(operand_format) / hardware.units / hardware.clock_hz
            cycles[TENSOR] = cycles.get(TENSOR, 0.0) + 2 * self.warps * number / rate
        return cycles

    @property
    def _hardware(self) -> Hardware:
        assert self.target.hardware is not None
        return self.target.hardware


def _rate(hardware: Hardware, kind: str) -> float:
    """Return the operations of a kind that begin in a unit per cycle."""
    if kind == SPECIAL_FUNCTION:
        return SPECIAL_LANES
    # an operation begins where a multiply-add would, which counts as two
    missing = hardware.peak("float32") * (NO_FLOAT64 if kind == "float64" else 1)
    peak = hardware.peak(kind) or missing
    return peak / 2 / hardware.units / hardware.clock_hz
