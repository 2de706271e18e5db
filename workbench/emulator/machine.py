"""The emulator: a linear program, run by all work-items of many groups in lock step.

A value is an array (groups, items), or (groups, items, lanes) for a vector, or smaller where it is
the same for all. An IF makes work-items inactive. A value may have a shadow: a mask of the elements
that depend on unwritten memory (as in valgrind's memcheck).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.base.errors import INTERNAL, DeviceError, WorkbenchError, kind_and_text
from workbench.base.target import Target
from workbench.emulator.arithmetic import Exchange, computed, spread, undefined, with_lanes
from workbench.emulator.cells import ReadOrigin
from workbench.emulator.findings import FindingList
from workbench.emulator.memory import Lanes, Memories, Shadow, poison
from workbench.emulator.rounds import NO_STEP, Rounds, RoundsPlan, ends_of, rounds_plan
from workbench.emulator.source.program import NO_ANNOTATIONS, Annotations
from workbench.ir.nest.accesses import async_stores, idle_lanes, name_of, size_of
from workbench.ir.nest.transactions import by_warps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype
_UPDATES = {
    Ops.ADD: np.add, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor,
    Ops.MAX: np.maximum, Ops.MIN: np.minimum,
}  # fmt: skip
LANES_AT_ONCE = 1 << 14
"""Most work-items that run together, unless one group has more."""


class NotEnded(DeviceError):
    """A program from a text has run for longer than it may; `position` is that of the innermost
    loop of unknown rounds that it was in."""

    position: int | None = None


class EmulatorError(WorkbenchError):
    """The emulator itself failed, at the step at `position`: what it computed is no answer."""

    def __init__(self, position: int, node: UOp, error: Exception):
        because = (
            f"its own code failed at {node.op.name}, step {position:,}: {kind_and_text(error)}"
        )
        hint = "another form of that line; the emulator has a fault"
        super().__init__("the emulator cannot run this program", because, hint)
        self.position = position


@dataclass
class BranchCount:
    """The warps that enter an IF, and the fewest that would hold the same work-items (`least`);
    `items` are two work-items of a divergent warp: one that enters and one that does not."""

    warps: int = 0
    least: int = 0
    items: tuple[int, int] | None = None


@dataclass
class Totals:
    """Counts by position in the program. executed: how often work-items executed a step; divergent:
    warps of which only a part enters an IF; branches: the warps that enter an IF; barriers: groups
    that waited; shuffles: warps whose lanes exchanged values."""

    executed: dict[int, int] = field(default_factory=dict)
    divergent: dict[int, int] = field(default_factory=dict)
    branches: dict[int, BranchCount] = field(default_factory=dict)
    barriers: dict[int, int] = field(default_factory=dict)
    shuffles: dict[int, int] = field(default_factory=dict)


class Watcher(Protocol):
    """Receives the events of a run: `open` each round of a loop at its begin, `close` the end of a
    loop, `access` each access during its step, `step` each step after it."""

    def open(self, axis: UOp, step: int) -> None: ...

    def close(self, axis: UOp) -> None: ...

    def access(self, lanes: Lanes, values: Array) -> None: ...

    def step(self, position: int, machine: Machine) -> None: ...


class Machine:
    """Runs a program over `params`, one array for each slot, which it changes. The contents of the
    slots `fresh` before the run count as unwritten.

    The target says how many work-items are a warp, and whether copies to tiles of several buffers
    go on while the program does. At most `lanes_at_once` work-items run together. `watcher`
    receives the events of the run. Without a watcher and `annotations`, and with `batches`,
    independent rounds of a loop are computed at once.
    """

    def __init__(
        self,
        linear: Sequence[UOp],
        params: Sequence[Array],
        target: Target,
        fresh: Set[int],
        lanes_at_once: int = LANES_AT_ONCE,
        watcher: Watcher | None = None,
        batches: bool = True,
        annotations: Annotations = NO_ANNOTATIONS,
    ):
        self.linear, self.warp_lanes = tuple(linear), target.warp_lanes
        self.watcher, self.batches = watcher, batches and annotations is NO_ANNOTATIONS
        self.launch: LaunchShape = launch_shape(linear)
        self.group_items = math.prod(self.launch.group)
        self.group_count = math.prod(self.launch.grid)
        self.at_once = max(1, min(self.group_count, lanes_at_once // self.group_items))
        slots = {n.param.slot for n in linear if _is_of_param(n)}
        self.findings = FindingList(self.launch, self.group_items)
        arrays, written = {slot: params[slot] for slot in slots}, written_slots(linear)
        idle = idle_lanes(linear)
        idle_at = {at: idle[n] for at, n in enumerate(linear) if n in idle}
        stores = async_stores(linear) if target.copies_async else frozenset[UOp]()
        copies = {at for at, n in enumerate(linear) if n in stores} | annotations.copies
        self.annotations = annotations
        self.memory = Memories(
            arrays, self.findings, self.warp_lanes, written, fresh, idle_at, copies
        )
        self.memory.reads_outside = annotations.reads_outside
        self.memory.atomic = annotations.atomic
        self.memory.is_zeroed = annotations.is_zeroed
        self.totals = Totals()
        self._ends = ends_of(self.linear)
        self._plans: dict[int, RoundsPlan | None] = {}
        self._counted: Array | None = None
        """The mask whose active work-items were counted last; `_active` is their number."""
        self._active = 0
        self._most_s = self._end_s = math.inf
        self.position = 0

    def run(self, groups: Sequence[int] | None = None, most_s: float = math.inf) -> None:
        """Run work-groups, by their ascending numbers; by default all.

        Errors: NotEnded after `most_s` seconds; EmulatorError if the emulator itself fails.
        """
        self._most_s, self._end_s = most_s, time.monotonic() + most_s
        numbers = range(self.group_count) if groups is None else groups
        with np.errstate(all="ignore"):
            try:
                for first in range(0, len(numbers), self.at_once):
                    self._start(numbers[first : first + self.at_once])
                    self._body(0, len(self.linear))
            except WorkbenchError:
                raise
            except INTERNAL as error:
                raise EmulatorError(self.position, self.linear[self.position], error) from error

    # the groups that run together

    def _start(self, groups: Sequence[int]) -> None:
        self.values: dict[UOp, Array] = {}
        self.shadows: dict[UOp, Shadow] = {}
        self.registers: dict[UOp, Array] = {}
        self.mask = np.ones((len(groups), self.group_items), bool)
        self.item_numbers = np.arange(self.group_items)[None, :]
        self.group_numbers = np.array(groups)[:, None]
        self.numbers = self.group_numbers * self.group_items + self.item_numbers
        self.memory.start(self.numbers)

    def _body(self, begin: int, end: int) -> None:
        position = begin
        while position < end:
            node = self.linear[position]
            if node.op is Ops.LOOP:
                self._loop(position, node.axis)
                position = self._ends[position]
            elif node.op is Ops.IF:
                self._if(position, node)
                position = self._ends[position]
            else:
                self._step(position, node)
                self._watch(position)
            position += 1

    def _watch(self, position: int) -> None:
        if self.watcher is not None:
            self.watcher.step(position, self)

    def _loop(self, position: int, axis: UOp) -> None:
        for step in range(self._rounds_together(position, axis), axis.extent):
            self.values[axis] = np.int64(step)
            if self.watcher is not None:
                self.watcher.open(axis, step)
                self.watcher.step(position, self)
            try:
                self._body(position + 1, self._ends[position])
                if self._has_ended(position):
                    break
            except NotEnded as error:
                if error.position is None and position in self.annotations.until:
                    error.position = position
                raise
        if self.watcher is not None:
            self.watcher.close(axis)

    def _has_ended(self, position: int) -> bool:
        """Whether no active work-item goes on with a loop. Errors: NotEnded after too long."""
        if time.monotonic() > self._end_s:
            because = f"it has not ended after {self._most_s:g} seconds"
            hint = "a loop that ends, or smaller tensors"
            raise NotEnded("the kernel was stopped on the emulator", because, hint)
        goes_on = self.annotations.until.get(position)
        if goes_on is None:
            return False
        return not (np.broadcast_to(self._register(goes_on), self.mask.shape) & self.mask).any()

    def _rounds_together(self, position: int, axis: UOp) -> int:
        """Run independent rounds of a loop at once, unless there is a watcher; return how many
        rounds are done.
        """
        if self.watcher is not None or not self.batches:
            return 0
        if position not in self._plans:
            end = self._ends[position]
            self._plans[position] = rounds_plan(self.linear, position + 1, end, axis)
        plan = self._plans[position]
        if plan is None or not plan.is_known(self):
            return 0
        at_once = plan.at_once(self.mask.size)
        for first in range(0, axis.extent, at_once) if at_once > 1 else ():
            last = min(first + at_once, axis.extent)
            if not Rounds(self, plan, first, last).run():
                self._plans[position] = None  # a loop that was irregular mostly is so again
                return first
            self._count_executed(plan, last - first)
        return axis.extent if at_once > 1 else 0

    def _count_executed(self, plan: RoundsPlan, rounds: int) -> None:
        executed, active = self.totals.executed, int(self.mask.sum()) * rounds
        for position in range(plan.begin, plan.end):
            executed[position] = executed.get(position, 0) + active

    def _if(self, position: int, node: UOp) -> None:
        before = self.mask
        condition = self.value(node.condition)
        self._depends(node.condition, before)
        self.mask = before & np.broadcast_to(condition, before.shape)
        were, are = (by_warps(m, self.warp_lanes, False) for m in (before, self.mask))
        out = were & ~are
        some = are.any(1) & out.any(1)
        count = self.totals.divergent
        count[position] = count.get(position, 0) + int(some.sum())
        branch = self.totals.branches.setdefault(position, BranchCount())
        branch.warps += int(are.any(1).sum())
        branch.least += int((-(-self.mask.sum(1) // self.warp_lanes)).sum())
        if some.any() and branch.items is None:
            warp = int(np.argmax(some))
            numbers = by_warps(self.numbers, self.warp_lanes, 0)[warp]
            ways = numbers[np.argmax(are[warp])], numbers[np.argmax(out[warp])]
            branch.items = int(ways[0]), int(ways[1])
        self._watch(position)
        if self.mask.any():
            self._body(position + 1, self._ends[position])
        self.mask = before

    # steps

    def _step(self, position: int, node: UOp) -> None:
        self.position = position
        op, executed = node.op, self.totals.executed
        if self._counted is not self.mask:  # many steps have the same mask
            self._counted, self._active = self.mask, int(self.mask.sum())
        executed[position] = executed.get(position, 0) + self._active
        if op is Ops.LOAD:
            self._load(position, node)
        elif op is Ops.STORE:
            self._store(position, node)
        elif op is Ops.SET:
            self.set_register(node)
            self._wait_for_copies(position)
        elif op is Ops.BARRIER:
            self._barrier(position)
        elif op is Ops.WARP_SHUFFLE:
            self._shuffle(position, node)
        elif op is Ops.SPECIAL:
            self.values[node.axis] = self._number(node)
        elif op is Ops.DEFINE:
            self.memory.define(node)
        elif op not in NO_STEP:
            if op is Ops.WMMA:
                self._require_whole_warps(position, node.arg.lanes)
            elif op is Ops.EXCHANGE:
                lanes = 1 << len(node.arg[0].lane.split())
                self._require_whole_warps(position, lanes)
            if position in self.annotations.divisions:
                self._require_divisor(position, node)
            self.compute(node)

    def value(self, node: UOp) -> Array:
        """Return the value of a node, for the work-items that run together."""
        if node.op is Ops.CONST:
            return np.asarray(node.arg, node.dtype.numpy)
        if node.op is Ops.LANES:
            return np.asarray(node.arg, node.dtype.scalar.numpy)
        if node.op is Ops.REG:
            return self._register(node)
        if node.op is Ops.AFTER:
            return self.value(node.src[0])
        return self.values[node]

    def _register(self, node: UOp) -> Array:
        """Return the value of a register; one that was never set has zeros and a shadow."""
        if node not in self.registers:
            self.registers[node] = np.zeros(node.dtype.count, node.dtype.scalar.numpy)
            if node.dtype.count == 1:
                self.registers[node] = self.registers[node][0]
            read = ReadOrigin(node.name, node.first_lane, int(self.numbers[0, 0]), self.position)
            self._shade(node, np.ones_like(self.registers[node], bool), read)
        return self.registers[node]

    def _number(self, node: UOp) -> Array:
        """Return each work-item's number along a dimension; dimension 0 is the innermost."""
        is_group = node.role == "grid"
        sizes = self.launch.grid if is_group else self.launch.group
        inner = math.prod(sizes[len(sizes) - node.dimension :])
        flat = self.group_numbers if is_group else self.item_numbers
        numbers: Array = flat // inner % node.axis.extent
        return numbers

    def compute(self, node: UOp) -> None:
        """Compute a value of the work-items that run together."""
        sources = [self.value(s) for s in node.src]
        self.values[node] = computed(node, sources)
        shadowed = [self.shadows[s] for s in node.src if s in self.shadows]
        self.shadows.pop(node, None)
        if shadowed:
            masks = [
                self.shadows[s].mask if s in self.shadows else np.zeros_like(v, bool)
                for s, v in zip(node.src, sources, strict=True)
            ]
            self._shade(node, undefined(node, sources, masks), shadowed[0].read)

    def _require_whole_warps(self, position: int, lanes: int) -> None:
        """Add a finding if only a part of a warp comes to a product or an EXCHANGE: each lane holds
        a part of the tiles."""
        warps = by_warps(self.mask, lanes, False)
        partial = warps.any(1) & ~warps.all(1)
        if partial.any():
            warp = int(np.argmax(partial))
            numbers = by_warps(self.numbers, lanes, -1)[warp]
            present = int(numbers[np.argmax(warps[warp])])
            self.findings.partial_warp(int(numbers[np.argmin(warps[warp])]), present, position)

    def _require_divisor(self, position: int, node: UOp) -> None:
        """Add a finding if a work-item that needs the value of a division divides by 0."""
        is_zero = np.asarray(with_lanes(self.value(node.src[1]), node.src[1], 2)) == 0
        if not is_zero.any():
            return
        gate = self.annotations.divisions[position]
        needs = self.mask if gate is None else self.mask & self.value(gate)
        alone = np.broadcast_to(is_zero.any(-1), self.mask.shape) & needs
        if alone.any():
            self.findings.division(int(self.numbers[tuple(np.argwhere(alone)[0])]), position)

    def _shade(self, node: UOp, mask: Array, read: ReadOrigin) -> None:
        if np.any(mask):
            self.shadows[node] = Shadow(mask, read)

    def set_register(self, node: UOp) -> None:
        """Set a register in the active work-items."""
        register, value = node.src
        lanes = () if register.dtype.count == 1 else (register.dtype.count,)
        shape = (*self.mask.shape, *lanes)
        mask = np.broadcast_to(self.mask[..., None] if lanes else self.mask, shape)
        new = spread(self.value(value), value, shape)
        if not mask.all():
            new = np.where(mask, new, self._register(register))
        self.registers[register] = new
        was, now = self.shadows.pop(register, None), self.shadows.get(value)
        if was is not None and not mask.all():
            self._shade(register, was.mask & ~mask, was.read)
        if now is not None:
            self._shade(register, spread(now.mask, value, shape) & mask, now.read)

    def _wait_for_copies(self, position: int) -> None:
        """Commit copies, or wait for them, at a step of a text that does that alone."""
        if position in self.annotations.commits:
            self.memory.batches.commit(self.mask)
        batches = self.annotations.waits.get(position)
        if batches is not None:
            self.memory.batches.wait(self.mask, batches)

    def _barrier(self, position: int) -> None:
        """Execute a barrier; a group without active work-items does not wait at it."""
        waits: Array = self.mask.any(1, keepdims=True)
        self.memory.epochs += waits
        batches: int | None = self.linear[position].arg
        if batches is not None:
            self.memory.batches.commit(self.mask)
            self.memory.batches.wait(self.mask, batches)
        self.memory.batches.meet(waits)
        count = self.totals.barriers
        count[position] = count.get(position, 0) + int(waits.sum())
        absent = waits & ~self.mask
        returned = self.annotations.returned
        if returned is not None and returned in self.registers:
            absent = absent & ~np.broadcast_to(self.registers[returned], absent.shape)
        if absent.any():
            group, item = (int(n) for n in np.argwhere(absent)[0])
            present = int(np.argmax(self.mask[group]))
            numbers = self.numbers[group, item], self.numbers[group, present]
            self.findings.divergent(int(numbers[0]), int(numbers[1]), position)

    def _shuffle(self, position: int, node: UOp) -> None:
        """Exchange values: each work-item gets the value of another lane of its warp. If that does
        not exist, or is inactive, the value is undefined. All lanes of a warp must take part."""
        (source,) = node.src
        lanes = () if node.dtype.count == 1 else (node.dtype.count,)
        shape = (*self.mask.shape, *lanes)
        exchange = Exchange(self.group_items, self.warp_lanes, node.arg)
        is_on = exchange.is_there & exchange.of_partners(self.mask)
        self._require_partners(position, exchange, self.mask & ~is_on)
        values = exchange.of_partners(spread(self.value(source), source, shape))
        defined = np.broadcast_to(is_on[..., None] if lanes else is_on, shape)
        self.values[node] = np.where(defined, values, poison(node.dtype.scalar))
        warps = by_warps(self.mask, self.warp_lanes, False).any(1)
        count = self.totals.shuffles
        count[position] = count.get(position, 0) + int(warps.sum())
        shadow = self.shadows.get(source)
        self.shadows.pop(node, None)
        if shadow is not None:
            mask = exchange.of_partners(spread(shadow.mask, source, shape))
            self._shade(node, mask & defined, shadow.read)

    def _require_partners(self, position: int, exchange: Exchange, alone: Array) -> None:
        """Add a finding for a work-item whose partner does not exist or is inactive; without such a
        work-item, for a warp of which only a part comes to a shuffle."""
        if alone.any():
            group, item = (int(n) for n in np.argwhere(alone)[0])
            lane = int(exchange.lanes[item])
            is_off = bool(exchange.is_there[item])
            why = "which does not come there" if is_off else "and there is none"
            self.findings.inactive_lane(int(self.numbers[group, item]), lane, position, why)
            return
        present_lanes, off = (by_warps(m, self.warp_lanes, False) for m in (self.mask, ~self.mask))
        partial = present_lanes.any(1) & off.any(1)
        if partial.any():
            warp = int(np.argmax(partial))
            numbers = by_warps(self.numbers, self.warp_lanes, -1)[warp]
            absent, present = (int(numbers[np.argmax(m[warp])]) for m in (off, present_lanes))
            self.findings.partial_shuffle(absent, present, position)

    # memory

    def _load(self, position: int, node: UOp) -> None:
        count, place = node.dtype.count, node.place
        lanes = self._lanes(position, place, node.src[1:], count, False)
        outside = self.memory.outside
        array = self.memory.array(place.param)
        shape = lanes.takes_part.shape
        values = np.zeros(shape, array.dtype)
        values[lanes.takes_part] = array[lanes.places]
        if self.watcher is not None:
            self.watcher.access(lanes, values)
        self.values[node] = values if count > 1 else values[..., 0]
        shadow = self.memory.read(position, place, lanes)
        if outside is not None and shadow is None:
            shadow = self._outside(position, place, lanes, outside)
        self.shadows.pop(node, None)
        if shadow is not None:
            mask = shadow.mask if count > 1 else shadow.mask[..., 0]
            self.shadows[node] = Shadow(mask, shadow.read)

    def _outside(self, position: int, place: UOp, lanes: Lanes, outside: Array) -> Shadow:
        """Return which values were read outside of their memory."""
        group, item, lane = (int(n) for n in np.argwhere(outside)[0])
        memory, element = place.param, int(lanes.index[group, item]) + lane
        number = int(self.numbers[group, item])
        read = ReadOrigin(name_of(memory), element, number, position, size_of(memory))
        return Shadow(outside, read)

    def _store(self, position: int, node: UOp) -> None:
        value, place = node.src[1], node.place
        count = value.dtype.count
        lanes = self._lanes(position, place, node.src[2:], count, True)
        shape = lanes.takes_part.shape
        new = np.broadcast_to(with_lanes(self.value(value), value, 2), shape)
        if self.watcher is not None:
            self.watcher.access(lanes, new)
        array, update = self.memory.array(place.param), self.annotations.updates.get(position)
        if update is None:
            array[lanes.places] = new[lanes.takes_part]
        else:
            _UPDATES[update].at(array, lanes.places, new[lanes.takes_part])
        shadow = self.shadows.get(value)
        if shadow is not None:
            mask = np.broadcast_to(with_lanes(shadow.mask, value, 2), shape)
            shadow = Shadow(mask, shadow.read)
            if place.param.op is Ops.PARAM and (mask & lanes.takes_part).any():
                self.findings.unwritten(*shadow.read)
        self.memory.write(position, place, lanes, shadow)

    def _lanes(
        self, position: int, place: UOp, gates: Sequence[UOp], count: int, is_store: bool
    ) -> Lanes:
        """Return the access of the work-items that take part."""
        shape = self.mask.shape
        index = np.broadcast_to(self.value(place.src[1]), shape).astype(np.int64)
        takes_part = np.broadcast_to(self.mask[..., None], (*shape, count))
        for gate in gates:
            takes_part = takes_part & with_lanes(self.value(gate), gate, 2)
            self._depends(gate, self.mask)
        if size_of(place.param) == 0:
            takes_part = np.zeros_like(takes_part)
        self._depends(place.src[1], takes_part.any(-1))
        self._require_aligned(position, place, index, takes_part)
        return self.memory.lanes(position, place, index, takes_part, is_store)

    def _require_aligned(self, position: int, place: UOp, index: Array, takes_part: Array) -> None:
        """Add a finding for an address that is no multiple of what the access needs."""
        nbytes = self.annotations.aligned.get(position)
        if nbytes is None:
            return
        memory = place.param
        off = takes_part.any(-1) & (index * memory.dtype.itemsize % nbytes != 0)
        if off.any():
            group, item = (int(n) for n in np.argwhere(off)[0])
            number, element = int(self.numbers[group, item]), int(index[group, item])
            self.findings.misaligned(name_of(memory), element, number, position, nbytes)

    def _depends(self, condition: UOp, mask: Array) -> None:
        """Add a finding if a condition or an index depends on unwritten memory."""
        shadow = self.shadows.get(condition)
        if shadow is not None:
            unknown = np.asarray(with_lanes(shadow.mask, condition, 2))
            if np.any(unknown & np.expand_dims(mask, -1)):
                self.findings.unwritten(*shadow.read)


def written_slots(linear: Sequence[UOp]) -> frozenset[int]:
    """Return the slots of the params that a program writes."""
    places = (n.place for n in linear if n.op is Ops.STORE)
    return frozenset(p.param.slot for p in places if _is_of_param(p))


def _is_of_param(node: UOp) -> bool:
    return node.op is Ops.INDEX and node.param.op is Ops.PARAM
