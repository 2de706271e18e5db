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
from workbench.ir.gradient.custom import gradient_sources, is_duplicate
from workbench.ir.gradient.steps import Share, gradient_steps
from workbench.ir.gradient.table import GRADIENTS
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
    none. `shares` are what the rules handed on, in the order of the pass, which took `seconds`."""

    root: UOp
    seed: UOp
    gradients: dict[UOp, UOp] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    seconds: float = 0.0


def backward(root: UOp, targets: Sequence[UOp], seed: UOp) -> Backward:
    """Return the gradients of `root`, whose own is `seed`, with respect to `targets`.

    Shapes: a gradient has the shape and dtype of its target.
    Errors: NoGradient for an op without a rule between the root and a target.
    """
    result, start = Backward(root, seed), time.perf_counter()
    with GRADIENT.recording(UOp.sink(root, *targets)) as record:
        _add_gradients(result, frozenset(targets))
        if record.matches is not None:
            gradients = list(result.gradients.items())
            steps = gradient_steps(root, seed, gradients, result.shares)
            record.before, record.after, matches = steps
            record.matches += matches
    result.seconds = time.perf_counter() - start
    return result


def _add_gradients(result: Backward, targets: frozenset[UOp]) -> None:
    root = result.root
    order = root.toposort(lambda n: bool(gradient_sources(n)))
    inner = leading_to(order, targets)
    pending = {root: result.seed}
    for node in reversed(order):
        if node not in inner:
            continue
        g = pending.pop(node, None)
        if node in targets and g is not None:
            result.gradients[node] = g
        made_as = _made_as(node, targets)
        sources = gradient_sources(made_as)
        leads_on = made_as.op is Ops.BITCAST or any(s in inner for s in sources)
        if g is None or not leads_on:
            continue
        for source, value in _shares(made_as, g, inner):
            before = pending.get(source)
            total = pending[source] = value if before is None else before + value
            result.shares.append(Share(node, g, source, value, total))


def leading_to(order: Iterable[UOp], targets: frozenset[UOp]) -> set[UOp]:
    """Return the nodes of `order`, sources first, through which a gradient flows to a target: all
    floats between them and it. A bit cast and what integers make of it counts: that there is no
    gradient through it is an error, and not zero."""
    inner: set[UOp] = set()
    bits: set[UOp] = set()
    for node in order:
        made_as = _made_as(node, targets)
        sources = gradient_sources(made_as)
        if node in targets:
            inner.add(node)
        elif made_as.op is Ops.BITCAST:
            is_reached = made_as.src[0] in inner or made_as.src[0] in bits
            if is_reached:
                (inner if node.dtype.is_float else bits).add(node)
        elif node.dtype.is_float:
            if any(s in inner for s in sources):
                inner.add(node)
        elif node.dtype.is_int and any(s in bits for s in sources):
            bits.add(node)
    return inner


def _made_as(node: UOp, targets: frozenset[UOp]) -> UOp:
    """Return the node whose rule hands on the gradient of `node`: its own, unless it is a duplicate
    of a target, and so none of the uses of that."""
    while is_duplicate(node) and node.src[0] in targets:
        (node,) = node.src
    return node


def _shares(node: UOp, g: UOp, inner: set[UOp]) -> Iterable[tuple[UOp, UOp]]:
    """Yield the sources of `node` that lead to a target, with what its rule hands on to each."""
    rows = rows_of(node)
    if rows is not None and rows.source in inner:
        with derived_from(node):
            yield rows.source, source_gradient(g, rows)
        return
    rule = GRADIENTS.get(node.op)
    if rule is None:
        raise NoGradient(node)
    with derived_from(node):
        # a formula of a bare constant would be a scalar, and fit beside no shape
        filled = [full(node.shape, s) if s.is_const else s for s in node.src]
        shares = rule(g, node, *filled)
        if shares is None:
            raise NoGradient(node)
        for source, share in zip(node.src, shares, strict=True):
            if share is not None and source in inner:
                yield source, full(source.shape, share) if share.is_const else share


GRADIENT = Pass(
    "gradient", "Each target has its gradient, made of the rules of the ops.", backward
)
