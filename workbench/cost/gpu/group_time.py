"""The time of a work-group that is alone on a unit of the GPU.

Between two barriers a group takes as long as the slowest of its parts: the chain of operations of a
work-item, with the loads that it waits for, or any unit that its warps share. Barriers separate
these phases, so that a group alone first loads, and then computes; several groups of a unit fill
each other's gaps. A group waits for asynchronous copies at the barrier that names them: the work
before it overlaps them.

Source of the latencies: W. Luo and others, Benchmarking and Dissecting the Nvidia Hopper GPU
Architecture via Microbenchmarking, 2024. GPUs of other makers are assumed to be similar.

Sections: The time of a work-group alone; The cycles of units that warps share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.base.target import Hardware, Target
from workbench.cost.gpu.item_work import (
    INTEGER,
    REGISTER_BYTES,
    SPECIAL_FUNCTION,
    ItemWork,
    node_work,
)
from workbench.cost.gpu.memory_traffic import WarpAccess, level_speeds
from workbench.ir.nest.accesses import async_stores
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The time of a work-group alone, with a unit of the GPU for itself.

GLOBAL_CYCLES = 500
"""Cycles from a load from memory to its value."""
SHARED_CYCLES = 30
"""Cycles from a load from shared memory to its value, and of a barrier."""
SHUFFLE_CYCLES = 23
"""Cycles from a warp shuffle to its value."""
VALUE_CYCLES = 4
"""Cycles from an operation to its value."""
PRODUCT_CYCLES = 32
"""Cycles from an instruction of a tensor core to its tile."""
LOADS_IN_FLIGHT = 32
"""Registers that compilers use for the loads of several steps, after unrolling a loop."""
MOST_STEPS = 32
"""The maximal number of steps of a loop whose loads are in flight together."""


@dataclass(slots=True)
class LoopScope:
    """A loop, or the whole program: its nodes and loops, in order."""

    axis: UOp | None = None
    body: list[UOp | LoopScope] = field(default_factory=list)

    @property
    def own(self) -> Iterator[UOp]:
        """The nodes of the loop itself, without those of inner loops."""
        return (part for part in self.body if isinstance(part, UOp))

    @property
    def waits(self) -> bool:
        """Whether it has a barrier, at any depth."""
        return any(
            part.waits if isinstance(part, LoopScope) else part.op is Ops.BARRIER
            for part in self.body
        )


@dataclass(slots=True)
class BarrierPhase:
    """The work of a group between two barriers: the cycles of a work-item alone, and those of each
    unit that warps share."""

    latency: float = 0.0
    shared: dict[str, float] = field(default_factory=dict)

    def share(self, uses: Mapping[str, float], steps: int = 1) -> None:
        """Add the cycles of shared units, `steps` times."""
        for name, cycles in uses.items():
            self.shared[name] = self.shared.get(name, 0.0) + steps * cycles

    @property
    def cycles(self) -> float:
        """The cycles of the slowest part."""
        return max([self.latency, *self.shared.values()])


def group_cycles(
    linear: Sequence[UOp], uses: Mapping[UOp, Mapping[str, float]], copies_async: bool
) -> float:
    """Return the cycles of a group alone. `uses` has, for each node, the cycles of each shared unit
    for one execution by all warps of the group."""
    copies = {n.src[1] for n in async_stores(linear)} if copies_async else set[UOp]()
    return _cycles(_scope(linear), uses, copies)


def _scope(linear: Sequence[UOp]) -> LoopScope:
    opened = [LoopScope()]
    for node in linear:
        if node.op is Ops.LOOP:
            opened.append(LoopScope(node.axis, [node]))
            opened[-2].body.append(opened[-1])
        elif node.op is Ops.ENDLOOP:
            opened.pop()
        else:
            opened[-1].body.append(node)
    return opened[0]


def _cycles(
    scope: LoopScope, uses: Mapping[UOp, Mapping[str, float]], copies: Collection[UOp]
) -> float:
    """Return the cycles of one step of a scope, phase by phase."""
    phases, total = [BarrierPhase()], 0.0
    nodes: list[UOp] = []
    hidden = 0.0  # least cycles of a step: the latency of a copy, divided by the steps it may take

    def close() -> None:
        phases[-1].latency += _latency(nodes, copies)
        nodes.clear()
        phases.append(BarrierPhase())

    for part in scope.body:
        if isinstance(part, LoopScope):
            assert part.axis is not None
            if part.waits:
                close()
                total += part.axis.extent * _cycles(part, uses, copies)
            else:
                _add(phases[-1], part, uses, copies)
        elif part.op is Ops.BARRIER:
            if part.arg is not None and copies:
                hidden = max(hidden, GLOBAL_CYCLES / (part.arg + 1))
            close()
            total += SHARED_CYCLES
        else:
            nodes.append(part)
            phases[-1].share(uses.get(part, {}))
    close()
    return max(total + sum(phase.cycles for phase in phases), hidden)


def _add(
    phase: BarrierPhase,
    loop: LoopScope,
    uses: Mapping[UOp, Mapping[str, float]],
    copies: Collection[UOp],
) -> None:
    """Add a loop without barriers to a phase."""
    assert loop.axis is not None
    steps, inner = loop.axis.extent, BarrierPhase()
    for part in loop.body:
        if isinstance(part, LoopScope):
            _add(inner, part, uses, copies)
        else:
            inner.share(uses.get(part, {}))
    own = [*loop.own]
    together = min(steps, steps_in_flight(own, copies))
    phase.latency += steps * (_latency(own, copies, together) + inner.latency)
    phase.share(inner.shared, steps)


def steps_in_flight(own: Sequence[UOp], copies: Collection[UOp] = ()) -> int:
    """Return how many steps of a loop have their loads from global memory in flight together."""
    loaded = sum(max(1, n.dtype.itemsize // REGISTER_BYTES) for n in own if _is_awaited(n, copies))
    return min(MOST_STEPS, max(1, LOADS_IN_FLIGHT // max(1, loaded)))


def _latency(nodes: Sequence[UOp], copies: Collection[UOp], steps: int = 1) -> float:
    """Return the cycles of nodes in sequence: the latency of loads, shared by `steps` whose loads
    are in flight together, and a chain of operations for each independent accumulator."""
    waits = GLOBAL_CYCLES * any(_is_awaited(n, copies) for n in nodes)
    waits += SHARED_CYCLES * any(_space(n) == "shared" for n in nodes)
    chains = max(1, len({n.src[0] for n in nodes if n.op is Ops.SET}))
    values = sum(n.op in ELEMENTWISE and n.dtype.kind != "index" for n in nodes)
    products = sum(n.op is Ops.WMMA for n in nodes)
    shuffles = sum(n.op is Ops.WARP_SHUFFLE for n in nodes)
    chain = VALUE_CYCLES * values + PRODUCT_CYCLES * products + SHUFFLE_CYCLES * shuffles
    return waits / steps + chain / chains


def _is_awaited(node: UOp, copies: Collection[UOp]) -> bool:
    return _space(node) == "global" and node not in copies


def _space(node: UOp) -> str:
    if node.op is not Ops.LOAD:
        return ""
    memory = node.place.param
    if memory.op is Ops.PARAM:
        return "global"
    return "shared" if memory.space == "shared" else "private"


# --------------------------------------------------------------------------------------------------
# The cycles of units that warps share: arithmetic pipes, tensor cores, instruction issue, shared
# memory and first cache, and each level below.

SPECIAL_LANES = 16
"""Special functions that a unit begins per cycle."""
TENSOR = "tensor cores"
"""The name of the part of a run on tensor cores."""
_PARTS = ("instructions", TENSOR)
NO_FLOAT64 = 1 / 64
"""Rate of float64 without hardware for it, as a share of float32's."""


def accessing(linear: Sequence[UOp]) -> list[UOp]:
    """Return the LOADs and STOREs of a linear program, in order."""
    return [n for n in linear if n.op in (Ops.LOAD, Ops.STORE)]


def pipe_cycles(
    linear: Sequence[UOp], accesses: Sequence[WarpAccess], target: Target
) -> list[float]:
    """Return, for each access, the cycles of the pipe to the first cache and shared memory in a run
    of a group. The load of an asynchronous copy takes only its requests, the store the rest."""
    is_async = target.copies_async
    copies = {n.src[1] for n in async_stores(linear)} if is_async else set[UOp]()
    return [
        access.requests if node in copies else access.pipe
        for node, access in zip(accessing(linear), accesses, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class GroupCycles:
    """The cycles of a unit for a work-group of `warps` warps, if `units` units work and a run moves
    the bytes `moved` from each level."""

    target: Target
    warps: int
    units: int
    moved: Mapping[str, int]

    def of_parts(self, work: ItemWork) -> dict[str, float]:
        """Return the cycles of each part of a unit for the work of all work-items of the group."""
        cycles = self._core_cycles(work)
        parts = {name: cycles.pop(name) for name in _PARTS if name in cycles}
        return {"arithmetic": max(cycles.values(), default=0.0)} | parts

    def uses(
        self, linear: Sequence[UOp], accesses: Sequence[WarpAccess], pipe: Sequence[float]
    ) -> dict[UOp, dict[str, float]]:
        """Return, for each node, the cycles of each shared unit for one execution by all warps of
        the group."""
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
        """Return the cycles of each level below the first cache per byte that a group accesses."""
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
    """Return the operations of a kind that begin in a unit per cycle, lanes counted."""
    if kind == SPECIAL_FUNCTION:
        return SPECIAL_LANES
    # a multiply-add counts as two operations of the peak, and begins in one slot
    missing = hardware.peak("float32") * (NO_FLOAT64 if kind == "float64" else 1)
    peak = hardware.peak(kind) or missing
    return peak / 2 / hardware.units / hardware.clock_hz
