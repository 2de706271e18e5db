"""Expansion of statements: one operation for each vector of lanes, or for each lane.

`expand.py` expands the values; this file writes them, to registers or to memory.

Sections: Expansion of statements; Edits of a statement tree by a pass, and their record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.target import Target
from workbench.base.trace import Match, PassStep, derived_from
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.expand import INT32, Expander, combine
from workbench.ir.lower.lanes import (
    VectorRegisters,
    copy_widths,
    lane_widths,
    spread,
    statement_lanes,
)
from workbench.ir.lower.loads import block_size, flat
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import RuleSet
from workbench.ir.rules.index import SIMPLIFY_INDEX

# --------------------------------------------------------------------------------------------------
# Expansion of statements.

MACHINE_DIVISION = Pass(
    "machine-division",
    "Division and modulo of indexes are those of the machine.",
    RuleSet(
        "machine-division",
        [r for r in DECOMPOSE_RULES.rules if r.match.ops in ((Ops.IDIV,), (Ops.MOD,))],
    ),
)


class StatementExpander:
    """Expands the statements of a tree, and the conditions in it.

    `widths` has the vector width of each lane axis by name. It follows from the widest element that
    a statement loads, stores or computes as a float; fragments of tensor cores and copies by
    work-items set the widths of their own axes. Index lanes are 32 bits wide only if every index of
    the kernel fits. `registers` has the vector registers of each accumulator; they depend on the
    widths, so they are declared last.
    """

    def __init__(self, block: UOp, target: Target):
        nodes = block.toposort()
        loops = [n for n in nodes if n.op is Ops.LOOP]
        lanes = [n for n in nodes if n.op is Ops.RANGE and n.axis_kind.is_lane]
        self.divides = any(n.op in (Ops.IDIV, Ops.MOD) for n in nodes)
        self.machine: dict[UOp, UOp] = {}
        self._operations: list[UOp] = []
        """The operations of the statement that is being expanded."""
        depth = {loop.src[0]: i for i, loop in enumerate(reversed(loops), 1)}
        sizes = [n.dtype.itemsize for n in nodes if n.op in (Ops.LOAD, Ops.STORE, Ops.ACCUMULATE)]
        itemsize = max(4, *sizes, *[n.dtype.itemsize for n in nodes if n.dtype.is_float])
        self.widths = lane_widths(lanes, itemsize, target) | {
            r.axis_name: r.extent
            for n in nodes
            if n.op in (Ops.WMMA, Ops.EXCHANGE)
            for r in n.src
            if r.op is Ops.RANGE
        }
        if target.has_groups:
            self.widths |= copy_widths(nodes, target)
        all_narrow = all(
            -INT32 <= n.vmin and n.vmax < INT32
            for n in nodes
            if n.dtype.kind == "index" and n.op is not Ops.INVALID
        )
        self.of_items = target.has_groups
        self.expander = Expander(self.widths, depth, all_narrow, self.of_items)
        self.registers = self.expander.loads.registers
        for node in nodes:
            self._declare(node)

    def _declare(self, node: UOp) -> None:
        """Record the layout of an accumulator in registers, from the statement that writes it."""
        if node.op not in (Ops.STORE, Ops.ACCUMULATE) or node.place.memory.op is not Ops.DEFINE:
            return
        define = node.place.memory
        if define.space != "register":
            return
        dims = node.place.indexes
        vector = next((d for d in dims if d.op is Ops.RANGE and d.axis_name == node.vector), None)
        count = 1 if vector is None else self.widths[vector.axis_name]
        self.registers[define] = VectorRegisters(
            define.name, define.dtype, dims, vector if count > 1 else None, count
        )

    def operations(self, node: UOp) -> list[UOp]:
        """Return the operations of a statement: those that write, and the steps of accumulations.
        All of them stay where the statement is, whatever they depend on: a constant that is added
        in each iteration must not be hoisted."""
        self._operations = []
        with derived_from(node):
            self._expand(node)
        return self._operations

    def condition(self, node: UOp) -> UOp:
        """Return the condition of an IF."""
        return self._machine(self.expander.value(node.condition, None, {}))

    def _expand(self, node: UOp) -> None:
        target, value = node.src
        lanes, more, vector = statement_lanes(node, self.widths)
        if node.op is Ops.ACCUMULATE:
            self._accumulate(node, lanes, more, vector)
            return
        if vector is None and self.of_items:
            vector = self._block_axis(target, lanes)
        for position in spread(lanes, vector, self.widths):
            self._write(target, self.expander.value(value, vector, position), vector, position)

    def _accumulate(self, node: UOp, lanes: list[UOp], more: list[UOp], vector: UOp | None) -> None:
        """Combine into each accumulator; reduction lanes are outermost, so that few values are live
        at a time."""
        target, value = node.src
        positions = list(spread(lanes, vector, self.widths))
        totals = [self._current(target, vector, position) for position in positions]
        for step in spread(more, None, self.widths):
            for i, position in enumerate(positions):
                one = self.expander.value(value, vector, {**position, **step})
                totals[i] = self._machine(combine(node, node.combines, totals[i], one))
                self._operations.append(totals[i])
        for total, position in zip(totals, positions, strict=True):
            self._write(target, total, vector, position)

    def _current(self, target: UOp, vector: UOp | None, position: dict[UOp, int]) -> UOp:
        return self.expander.value(construct.running(target), vector, position)

    def _write(self, target: UOp, value: UOp, vector: UOp | None, position: dict[UOp, int]) -> None:
        count = 1 if vector is None else self.widths[vector.axis_name]
        if value.dtype.count < count:
            value = UOp(Ops.BROADCAST, value.dtype.vec(count), (value,))
        accumulator = self.registers.get(target.src[0])
        if accumulator is not None:
            register, _ = accumulator.at(position)
            value = self._machine(value)
            self._operations.append(UOp(Ops.SET, dtypes.void, (register, value)))
            return
        whole, gate = split_gate(flat(target))
        index, stride = self.expander.address(whole, vector, position)
        if count > 1 and stride != 1:
            self._scatter(target, value, vector, position, count)
            return
        place = self._machine(construct.index(target.memory, index))
        value = self._machine(value)
        condition = self._condition(gate, vector, position, count)
        self._operations.append(construct.store(place, value, condition=condition))

    def _condition(
        self, gate: UOp | None, vector: UOp | None, position: dict[UOp, int], count: int
    ) -> tuple[UOp, ...]:
        """Return the condition of a store, one bool or one per lane; () where it always holds."""
        test = None if gate is None else self.expander.value(gate, vector, position)
        if test is None or test.is_const and test.arg:
            return ()
        if 1 < count != test.dtype.count:
            test = UOp(Ops.BROADCAST, test.dtype.vec(count), (test,))
        return (self._machine(test),)

    def _scatter(
        self, target: UOp, value: UOp, vector: UOp | None, position: dict[UOp, int], count: int
    ) -> None:
        assert vector is not None
        each = [UOp(Ops.EXTRACT, value.dtype.scalar, (value,), i) for i in range(count)]
        size = self._block_size(target, vector, position)
        for begin in range(0, count, size):
            at = {**position, vector: position[vector] + begin}
            tests = self._tests(target, vector, at, size)
            if size > 1 and len(tests) < 2:
                self._write_block(target, each[begin : begin + size], at, tests)
                continue
            for i in range(begin, begin + size):
                self._write(target, each[i], None, {**position, vector: position[vector] + i})

    # a lane's part of a tile: several runs of a few contiguous elements

    def _block_axis(self, target: UOp, lanes: Sequence[UOp]) -> UOp | None:
        """Return the axis of the elements of a tile that a lane has, if some of them are contiguous
        in memory; else None."""
        tiles = [r for r in lanes if r.axis_kind is AxisType.WARP]
        first = dict.fromkeys(lanes, 0)
        sizes = {r: self._block_size(target, r, first) for r in tiles}
        return next((r for r, size in sizes.items() if size > 1), None)

    def _block_size(self, target: UOp, vector: UOp, position: dict[UOp, int]) -> int:
        """Return how many elements of a vector are contiguous in memory: 1, 2 or 4."""
        if not self.of_items or vector.axis_kind is not AxisType.WARP:
            return 1
        whole, _ = split_gate(flat(target))
        count, begin = self.widths[vector.axis_name], position[vector]
        return block_size(
            [
                self.expander.address(whole, None, {**position, vector: begin + i})[0]
                for i in range(count)
            ]
        )

    def _tests(self, target: UOp, vector: UOp, position: dict[UOp, int], size: int) -> set[UOp]:
        """Return the different conditions of a block of elements, none without a gate."""
        _, gate = split_gate(flat(target))
        if gate is None:
            return set()
        lanes = [UOp.index(position[vector] + i) for i in range(size)]
        return {SIMPLIFY_INDEX(gate.substitute({vector: lane})) for lane in lanes}

    def _write_block(
        self, target: UOp, lanes: Sequence[UOp], position: dict[UOp, int], tests: set[UOp]
    ) -> None:
        """Write contiguous elements at once, where the condition that they share holds."""
        whole, _ = split_gate(flat(target))
        index, _ = self.expander.address(whole, None, position)
        place = self._machine(construct.index(target.memory, index))
        dtype = lanes[0].dtype.vec(len(lanes))
        value = self._machine(UOp(Ops.STACK, dtype, tuple(lanes)))
        gate = next(iter(tests), None)
        condition = self._condition(gate, None, position, len(lanes))
        self._operations.append(construct.store(place, value, condition=condition))

    def _machine(self, node: UOp) -> UOp:
        """Return `node` with index division and modulo decomposed for the target."""
        if not self.divides:
            return node
        if node not in self.machine:
            self.machine[node] = MACHINE_DIVISION(node)
        return self.machine[node]


# --------------------------------------------------------------------------------------------------
# Edits of a statement tree by a pass, and their record.
#
# The pass replaces parts of loop bodies, and names the step for each. So the steps on the page are
# what the pass did. The states of the tree are made when they are read.

LOOPS = (Ops.LOOP, Ops.IF)


@dataclass(eq=False, slots=True)
class OpenLoop:
    """A LOOP or an IF of a tree that is edited; the outermost is the BLOCK. `body` has its
    statements and its inner loops."""

    node: UOp
    body: list[UOp | OpenLoop]

    @classmethod
    def of(cls, node: UOp) -> OpenLoop:
        """Return a loop with all loops in it, ready for edits."""
        return cls(node, [cls.of(n) if n.op in LOOPS else n for n in node.body])

    def loops(self) -> Iterator[OpenLoop]:
        """Yield the loops in this one, each after its inner loops, and this one last."""
        for child in self.body:
            if isinstance(child, OpenLoop):
                yield from child.loops()
        yield self


class Edit(NamedTuple):
    """A step of a pass: in the body of a loop, `items` replace the `removed` statements from
    position `at` on."""

    step: PassStep
    at: int
    removed: int
    items: tuple[UOp | OpenLoop, ...]

    def apply(self, body: list[UOp | OpenLoop]) -> None:
        """Change the body of the loop."""
        body[self.at : self.at + self.removed] = self.items


class TreeEdits:
    """A statement tree, `root`, and the steps by which a pass edits it."""

    def __init__(self, block: UOp):
        self.root = OpenLoop.of(block)
        self._loops = {loop: tuple(loop.body) for loop in self.root.loops()}
        self._edits: dict[OpenLoop, list[Edit]] = {loop: [] for loop in self._loops}

    def replace(
        self, loop: OpenLoop, at: int, removed: int, items: Iterable[UOp | OpenLoop], step: PassStep
    ) -> None:
        """Replace `removed` statements, from `at` on in the body of a loop, by `items`. Where these
        are the same, it is no step."""
        edit = Edit(step, at, removed, tuple(items))
        if edit.items == tuple(loop.body[at : at + removed]):
            return
        edit.apply(loop.body)
        self._edits[loop].append(edit)

    def steps(self) -> Iterator[PassStep]:
        """Yield the step of each edit."""
        return (edit.step for edits in self._edits.values() for edit in edits)

    def matches(self) -> Iterator[Match]:
        """Yield the steps, each as a replacement of its loop. The steps of a loop come after all
        steps of its inner loops; otherwise edits of two loops do not depend on each other."""
        bodies = {loop: [*body] for loop, body in self._loops.items()}
        for loop, edits in self._edits.items():
            after = _tree(loop, bodies)
            for edit in edits:
                edit.apply(bodies[loop])
                before, after = after, _tree(loop, bodies)
                if after is not before:
                    yield Match(edit.step, before, after)


def _tree(loop: OpenLoop, bodies: Mapping[OpenLoop, list[UOp | OpenLoop]]) -> UOp:
    """Return a loop with its present body in `bodies`."""
    node = loop.node
    head = node.src[: len(node.src) - len(node.body)]
    body = [_tree(n, bodies) if isinstance(n, OpenLoop) else n for n in bodies[loop]]
    return node.replace(src=(*head, *body))


def innermost_change(before: UOp, after: UOp) -> tuple[UOp, UOp]:
    """Return the innermost loop of each of two statement trees (or the whole trees) that contains
    all differences."""
    while (before.op, before.arg, len(before.src)) == (after.op, after.arg, len(after.src)):
        pairs = zip(before.src, after.src, strict=True)
        changes = [(a, b) for a, b in pairs if a is not b]
        if len(changes) != 1 or {n.op for n in changes[0]} != {Ops.LOOP}:
            break
        ((before, after),) = changes
    return before, after


def matches_between(before: UOp, states: Iterable[tuple[PassStep, UOp]]) -> Iterator[Match]:
    """Yield the matches from the tree `before` through the trees in `states`, each with its step. A
    match replaces the innermost loop in which two successive trees differ, as this loop was when
    the step was taken: what is inside of it may have changed before."""
    for step, after in states:
        if after is not before:
            yield Match(step, *innermost_change(before, after))
        before = after
