"""The time of a core for a kernel whose data are in the first cache, by its linear program.

In each loop of the program a step can wait for one of six parts: arithmetic (two instructions a
cycle, fewer of some kinds); loads; stores; the number of all instructions; accumulators that wait
for themselves from step to step (the chain); and results that wait for each other within a step, if
it is too long to overlap with the next one (the path). A step takes as long as the slowest part: a
processor overlaps the others. Source of the idea: the port models of IACA and OSACA, simplified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from workbench.backends.program.analysis import is_number
from workbench.base.target import Target
from workbench.ir.node.ops import ELEMENTWISE, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.measure.speeds import Speeds

ISSUED = 5
"""Instructions that begin in a cycle."""
IN_FLIGHT = 256
"""Instructions in flight at once: so many can begin before a late result is there."""
FORWARDED_CYCLES = 8
"""Cycles from storing a number to loading it again: a spilled accumulator waits for them."""
CROSSING_CYCLES = 40
"""The same for a number that crosses a line on the stack, as vectors may that are longer than the
stack's alignment."""
SELECTION_CYCLES = 2
"""Cycles from a comparison's result to the number selected by it."""
DIVIDER_BYTES = 32
"""Bytes of the division that an op's slots are for. A divider works on one instruction at a time,
and on a part of a wide vector: processors have 3 cycles for 16 bytes, 5 for 32, and 10 for 64."""
NARROW_DIVISION = 0.6
"""How long a division of at most 16 bytes takes, as a share of one of DIVIDER_BYTES."""
STACK_BYTES = 16
"""Alignment of the stack."""
LOOP_INSTRUCTIONS = 2
Steps = dict[UOp, int]
"""By accumulator, the steps of the loops around a node, inside of the loop that sets its first
value; 0 if its first value is set outside of all loops."""
DIVISIONS = (Ops.FDIV, Ops.RECIP, Ops.SQRT)
PARTS = ("chain", "path", "arithmetic", "loads", "stores", "issue")


@dataclass(slots=True)
class LoopWork:
    """One step of a loop, without its inner loops.

    `arithmetic` counts instructions, `fmas` the multiply-adds and `vectors` the vector instructions
    among them; `width` is the greatest number of elements of one. `live` is the number of registers
    needed at once (0 for a loop with inner loops), `sums` the number of independent accumulators.
    Units: `seconds` by part, see PARTS; `sum_s` is the time of an accumulator's instruction if
    nothing waits.
    """

    axis: UOp | None
    trips: int
    seconds: dict[str, float] = field(default_factory=dict)
    arithmetic: int = 0
    fmas: int = 0
    vectors: int = 0
    width: int = 1
    loads: int = 0
    stores: int = 0
    live: int = 0
    sums: int = 0
    sum_s: float = 0.0
    bits: int = 32
    inner: list[LoopWork] = field(default_factory=list)

    @property
    def own_s(self) -> float:
        """The seconds of one step without its inner loops."""
        return max(self.seconds.values(), default=0.0)

    @property
    def total_s(self) -> float:
        """The seconds of all steps, with inner loops."""
        return self.trips * (self.own_s + sum(loop.total_s for loop in self.inner))

    @property
    def limit(self) -> str:
        """The part that a step waits for."""
        return max(self.seconds, key=lambda part: self.seconds[part])

    def find(self, axis: UOp | None) -> LoopWork | None:
        """Return the loop over an axis of the same name, this one or an inner one; None if there is
        none. For None return this one."""
        if axis is None or self.axis is not None and self.axis.axis_name == axis.axis_name:
            return self
        return next((f for f in (i.find(axis) for i in self.inner) if f), None)

    def hottest(self) -> tuple[LoopWork, float]:
        """Return the loop that takes the most time, and its seconds in all steps of this one."""
        candidates = [(self, self.trips * self.own_s)]
        candidates += [(loop, self.trips * s) for loop, s in (i.hottest() for i in self.inner)]
        return max(candidates, key=lambda pair: pair[1])


def work(linear: Sequence[UOp], target: Target, speeds: Speeds) -> LoopWork:
    """Return the work of a linear program as one step of a loop without an axis."""
    return _ProgramReader(linear, target, speeds).read()


class _ProgramReader:
    def __init__(self, linear: Sequence[UOp], target: Target, speeds: Speeds):
        self.linear, self.target, self.speeds = linear, target, speeds
        self.cycle_s = speeds.cycle_s or speeds.fma_s / target.fma_cycles

    def read(self) -> LoopWork:
        root = LoopWork(None, 1)
        self._body(iter(self.linear), root, {})
        return root

    def _body(self, nodes: Iterable[UOp], loop: LoopWork, begun: Steps) -> None:
        """Read up to the end of `loop`; `begun` has the accumulators that have a first value."""
        own: list[UOp] = []
        stream = iter(nodes)
        for node in stream:
            if node.op is Ops.ENDLOOP:
                break
            if node.op is Ops.LOOP:
                inner = LoopWork(node.axis, node.axis.extent)
                loop.inner.append(inner)
                steps = {reg: n * inner.trips for reg, n in begun.items()}
                self._body(stream, inner, steps)
            else:
                own.append(node)
                if node.op is Ops.SET and _begins(node.src[1]):
                    begun[node.src[0]] = int(loop.axis is not None)
        self._set_limit(own, loop, begun)

    def _set_limit(self, own: Sequence[UOp], loop: LoopWork, begun: Steps) -> None:
        slots = load_s = store_s = 0.0
        issued = float(LOOP_INSTRUCTIONS if loop.axis is not None else 0)
        for node in own:
            if node.op is Ops.LOAD:
                loop.loads += 1
                load_s += self._load_s(node)
            elif node.op is Ops.STORE:
                loop.stores += 1
                store_s += self._store_s(node.value)
            elif _computes(node):
                loop.arithmetic += 1
                loop.fmas += node.op is Ops.FMA
                loop.vectors += node.dtype.count > 1
                loop.width = max(loop.width, node.dtype.count)
                slots += self._slots(node)
                issued += _instructions(node)
            elif node.op in ELEMENTWISE and OPS[node.op].slots > 1:  # in an index
                issued += OPS[node.op].slots / 2
        loop.bits = max((n.dtype.bits for n in own if n.dtype.is_float), default=32)
        chain_s, sums = self._chain(own)
        loop.sums = len(sums)
        widest = max((n.src[1].dtype.itemsize for n in own if n.op is Ops.SET), default=4)
        loop.sum_s = self.speeds.fma_each_s(
            min(widest, self.target.vector_bytes), self.target.vector_bytes
        )
        if not loop.inner:
            loop.live = live_registers(own, self.target)
        spilled = max(0, loop.live - self.target.vector_registers)
        if spilled:
            load_s += spilled * self.target.vector_bytes / self.speeds.read["L1"].one
            store_s += spilled * 2 * self.target.vector_bytes / self.speeds.copy["L1"].one
            crosses = self.target.vector_bytes > STACK_BYTES
            forwarded = CROSSING_CYCLES if crosses else FORWARDED_CYCLES
            chain_s += forwarded * self.cycle_s if chain_s else 0.0
        # most loads are operands of arithmetic instructions
        issued += loop.loads / 2 + loop.stores + spilled * 2
        lead = max(1.0, IN_FLIGHT / max(1.0, issued))
        steps = min((begun.get(reg, 0) for reg in sums), default=0)
        if steps:  # the next sums begin before the last additions to these
            chain_s *= steps / (steps + lead)
        parts = (
            chain_s, self._path_s(own) / lead, slots * self.speeds.scalar_s, load_s, store_s,
            issued * self.cycle_s / ISSUED,
        )  # fmt: skip
        loop.seconds = dict(zip(PARTS, parts, strict=True))

    def _path_s(self, own: Sequence[UOp]) -> float:
        """Return the seconds of the longest chain of results that need each other."""
        length: dict[UOp, float] = {}
        for node in own:
            before = max((length.get(s, 0.0) for s in node.src), default=0.0)
            length[node] = self._latency_s(node) + before
        return max(length.values(), default=0.0)

    def _latency_s(self, node: UOp) -> float:
        """Return how many seconds an op waits for the result of `node`."""
        if node.dtype.kind == "index":
            return 0.0
        adds = node.dtype.is_float and node.op is Ops.ADD
        tested_s = SELECTION_CYCLES * self.cycle_s if _tests_for_nan(node) else 0.0
        latency_s = self.speeds.addition_s if adds else self.speeds.fma_s
        return OPS[node.op].latency * latency_s + tested_s

    def _slots(self, node: UOp) -> float:
        size = node.dtype.itemsize
        slots = float(OPS[node.op].slots)
        if _is_extreme(node):
            slots = 1.0  # of each instruction
        elif node.op in DIVISIONS:
            at_once = min(size, self.target.vector_bytes) / DIVIDER_BYTES
            slots *= max(NARROW_DIVISION, at_once)
        return self._each(size) * _instructions(node) * slots

    def _each(self, size_bytes: int) -> float:
        """Return the slots of an instruction on vectors of `size_bytes`."""
        each_s = self.speeds.fma_each_s(size_bytes, self.target.vector_bytes)
        return max(1.0, each_s / self.speeds.scalar_s)

    def _load_s(self, node: UOp) -> float:
        size = node.dtype.itemsize
        return max(self.speeds.scalar_s, size / self.speeds.read["L1"].one)

    def _store_s(self, value: UOp) -> float:
        size = value.dtype.itemsize
        return max(self.cycle_s, 2 * size / self.speeds.copy["L1"].one)

    def _chain(self, own: Sequence[UOp]) -> tuple[float, set[UOp]]:
        """Return the most seconds for which an accumulator waits for itself in a step, and the
        accumulators that do."""
        links: dict[UOp, dict[UOp, float]] = {}
        for node in own:
            step_s = self._latency_s(node)
            waits: dict[UOp, float] = {}
            for source in node.src:
                reached = {source: 0.0} if source.op is Ops.REG else links.get(source, {})
                for register, seconds in reached.items():
                    waits[register] = max(waits.get(register, 0.0), seconds + step_s)
            links[node] = waits
        sets = [n for n in own if n.op is Ops.SET]
        lengths = {n.src[0]: links.get(n.src[1], {}).get(n.src[0], 0.0) for n in sets}
        waiting = {register: length for register, length in lengths.items() if length}
        return max(waiting.values(), default=0.0), {*waiting}


def _begins(value: UOp) -> bool:
    """Whether a value does not depend on an accumulator: it is the first value of one."""
    return all(n.op is not Ops.REG for n in value.toposort())


def _computes(node: UOp) -> bool:
    if node.dtype.kind == "index" or node.op is Ops.CONST:
        return False
    if node.op is Ops.BROADCAST:
        # broadcasting a loaded or constant number is part of its load
        return node.src[0].op not in (Ops.LOAD, Ops.CONST)
    lane_ops = (Ops.STACK, Ops.EXTRACT, Ops.SHUFFLE, Ops.HREDUCE)
    return node.op in ELEMENTWISE or node.op in lane_ops


def _is_extreme(node: UOp) -> bool:
    return node.op in (Ops.MAX, Ops.MIN) and node.dtype.is_float


def _tests_for_nan(node: UOp) -> bool:
    """Whether a node is the greater or lesser of two numbers, of which either may be NaN."""
    return _is_extreme(node) and not any(map(is_number, node.src))


def _instructions(node: UOp) -> float:
    """Return about how many instructions a node takes."""
    if _is_extreme(node):  # the comparison, a test for NaN, and a selection
        return 3.0 if _tests_for_nan(node) else 1.0
    if node.op is Ops.STACK:
        return float(node.dtype.count)
    if node.op is Ops.HREDUCE:
        return 2 * math.log2(max(2, node.src[0].dtype.count))
    return float(OPS[node.op].slots > 0)


def live_registers(own: Sequence[UOp], target: Target) -> int:
    """Return the most vector registers that one step of an innermost loop needs at once. An
    accumulator needs its registers all the time, a value from its instruction to its last use.
    Constants can be read from memory, and are not counted."""
    last: dict[UOp, int] = {}
    sums: set[UOp] = set()
    for place, node in enumerate(own):
        for source in node.src:
            last[source] = place
            if source.op is Ops.REG:
                sums.add(source)
    inside = {n for n in own if _in_register(n)}
    outside = {
        n for n in last if n not in inside and n.dtype.count > 1
        and n.op not in (Ops.REG, Ops.CONST, Ops.LANES, Ops.INDEX, Ops.PARAM)
        and not (n.op is Ops.BROADCAST and n.src[0].op is Ops.CONST)
    }  # fmt: skip
    fixed = sum(_registers(n, target) for n in (*sums, *outside))
    live = most = 0
    ends: dict[int, int] = {}
    for place, node in enumerate(own):
        live -= ends.pop(place, 0)
        # the next value of an accumulator takes the register of the last one
        if node in inside and last.get(node, -1) > place and not _updates(node, sums):
            live += _registers(node, target)
            end = last[node]
            ends[end] = ends.get(end, 0) + _registers(node, target)
        most = max(most, live)
    return fixed + most


def _updates(node: UOp, sums: set[UOp]) -> bool:
    return any(source in sums for source in node.src)


def _in_register(node: UOp) -> bool:
    if node.op is Ops.LOAD or node.op is Ops.BROADCAST:
        return node.dtype.count > 1 or node.dtype.is_float
    return _computes(node)


def _registers(node: UOp, target: Target) -> int:
    return max(1, -(-node.dtype.itemsize // target.vector_bytes))
