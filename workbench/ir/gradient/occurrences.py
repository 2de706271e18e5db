"""Occurrences of values: equal expressions are one node, but each tensor has its own gradient.

An occurrence is a DETACH of a value, with a number. The gradient of a duplicate flows past the
value to the sources of the value; the gradient of an alias flows to the value itself. Occurrences
are removed before scheduling; the graph of a gradient keeps only those that are targets (the last
section).

Sections: Occurrences of values; Custom gradients; The graph of a value as a gradient reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from workbench.base.trace import derived_from, replaced
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Occurrences of values.

_numbers = count(1)


class Occurrence(NamedTuple):
    """The arg of an occurrence."""

    number: int
    is_alias: bool


@dataclass(frozen=True, eq=False, repr=False)
class Twins:
    """The arg of a gradient in whose graph `occurrences` were merged with equal ones.
    `differentiate` makes the gradient again with some of them separate, so that it can be
    differentiated by these."""

    occurrences: frozenset[UOp]
    differentiate: Callable[[frozenset[UOp]], UOp]


def duplicate(value: UOp) -> UOp:
    """Return another occurrence of a float, whose gradient is no part of the gradient of `value`;
    of another dtype `value` itself."""
    if isinstance(value.arg, Occurrence):
        return _occurrence(value.src[0], value.arg.is_alias)
    return _occurrence(value, False)


def alias(value: UOp) -> UOp:
    """Return an occurrence whose gradient flows to `value`; `value` itself if it is a constant or
    not a float."""
    return value if value.is_const else _occurrence(value, True)


def with_twins(
    gradient: UOp, twins: frozenset[UOp], differentiate: Callable[[frozenset[UOp]], UOp]
) -> UOp:
    """Return `gradient`; where it is differentiated by some of `twins`, `differentiate` makes it
    again."""
    if not twins:
        return gradient
    return UOp(Ops.DETACH, gradient.dtype, (gradient,), Twins(twins, differentiate))


def is_duplicate(node: UOp) -> bool:
    """Whether a node is a duplicate of its source."""
    return isinstance(node.arg, Occurrence) and not node.arg.is_alias


def is_alias(node: UOp) -> bool:
    """Whether a node is an alias of its source."""
    return isinstance(node.arg, Occurrence) and node.arg.is_alias


def without_alias(node: UOp) -> UOp:
    """Return the value below the aliases of a node."""
    while is_alias(node):
        (node,) = node.src
    return node


def flows_on(node: UOp) -> bool:
    """Whether the gradient of a DETACH flows to its source unchanged."""
    return isinstance(node.arg, Occurrence | Twins)


def without_aliases(nodes: Sequence[UOp]) -> tuple[UOp, ...]:
    """Return `nodes` rebuilt without aliases, so that equal values are one node."""
    images = merged(nodes, ())
    return tuple([images[node] for node in nodes])


def merged(nodes: Sequence[UOp], separate: Collection[UOp]) -> dict[UOp, UOp]:
    """Return, for each node under `nodes`, that node rebuilt without aliases and Twins; those in
    `separate` stay."""
    images: dict[UOp, UOp] = {}
    changed: set[UOp] = set()  # most nodes stay
    with derived_from():
        for node in UOp.sink(*nodes).toposort():
            is_merged = is_alias(node) or isinstance(node.arg, Twins)
            if is_merged and node not in separate:
                images[node] = images[node.src[0]]
                changed.add(node)
            elif changed.isdisjoint(node.src):
                images[node] = node
            else:
                images[node] = node.rebuild(tuple([images[s] for s in node.src]))
                changed.add(node)
    replaced(images)
    return images


def _occurrence(value: UOp, is_alias: bool) -> UOp:
    if not value.dtype.is_float:
        return value  # it has no gradient
    number = Occurrence(next(_numbers), is_alias)
    return UOp(Ops.DETACH, value.dtype, (value,), number)


# --------------------------------------------------------------------------------------------------
# Custom gradients: DETACH nodes with a gradient of their own.
#
# The first source is the value, the others are what it was made of. A function returns the
# gradients of the others: a user's function is in a weak dictionary, for as long as the node lives;
# a function of this package is part of a Formula, the arg of the node, so that copies of the node
# have it, too.

OwnRule = Callable[[UOp], Sequence[UOp | None]]
_rules: WeakKeyDictionary[UOp, OwnRule] = WeakKeyDictionary()
_function_numbers = count(1)


class Formula(NamedTuple):
    """The arg of a value with a formula. `gradient` is called with the gradient of the value,
    `parameter`, and the sources without the value; it returns the gradients of these sources."""

    name: str
    parameter: Any
    gradient: Callable[..., Sequence[UOp | None]]


def with_gradient(value: UOp, sources: Sequence[UOp], name: str, rule: OwnRule) -> UOp:
    """Return `value` with a custom gradient: `rule` returns the gradients of `sources` from the
    gradient of the value, None where nothing flows. `given_rules` returns `name`."""
    node = UOp(Ops.DETACH, value.dtype, (value, *sources), (name, next(_function_numbers)))
    _rules[node] = rule
    return node


def given_rules(graph: Iterable[UOp]) -> list[str]:
    """Return the different names of the custom gradients in a graph, sorted."""
    return sorted({node.arg[0] for node in graph if node in _rules})


def with_formula(value: UOp, sources: Sequence[UOp], formula: Formula) -> UOp:
    """Return `value`, from which the gradients of `sources` are computed by `formula`."""
    return UOp(Ops.DETACH, value.dtype, (value, *sources), formula)


def independent(value: UOp, *sources: UOp) -> UOp:
    """Return `value`, which was made of `sources` but does not depend on them: their gradients are
    0."""
    if not value.dtype.is_float:
        return value
    return with_formula(value, sources, Formula("independent", None, _none))


def depending(value: UOp, *sources: UOp) -> UOp:
    """Return `value` as if made of itself and `sources`: its gradient flows to itself, and 0 to
    `sources`."""
    if not value.dtype.is_float:
        return value
    formula = Formula("depending", None, _of_value)
    return with_formula(value, (value, *sources), formula)


def as_source(value: UOp, source: UOp) -> UOp:
    """Return `value`, which equals `source` but is computed differently: its gradient flows to
    `source`."""
    if not value.dtype.is_float:
        return value
    return with_formula(value, (source,), Formula("as-source", None, _of_value))


def renamed(value: UOp, former: UOp) -> UOp:
    """Return `value`, another name of the memory that has the value of `former`: its gradient flows
    to `former`."""
    return with_formula(value, (former,), Formula(_RENAMED, None, _of_value))


def former_of(node: UOp) -> UOp | None:
    """Return the former value of a renamed one; None for another node."""
    node = without_alias(node.src[0] if is_duplicate(node) else node)
    is_renamed = isinstance(node.arg, Formula) and node.arg.name == _RENAMED
    return node.src[1] if is_renamed else None


_RENAMED = "renamed"


def gradient_sources(node: UOp) -> tuple[UOp, ...]:
    """Return the sources that a gradient of a node may flow to."""
    if node.op is not Ops.DETACH or flows_on(node):
        return node.src
    return node.src[1:]


def own_gradient(g: UOp, n: UOp, *sources: UOp) -> tuple[UOp | None, ...] | None:
    """Return the gradients of the sources of a DETACH; None where it has no rule."""
    if flows_on(n):
        return (g,)
    if isinstance(n.arg, Formula):
        return (None, *n.arg.gradient(g, n.arg.parameter, *sources[1:]))
    rule = _rules.get(n)
    return None if rule is None else (None, *rule(g))


def _none(g: UOp, _: None, *sources: UOp) -> list[UOp]:
    return [source.like(0) for source in sources]


def _of_value(g: UOp, _: None, value: UOp, *sources: UOp) -> list[UOp]:
    return [g, *_none(g, _, *sources)]


# --------------------------------------------------------------------------------------------------
# The graph of a value as a gradient reads it: equal values are merged, but for the targets.
#
# Each tensor is an occurrence of its value. The targets of a gradient stay separate nodes; all
# other occurrences of equal values are merged into one node, whose gradient is handed on once. So
# it costs nothing to write an expression twice.


class MergedGraph:
    """The graph under `root`, down to nodes through which no gradient flows. Equal values are
    merged; the occurrences in `separate` are nodes of their own.

    `order` has one node for each value, sources first; `of` has the node in `order` for every node.
    `twins` are the occurrences that were merged with others: a gradient of this graph does not
    distinguish them.
    """

    def __init__(self, root: UOp, separate: frozenset[UOp]):
        self.root, self.separate = root, separate
        self.order: list[UOp] = []
        self.of: dict[UOp, UOp] = {}
        self._recomputed: dict[UOp, UOp] = {}
        self._read: dict[UOp, UOp | None] = {}
        """For each value, its only occurrence that is read; None where several are."""
        self._equals: dict[Any, UOp] = {}
        nodes = list(self.walk())
        for node in nodes:
            self._add(node)
        self._note_read(root)
        self.twins = frozenset(self._twins(nodes))

    def walk(self, gate: Callable[[UOp], bool] | None = None) -> Iterator[UOp]:
        """Yield all nodes, sources first; not those below a node for which `gate` is False."""
        visited: set[UOp] = set()
        stack: list[tuple[UOp, bool]] = [(self.root, False)]
        while stack:
            node, is_ready = stack.pop()
            if node in visited:
                continue
            below = () if is_ready or (gate and not gate(node)) else self._below(node)
            if not below:
                visited.add(node)
                yield node
                continue
            stack.append((node, True))
            stack += [(s, False) for s in reversed(below) if s not in visited]

    def source(self, node: UOp) -> UOp:
        """Return the node in `order` for the first source of `node`."""
        return self.of[node.src[0]]

    def occurrence(self, node: UOp) -> UOp:
        """Return the only occurrence of the value of `node` that is read; `node` if there are
        several."""
        return self._read.get(node) or node

    def _below(self, node: UOp) -> tuple[UOp, ...]:
        if not gradient_sources(node):
            return ()
        twins = node.arg
        if not isinstance(twins, Twins) or self.separate.isdisjoint(twins.occurrences):
            return node.src
        if node not in self._recomputed:
            self._recomputed[node] = twins.differentiate(self.separate)
        return (self._recomputed[node],)

    def _add(self, node: UOp) -> None:
        below = self._below(node)
        is_separate = node in self.separate
        if isinstance(node.arg, Twins) or (is_alias(node) and not is_separate):
            self.of[node] = self.of[below[0]]
            return
        first = node
        if below and not is_separate:
            values = tuple([self.of[s] for s in below])
            key = node.op, node.dtype, values, node.arg, node.arg.__class__
            first = self._equals.setdefault(key, node)
        self.of[node] = first
        if first is node:
            self.order.append(node)
        for source in below:
            self._note_read(source)

    def _note_read(self, node: UOp) -> None:
        if self._read.setdefault(self.of[node], node) is not node:
            self._read[self.of[node]] = None

    def _twins(self, nodes: list[UOp]) -> Iterator[UOp]:
        for node in nodes:
            if isinstance(node.arg, Twins):
                yield from node.arg.occurrences
            elif is_alias(node) and self._read.get(self.of[node], node) is None:
                yield node
