"""Which part of the expression a stretch of a program computes: comments for its code.

A linear program writes, statement by statement, what the statement tree it was made from
says. `Follower` walks the tree beside the program: which learns of every loop and every write, it
says which statement of the tree a write belongs to. Where the two do not agree (a program
made by hand has no tree), it falls silent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from workbench.backends.program.analysis import memory
from workbench.ir.nest.accesses import name_of
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.readable import statement_lines

_LONGEST = 88
_LONG = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS})
"""What takes many lines once it is a polynomial."""
_SIGN = re.compile(r" (?:\+|\*|max|min)?= ")


class Follower:
    """Walks a statement tree in step with the linear program that was made from it."""

    def __init__(self, block: UOp, tree: UOp | None = None):
        """`tree` has the same statements in the words that comments should use."""
        written = tree_statements(block)
        originals = written if tree is None else tree_statements(tree)
        if len(originals) != len(written):
            tree, originals = block, written
        self._words = statement_lines(tree or block)
        self._originals = dict(zip(written, originals, strict=True))
        self._levels: list[Iterator[UOp]] = [iter(block.src)]
        self._leaf: UOp | None = None
        self._elements_left = 0

    def open(self, axis: UOp) -> None:
        """A loop over `axis` begins."""
        node = self._next()
        if node is None or node.op is not Ops.LOOP or node.src[0] is not axis:
            self._stop()
            return
        self._levels.append(iter(node.src[1:]))

    def close(self) -> None:
        """The innermost loop ends."""
        if self._levels:
            self._levels.pop()

    def write(self, node: UOp) -> UOp | None:
        """A SET or STORE comes; return its statement if that is complete now."""
        if self._elements_left == 0:
            self._leaf = leaf = self._next()
            if leaf is None or leaf.op not in (Ops.STORE, Ops.ACCUMULATE):
                self._stop()
                return None
            lanes = [r for r in leaf.src[0].ranges if r.axis_kind.is_lane]
            self._elements_left = math.prod(r.extent for r in lanes)
        leaf = self._leaf
        if leaf is None or not _is_part_of(node, leaf):
            self._stop()
            return None
        self._elements_left -= node.src[1].dtype.count
        return leaf if self._elements_left == 0 else None

    def comment(self, leaf: UOp) -> str:
        """Return a statement as a person would write it, or what it reads, if that is long."""
        leaf = self._originals[leaf]
        lines = self._words[leaf]
        if len(lines) == 1 and len(lines[0]) <= _LONGEST:
            return lines[0]
        target = _SIGN.split(lines[-1], maxsplit=1)[0]
        nodes = leaf.src[1].toposort()
        places = dict.fromkeys(memory(n.src[0]) for n in nodes if n.op is Ops.LOAD)
        names = ", ".join(name_of(place) for place in places)
        functions = dict.fromkeys(n.op.name.lower() for n in nodes if n.op in _LONG)
        by = f", with {' and '.join(functions)}" if functions else ""
        return f"{target} from {names}{by}" if names else target + by

    def _next(self) -> UOp | None:
        if self._elements_left or not self._levels:
            return None
        return next(self._levels[-1], None)

    def _stop(self) -> None:
        self._levels, self._leaf, self._elements_left = [], None, -1


def deserves_comment(leaf: UOp, n_lines: int) -> bool:
    """Whether a statement that took `n_lines` lines is not plain from the lines themselves."""
    has_lanes = any(r.axis_kind.is_lane for r in leaf.src[1].ranges)
    return not leaf.src[1].is_const and (n_lines >= 2 or has_lanes)


def _is_part_of(node: UOp, leaf: UOp) -> bool:
    place = leaf.place.memory
    if node.op is Ops.SET:
        return place.op is Ops.DEFINE and place.name == node.src[0].name
    return memory(node.src[0]) is memory(place)
