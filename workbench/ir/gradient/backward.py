"""Reverse-mode differentiation: from a graph of the tensor level to that of its gradients.

The nodes are visited from the root down, each after all that read it, and only those that lead to
a target. The rule of a node's op (table.py) says what it hands on to its sources; what reaches a
node from several readers is added. Source of the idea: Linnainmaa 1970; by rewriting a graph of
values, and so differentiable again, Pearlmutter and Siskind 2008.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from workbench.base.trace import derived_from
from workbench.ir.gradient.custom import gradient_sources
from workbench.ir.gradient.merged import MergedGraph
from workbench.ir.gradient.occurrences import is_alias, is_duplicate, with_twins
from workbench.ir.gradient.steps import Share, gradient_steps, is_on
from workbench.ir.gradient.table import GRADIENTS, OF_RESULT
from workbench.ir.gradient.windows import rows_of, source_gradient
from workbench.ir.node.constants import full
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass


class NoGradient(Exception):
    """The op of `node` has no gradient, and one was asked for."""

    def __init__(self, node: UOp):
        super().__init__(node)
        self.node = node


@dataclass(slots=True)
class Backward:
    """Gradients of `root`, whose own is `seed`, by target; a target that no gradient reaches has
    none. `shares` are what the rules handed on, in the order of the pass, which took `seconds`.
    `twins` are the tensors below that it did not tell from others."""

    root: UOp
    seed: UOp
    gradients: dict[UOp, UOp] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    seconds: float = 0.0
    twins: frozenset[UOp] = frozenset()

    def of(self, nodes: Sequence[UOp], zero: UOp) -> UOp:
        """Return the gradient of a tensor that several of the targets stand for, `zero` where none
        has one."""
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
    """Return the gradients of `root`, whose own is `seed`, with respect to `targets`. They can be
    differentiated by these, and by the occurrences in `apart`.

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
    """Return the nodes of a graph through which a gradient flows to a target: all floats between
    them and it. A bit cast and what integers make of it counts: that there is no gradient through
    it is an error, and not zero."""
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
    """Return the node whose rule hands on the gradient of `node`: its own, unless it is a duplicate
    of a target, and so none of the uses of that, or a tensor in which the rule is written."""
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
    """Yield the sources of `made_as` that lead to a target, with what its rule hands on to each of
    the gradient of `node`."""
    rows = rows_of(made_as, graph.source)
    if rows is not None and rows.source in inner and is_on(made_as, is_window=True):
        with derived_from(node):
            yield rows.source, source_gradient(g, rows)
        return
    rule = GRADIENTS.get(made_as.op)
    if rule is None or not is_on(made_as):
        raise NoGradient(made_as)
    with derived_from(node):
        # a formula of a bare constant would be a scalar, and fit beside no shape
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
