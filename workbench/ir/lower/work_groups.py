"""The program of one work-item, from the loops of a statement tree.

    for g0 in 32 (grid)  for l0 in 16 (item) { .. }  ->   g0 = group 0, l0 = item 0:  ..

The loops of the launch become numbers (SPECIAL). Statements outside of the loops over work-items
are executed by the group together: each work-item computes its own registers, and memory that all
see is written once. Loops that fill such memory are distributed,

    for f in 200 { tile[f] = x[f] }   ->   for f in 4 { IF f*64 + l0 < 200: tile[f*64 + l0] = .. }

and one work-item executes the other statements (IF l0 < 1). No BARRIER stands in an IF, as all
work-items of a group must reach it. `ir/nest/loops.py` decides which axes share a dimension.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.nest.loops import by_names, grid_dims, group_excess, item_dims
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, leaves

Conditions = tuple[UOp, ...]
_WRITES = (Ops.STORE, Ops.ACCUMULATE)


def work_groups(block: UOp, target: Target) -> UOp:
    """Return the tree of one work-item: SPECIALs first, no loop with a role.

    Errors: CompileError for a grid or a work-group beyond the limits of the target.
    """
    grid = _Launch("grid", block, target)
    items = _Launch("item", block, target)
    body = _Group(block, grid, items).block()
    specials = [*grid.specials, *items.specials]
    return block.replace(src=(*specials, *body)).substitute({**grid.numbers, **items.numbers})


class _Launch:
    """The loops of one role. `numbers` has the expression that replaces each axis, `places` the
    dimension of each axis: an index of `dims`, the RANGEs of the launch, innermost first."""

    def __init__(self, role: str, block: UOp, target: Target):
        nests = _nests(block, role)
        axes = list(dict.fromkeys(axis for nest in nests for axis in nest))
        self.numbers: dict[UOp, UOp] = {}
        self.places: dict[UOp, int] = {}
        self.dims: list[UOp] = []
        if role == "grid":
            self._number_grid(axes, target)
        else:
            self._number_items(axes, nests, target)
        self.specials = [
            construct.special(dim, "grid" if role == "grid" else "item", number)
            for number, dim in enumerate(self.dims)
        ]

    def _number_grid(self, axes: list[UOp], target: Target) -> None:
        """Give each loop a dimension, or several neighbouring loops one."""
        runs = grid_dims([axis.extent for axis in axes], target.grid_limits)
        if runs is None:
            extents = " x ".join(str(axis.extent) for axis in axes)
            because = f"a grid of {extents} work-groups is more than {target.device} runs"
            raise CompileError("work-groups", because, hint="larger work-groups")
        for place, run in enumerate(runs):
            members = [axes[i] for i in run]
            total = math.prod(axis.extent for axis in members)
            dim = members[0]
            if len(members) > 1:
                name = "_".join(axis.axis_name for axis in members)
                dim = UOp.range(total, name, AxisType.GLOBAL)
            self.dims.append(dim)
            for axis in members:
                self.places[axis] = place
                total //= axis.extent
                rest = dim // total if total > 1 else dim
                inside = rest % axis.extent if axis is not members[0] else rest
                self.numbers[axis] = inside

    def _number_items(self, axes: list[UOp], nests: list[tuple[UOp, ...]], target: Target) -> None:
        """Let axes that are never open together share a dimension, as long as the longest axis."""
        self.places = item_dims(by_names(nests))
        for place in range(len(set(self.places.values()))):
            members = [axis for axis in axes if self.places[axis] == place]
            dim = max(members, key=lambda axis: axis.extent)
            self.dims.append(dim)
            self.numbers |= dict.fromkeys(members, dim)
        because = group_excess([dim.extent for dim in self.dims], target)
        if because:
            hint = "smaller LOCAL and GROUP axes"
            raise CompileError("work-groups", because, hint=hint)


class _GuardedNode(NamedTuple):
    """A statement, and the conditions under which it runs."""

    node: UOp
    conditions: Conditions = ()


class _Group:
    """Writes the body of a work-item."""

    def __init__(self, block: UOp, grid: _Launch, items: _Launch):
        self.source, self.grid, self.items = block, grid, items
        self.uses = _uses(block)
        self.names = {r.axis_name for r in leaves([block], Ops.RANGE)}

    def block(self) -> list[UOp]:
        """Return the statements of one work-item."""
        return _guarded(self._body(self.source.src, frozenset(), ()))

    def _body(
        self, children: Iterable[UOp], used: frozenset[int], conditions: Conditions
    ) -> Iterator[_GuardedNode]:
        """Yield statements; `used` has the dimensions of the loops over work-items around them."""
        for child in children:
            if child.op is Ops.BARRIER:
                yield _GuardedNode(child)
            elif child.op is Ops.LOOP and child.role == "grid":
                yield from self._body(child.body, used, conditions)
            elif child.op is Ops.IF:
                body = _guarded(self._body(child.body, used, conditions))
                yield _GuardedNode(child.replace(src=(child.condition, *body)))
            elif child.op is Ops.LOOP and child.role == "item":
                yield from self._of_items(child, used, conditions)
            elif child.op is Ops.LOOP and _holds_group(child):
                body = _guarded(self._body(child.body, used, conditions))
                yield _GuardedNode(child.replace(src=(child.axis, *body)))
            else:
                yield from self._as_group(child, used, conditions)

    def _of_items(
        self, loop: UOp, used: frozenset[int], conditions: Conditions
    ) -> Iterator[_GuardedNode]:
        place = self.items.places[loop.axis]
        dim = self.items.dims[place]
        if loop.axis.extent < dim.extent:
            conditions = (*conditions, dim < loop.axis.extent)
        yield from self._body(loop.body, used | {place}, conditions)

    # what a group does together

    def _as_group(
        self, node: UOp, used: frozenset[int], conditions: Conditions
    ) -> Iterator[_GuardedNode]:
        """Yield a statement or loop that several work-items execute together: those that differ
        only in dimensions outside of `used`."""
        free = [d for i, d in enumerate(self.items.dims) if i not in used]
        free = [d for d in free if d.extent > 1]
        if not free or not self._writes_for_all(node):
            yield _GuardedNode(node, conditions)
        elif node.op in _WRITES:
            first = tuple(dim < 1 for dim in free)
            yield _GuardedNode(node, (*conditions, *first))
        elif self._can_be_distributed(node):
            yield from self._distributed(node, free, conditions)
        else:
            inner = (self._as_group(child, used, ()) for child in node.body)
            body = _guarded(part for parts in inner for part in parts)
            yield _GuardedNode(node.replace(src=(node.axis, *body)), conditions)

    def _writes_for_all(self, node: UOp) -> bool:
        """Whether a statement, or one in a loop, writes memory that all work-items see."""
        return any(not _is_private(n.place.param) for n in _statements(node))

    def _can_be_distributed(self, loop: UOp) -> bool:
        """Whether the steps of a loop may be distributed over work-items: no step needs the result
        of another, and registers that the loop writes are not read outside. Registers that it reads
        have the same value in all work-items."""
        if not loop.axis.axis_kind.is_independent:
            return False
        inside = _uses(loop)
        written = {n.place.param for n in _statements(loop)} & inside.keys()
        return all(inside[memory] == self.uses[memory] for memory in written)

    def _distributed(
        self, loop: UOp, free: Sequence[UOp], conditions: Conditions
    ) -> Iterator[_GuardedNode]:
        """Yield a loop with its steps distributed; a loop that is its whole body is merged into
        it."""
        axes, body = [loop.axis], loop.body
        while len(body) == 1 and body[0].op is Ops.LOOP and self._can_be_distributed(body[0]):
            axes.append(body[0].axis)
            body = body[0].body
        total = math.prod(axis.extent for axis in axes)
        lane, group = UOp.index(0), 1
        for dim in free:
            lane, group = lane + dim * group, group * dim.extent
        rounds = -(-total // group)
        with derived_from(loop):
            chunk = UOp.range(rounds, self._unused(axes), loop.axis.axis_kind)
            step = lane + chunk * group if rounds > 1 else lane
            steps, left = {}, total
            for axis in axes:
                left //= axis.extent
                at = step // left if left > 1 else step
                steps[axis] = at % axis.extent if axis is not axes[0] else at
            inside = [child.substitute(steps) for child in body]
            if rounds * group > total:
                inside = [construct.when(step < total, inside)]
            if rounds > 1:
                inside = [UOp(Ops.LOOP, dtypes.void, (chunk, *inside))]
        for statement in inside:
            yield _GuardedNode(statement, conditions)

    def _unused(self, axes: Sequence[UOp]) -> str:
        """Return the name of a loop over parts of these axes."""
        name = "_".join(axis.axis_name for axis in axes)
        if len(axes) > 1:
            while name in self.names:
                name += "_"
            self.names.add(name)
        return name


def _guarded(parts: Iterable[_GuardedNode]) -> list[UOp]:
    """Return statements, neighbours with the same conditions in one IF."""
    body: list[UOp] = []
    run: list[UOp] = []
    current: Conditions = ()

    def close() -> None:
        if current and run:
            condition = current[0]
            for another in current[1:]:
                condition = condition & another
            body.append(construct.when(condition, run))
        else:
            body.extend(run)
        run.clear()

    for node, conditions in parts:
        if conditions != current:
            close()
            current = conditions
        run.append(node)
    close()
    return body


def _nests(block: UOp, role: str) -> list[tuple[UOp, ...]]:
    """Return the axes of each nest of loops with a role, outermost first."""
    nests: dict[tuple[UOp, ...], None] = {}
    pending: list[tuple[UOp, tuple[UOp, ...]]] = [(n, ()) for n in block.src]
    while pending:
        node, around = pending.pop()
        if node.op not in (Ops.LOOP, Ops.IF):
            continue
        if node.op is Ops.LOOP and node.role == role:
            around = (*around, node.axis)
            nests[around] = None
        pending += [(child, around) for child in node.body]
    return list(nests)


def _holds_group(loop: UOp) -> bool:
    """Whether a loop contains loops over work-items, or a barrier."""
    return any(
        child.op is Ops.BARRIER
        or child.op in (Ops.LOOP, Ops.IF)
        and (child.role is not None or _holds_group(child))
        for child in loop.body
    )


def _statements(node: UOp) -> Iterator[UOp]:
    if node.op in _WRITES:
        yield node
    elif node.op in (Ops.LOOP, Ops.IF, Ops.BLOCK):
        for child in node.body:
            yield from _statements(child)


def _is_private(memory: UOp) -> bool:
    """Whether memory belongs to one work-item: a register, or a scratch array."""
    return memory.op is Ops.DEFINE and memory.space != "shared"


def _uses(node: UOp) -> Counter[UOp]:
    """Return, for each private memory, the number of statements of a tree that use it."""
    uses: Counter[UOp] = Counter()
    for statement in _statements(node):
        uses.update(m for m in leaves([statement], Ops.DEFINE) if _is_private(m))
    return uses
