"""The base of the writers of C-like languages: the values that get names, and a comment for each
statement of several lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from workbench.backends.program.comments import Follower, deserves_comment
from workbench.backends.program.inlining import InliningPlan
from workbench.backends.program.writer import CodeWriter
from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_SHORT_INDEX = 40  # arithmetic this short is repeated; longer one gets a name
_SHORT_VALUE = 72


class StatementWriter:
    """The state of a writer: its `text`, which values may stand where they are used, and the
    statement of the tree that is being written."""

    def __init__(self, text: CodeWriter, inlining: InliningPlan, follower: Follower):
        self.text, self.inlining, self.follower = text, inlining, follower
        self._inline: dict[UOp, tuple[int, ...]] = {}  # inlined positions
        self._statement_at = 0  # the line where the statement being written begins

    def _written_with(self, position: int, node: UOp) -> tuple[int, ...]:
        """Return the positions of a node and of all nodes inlined in its expression."""
        inside = [self._inline[s] for s in node.src if s in self._inline]
        return tuple(dict.fromkeys([position, *chain(*inside)])) if inside else (position,)

    def _is_short(self, position: int, words: str) -> bool:
        """Whether the value at a position may, and should, stand where it is used."""
        if position in self.inlining.anywhere and len(words) <= _SHORT_INDEX:
            return True
        return position in self.inlining.once and len(words) <= _SHORT_VALUE

    def _stem(self, node: UOp, memories: Mapping[UOp, str]) -> str:
        """Return the first part of a value's name, by its op."""
        if node.op is Ops.LOAD:
            return f"{memories[node.place.param]}_v"
        if node.dtype is dtypes.index:
            return "at"
        return "is" if node.dtype.is_bool else "v"

    def _open(self) -> None:
        """What follows is inside of the line that was written last."""
        self.text.depth += 1
        self._statement_at = len(self.text.lines)

    def _close(self) -> None:
        """Write the end of the innermost loop or IF."""
        self.text.depth -= 1
        self.text.put("}")
        self.follower.close()
        self._statement_at = len(self.text.lines)

    def _finish_statement(self, node: UOp) -> None:
        """Write a comment above the lines of a statement of the tree, if this SET or STORE
        completes it and it took several lines, or a vector."""
        leaf = self.follower.write(node)
        if leaf is None:
            return
        at, self._statement_at = self._statement_at, len(self.text.lines)
        if deserves_comment(leaf, len(self.text.lines) - at):
            self.text.comment(self.follower.comment(leaf), at)
            self._statement_at = len(self.text.lines)
