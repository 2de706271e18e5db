"""Statement placement: the loops of a kernel, and the order of statements and loops in each.

Statements are grouped level by level: those with the same next loop share it, unless one reads
the other through a value that closes that loop: that is the barrier, and the loop splits there.
Loop fission at a barrier, tiles and row buffers all follow from this one walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.ir.nest.loops import Statement
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


@dataclass(eq=False, slots=True)
class Loop:
    """A loop being built. `body` holds Loops and UOp statements; `parent` is the loop around."""

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
    """Place `items` in `loop`; their first `depth` loops are open already."""
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
    """Return the next loop and its items: a complete group if there is one; else a part of one:
    initialisations of accumulators first, then a LOCAL group, then any."""
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
    """Return those of `group` that may share one loop over `axis` now."""
    members: dict[Item, None] = {}
    for item in group:
        waits = [n for n in item.needs if n in pending]
        if all(n in members and axis not in n.closes for n in waits):
            members[item] = None
    return list(members)
