"""The inlining plan of a program: the values that are written where they are used, and the first
use of registers.

A value that is used once, in the loop that computes it, needs no name if, between it and its use,
there is no SET of a register and no STORE to memory that it reads. Arithmetic on loop counters
reads neither, so it can stand anywhere in its loop.
The renderer (`render.py`) then decides by the length of a value's text whether the value gets a
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.base.sequences import common_prefix
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

TRANSPARENT = frozenset({Ops.INDEX, Ops.AFTER, Ops.BROADCAST})
"""Ops that are never variables: their users use their source."""
LEAVES = frozenset({Ops.CONST, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG, Ops.DEFINE})
_STATEMENTS = frozenset(
    {Ops.LOOP, Ops.ENDLOOP, Ops.IF, Ops.ENDIF, Ops.SET, Ops.STORE, Ops.BLOCK, Ops.BARRIER}
    | {Ops.SPECIAL}
)


@dataclass(slots=True)
class InliningPlan:
    """Positions in a linear program.

    `once`: the value may stand at its one use; `anywhere`: at all of its uses; `unused`: it has no
    use. `begins` has, by the position of a LOOP or SET, the registers that are declared just before
    it.
    """

    unused: set[int] = field(default_factory=set)
    once: set[int] = field(default_factory=set)
    anywhere: set[int] = field(default_factory=set)
    begins: dict[int, list[UOp]] = field(default_factory=dict)


def plan_inlining(linear: Sequence[UOp]) -> InliningPlan:
    """Walk a program and return its inlining plan."""
    plan = InliningPlan()
    paths = _paths(linear)
    _find_inline(linear, paths, plan)
    _find_beginnings(linear, paths, plan)
    return plan


def _paths(linear: Sequence[UOp]) -> list[tuple[int, ...]]:
    """Return per position the positions of the loops and IFs that are open there."""
    paths: list[tuple[int, ...]] = []
    path: tuple[int, ...] = ()
    for position, node in enumerate(linear):
        if node.op in (Ops.ENDLOOP, Ops.ENDIF):
            path = path[:-1]
        paths.append(path)
        if node.op in (Ops.LOOP, Ops.IF):
            path = (*path, position)
    return paths


def _find_inline(
    linear: Sequence[UOp], paths: Sequence[tuple[int, ...]], plan: InliningPlan
) -> None:
    users = _users(linear)
    lasts = [-1] * len(linear)  # the last position where a value's text is written
    changes = _changes(linear)
    for position in reversed(range(len(linear))):
        node = linear[position]
        if node.op in _STATEMENTS:
            lasts[position] = position
            continue
        uses = [u for u in users[position] if u not in plan.unused]
        if not uses:
            plan.unused.add(position)
            continue
        lasts[position] = max(lasts[u] for u in uses)
        if node.op in TRANSPARENT:
            continue
        if _is_arithmetic(node):
            plan.anywhere.add(position)
        ends = _ends(linear, users, position)
        if len(ends) != 1 or paths[ends[0]] != paths[position]:
            lasts[position] = position
            continue
        reads = _reads(node)
        if any(position < c < lasts[position] for r in reads for c in changes.get(r, ())):
            lasts[position] = position
            continue
        plan.once.add(position)


def _users(linear: Sequence[UOp]) -> list[list[int]]:
    """Return per position the positions that use its value, until it is computed again."""
    users: list[list[int]] = [[] for _ in linear]
    definitions: dict[UOp, int] = {}
    for position, node in enumerate(linear):
        for source in node.src:
            if source in definitions and node.op not in _NO_USE:
                users[definitions[source]].append(position)
        definitions[node] = position
    return users


_NO_USE = (Ops.LOOP, Ops.ENDLOOP, Ops.ENDIF, Ops.SPECIAL)


def _ends(linear: Sequence[UOp], users: list[list[int]], position: int) -> list[int]:
    """Return the positions of a value's uses, also through TRANSPARENT nodes; at most two."""
    ends: list[int] = []
    pending = list(users[position])
    while pending and len(ends) < 2:
        user = pending.pop()
        if linear[user].op in TRANSPARENT:
            pending += users[user]
        else:
            ends.append(user)
    return ends


def _changes(linear: Sequence[UOp]) -> dict[UOp, list[int]]:
    """Return the positions that set each register and write each memory; at a BARRIER the writes of
    other work-items become visible."""
    changes: dict[UOp, list[int]] = {}
    stores: list[int] = []
    barriers = [i for i, node in enumerate(linear) if node.op is Ops.BARRIER]
    for define in (n for n in linear if n.op is Ops.DEFINE and n.space == "shared"):
        changes[define] = [*barriers]
    for position, node in enumerate(linear):
        if node.op is Ops.SET:
            changes.setdefault(node.src[0], []).append(position)
        elif node.op is Ops.STORE:
            place = node.place.param
            if place.op is Ops.DEFINE:
                changes.setdefault(place, []).append(position)
            else:
                stores.append(position)
    for node in linear:  # arguments may share memory
        if node.op is Ops.LOAD and node.place.param.op is Ops.PARAM:
            changes[node.place.param] = stores + barriers
    return changes


def _reads(node: UOp) -> list[UOp]:
    """Return the registers and the memory that a node itself reads, also through BROADCASTs."""
    reads = []
    if node.op is Ops.LOAD:
        reads.append(node.place.param)
    pending = list(node.src)
    while pending:
        source = pending.pop()
        if source.op is Ops.REG:
            reads.append(source)
        elif source.op in TRANSPARENT:
            pending += source.src
    return reads


def _is_arithmetic(node: UOp) -> bool:
    """Whether a scalar is computed from loop counters and constants alone."""
    if node.dtype.count > 1 or not (node.dtype.kind == "index" or node.dtype.is_bool):
        return False
    return all(n.is_elementwise or n.op in (Ops.CONST, Ops.RANGE) for n in node.toposort())


def _find_beginnings(
    linear: Sequence[UOp], paths: Sequence[tuple[int, ...]], plan: InliningPlan
) -> None:
    """Declare each register in the innermost loop around all of its uses: at its first SET if that
    is directly in the loop, else before the inner loop with the first SET."""
    insertion_points: dict[UOp, tuple[int, ...]] = {}
    firsts: dict[UOp, int] = {}
    for position, node in enumerate(linear):
        for source in node.src:
            if source.op is Ops.REG:
                firsts.setdefault(source, position)
                path = insertion_points.get(source, paths[position])
                insertion_points[source] = common_prefix(path, paths[position])
    for register, first in firsts.items():
        insertion_point = insertion_points[register]
        inner = paths[first][len(insertion_point) :]
        plan.begins.setdefault(inner[0] if inner else first, []).append(register)
