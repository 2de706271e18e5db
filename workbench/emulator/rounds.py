"""All rounds of a loop at once, where they are independent.

If few work-items run together, and a loop is long, it has many steps of a few elements each. In
most loops the rounds depend on each other only by sums. So operations that are the same in any
order of the rounds (indexes, loads, arithmetic, stores) are done for all rounds at once: their
arrays have a dimension for the rounds, before those of groups and work-items. Registers that the
loop sets are then computed round by round from these values, or by numpy's accumulate. Accesses are
counted as if each round had groups of its own, which gives the same counts.

Findings (unwritten memory, a race, an index outside) depend on the order of rounds. So if there is
one, the loop runs round by round, as it always does with a watcher.

Sections: All rounds of a loop at once, where they are independent; The ends of the blocks of a
linear program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from workbench.emulator.arithmetic import computed, with_lanes
from workbench.emulator.memory import Lanes, Memories, Shadow
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import REDUCTIONS, Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype

# --------------------------------------------------------------------------------------------------
# All rounds of a loop at once, where they are independent.

MOST_ELEMENTS = 1 << 14
"""Most elements of a value of several rounds: more are slower, since no cache holds them."""
LEAST_ROUNDS = 4
"""Fewest rounds that are computed at once: fewer gain nothing."""
_NO_ROUNDS = frozenset(
    {Ops.LOOP, Ops.IF, Ops.BARRIER, Ops.WARP_SHUFFLE, Ops.SPECIAL, Ops.DEFINE}
    | {Ops.WMMA, Ops.EXCHANGE}
)
"""Ops that do not allow a dimension for rounds, or whose order matters."""
_ACCUMULATED = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN})
NO_STEP = frozenset(
    {Ops.BLOCK, Ops.INDEX, Ops.CONST, Ops.LANES, Ops.REG, Ops.RANGE, Ops.PARAM}
    | {Ops.AFTER, Ops.ENDLOOP, Ops.ENDIF}
)
"""Ops that compute nothing where they stand in the list."""


class LockStep(Protocol):
    """The part of a machine that rounds use: its program, its work-items' values, single steps."""

    linear: tuple[UOp, ...]
    mask: Array
    values: dict[UOp, Array]
    shadows: dict[UOp, Shadow]
    registers: dict[UOp, Array]
    memory: Memories

    def value(self, node: UOp) -> Array: ...

    def compute(self, node: UOp) -> None: ...

    def set_register(self, node: UOp) -> None: ...


@dataclass(frozen=True)
class RoundsPlan:
    """The plan of a loop: `together` are the positions of nodes that are computed for all rounds at
    once, `accumulated` the SETs that add a value of each round to a register, `by_round` the nodes
    that are computed round by round. `lanes` is the width of the widest vector; `outside` are the
    nodes that the loop uses and does not compute, and its registers."""

    axis: UOp
    begin: int
    end: int
    together: tuple[int, ...]
    accumulated: tuple[UOp, ...]
    by_round: tuple[UOp, ...]
    lanes: int
    outside: tuple[UOp, ...]

    def at_once(self, items: int) -> int:
        """Return how many rounds are computed at once if `items` work-items run together; 1 if more
        would gain nothing."""
        most = MOST_ELEMENTS // (items * self.lanes)
        return most if min(most, self.axis.extent) >= LEAST_ROUNDS else 1

    def is_known(self, machine: LockStep) -> bool:
        """Whether no value that the loop uses depends on unwritten memory."""
        return not any(
            node in machine.shadows or node.op is Ops.REG and node not in machine.registers
            for node in self.outside
        )


class IrregularError(Exception):
    """The effect of a round depends on the order of rounds."""


def rounds_plan(linear: Sequence[UOp], begin: int, end: int, axis: UOp) -> RoundsPlan | None:
    """Return the plan of the loop with the body `begin` to `end`; None if its rounds depend on each
    other by more than registers, or have an op that must run round by round.

    A node that depends on a register is computed in the order of the rounds, all others for all
    rounds at once. So rounds must not share memory: a memory that the body stores to has one STORE
    and no LOAD; and no access may depend on a register. A register to which each round only adds a
    value is summed at once as well (`accumulated`), in the order of the rounds, since floats round.
    """
    body = [(p, linear[p]) for p in range(begin, end) if linear[p].op not in NO_STEP]
    if not body or any(node.op in _NO_ROUNDS for _, node in body):
        return None
    registers = dict.fromkeys(n.src[0] for _, n in body if n.op is Ops.SET)
    stored = [n.place.param for _, n in body if n.op is Ops.STORE]
    loaded = [n.place.param for _, n in body if n.op is Ops.LOAD]
    if len(stored) > len({*stored} - {*loaded}):
        return None  # a round may read or overwrite the store of an earlier one
    in_order: set[UOp] = set(registers)
    together, in_turn = list[int](), list[UOp]()
    for position, node in body:
        sources = _sources(node)
        is_in_order = node.op is Ops.SET or any(s in in_order for s in sources)
        if is_in_order and node.op in (Ops.LOAD, Ops.STORE):
            return None
        if is_in_order:
            in_turn.append(node)
            in_order.add(node)
        else:
            together.append(position)
    nodes = dict.fromkeys(node for _, node in body)
    used = dict.fromkeys(source for node in nodes for source in _sources(node))
    lanes = max(each.dtype.count for each in (*nodes, *used))
    outside = [n for n in used if n not in nodes and n is not axis]
    computed_at_once = {axis, *(linear[p] for p in together)}
    sums = [n for n in in_turn if _is_sum(n, in_turn, computed_at_once)]
    left = dict.fromkeys(in_turn).keys() - {*sums, *(n.src[1] for n in sums)}
    by_round = tuple(n for n in in_turn if n in left)
    return RoundsPlan(
        axis, begin, end, tuple(together), tuple(sums), by_round, lanes, (*registers, *outside)
    )


def _is_sum(node: UOp, in_turn: Sequence[UOp], at_once: Set[UOp]) -> bool:
    """Whether a SET adds a value of each round to its register, which no other node reads."""
    if node.op is not Ops.SET or node.src[0].dtype.count > 1:
        return False
    register, total = node.src
    if total.op not in _ACCUMULATED or total.src[0] is not register:
        return False
    uses = [n for n in in_turn for s in _sources(n) if s in (register, total)]
    sets = [n for n in in_turn if n.op is Ops.SET and n.src[0] is register]
    return _value(total.src[1]) in at_once and len(uses) == 2 and len(sets) == 1


def _sources(node: UOp) -> list[UOp]:
    """Return the values that a step uses: of an INDEX the index, of a SET not the register."""
    sources = list[UOp]()
    for number, source in enumerate(node.src):
        if source.op is Ops.INDEX:
            sources.append(_value(source.src[1]))
        elif node.op is not Ops.SET or number > 0:
            sources.append(_value(source))
    return sources


def _value(node: UOp) -> UOp:
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


class Rounds:
    """Some rounds of a loop of a machine, `first` to `last`."""

    def __init__(self, machine: LockStep, plan: RoundsPlan, first: int, last: int):
        self.machine, self.plan = machine, plan
        self.count = last - first
        steps = np.arange(first, last, dtype=np.int64)
        self.values: dict[UOp, Array] = {plan.axis: steps[:, None, None]}
        self.commits: list[Callable[[], None]] = []
        self.shape = (self.count, *machine.mask.shape)

    def run(self) -> bool:
        """Compute the rounds; return False, and change nothing, if a round is irregular."""
        linear, machine = self.machine.linear, self.machine
        try:
            for position in self.plan.together:
                node = linear[position]
                if node.op is Ops.LOAD:
                    self._load(position, node)
                elif node.op is Ops.STORE:
                    self._store(position, node)
                else:
                    sources = [self.value(s) for s in node.src]
                    self.values[node] = computed(node, sources)
        except IrregularError:
            return False
        with machine.memory.repeated(self.count):
            for commit in self.commits:
                commit()
        self._by_round()
        return True

    def value(self, node: UOp) -> Array:
        node = _value(node)
        value = self.values.get(node)
        return self.machine.value(node) if value is None else value

    def _of_round(self, node: UOp, number: int) -> Array:
        """Return the value of a node in a round; without a dimension for rounds it is the same."""
        value = self.values[node]
        has_rounds = np.ndim(value) == (3 if node.dtype.count == 1 else 4)
        of_round = value[number] if has_rounds else value
        return np.int64(of_round[0, 0]) if node is self.plan.axis else of_round

    # registers, from round to round

    def _by_round(self) -> None:
        machine, left = self.machine, self.plan.by_round
        for node in self.plan.accumulated:
            self._accumulate(node)
        used = {s for node in left for s in _sources(node) if s in self.values}
        for number in range(self.count) if left else ():
            for node in used:
                machine.values[node] = self._of_round(node, number)
            for node in left:
                if node.op is Ops.SET:
                    machine.set_register(node)
                else:
                    machine.compute(node)
        for node in self.values:
            machine.values[node] = self._of_round(node, self.count - 1)
            machine.shadows.pop(node, None)

    def _accumulate(self, node: UOp) -> None:
        """Add the values of all rounds to a register, in their order."""
        machine, (register, total) = self.machine, node.src
        before = np.broadcast_to(machine.registers[register], machine.mask.shape)
        parts = np.broadcast_to(self.value(total.src[1]), self.shape)
        whole = np.concatenate([before[None], parts])
        ufunc = REDUCTIONS[total.op].ufunc
        after = ufunc.accumulate(whole, 0, dtype=whole.dtype)[-1]
        machine.values[total] = after
        machine.registers[register] = np.where(machine.mask, after, before)

    # memory

    def _lanes(self, node: UOp, gates: Sequence[UOp], count: int) -> tuple[Array, Array]:
        """Return the index of each access (rounds * groups, items), and a mask of the lanes that
        take part (rounds * groups, items, lanes)."""
        place = node.place
        index = np.broadcast_to(self.value(place.src[1]), self.shape).astype(np.int64)
        takes_part = np.broadcast_to(self.machine.mask[..., None], (*self.shape, count))
        for gate in gates:
            takes_part = takes_part & with_lanes(self.value(gate), gate, 2)
        size = size_of(place.param)
        if size == 0:
            raise IrregularError
        elements = index[..., None] + np.arange(count) if count > 1 else index[..., None]
        if (takes_part & ((elements < 0) | (elements >= size))).any():
            raise IrregularError
        rows = self.count * self.shape[1]
        return index.reshape(rows, -1), takes_part.reshape(rows, self.shape[2], count)

    def _load(self, position: int, node: UOp) -> None:
        memory, count, place = self.machine.memory, node.dtype.count, node.place
        index, takes_part = self._lanes(node, node.src[1:], count)
        with memory.repeated(self.count):
            lanes = memory.at(place, index, takes_part)
            if not memory.reads_freely(position, place, lanes):
                raise IrregularError
        array = memory.array(place.param)
        values = np.zeros(takes_part.shape, array.dtype)
        values[takes_part] = array[lanes.places]
        values = values.reshape(*self.shape, count)
        self.values[node] = values if count > 1 else values[..., 0]
        self.commits.append(lambda: self._note(position, place, lanes, False))

    def _store(self, position: int, node: UOp) -> None:
        memory, value, place = self.machine.memory, node.src[1], node.place
        count = value.dtype.count
        index, takes_part = self._lanes(node, node.src[2:], count)
        with memory.repeated(self.count):
            lanes = memory.at(place, index, takes_part)
            if not memory.writes_freely(position, place, lanes):
                raise IrregularError
        new = np.broadcast_to(with_lanes(self.value(value), value, 2), (*self.shape, count))
        new = new.reshape(takes_part.shape)

        def commit() -> None:
            memory.array(place.param)[lanes.places] = new[takes_part]
            self._note(position, place, lanes, True)

        self.commits.append(commit)

    def _note(self, position: int, place: UOp, lanes: Lanes, is_store: bool) -> None:
        memory = self.machine.memory
        memory.count(position, place.param, lanes.index, lanes.takes_part, is_store)
        if is_store:
            memory.write(position, place, lanes, None)
        else:
            memory.read(position, place, lanes.backwards(self.count))


# --------------------------------------------------------------------------------------------------
# The ends of the blocks of a linear program.


def ends_of(linear: Sequence[UOp]) -> dict[int, int]:
    """Return the position of the end of each LOOP and IF."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for position, node in enumerate(linear):
        if node.op in (Ops.LOOP, Ops.IF):
            opened.append(position)
        elif node.op in (Ops.ENDLOOP, Ops.ENDIF):
            ends[opened.pop()] = position
    return ends
