"""Comments in generated code: the part of the expression that the lines below compute.

A linear program has the statements of its statement tree, in the same order. `Follower` walks the
tree beside the program: from each loop and each write it knows to which statement of the tree a
write belongs. Where the two do not agree (a program written by hand has no tree), it returns no
comments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from workbench.ir.nest.accesses import name_of
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.readable import statement_lines

_NOT_FOLLOWED = (Ops.SPECIAL, Ops.BARRIER)
_LONGEST = 88
_LONG_COST = 20
"""What an op costs, in additions, that takes many lines as a polynomial."""
_SIGN = re.compile(r" (?:\+|\*|max|min)?= ")


class Follower:
    """Walks a statement tree in step with its linear program."""

    def __init__(self, block: UOp, tree: UOp | None = None):
        """`tree` has the same statements with the ops that comments should show."""
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
        self._levels.append(iter(node.body))

    def open_if(self) -> None:
        """An IF begins."""
        node = self._next()
        if node is None or node.op is not Ops.IF:
            self._stop()
            return
        self._levels.append(iter(node.body))

    def close(self) -> None:
        """The innermost loop or IF ends."""
        if self._levels:
            self._levels.pop()

    def write(self, node: UOp) -> UOp | None:
        """Read a SET or STORE; return its statement if that is complete now."""
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
        """Return the readable text of a statement, or the buffers that it reads, if the text is
        long."""
        leaf = self._originals[leaf]
        lines = self._words[leaf]
        if len(lines) == 1 and len(lines[0]) <= _LONGEST:
            return lines[0]
        target = _SIGN.split(lines[-1], maxsplit=1)[0]
        nodes = leaf.src[1].toposort()
        places = dict.fromkeys(n.place.param for n in nodes if n.op is Ops.LOAD)
        names = ", ".join(name_of(place) for place in places)
        long = [n.op for n in nodes if OPS[n.op].cost >= _LONG_COST]
        functions = dict.fromkeys(op.name.lower() for op in long)
        by = f", with {' and '.join(functions)}" if functions else ""
        return f"{target} from {names}{by}" if names else target + by

    def _next(self) -> UOp | None:
        if self._elements_left or not self._levels:
            return None
        statements = (n for n in self._levels[-1] if n.op not in _NOT_FOLLOWED)
        return next(statements, None)

    def _stop(self) -> None:
        self._levels, self._leaf, self._elements_left = [], None, -1


def deserves_comment(leaf: UOp, n_lines: int) -> bool:
    """Whether `n_lines` lines of code need a comment that says which statement they compute."""
    has_lanes = any(r.axis_kind.is_lane for r in leaf.src[1].ranges)
    return not leaf.src[1].is_const and (n_lines >= 2 or has_lanes)


def _is_part_of(node: UOp, leaf: UOp) -> bool:
    place = leaf.place.memory
    if node.op is Ops.SET:
        return place.op is Ops.DEFINE and place.name == node.src[0].name
    return node.place.param is place.param
