"""Barriers are counted where work-items exchange elements: held against a run that watches who
wrote what every work-item reads."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import pytest

from tests.ir.lower.test_orders import WORK_GROUPS
from tests.tools.kernels import EXAMPLES, LLVM, reordered
from workbench.ir.lower.launch import barriers
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt

Pairs = set[tuple[int, int]]
ORDERS = 4


class Place(NamedTuple):
    """A step of a loop (its position in the loop around it), or a statement's position."""

    position: int
    axis: UOp | None = None
    step: int = 0

    @property
    def is_work_item(self) -> bool:
        return self.axis is not None and self.axis.axis_kind.is_work_item


Path = tuple[Place, ...]
Element = tuple[UOp, tuple[int, ...]]


class Watched:
    """A run of a statement tree that computes nothing but indexes of tiles."""

    def __init__(self, tree: UOp):
        self.steps: dict[UOp, int] = {}
        self.written: dict[Element, dict[frozenset[Place], Path]] = defaultdict(dict)
        self.waits: dict[Path, Pairs] = defaultdict(set)
        self.body(tree.src, ())

    def body(self, children: Sequence[UOp], around: Path) -> None:
        for position, child in enumerate(children):
            if child.op is not Ops.LOOP:
                self.statement(child, (*around, Place(position)))
                continue
            axis = child.src[0]
            for step in range(axis.extent):
                self.steps[axis] = step
                self.body(child.src[1:], (*around, Place(position, axis, step)))

    def statement(self, node: UOp, here: Path) -> None:
        lanes = [r for r in node.ranges if r.axis_kind.is_lane]
        for lane in lanes:
            self.steps[lane] = 0  # lanes belong to one work-item, all of them
        for index in tiles_read(node):
            self.read(self.written[self.element(index)], here)
        if node.op is Ops.STORE and is_tile(node.src[0]):
            for number in range(max((r.extent for r in lanes), default=1)):
                self.steps |= dict.fromkeys(lanes, number)
                writers = self.written[self.element(node.src[0])]
                writers.pop(who(here), None)  # the latest is the last
                writers[who(here)] = here

    def element(self, index: UOp) -> Element:
        return index.src[0], tuple(self.value(part) for part in index.src[1:])

    def value(self, node: UOp) -> int:
        if node.op is Ops.RANGE:
            return self.steps[node]
        if node.op is Ops.CONST:
            return int(node.arg)
        one, other = (self.value(part) for part in node.src)
        return {Ops.ADD: one + other, Ops.MUL: one * other}[node.op]

    def read(self, writers: dict[frozenset[Place], Path], here: Path) -> None:
        """What every work-item that reads has written itself needs no barrier."""
        filled = list(writers.values())[-1]
        depth = next(i for i, (a, b) in enumerate(zip(filled, here)) if a != b)  # noqa: B905
        reader = who(here)
        axes = {place.axis for place in reader}
        more = [p.axis for p in who(filled) if p.axis and p.axis not in axes]
        steps = [[Place(0, axis, n) for n in range(axis.extent)] for axis in more]
        if not all(reader.union(others) in writers for others in product(*steps)):
            positions = filled[depth].position, here[depth].position
            assert positions[0] < positions[1], "a loop that had to be cut was not"
            # the work-items of a group come to it together
            loop = tuple(p._replace(step=0) if p.is_work_item else p for p in here[:depth])
            self.waits[loop].add(positions)


def who(path: Path) -> frozenset[Place]:
    """Return the work-items that are at a place: a step of each axis that it stands in."""
    return frozenset(p._replace(position=0) for p in path if p.is_work_item)


@cache
def tiles_read(node: UOp) -> list[UOp]:
    loads = (n.src[0] for n in node.toposort() if n.op is Ops.LOAD)
    return [index for index in loads if is_tile(index)]


def is_tile(index: UOp) -> bool:
    """Whether it is an element of a STAGE: accumulators are a work-item's own."""
    define = index.src[0]
    return define.op is Ops.DEFINE and not define.arg.name.startswith("acc")


def fewest(pairs: Pairs) -> int:
    """Return how few places to wait at come between all pairs, by trying all of them."""
    places = range(1, max(after for _, after in pairs) + 1)
    return next(
        many
        for many in range(1, len(places) + 1)
        for chosen in combinations(places, many)
        if all(any(a < place <= b for place in chosen) for a, b in pairs)
    )


@pytest.mark.parametrize("name", WORK_GROUPS)
def test_barriers_are_where_work_items_exchange_elements(name: str) -> None:
    example, listed = WORK_GROUPS[name]
    graph = example.graph
    for opt in listed:
        graph, _ = apply_opt(graph, opt, LLVM)
    pick, counts = random.Random(name), set()
    for seed in range(ORDERS):
        order = list(graph.arg.order)
        if seed:
            pick.shuffle(order)
        form = reordered(graph, order)
        waits = Watched(build_tree(form, LLVM)).waits
        assert barriers(form, LLVM) == sum(map(fewest, waits.values())), form.arg.order
        counts.add(barriers(form, LLVM))
    assert len(counts) > 1


def test_one_barrier_serves_both_tiles_of_a_step() -> None:
    """Nine work-groups, three steps each; a plain kernel has no work-items to wait for."""
    assert barriers(EXAMPLES["tiled_matmul"].graph, LLVM) == 9 * 3
    for name in EXAMPLES.keys() - {"tiled_matmul"}:
        assert barriers(EXAMPLES[name].graph, LLVM) == 0
