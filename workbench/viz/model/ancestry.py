"""What was made from what: the records of passes, read as a family tree of nodes.

A rewrite says it with its matches: new nodes come from what the pattern took apart, and a node
over other sources from the node it was. Everything else says it with links. Equal nodes are one
object, so a node that two places made has the ancestors of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.ir.ops import Ops
from workbench.ir.patterns import Pat
from workbench.ir.rewrite import Rule, replay
from workbench.ir.uop import UOp
from workbench.trace import Link, Match, PassRecord

_SHARED = frozenset(
    {Ops.CONST, Ops.RANGE, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.LANES, Ops.INVALID}
)
"""What everything has in common, and so comes from nowhere."""


class Ancestry:
    """The family tree of the nodes in some records, which are added in order."""

    def __init__(self) -> None:
        self._sources: dict[UOp, dict[UOp, None]] = {}
        self._made: set[UOp] = set()

    def begin(self, state: UOp) -> None:
        """Take in a graph that the records to come begin with."""
        self._made.update(state.toposort())

    def add(self, record: PassRecord) -> None:
        """Take in what a record says."""
        self._expect(record)
        rewrites = [m for m in record.matches if isinstance(m.rule, Rule)]
        if rewrites:
            self._rewritten(record.before, rewrites)
        for part in record.links:
            if isinstance(part, PassRecord):
                self.add(part)
        for link in record.links:
            if isinstance(link, Link):
                self._link(link.made, link.source)
                for inner in _below(link.made, self._made):
                    if inner.dtype.kind != "index":
                        self._link(inner, link.source)

    def of(self, node: UOp) -> dict[UOp, None]:
        """Return a node and all that it was made from, at every level, as an ordered set."""
        found = {node: None}
        pending = [node]
        while pending:
            for source in self._sources.get(pending.pop(), ()):
                if source not in found:
                    found[source] = None
                    pending.append(source)
        return found

    def _link(self, made: UOp, source: UOp) -> None:
        if made is not source and not (_is_shared(made) or _is_shared(source)):
            self._sources.setdefault(made, {})[source] = None

    def _expect(self, record: PassRecord) -> None:
        """Learn what has links of its own, and is no inner part of what another link made."""
        for link in record.links:
            if isinstance(link, Link):
                self._made.add(link.made)
            else:
                self._expect(link)

    def _rewritten(self, before: UOp, matches: list[Match]) -> None:
        by_node = {m.before: m for m in matches}
        known = set(before.toposort())

        def note(made: UOp, source: UOp) -> None:
            match = by_node.get(source)
            if match is None or match.after is not made:
                self._link(made, source)
            else:
                taken = list(_taken_apart(match.rule.match, source))
                for node in (made, *_below(made, known)):
                    for one in taken:
                        self._link(node, one)
            known.add(made)
            known.update(_below(made, known))
            self._made.update(made.toposort(lambda n: n not in self._made))

        replay(before, matches, note=note)


def _is_shared(node: UOp) -> bool:
    return node.op in _SHARED or node.op is Ops.BROADCAST and node.src[0].is_const


def _below(made: UOp, known: set[UOp]) -> Iterator[UOp]:
    """Yield the nodes below `made` that are not known, down to those that are."""
    pending, seen = list(made.src), set(made.src)
    while pending:
        node = pending.pop()
        if node in known:
            continue
        yield node
        pending += [s for s in node.src if s not in seen]
        seen.update(node.src)


def _taken_apart(pattern: Pat, node: UOp) -> Iterator[UOp]:
    """Yield the nodes that a pattern names the op of: those a match takes the place of."""
    yield node
    for part, below in zip(pattern.src or (), node.src, strict=False):
        if part.src is not None:
            yield from _taken_apart(part, below)
