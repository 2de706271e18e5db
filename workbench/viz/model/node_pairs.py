"""Pairs of the nodes of two graphs: those that are the same, changed, removed and added.

Equal graphs are paired whole. What remains is paired by rules that name one partner at most on
either side, the surest first: what computes the same of paired sources; what has the same name (an
axis, a parameter) or the same content and is the only one of it; then, from the users down, what
stands at the same place. No rule prefers a side, so that swapped graphs have swapped pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import own_name

MOST_ROUNDS = 200
"""Most times that the rules are tried: each round but the last makes a pair."""


@dataclass(frozen=True, slots=True)
class NodePairs:
    """Two graphs, node by node: each node of the first is a key of `same` or of `changed`, or it is
    `removed`; each of the second is a value of one of them, or it is `added`. Nodes are the same if
    their op, dtype and argument are, and their sources are paired with each other."""

    same: Mapping[UOp, UOp]
    changed: Mapping[UOp, UOp]
    removed: tuple[UOp, ...]
    added: tuple[UOp, ...]


def node_pairs(one: Sequence[UOp], other: Sequence[UOp]) -> NodePairs:
    """Return the pairs of the nodes below the roots of two graphs."""
    pairing = _Pairing(_below(one), _below(other))
    pairing.add_equal()
    pairing.add(zip(one, other, strict=False))
    for _ in range(MOST_ROUNDS):
        if not any(rule() for rule in pairing.rules):
            break
    same = {a: b for a, b in pairing.pairs.items() if pairing.are_same(a, b)}
    return NodePairs(
        same,
        {a: b for a, b in pairing.pairs.items() if a not in same},
        tuple(a for a in pairing.one if a not in pairing.pairs),
        tuple(b for b in pairing.other if b not in pairing.partners),
    )


def _below(roots: Sequence[UOp]) -> list[UOp]:
    """Return the nodes below some roots, sources first, each once."""
    return list(dict.fromkeys(node for root in roots for node in root.toposort()))


class _Pairing:
    """The pairs so far, in both directions. Each rule adds pairs, and returns whether it did."""

    def __init__(self, one: list[UOp], other: list[UOp]):
        self.one, self.other = one, other
        self.pairs: dict[UOp, UOp] = {}
        self.partners: dict[UOp, UOp] = {}
        self.rules: tuple[Callable[[], bool], ...] = (
            self.add_by_sources,
            lambda: self._add_unique(_name),
            lambda: self._add_unique(_content),
            lambda: self._add_by_place(_content),
            lambda: self._add_by_place(_op),
            lambda: self._add_unique(_op),
        )

    def add_equal(self) -> None:
        """Pair equal graphs: one node in both, or equal ones over memory of other numbers."""
        shared = set(self.one) & set(self.other)
        self.add((node, node) for node in self.one if node in shared)
        numbers: dict[Hashable, int] = {}
        sides = [_numbered(nodes, shared, numbers) for nodes in (self.one, self.other)]
        self.add((node, sides[1][n]) for n, node in sides[0].items() if n in sides[1])

    def add(self, candidates: Iterable[tuple[UOp, UOp]]) -> bool:
        """Pair candidates of one op that name no other partner on either side."""
        wanted: defaultdict[UOp, dict[UOp, None]] = defaultdict(dict)
        wanted_by: defaultdict[UOp, dict[UOp, None]] = defaultdict(dict)
        for a, b in candidates:
            if a.op is b.op and a not in self.pairs and b not in self.partners:
                wanted[a][b] = None
                wanted_by[b][a] = None
        count = len(self.pairs)
        for a, named in wanted.items():
            b = next(iter(named))
            if len(named) == 1 and len(wanted_by[b]) == 1:
                self.pairs[a], self.partners[b] = b, a
        return len(self.pairs) > count

    def are_same(self, a: UOp, b: UOp) -> bool:
        """Whether two paired nodes are the same, but for what stands further below."""
        return _content(a) == _content(b) and self._sources(a) == b.src

    def add_by_sources(self) -> bool:
        """Pair nodes with the same content over paired sources, from the sources up."""
        by_sources: dict[Hashable, UOp] = {
            (_content(b), b.src): b for b in self._rest_of_other() if b.src
        }
        count = len(self.pairs)
        for a in self._rest_of_one():
            b = by_sources.get((_content(a), self._sources(a))) if a.src else None
            if b is not None and b not in self.partners:
                self.pairs[a], self.partners[b] = b, a
        return len(self.pairs) > count

    def _sources(self, a: UOp) -> tuple[UOp | None, ...]:
        return tuple(self.pairs.get(source) for source in a.src)

    def _add_unique(self, key_of: Callable[[UOp], Hashable]) -> bool:
        """Pair nodes that are the only ones of a key on both sides."""
        sides = [_unique(rest, key_of) for rest in (self._rest_of_one(), self._rest_of_other())]
        return self.add((node, sides[1][key]) for key, node in sides[0].items() if key in sides[1])

    def _add_by_place(self, key_of: Callable[[UOp], Hashable]) -> bool:
        """Pair the sources of paired nodes that stand at the same place."""
        return self.add(
            (x, y)
            for a, b in self.pairs.items()
            if a is not b and len(a.src) == len(b.src)
            for x, y in zip(a.src, b.src, strict=True)
            if key_of(x) == key_of(y)
        )

    def _rest_of_one(self) -> Iterator[UOp]:
        return (a for a in self.one if a not in self.pairs)

    def _rest_of_other(self) -> Iterator[UOp]:
        return (b for b in self.other if b not in self.partners)


def _numbered(
    nodes: Sequence[UOp], shared: set[UOp], numbers: dict[Hashable, int]
) -> dict[int, UOp]:
    """Return nodes by the number of their structure, which equal graphs of several calls have in
    common; memory that both graphs read is itself, other memory counts by its order."""
    own: dict[UOp, int] = {}
    memory = 0
    for node in nodes:
        key: Hashable = (_content(node), tuple(own[source] for source in node.src))
        if node.op is Ops.BUFFER:
            key = (node,) if node in shared else (_content(node), memory)
            memory += node not in shared
        own[node] = numbers.setdefault(key, len(numbers))
    return {number: node for node, number in own.items()}


def _unique(nodes: Iterable[UOp], key_of: Callable[[UOp], Hashable]) -> dict[Hashable, UOp]:
    """Return the nodes that are the only ones of their key; a key of None names nothing."""
    by_key: defaultdict[Hashable, list[UOp]] = defaultdict(list)
    for node in nodes:
        key = key_of(node)
        if key is not None:
            by_key[key].append(node)
    return {key: of_key[0] for key, of_key in by_key.items() if len(of_key) == 1}


def _content(node: UOp) -> Hashable:
    """Return the op, the dtype and the argument of a node; memory has no number."""
    is_memory = node.op is Ops.BUFFER
    arg = (node.device, node.buffer_shape) if is_memory else node.arg
    return node.op, node.dtype, arg


def _name(node: UOp) -> Hashable:
    """Return the op and the name of an axis, a parameter or an array; None for other nodes."""
    name = own_name(node)
    return (node.op, name) if name else None


def _op(node: UOp) -> Hashable:
    return node.op
