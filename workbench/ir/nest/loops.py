"""Loop nests of a kernel, derived from its ranges and its loop order.

A statement is a REDUCE, a STAGE or a STORE. Its nest is the loops it stands in: the ranges it
closes, those it depends on, and every loop of its consumers that lies outside its innermost
free range, so that a tile is computed where it is used and not hoisted out as a whole matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.ir.node.axis import AxisType
from workbench.ir.node.memo import memoised
from workbench.ir.node.ops import Ops
from workbench.ir.node.ranges import closed
from workbench.ir.node.uop import KernelInfo, UOp

STATEMENTS = frozenset({Ops.REDUCE, Ops.STAGE, Ops.STORE})


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a kernel and its loops. `own`: the ranges it closes; `free`: those it depends
    on; `pre`: the loops around it without its own; `nest`: all its loops, outermost first. Lanes
    (UPCAST, UNROLL) are in `lanes`, closed ones in `reduction_lanes`: they have no loops."""

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
        """The ranges that it closes, in loops and lanes."""
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

    It stands in the loops that it depends on. A loop of a consumer that is outside of the innermost
    of these holds it as well, although it does not depend on that loop: it is computed again in
    each iteration, but only the part that the iteration reads has to be stored. A loop of a
    consumer that is further inside is none of its loops: the value is computed before it.
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
    """Return the statements, producers first, and per statement those whose values it reads."""
    nodes: list[UOp] = []
    reads: dict[UOp, list[UOp]] = {}
    below: dict[UOp, dict[UOp, None]] = {}
    for node in sink.toposort():
        merged = _NO_READS
        for source in node.src:
            more = below[source]
            if more and more is not merged:  # a table of its own only where two meet
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
    """Whether a node gets loops of its own."""
    if node.op is Ops.REDUCE:
        return any(not r.axis_kind.is_lane for r in node.src[1:])
    return node.op in STATEMENTS


_SPREADS = frozenset({AxisType.GLOBAL, AxisType.LOOP})


def kinds(sink: UOp) -> UOp:
    """Return the kernel with GLOBAL and LOOP derived: an output axis may be spread over
    work-groups where it is outermost in the order and every statement stands inside it.
    Axes that a rewrite has made needless leave the order."""
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
