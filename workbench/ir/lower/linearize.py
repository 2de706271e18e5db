"""Linearisation: the statement tree as a flat program.

Statements are expanded to operations. Then each value that an operation reads is placed in the
deepest loop that it depends on: hoisting and common subexpressions need no pass of their own. A
loop that is complete is closed: its operations join the list of the loop around it, after all that
was hoisted out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.base.dtypes import dtypes
from workbench.base.errors import plural
from workbench.base.sequences import common_prefix
from workbench.base.target import Target
from workbench.base.trace import PassStep, note_steps
from workbench.ir.lower.expand_statements import (
    LOOPS,
    MACHINE_DIVISION,
    OpenLoop,
    StatementExpander,
    TreeEdits,
)
from workbench.ir.lower.lanes import statement_lanes
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves
from workbench.ir.rewriting.rewrite import is_off, require_on
from workbench.ir.rules.index import SIMPLIFY_INDEX

EXPAND_LANES = PassStep(
    "expand-lanes",
    "A lane axis has no loop: a statement over it is an operation on each vector of its lanes, or"
    " on each lane. What does not depend on a lane is computed once, for all.",
)
EMIT_STATEMENT = PassStep("emit-statement", "A statement that has no lanes writes single values.")
HOIST_VALUES = PassStep(
    "hoist-values",
    "A value goes to the deepest loop that it depends on: a loop that it does not depend on reads"
    " it, and does not compute it each time.",
)
CLOSE_LOOP = PassStep(
    "close-loop",
    "The operations of a complete loop join the list of the loop around it, between a beginning and"
    " an end.",
)
WRITE_PROGRAM = PassStep(
    "write-program",
    "The list outside of all loops is the program: arrays come first, and each value stands before"
    " what reads it first in its loop.",
)
STEPS = (EXPAND_LANES, EMIT_STATEMENT, HOIST_VALUES, CLOSE_LOOP, WRITE_PROGRAM)


def linearize(block: UOp, target: Target) -> tuple[UOp, ...]:
    """Return the program of a statement tree, with lanes expanded to vectors."""
    tree = TreeEdits(block)
    with MACHINE_DIVISION.merged(), SIMPLIFY_INDEX.merged():
        expander = StatementExpander(block, target)
        _expand(tree, tree.root, expander)
        program = _Placement(tree, expander).program()
    require_on("write the statements as a list", tree.steps())
    note_steps(tree.matches)
    return (UOp(Ops.BLOCK, dtypes.void, (), block.arg), *program)


def _expand(tree: TreeEdits, loop: OpenLoop, expander: StatementExpander) -> None:
    """Replace the statements in a loop by their operations."""
    at = 0
    while at < len(loop.body):
        statement, size = loop.body[at], 1
        if isinstance(statement, OpenLoop):
            _expand(tree, statement, expander)
        elif statement.op in (Ops.STORE, Ops.ACCUMULATE):
            operations = expander.operations(statement)
            size = len(operations)
            step = _expansion(statement, size, expander)
            tree.replace(loop, at, 1, operations, step)
        at += size


def _expansion(statement: UOp, count: int, expander: StatementExpander) -> PassStep:
    """Return the step that made `count` operations of a statement."""
    lanes, more, vector = statement_lanes(statement, expander.widths)
    operations = plural(count, "operation")
    if not lanes and not more:
        return EMIT_STATEMENT.at(operations)
    axes = [f"{r.axis_kind.words} {r.axis_name} of {r.extent}" for r in (*lanes, *more)]
    width = 1 if vector is None else expander.widths[vector.axis_name]
    size = f" on {width} lanes" if width > 1 else ""
    return EXPAND_LANES.at(f"{', '.join(axes)}: {operations}{size}")


@dataclass(slots=True)
class Scope:
    """An open loop, or an open IF (`is_condition`): its operations so far (`program`), and the
    values computed in it. `position` is that of the next item in the body of `loop`."""

    loop: OpenLoop
    axis: UOp | None = None
    is_condition: bool = False
    program: list[UOp] = field(default_factory=list)
    values: list[UOp] = field(default_factory=list)
    position: int = 0


class _Placement:
    """Walks through a tree from the first operation to the last, and places what each reads."""

    def __init__(self, tree: TreeEdits, expander: StatementExpander):
        self.tree, self.expander = tree, expander
        self.scopes = [Scope(tree.root)]
        self.placed: dict[UOp, int] = {}
        """The level of each value that is computed: the number of its scope."""
        self.insertion_points = _insertion_points(tree.root.node)
        self.hoists = not is_off(HOIST_VALUES)
        self.hoisted: dict[int, list[UOp]] = {}
        """Values placed outside of the present loop since the last step, by level."""
        self.reads: set[UOp] = set()
        """Values that an operation in a deeper loop than theirs reads."""

    def program(self) -> list[UOp]:
        """Return the operations of the whole tree."""
        self._walk()
        block, (scope,) = self.tree.root, self.scopes
        defines = leaves([block.node], Ops.DEFINE)
        arrays = [d for d in defines if d.space != "register"]
        program = [*arrays, *scope.program]
        step = WRITE_PROGRAM.at(plural(len(program), "operation"))
        self.tree.replace(block, 0, len(block.body), program, step)
        return program

    def _walk(self) -> None:
        """Place what the operations in the innermost scope read, and close the loops in it."""
        scope = self.scopes[-1]  # recursion is as deep as the loops nest
        body = scope.loop.body
        while scope.position < len(body):
            item = body[scope.position]
            if isinstance(item, OpenLoop):
                self._end_hoisting()
                self._loop(item)
                continue
            for source in item.src:
                self._emit(source)
            self._note_reads(item, len(self.scopes) - 1)
            scope.program.append(item)
            if item.dtype is not dtypes.void:  # a step of an accumulation
                scope.values.append(item)
                self.placed[item] = len(self.scopes) - 1
            scope.position += 1
        self._end_hoisting()

    def _loop(self, loop: OpenLoop) -> None:
        """Place what the operations in a loop or an IF read, and close it. A LOAD in an IF stays
        there: where the condition does not hold, its element may not exist."""
        node, outer = loop.node, self.scopes[-1]
        head = node.src[0]
        if node.op is Ops.IF:
            head = self.expander.condition(node)
            self._emit(head)
            self._end_hoisting()
            self.scopes.append(Scope(loop, is_condition=True))
        else:
            self.scopes.append(Scope(loop, head))
        self._walk()
        inner = self.scopes.pop()
        for value in inner.values:
            del self.placed[value]
        begin = UOp(node.op, dtypes.void, (head,), node.arg)
        end = UOp(_ENDS[node.op], dtypes.void, (head,))
        outer.program += [begin, *inner.program, end]
        closed = [begin, *loop.body, end]
        size = plural(len(inner.program), "operation")
        step = CLOSE_LOOP.at(f"{_name(node)}, {size}")
        self.tree.replace(outer.loop, outer.position, 1, closed, step)
        outer.position += len(closed)

    def _emit(self, root: UOp) -> None:
        """Place `root` and what it needs, each in the deepest loop it depends on."""
        innermost = len(self.scopes) - 1
        for node in root.toposort(lambda n: n not in self.placed and n.op not in _FREE):
            if node in self.placed or node.op in _FREE:
                continue
            level = max((self._level(s) for s in node.src), default=0)
            if node.op is Ops.LOAD:
                level = max(level, self._innermost_condition())
            if construct.is_running(node) or not self.hoists:
                level = innermost  # each step changes the accumulator
            scope = self.scopes[level]
            scope.program.append(node)
            scope.values.append(node)
            self.placed[node] = level
            self._note_reads(node, level)
            if level < innermost:
                self.hoisted.setdefault(level, []).append(node)

    def _note_reads(self, node: UOp, level: int) -> None:
        self.reads.update([s for s in node.src if self.placed.get(s, level) < level])

    def _end_hoisting(self) -> None:
        """Insert the values that were hoisted out of the present loop, and are read in it, in the
        loops where they were placed. Values that only these read follow when the
        program is written."""
        inner = self.scopes[-1].loop.node
        for level, placed in self.hoisted.items():
            values = [value for value in placed if value in self.reads]
            scope, count = self.scopes[level], plural(len(values), "value")
            into = f", into {_name(scope.loop.node)}" if level else " and all loops"
            step = HOIST_VALUES.at(f"{count} out of {_name(inner)}{into}")
            self.tree.replace(scope.loop, scope.position, 0, values, step)
            scope.position += len(values)
        self.hoisted = {}

    def _level(self, node: UOp) -> int:
        if node in self.placed:
            return self.placed[node]
        if node.op is Ops.RANGE:
            scopes = enumerate(self.scopes)
            return next((i for i, s in scopes if s.axis is node), 0)  # 0 for a SPECIAL
        if node.op in (Ops.REG, Ops.DEFINE):
            return self._storage_level(node.name)
        return 0

    def _innermost_condition(self) -> int:
        levels = range(len(self.scopes) - 1, 0, -1)
        return next((i for i in levels if self.scopes[i].is_condition), 0)

    def _storage_level(self, name: str) -> int:
        """Return the level of the innermost loop that encloses all uses of a piece of storage."""
        return len(self.insertion_points[name])


def _insertion_points(block: UOp) -> dict[str, tuple[UOp, ...]]:
    """Return per storage name the LOOPs and IFs around all of its uses."""
    insertion_points: dict[str, tuple[UOp, ...]] = {}
    stack: list[tuple[UOp, tuple[UOp, ...]]] = [(child, ()) for child in block.src]
    while stack:
        node, path = stack.pop()
        if node.op in LOOPS:
            stack.extend((child, (*path, node)) for child in node.body)
            continue
        for define in leaves([node], Ops.DEFINE):
            before = insertion_points.get(define.name, path)
            insertion_points[define.name] = common_prefix(before, path)
    return insertion_points


def _name(loop: UOp) -> str:
    return "IF" if loop.op is Ops.IF else loop.axis.axis_name


_ENDS = {Ops.LOOP: Ops.ENDLOOP, Ops.IF: Ops.ENDIF}
_FREE = frozenset({Ops.CONST, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG, Ops.DEFINE})
