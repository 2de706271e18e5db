"""The states of a pass, one per rewrite, each computed from the one before.

The state after some matches is a function of the nodes that the pass began with and of those that
its rules added: a node's value is the node over the values of its sources, or, where a match
replaces that, the value of the replacement. One more match changes the value of the nodes that it
replaces and of those above them, and only these are computed again. The states are those of
`workbench.ir.rewriting.rewrite.replay`, which computes each from the beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from workbench.base.trace import Match
from workbench.ir.node.uop import UOp


class States:
    """A graph under rewriting: `root` is its state after the matches applied so far."""

    def __init__(self, start: UOp):
        self._start = start
        self._changes: dict[UOp, UOp] = {}
        self._values: dict[UOp, UOp] = {}
        self._rebuilt: dict[UOp, UOp] = {}
        """Per node: the node over the values of its sources."""
        self._same: defaultdict[UOp, set[UOp]] = defaultdict(set)
        """The inverse: the nodes that this one replaces."""
        self._readers: defaultdict[UOp, set[UOp]] = defaultdict(set)
        """Per node: the nodes whose value depends on its value."""
        self._settle((start,))

    @property
    def root(self) -> UOp:
        """The present state."""
        return self._values[self._start]

    def apply(self, match: Match) -> UOp:
        """Return the state after one more match, which becomes `root`."""
        self._changes[match.before] = match.after
        stale = self._above(self._same[match.before])
        for node in stale:
            del self._values[node]
        self._settle(stale)
        return self.root

    def _above(self, nodes: Iterable[UOp]) -> set[UOp]:
        """Return nodes and all whose values depend on theirs."""
        dependents = set(nodes)
        stack = list(dependents)
        while stack:
            above = self._readers[stack.pop()] - dependents
            dependents |= above
            stack += above
        return dependents

    def _settle(self, nodes: Iterable[UOp]) -> None:
        """Compute the values of nodes, and those that they depend on."""
        begun: set[UOp] = set()  # a cycle of matches would not end without it
        stack: list[tuple[UOp, UOp | None]] = [(node, None) for node in nodes]
        while stack:
            node, replacement = stack.pop()
            if node in self._values:
                continue
            if replacement is not None:
                self._values[node] = self._values.get(replacement, self._rebuilt[node])
                continue
            missing = [s for s in node.src if s not in self._values]
            if missing and node not in begun:
                stack += [(node, None), *((s, None) for s in missing)]
                continue
            replacement = self._changes.get(self._rebuild(node))
            if replacement is None or node in begun:
                self._values[node] = self._rebuilt[node]
            else:
                begun.add(node)
                self._readers[replacement].add(node)
                stack += [(node, replacement), (replacement, None)]

    def _rebuild(self, node: UOp) -> UOp:
        """Return a node over the values of its sources, and store it."""
        for source in node.src:
            self._readers[source].add(node)
        replacement = node.rebuild(tuple([self._values.get(s, s) for s in node.src]))
        before = self._rebuilt.get(node)
        if before is not None:
            self._same[before].discard(node)
        self._rebuilt[node] = replacement
        self._same[replacement].add(node)
        return replacement
