"""Ancestry: the records of passes as a family tree of nodes.

In a pass of rules the matches show it: new nodes come from the nodes that the pattern matched, and
a node that was rebuilt over changed sources comes from the node before. Other passes record
provenance edges. Equal nodes are one object, so a node that was made twice has the ancestors of
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from workbench.base.trace import PassRecord, ProvenanceEdge
from workbench.ir.node.construct import is_read
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat
from workbench.ir.rewriting.rewrite import Rule, replay

_SHARED = frozenset({Ops.CONST, Ops.RANGE, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.LANES, Ops.INVALID})
"""Ops whose nodes all kernels share, so that they have no ancestors."""


WHOLE = 0
"""The number of a cause that is not a match: the pass as a whole made the node."""
REBUILT = -1
"""The number of a cause that is not a match: the node was rebuilt over changed sources."""


class Cause(NamedTuple):
    """The cause of a node, `product`: the pass at `place` derived it from `source`. `number` is
    that of the match that did so (from 1), WHOLE or REBUILT."""

    place: int
    number: int
    product: UOp
    source: UOp


_NO_CAUSES: Mapping[UOp, Cause] = MappingProxyType({})


class Ancestry:
    """The family tree of the nodes in some records, which are added in order. It extends a `base`
    without changing it, so that several may share it; the base has no base of its own."""

    def __init__(self, base: Ancestry | None = None) -> None:
        self._causes: dict[UOp, dict[UOp, Cause]] = {}
        self.base = base
        self._before = {} if base is None else base._causes
        self.replaced: dict[UOp, UOp] = {}
        """The node that each node replaced, which had the same value."""

    def add(self, record: PassRecord, place: int = 0) -> None:
        """Add a record; `place` is the position of its pass in the causes."""
        edges = [edge for edge in record.edges if isinstance(edge, ProvenanceEdge)]
        if any(isinstance(m.rule, Rule) for m in record.matches):
            self._rewritten(record, place, {edge.product for edge in edges})
        for part in record.edges:
            if isinstance(part, PassRecord):
                self.add(part, place)
        for edge in edges:
            self._link(place, WHOLE, edge.product, edge.source)

    def of(self, *nodes: UOp) -> dict[UOp, None]:
        """Return some nodes and all their ancestors, at every level, as an ordered set."""
        origins: dict[UOp, None] = {}
        for node in nodes:
            if node in origins:
                continue
            origins[node] = None
            pending = [node]
            while pending:
                for source in self._of(pending.pop()):
                    if source not in origins:
                        origins[source] = None
                        pending.append(source)
        return origins

    def unions(self, start: UOp, own: Callable[[UOp], int], masks: dict[UOp, int]) -> None:
        """Add to `masks`, for a node and each of its ancestors, the union of its own mask and the
        masks of its ancestors.

        Ancestors come first. Equal nodes may be each other's ancestors, so the walk is repeated
        until no mask changes.
        """
        order: list[UOp] = []
        visited: set[UOp] = set()
        pending = [(start, False)]
        while pending:
            node, is_done = pending.pop()
            if is_done:
                order.append(node)
            elif node not in visited and node not in masks:
                visited.add(node)
                pending.append((node, True))
                pending += [(s, False) for s in self._of(node) if s not in visited]
        masks.update({node: own(node) for node in order})
        changed = True
        while changed:
            changed = False
            for node in order:
                mask = masks[node]
                for source in self._of(node):
                    mask |= masks[source]
                if mask != masks[node]:
                    masks[node], changed = mask, True

    def __iter__(self) -> Iterator[UOp]:
        """Yield the nodes that have ancestors."""
        yield from self._before
        yield from (node for node in self._causes if node not in self._before)

    def has_own(self, node: UOp) -> bool:
        """Whether a node has causes that the base lacks."""
        return node in self._causes

    def causes(self, node: UOp) -> Iterable[Cause]:
        """Return the causes of a node, one step back."""
        return self._of(node).values()

    def _of(self, node: UOp) -> Mapping[UOp, Cause]:
        """Return the causes of a node by the node before, those of the base first."""
        before, causes = self._before.get(node), self._causes.get(node)
        if before is None or causes is None:
            return before or causes or _NO_CAUSES
        return before | causes

    def why(self, *nodes: UOp) -> list[Cause]:
        """Return the causes of some nodes at every level, the latest first: each match once, and
        each pass that derived nodes as a whole once. Lowering sorts the terms of an index again, so
        an index has the causes of its terms, too."""
        causes: dict[tuple[int, int], Cause] = {}
        visited, pending = set(nodes), list(nodes)
        for node in pending:  # it grows: breadth first
            for cause in self.causes(node):
                key = cause[:2]
                if key not in causes:
                    causes[key] = cause
                elif causes[key].source is cause.product:  # two edges of a pass in a row are one
                    causes[key] = cause._replace(product=causes[key].product)
            before = [cause.source for cause in self.causes(node)]
            if node.dtype.kind == "index":
                before += [s for s in node.src if s.dtype.kind == "index"]
            pending += [n for n in dict.fromkeys(before) if n not in visited]
            visited.update(before)
        return [causes[key] for key in sorted(causes, reverse=True) if key[1] != REBUILT]

    def _link(self, place: int, number: int, target: UOp, source: UOp) -> None:
        is_split = source.op is Ops.RANGE and target.dtype.kind == "index"
        if target is source or _is_shared(target) or (_is_shared(source) and not is_split):
            return
        before = self._before.get(target)
        if before is not None and source in before:
            return
        causes = self._causes.setdefault(target, {})
        causes.setdefault(source, Cause(place, number, target, source))

    def _rewritten(self, record: PassRecord, place: int, others: set[UOp]) -> None:
        """Link the nodes that the matches of a pass made; its edges made the `others`."""
        matches = record.matches
        by_node = {m.before: (i, m) for i, m in enumerate(matches, 1)}
        existing = set(record.before.toposort())

        def link_replaced(target: UOp, source: UOp) -> None:
            self.replaced.setdefault(target, source)
            number, match = by_node.get(source, (REBUILT, None))
            if match is None or match.after is not target:
                self._link(place, REBUILT, target, source)
            elif isinstance(match.rule, Rule):
                for node in (target, *_below(target, existing)):
                    for one in _sources(match.rule, source, target, node, others):
                        self._link(place, number, node, one)
            existing.add(target)
            existing.update(_below(target, existing))

        replay(record.before, matches, note=link_replaced)


def _sources(rule: Rule, before: UOp, target: UOp, node: UOp, others: set[UOp]) -> Iterator[UOp]:
    """Yield the nodes that `node` comes from. `rule` replaced `before` by `target`, and `node` is
    `target` or a node below it. It comes from the nodes that the pattern matched, unless `before`
    is a read.

    While kernels are built, a node that replaces the read of a value comes from that value; from
    `before`, too, if reads of the value are LOADs. If `node` is itself a read, it comes from the
    value that it reads; `target` also from `before`, a LOAD of `others` (memory that kernels store)
    also from the value of `before`.
    """
    if not is_read(before):
        yield from _matched_parts(rule.match, before)
        return
    value = before.src[0]
    if not is_read(node):
        yield value
        if _is_loaded(value):
            yield before
        return
    yield node.src[0]
    if node is target:
        yield before
    elif _is_loaded(node.src[0]) and node.src[0] in others:
        yield value


def _is_loaded(value: UOp) -> bool:
    """Whether reads of a value are LOADs: of memory, or of a row staged in the kernel."""
    is_row = value.op is Ops.CONTIGUOUS and len(value.src) > 1
    return value.op is Ops.BUFFER or is_row


def _is_shared(node: UOp) -> bool:
    return node.op in _SHARED or node.op is Ops.BROADCAST and node.src[0].is_const


def _below(root: UOp, existing: set[UOp]) -> Iterator[UOp]:
    """Yield the nodes below `root` that are not in `existing`, down to those that are."""
    pending, visited = list(root.src), set(root.src)
    while pending:
        node = pending.pop()
        if node in existing:
            continue
        yield node
        pending += [s for s in node.src if s not in visited]
        visited.update(node.src)


def _matched_parts(pattern: Pat, node: UOp) -> Iterator[UOp]:
    """Yield the nodes whose ops a pattern names, which a match replaces."""
    yield node
    for part, below in zip(pattern.src or (), node.src, strict=False):
        if part.src is not None:
            yield from _matched_parts(part, below)
