"""Reverse-mode differentiation: from a graph of the tensor level to the graph of its gradients.

Nodes that lead to a target are visited from the root down, each after all nodes that read it. The
rule of a node's op (`rules.py`) returns the shares of its sources in its gradient; the shares that
a node gets from several readers are added. Source of the idea: Linnainmaa 1970; by rewriting a
graph, so that the result can be differentiated again: Pearlmutter and Siskind 2008.

Sections: The steps of the gradient pass, as rewrites; Reverse-mode differentiation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.base.trace import Match, PassStep, derived_from
from workbench.ir.gradient.occurrences import (
    MergedGraph,
    flows_on,
    gradient_sources,
    is_alias,
    is_duplicate,
    merged,
    with_twins,
)
from workbench.ir.gradient.rules import GRADIENTS, OF_RESULT, REDUCTIONS
from workbench.ir.gradient.windows import rows_of, source_gradient
from workbench.ir.node.construct import full
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import rules_off

# --------------------------------------------------------------------------------------------------
# The steps of the gradient pass, as rewrites: the rule, the gradient and the result.
#
# GRADIENT(source, node, g) is the share of `source` in g, the gradient of `node`. The graph before
# the pass has one for each source of each node on the way to a target. From the root down, each is
# replaced by what the rule of the node's op returns. Only the record that a page or a test reads
# has these nodes: the pass itself makes none.


class Share(NamedTuple):
    """A result of a rule: `value` is the share of `source` in `g`, the gradient of `node`; `total`
    is the gradient of `source` with this share added."""

    node: UOp
    g: UOp
    source: UOp
    value: UOp
    total: UOp


@dataclass(frozen=True, slots=True, repr=False)
class GradientRow(PassStep):
    """The rule of a step: a row of the table of gradients, and the `function` that it has."""

    function: Callable[..., object] | None = None


class GradientSteps(NamedTuple):
    """The gradient pass as rewrites, which lead from `before` to `after`. The sources of both are
    the root and the gradients of the targets."""

    before: UOp
    after: UOp
    matches: tuple[Match, ...]


def gradient_steps(
    root: UOp, seed: UOp, gradients: Sequence[tuple[UOp, UOp]], shares: Iterable[Share]
) -> GradientSteps:
    """Return the steps of a pass over `root`, whose own gradient is `seed`. `gradients` has each
    target with its gradient, and `shares` are in the order of the pass. In the steps, equal values
    are one node, but for targets."""
    shares = list(shares)
    written = [node for pair in gradients for node in pair]
    written += [node for share in shares for node in share]
    now = merged([root, seed, *written], [target for target, _ in gradients])
    root, seed = now[root], now[seed]
    gradients = [(now[target], now[gradient]) for target, gradient in gradients]
    shares = [Share(*[now[node] for node in share]) for share in shares]
    due = {root: seed}
    matches = []
    for (node, g, source, value, _), place in _with_places(shares):
        rest = _due(source, node, due.get(node, g), place)
        before = due.get(source)
        due[source] = rest if before is None else before + rest
        row = _row(_rule_node(node, source), source, place)
        matches.append(Match(row, _due(source, node, g, place), value))
    targets = [due.get(target, gradient) for target, gradient in gradients]
    return GradientSteps(
        UOp.sink(root, *targets),
        UOp.sink(root, *[gradient for _, gradient in gradients]),
        tuple(matches),
    )


def _with_places(shares: Iterable[Share]) -> Iterator[tuple[Share, int | None]]:
    """Yield each share with the position of its source among the sources of its node, from 1 (a
    node may have a source twice). None for a share by the rule of windows, whose source is further
    down."""
    node, last = None, 0
    for share in shares:
        last = last if share.node is node else 0
        node = share.node
        made_as = _rule_node(node, share.source)
        sources = enumerate(made_as.src[last:], last + 1)
        place = next((at for at, source in sources if source is share.source), None)
        last = place or last
        yield share, place


def _rule_node(node: UOp, source: UOp) -> UOp:
    """Return the node whose rule made a share: of an occurrence, it may be the value below."""
    while flows_on(node) and source is not node.src[0]:
        (node,) = node.src
    return node


def _due(source: UOp, node: UOp, g: UOp, place: int | None) -> UOp:
    """Return the GRADIENT node of a source of `node`, which a rule will replace."""
    return UOp(Ops.GRADIENT, source.dtype, (source, node, g), place)


def _row(node: UOp, source: UOp, place: int | None) -> GradientRow:
    """Return the rule that made the share of `source` in the gradient of `node`."""
    name, meaning, rule = _rule(node, place is None)
    why = f"The gradient of each source of {name}, from g, that of the node n: {meaning}."
    to = f"{_op_and_shape(source)} below it" if place is None else f"source {place}"
    about = f"{_op_and_shape(node)}, to {to}"
    return GradientRow(_name(name), why, about, function=rule)


def _name(rule: str) -> str:
    return f"gradient-{rule.lower()}"


def is_on(node: UOp, is_window: bool = False) -> bool:
    """Whether the rule for `node` is switched on; with `is_window`, the rule of sliding windows. If
    that is off, the rules of the single ops are used."""
    off = rules_off()
    return not off or _name(_rule(node, is_window)[0]) not in off


def _rule(node: UOp, is_window: bool) -> tuple[str, str, Callable[..., object] | None]:
    """Return the name of the rule for `node`, a description of the node, and the function."""
    if is_window:
        return "WINDOWS", "rows of a sliding window", source_gradient
    if node.op is Ops.REDUCE_AXIS:
        how = node.combines
        name = f"REDUCE-{how.name}"
        return name, "the elements of axes, combined", REDUCTIONS.get(how)
    rule = GRADIENTS.get(node.op)
    if node.op is Ops.DETACH:
        if flows_on(node):
            return "OCCURRENCE", "one of several equal values, with a gradient of its own", rule
        name = str(node.arg[0]) if isinstance(node.arg, tuple) else "DETACH"
        return name, "a value whose author gave its gradient", rule
    return node.op.name, OPS[node.op].doc, rule


def _op_and_shape(node: UOp) -> str:
    return f"{node.op.name.lower()} {list(node.shape)}"


# --------------------------------------------------------------------------------------------------
# Reverse-mode differentiation.


class NoGradient(Exception):
    """A gradient through `node` was requested, and its op has none."""

    def __init__(self, node: UOp):
        super().__init__(node)
        self.node = node


@dataclass(slots=True)
class Backward:
    """The `gradients` of `root` by target, from its own gradient, `seed`; a target that no gradient
    reaches is left out. `shares` are the results of the rules in the order of the pass, which took
    `seconds` and merged the occurrences `twins` with equal ones."""

    root: UOp
    seed: UOp
    gradients: dict[UOp, UOp] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    seconds: float = 0.0
    twins: frozenset[UOp] = frozenset()

    def of(self, nodes: Sequence[UOp], zero: UOp) -> UOp:
        """Return the gradient of the tensor that the targets `nodes` stand for: the sum of their
        gradients, or `zero` if none has one."""
        return self._with_twins(nodes, zero, self._total(nodes, zero))

    def _total(self, nodes: Sequence[UOp], zero: UOp) -> UOp:
        shares = [self.gradients[n] for n in nodes if n in self.gradients]
        return sum(shares[1:], shares[0]) if shares else zero

    def _with_twins(self, nodes: Sequence[UOp], zero: UOp, total: UOp) -> UOp:
        root, seed = self.root, self.seed

        def differentiate(separate: frozenset[UOp]) -> UOp:
            return backward(root, nodes, seed, separate)._total(nodes, zero)

        return with_twins(total, self.twins, differentiate)


def backward(
    root: UOp, targets: Sequence[UOp], seed: UOp, separate: frozenset[UOp] = frozenset()
) -> Backward:
    """Return the gradients of `root`, whose own gradient is `seed`, with respect to `targets`. They
    can be differentiated by the targets, and by the occurrences in `separate`.

    Shapes: a gradient has the shape and dtype of its target.
    Errors: NoGradient for an op without a rule between the root and a target.
    """
    result, start = Backward(root, seed), time.perf_counter()
    with GRADIENT.recording(UOp.sink(root, *targets)) as record:
        graph = MergedGraph(root, separate.union(targets))
        _add_gradients(result, graph, frozenset(targets))
        result.twins = graph.twins
        if record.matches is not None:
            gradients = list(result.gradients.items())
            steps = gradient_steps(root, seed, gradients, result.shares)
            record.before, record.after, matches = steps
            record.matches += matches
    result.seconds = time.perf_counter() - start
    return result


def _add_gradients(result: Backward, graph: MergedGraph, targets: frozenset[UOp]) -> None:
    inner = leading_to(graph, targets)
    pending = {graph.of[result.root]: result.seed}
    for node in reversed(graph.order):
        if node not in inner:
            continue
        g = pending.pop(node, None)
        if node in targets and g is not None:
            result.gradients[node] = g
        made_as = _made_as(node, graph, targets)
        sources = gradient_sources(made_as)
        leads_on = made_as.op is Ops.BITCAST or any(graph.of[s] in inner for s in sources)
        if g is None or not leads_on:
            continue
        for source, value in _shares(node, made_as, g, graph, inner):
            before = pending.get(source)
            total = pending[source] = value if before is None else before + value
            result.shares.append(Share(node, g, source, value, total))


def leading_to(graph: MergedGraph, targets: frozenset[UOp]) -> set[UOp]:
    """Return the nodes through which a gradient flows to a target: the targets and all floats that
    depend on them by floats. A BITCAST to a float counts, even with integers in between: a gradient
    through it is an error, not 0."""
    inner: set[UOp] = set()
    bits: set[UOp] = set()
    for node in graph.order:
        made_as = _made_as(node, graph, targets)
        sources = [graph.of[s] for s in gradient_sources(made_as)]
        if node in targets:
            inner.add(node)
        elif made_as.op is Ops.BITCAST:
            if sources[0] in inner or sources[0] in bits:
                (inner if node.dtype.is_float else bits).add(node)
        elif node.dtype.is_float:
            if any(s in inner for s in sources):
                inner.add(node)
        elif node.dtype.is_int and any(s in bits for s in sources):
            bits.add(node)
    return inner


def _made_as(node: UOp, graph: MergedGraph, targets: frozenset[UOp]) -> UOp:
    """Return the node whose rule is used for the gradient of `node`: of a duplicate of a target the
    target, as the duplicate is not a use of it; of an alias of an op whose rule uses its result,
    this op; else `node` itself."""
    while is_duplicate(node) and graph.source(node) in targets:
        node = graph.source(node)
    if is_alias(node):
        value = graph.source(node)
        if value.op in OF_RESULT and value not in targets:
            return value
    return node


def _shares(
    node: UOp, made_as: UOp, g: UOp, graph: MergedGraph, inner: set[UOp]
) -> Iterable[tuple[UOp, UOp]]:
    """Yield each source of `made_as` that leads to a target, with its share in the gradient of
    `node`."""
    rows = rows_of(made_as, graph.source)
    if rows is not None and rows.source in inner and is_on(made_as, is_window=True):
        with derived_from(node):
            yield rows.source, source_gradient(g, rows)
        return
    rule = GRADIENTS.get(made_as.op)
    if rule is None or not is_on(made_as):
        raise NoGradient(made_as)
    with derived_from(node):
        # for a bare constant, a rule would return a scalar, without the shape of the node
        filled = [full(made_as.shape, s) if s.is_const else s for s in made_as.src]
        result = graph.occurrence(node) if made_as.op in OF_RESULT else made_as
        shares = rule(g, result, *filled)
        if shares is None:
            raise NoGradient(made_as)
        for source, share in zip(made_as.src, shares, strict=True):
            value = graph.of.get(source)
            if share is not None and value in inner:
                yield (value, full(source.shape, share) if share.is_const else share)


GRADIENT = Pass("gradient", "Each target has its gradient, made of the rules of the ops.", backward)
