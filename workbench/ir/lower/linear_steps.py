"""The steps of linearize, for a reader: a statement tree becomes a list of operations.

The loops in a loop come first. Then each statement of the loop is expanded, over one lane axis
after the other, and along its vector to operations. Then the values that the loops in it read, and
that do not depend on them, move out of these loops. At last these loops close: their operations
stand in the list of the loop around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from workbench.base.dtypes import dtypes
from workbench.base.trace import PassStep
from workbench.base.words import plural
from workbench.ir.lower.lanes import statement_lanes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

EXPAND_LANE = PassStep(
    "expand-lane",
    "A lane axis has no loop: a statement over it is one statement for each of its elements.",
)
EXPAND_VECTOR = PassStep(
    "expand-vector",
    "A statement along a vector is one operation on each vector of its lanes; what does not depend"
    " on a lane is computed once, for all.",
)
EMIT_STATEMENT = PassStep(
    "emit-statement", "A statement that has no vector writes single values."
)
HOIST_VALUES = PassStep(
    "hoist-values",
    "A value goes to the deepest loop that it depends on: a loop that it does not depend on reads"
    " it, and does not compute it each time.",
)
CLOSE_LOOP = PassStep(
    "close-loop",
    "A loop that is complete is part of a list: its operations stand in that of the loop around it,"
    " between its beginning and its end.",
)
MOST_STATEMENTS = 32
"""The most statements that a step expands one to; lanes of more become operations at once."""


def linear_states(
    block: UOp,
    program: Sequence[UOp],
    effects: Mapping[UOp, tuple[UOp, ...]],
    widths: Mapping[str, int],
) -> Iterator[tuple[PassStep, UOp]]:
    """Yield the states from a tree to its program, each with the step that leads to it. `effects`
    has the operations that write, of each statement, `widths` the vector width of each lane axis.

    A loop is complete before what is around it is touched, so that each state is the one before
    with one part replaced."""
    items: dict[UOp, list[UOp]] = {}
    _list_items(block, iter(program[1:]), items)
    state = _TreeToList(block)
    for loop in _inner_first(block):
        for statement in loop.body:
            if statement in effects:
                parts: tuple[UOp, ...] = (statement,)
                for step, after in _expansions(statement, effects[statement], widths):
                    state.replace(loop, parts, after)
                    parts = after
                    yield step, state.tree()
        inner = [child for child in loop.body if child.op in _HOLD]
        listed: set[UOp] = set()
        for child in inner:
            reads = _reads(child, items)
            own = (n for n in items[loop] if n.op is not Ops.DEFINE)
            values = [n for n in own if n in reads and n not in listed]
            if values:
                listed.update(values)
                state.bodies[loop] = [n for n in items[loop] if _stands(n, listed)]
                yield HOIST_VALUES.at(_hoisted(values, child, loop)), state.tree()
        for child in inner:
            body = state.bodies[child]
            state.replace(loop, (child,), _closed(child, body))
            about = f"{_name(child)}, {plural(len(body), 'operation')}"
            yield CLOSE_LOOP.at(about), state.tree()


class _TreeToList:
    """A tree on its way to a list: what stands in each loop, by the loop that it was."""

    def __init__(self, block: UOp):
        self.block = block
        self.bodies = {loop: [*loop.body] for loop in _inner_first(block)}

    def tree(self) -> UOp:
        """Return the present tree."""
        return self._node(self.block)

    def _node(self, loop: UOp) -> UOp:
        head = () if loop.op is Ops.BLOCK else loop.src[:1]
        body = [self._node(n) if n in self.bodies else n for n in self.bodies[loop]]
        return loop.replace(src=(*head, *body))

    def replace(self, loop: UOp, before: Sequence[UOp], after: Iterable[UOp]) -> None:
        """Put others in the place of neighbours in a loop."""
        body = self.bodies[loop]
        at = body.index(before[0])
        body[at : at + len(before)] = after


def _inner_first(loop: UOp) -> Iterator[UOp]:
    """Yield the loops in a loop, or a tree, and at last itself."""
    for child in loop.body:
        if child.op in _HOLD:
            yield from _inner_first(child)
    yield loop


def _list_items(loop: UOp, program: Iterator[UOp], items: dict[UOp, list[UOp]]) -> None:
    """List what the program has of each loop, in order: its operations, and the loops in it."""
    items[loop] = own = []
    inner = (child for child in loop.body if child.op in _HOLD)
    for node in program:
        if node.op in (Ops.ENDLOOP, Ops.ENDIF):
            return
        if node.op in _HOLD:
            own.append(next(inner))
            _list_items(own[-1], program, items)
        else:
            own.append(node)


def _expansions(
    statement: UOp, operations: tuple[UOp, ...], widths: Mapping[str, int]
) -> Iterator[tuple[PassStep, tuple[UOp, ...]]]:
    """Yield what stands for a statement after each step of its expansion."""
    lanes, more, vector = statement_lanes(statement, widths)
    parts: tuple[UOp, ...] = (statement,)
    for lane in (*lanes, *more):
        if lane is not vector and len(parts) * lane.extent <= MOST_STATEMENTS:
            parts = tuple(_at(n, lane, i) for n in parts for i in range(lane.extent))
            kind = f"{lane.axis_kind.words} {lane.axis_name}"
            yield EXPAND_LANE.at(f"{kind}, {plural(len(parts), 'statement')}"), parts
    width = 1 if vector is None else widths[vector.axis_name]
    step, size = (
        (EXPAND_VECTOR, f" of {width} lanes") if width > 1 else (EMIT_STATEMENT, "")
    )
    yield step.at(f"{plural(len(operations), 'operation')}{size}"), operations


def _at(statement: UOp, lane: UOp, element: int) -> UOp:
    """Return a statement at one element of a lane axis. Where a value in it combines these lanes,
    they are that value's own."""
    at: dict[UOp, UOp] = {lane: UOp.index(element)}
    for source in statement.src:
        for node in source.toposort(lambda n: lane in n.ranges):
            if lane in node.ranges and node not in at:
                at[node] = node.rebuild(tuple([at.get(s, s) for s in node.src]))
    return statement.replace(src=tuple([at.get(s, s) for s in statement.src]))


def _reads(loop: UOp, items: Mapping[UOp, list[UOp]]) -> set[UOp]:
    """Return what the operations in a loop, and in the loops in it, read."""
    inside = [_reads(n, items) if n in items else set(n.src) for n in items[loop]]
    return set().union(*inside)


def _stands(node: UOp, listed: set[UOp]) -> bool:
    """Whether a node of a program stands in a state by itself, and not only in what reads it."""
    return node.dtype is dtypes.void or node in listed


def _hoisted(values: Sequence[UOp], inner: UOp, loop: UOp) -> str:
    count = plural(len(values), "value")
    if loop.op is Ops.BLOCK:
        return f"{count} out of all loops"
    return f"{count} out of {_name(inner)}, into {_name(loop)}"


def _name(loop: UOp) -> str:
    return "IF" if loop.op is Ops.IF else loop.axis.axis_name


def _closed(loop: UOp, body: Sequence[UOp]) -> tuple[UOp, ...]:
    begin = UOp(loop.op, dtypes.void, loop.src[:1], loop.arg)
    end = Ops.ENDIF if loop.op is Ops.IF else Ops.ENDLOOP
    return begin, *body, UOp(end, dtypes.void, loop.src[:1])


_HOLD = (Ops.LOOP, Ops.IF)
