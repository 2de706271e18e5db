"""The loops of a kernel: their nest, where values are computed in it, and the sizes of a launch.

Sections: Loop nests of a kernel, derived from its ranges and its loop order; Statement
placement; The dimensions of a launch.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeVar

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp, closed, memoised

# --------------------------------------------------------------------------------------------------
# Loop nests of a kernel, derived from its ranges and its loop order.
#
# A statement is a REDUCE, a STAGE or a STORE. Its nest is the loops it stands in: the ranges it
# closes, those it depends on, and every loop of its consumers that lies outside its innermost free
# range, so that a tile is computed where it is used and not hoisted out as a whole matrix.

STATEMENTS = frozenset({Ops.REDUCE, Ops.STAGE, Ops.STORE})


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a kernel and its loops. `own` are the loops that it closes, `free` those that
    it depends on, `pre` all loops around it without its own, `nest` all its loops, outermost first.
    Lane axes (UPCAST, UNROLL) have no loops: those that it closes are in `reduction_lanes`, others
    in `lanes`. `reads` has the statements whose values it reads."""

    node: UOp
    own: tuple[UOp, ...]
    free: frozenset[UOp]
    pre: tuple[UOp, ...]
    nest: tuple[UOp, ...]
    lanes: tuple[UOp, ...]
    reduction_lanes: tuple[UOp, ...]
    reads: tuple[UOp, ...]

    @property
    def closed(self) -> tuple[UOp, ...]:
        """The ranges that it closes: loops, then lanes."""
        return (*self.own, *self.reduction_lanes)


@memoised
def statements(sink: UOp) -> Mapping[UOp, Statement]:
    """Return the statements of a kernel by node, producers first.

    A REDUCE that closes lanes only has no loop: it is a value, not a statement.
    """
    info: KernelInfo = sink.arg
    position = {name: i for i, name in enumerate(info.order)}
    nodes, reads = _reads(sink)
    consumers: dict[UOp, list[UOp]] = {n: [] for n in nodes}
    for node in nodes:
        for producer in reads[node]:
            consumers[producer].append(node)
    ends = {end.src[0]: end for end in sink.src}
    result: dict[UOp, Statement] = {}
    for node in reversed(nodes):
        readers = [result[consumer] for consumer in consumers[node]]
        result[node] = _statement(node, ends.get(node), reads[node], readers, position)
    return dict(reversed(result.items()))


def _statement(
    node: UOp,
    end: UOp | None,
    reads: list[UOp],
    consumers: list[Statement],
    position: dict[str, int],
) -> Statement:
    """Return the statement of `node`. `end` is the END of a STORE, which closes its ranges;
    `consumers` are the statements that read it, `position` the loop order by axis name.

    It stands in the loops that it depends on. It also stands in each loop of a consumer that is
    outside of the innermost of these: it is computed again in each iteration, but only the part
    that the iteration reads has to be stored. It does not stand in a consumer's loops further
    inside: it is computed before them.
    """
    closes = closed(node if end is None else end)
    own = [r for r in closes if not r.axis_kind.is_lane]
    everything = node.src[0].ranges if node.op is not Ops.STORE else node.ranges
    for source in node.src[1:]:
        everything = everything | source.ranges
    free = {r for r in everything if r not in closes and not r.axis_kind.is_lane}
    depth = max((position[r.axis_name] for r in free), default=-1)
    pre = set(free)
    for consumer in consumers:
        pre.update(r for r in consumer.nest if position[r.axis_name] < depth and r not in own)

    def by_order(ranges: set[UOp]) -> tuple[UOp, ...]:
        return tuple(sorted(ranges, key=lambda r: position[r.axis_name]))

    lanes = sorted((r for r in everything if r.axis_kind.is_lane), key=lambda r: r.axis_name)
    reduction_lanes = tuple(r for r in closes if r.axis_kind.is_lane)
    return Statement(
        node=node,
        own=tuple(own),
        free=frozenset(free),
        pre=by_order(pre),
        nest=by_order(pre | set(own)),
        lanes=tuple(r for r in lanes if r not in closes),
        reduction_lanes=reduction_lanes,
        reads=tuple(reads),
    )


def _reads(sink: UOp) -> tuple[list[UOp], dict[UOp, list[UOp]]]:
    """Return the statements, producers first, and for each those whose values it reads."""
    nodes: list[UOp] = []
    reads: dict[UOp, list[UOp]] = {}
    below: dict[UOp, dict[UOp, None]] = {}
    for node in sink.toposort():
        merged = _NO_READS
        for source in node.src:
            more = below[source]
            if more and more is not merged:  # copied only where two different tables meet
                merged = {**merged, **more} if merged else more
        if is_statement(node):
            nodes.append(node)
            reads[node] = list(merged)
            merged = _NO_READS if node.op is Ops.STORE else {node: None}
        below[node] = merged
    return nodes, reads


_NO_READS: dict[UOp, None] = {}


def tree_statements(block: UOp) -> list[UOp]:
    """Return the STOREs and ACCUMULATEs under a BLOCK or LOOP, in program order."""
    leaves: list[UOp] = []
    stack = list(reversed(block.src))
    while stack:
        node = stack.pop()
        if node.op in (Ops.LOOP, Ops.IF):
            stack.extend(reversed(node.body))
        elif node.op in (Ops.STORE, Ops.ACCUMULATE):
            leaves.append(node)
    return leaves


def is_statement(node: UOp) -> bool:
    """Whether a node is a statement; a REDUCE of lanes alone is not."""
    if node.op is Ops.REDUCE:
        return any(not r.axis_kind.is_lane for r in node.src[1:])
    return node.op in STATEMENTS


_SPREADS = frozenset({AxisType.GLOBAL, AxisType.LOOP})


def kinds(sink: UOp) -> UOp:
    """Return the kernel with GLOBAL and LOOP derived. An output axis that is outermost in the
    order, with every statement inside it, is GLOBAL: it may be distributed over work-groups. Other
    output axes are LOOP. Axes that no statement has any more leave the order."""
    nests = [set(s.nest) for s in statements(sink).values()]
    ranges = {axis.axis_name: axis for nest in nests for axis in nest}
    info: KernelInfo = sink.arg._replace(order=tuple(n for n in sink.arg.order if n in ranges))
    sink = sink.replace(arg=info)
    changes: dict[UOp, UOp] = {}
    outermost = True
    for name in info.order:
        axis = ranges[name]
        outermost = outermost and axis.axis_kind in _SPREADS | {AxisType.THREAD}
        if axis.axis_kind in _SPREADS:
            spread = outermost and all(axis in nest for nest in nests)
            kind = AxisType.GLOBAL if spread else AxisType.LOOP
            outermost = spread
            if kind is not axis.axis_kind:
                changes[axis] = UOp.range(axis.extent, name, kind)
    return sink.substitute(changes) if changes else sink


# --------------------------------------------------------------------------------------------------
# Statement placement: the loops of a kernel, and the order of statements and loops in each.
#
# Statements are grouped level by level: those with the same next loop share it, unless one reads a
# value of another that is complete only after that loop: there the loop is split. Loop fission,
# tiles and row buffers all follow from this one walk.


@dataclass(eq=False, slots=True)
class Loop:
    """A loop being built. `body` has Loops, Items and UOps; `parent` is the loop around."""

    axis: UOp | None
    parent: Loop | None
    body: list[Loop | UOp | Item] = field(default_factory=list)

    def path(self) -> dict[UOp, Loop]:
        """Return the loops from the outside to this one, by axis."""
        chain: list[Loop] = []
        loop: Loop | None = self
        while loop is not None:
            chain.append(loop)
            loop = loop.parent
        return {x.axis: x for x in reversed(chain) if x.axis is not None}


@dataclass(eq=False, slots=True)
class Item:
    """A statement to place, or (`init`) the initialisation of its accumulator."""

    statement: Statement
    init: bool
    nest: tuple[UOp, ...]
    needs: list[Item] = field(default_factory=list)
    loop: Loop | None = None

    @property
    def insertion_point(self) -> Loop:
        """The loop that the item stands in, once it is placed."""
        assert self.loop is not None
        return self.loop

    @property
    def closes(self) -> tuple[UOp, ...]:
        """The ranges that must end before the value is complete."""
        return () if self.init else self.statement.own


def place_statements(statements: Mapping[UOp, Statement]) -> tuple[Loop, list[Item]]:
    """Return the root of the loops of a kernel's statements, and the items in them, each after
    those it depends on."""
    items = _items(statements)
    root = Loop(None, None)
    _fill(root, items, 0)
    return root, items


def _items(statements: Mapping[UOp, Statement]) -> list[Item]:
    """Return the items, each after those it depends on."""
    work: dict[UOp, Item] = {}
    items: list[Item] = []
    for node, statement in statements.items():
        item = Item(statement, False, statement.nest, [work[r] for r in statement.reads])
        if node.op is Ops.REDUCE:
            init = Item(statement, True, statement.pre)
            item.needs.append(init)
            items.append(init)
        work[node] = item
        items.append(item)
    return items


def _fill(loop: Loop, items: Sequence[Item], depth: int) -> None:
    """Place `items` in `loop`; the first `depth` loops of each are open already."""
    pending = dict.fromkeys(items)
    while pending:
        ready = [
            i for i in pending if len(i.nest) == depth and not any(n in pending for n in i.needs)
        ]
        for item in ready:
            item.loop = loop
            loop.body.append(item)
            del pending[item]
        if ready or not pending:
            continue
        axis, group = _next_group(pending, depth)
        inner = Loop(axis, loop)
        loop.body.append(inner)
        for item in group:
            del pending[item]
        _fill(inner, group, depth + 1)


def _next_group(pending: dict[Item, None], depth: int) -> tuple[UOp, list[Item]]:
    """Return the next loop and its items: a group that can be placed as a whole, if there is one.
    Else it is a part of a group: initialisations of accumulators if possible, then a LOCAL group,
    then any."""
    groups: dict[UOp, list[Item]] = {}
    for item in pending:
        if len(item.nest) > depth:
            groups.setdefault(item.nest[depth], []).append(item)
    joined = {axis: _joinable(axis, group, pending) for axis, group in groups.items()}
    for axis, group in groups.items():
        if len(joined[axis]) == len(group):
            return axis, group
    for axis, members in joined.items():
        starts = [i for i in members if i.init]
        if starts:
            return axis, starts
    partial = [(axis, members) for axis, members in joined.items() if members]
    local = [p for p in partial if p[0].axis_kind is AxisType.LOCAL]
    return (local or partial)[0]


def _joinable(axis: UOp, group: list[Item], pending: dict[Item, None]) -> list[Item]:
    """Return the items of `group` that may share one loop over `axis` at this point."""
    members: dict[Item, None] = {}
    for item in group:
        waits = [n for n in item.needs if n in pending]
        if all(n in members and axis not in n.closes for n in waits):
            members[item] = None
    return list(members)


# --------------------------------------------------------------------------------------------------
# The dimensions of a launch: the axes that number work-groups, and those that number work-items of
# a group.
#
# Axes that are open together need dimensions of their own; a device has few, and each has a limit.
# Dimension 0 is the innermost: neighbouring work-items differ in it.

Axis = TypeVar("Axis", bound=Hashable)
GROUP_DIMENSIONS = 3
"""Most dimensions of a work-group, in every language."""
Dims = list[list[int]]
"""For each dimension, innermost first, the positions of its axes, outermost first."""


def grid_dims(extents: Sequence[int], limits: Sequence[int]) -> Dims | None:
    """Return the dimensions for loops of these extents (outermost first); None where the limits
    allow none. If there are more loops than dimensions, neighbouring loops are folded: as few as
    possible, and outer ones first."""
    count = len(extents)
    for used in range(min(count, len(limits)), 0, -1):
        for inner in reversed([*combinations(range(1, count), used - 1)]):
            cuts = [0, *inner, count]
            runs = [[*range(a, b)] for a, b in zip(cuts, cuts[1:], strict=False)][::-1]
            sizes = [math.prod(extents[i] for i in run) for run in runs]
            if all(n <= most for n, most in zip(sizes, limits, strict=False)):
                return runs
    return None if count else []


def item_dims(nests: Iterable[Sequence[Axis]]) -> dict[Axis, int]:
    """Return the dimension of each axis. `nests` has the axes that are open together, outermost
    first: they get different dimensions. Longer nests come first, and their innermost axis is
    dimension 0."""
    dimension: dict[Axis, int] = {}
    conflicts: dict[Axis, dict[Axis, None]] = {}
    ordered = sorted(nests, key=len, reverse=True)
    for nest in ordered:
        for axis in nest:
            conflicts.setdefault(axis, {}).update(dict.fromkeys(a for a in nest if a != axis))
    for nest in ordered:
        for axis in reversed(nest):
            others = {dimension[a] for a in conflicts[axis] if a in dimension}
            if axis not in dimension:
                dimension[axis] = next(d for d in range(len(conflicts)) if d not in others)
    return dimension


def by_names(nests: Iterable[tuple[UOp, ...]]) -> Iterator[tuple[UOp, ...]]:
    """Yield nests of loops sorted by the names of their axes: in an order that is always the
    same."""
    yield from sorted(nests, key=lambda nest: [axis.axis_name for axis in nest])


def group_excess(shape: Sequence[int], target: Target) -> str:
    """Return why a work-group of this shape (innermost first) is too large for a target, with the
    numbers; "" if it fits."""
    if len(shape) > GROUP_DIMENSIONS:
        return f"a work-group has {len(shape)} dimensions, and {GROUP_DIMENSIONS} fit"
    items = math.prod(shape)
    if items > target.group_items:
        return (
            f"a work-group has {items:,} work-items, and {target.group_items:,} fit on"
            f" {target.device}"
        )
    for dimension, size, limit in zip("xyz", shape, target.group_limits, strict=False):
        if size > limit:
            return (
                f"a work-group has {size:,} work-items along {dimension}, and {limit:,} fit on"
                f" {target.device}"
            )
    return ""


def group_shape(kernel: UOp) -> tuple[int, ...]:
    """Return the work-items along each dimension of a kernel's work-groups, innermost first."""
    nests = {
        tuple(axis for axis in statement.nest if axis.axis_kind.is_work_item)
        for statement in statements(kernel).values()
    }
    dimension = item_dims(by_names(nests))
    shape = [1] * (1 + max(dimension.values(), default=-1))
    for axis, place in dimension.items():
        shape[place] = max(shape[place], axis.extent)
    return tuple(shape)
