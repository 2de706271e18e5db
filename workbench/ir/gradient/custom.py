"""Custom gradients: DETACH nodes with a gradient of their own.

A formula says the gradient of a value that is made of others, better than the rules of the ops
would: a function of this package, which a copy of the node has, too.

A custom gradient of a value is a DETACH of the value, with what it was made of as
further sources. The function that returns their gradients stands beside the node, as long as it
lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from workbench.ir.gradient.occurrences import flows_on
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

OwnRule = Callable[[UOp], Sequence[UOp | None]]
_rules: WeakKeyDictionary[UOp, OwnRule] = WeakKeyDictionary()
_numbers = count(1)


class Formula(NamedTuple):
    """The arg of a value with a formula: `gradient` is called with that of the value, `parameter`,
    and the sources."""

    name: str
    parameter: Any
    gradient: Callable[..., Sequence[UOp | None]]


def with_gradient(value: UOp, sources: Sequence[UOp], name: str, rule: OwnRule) -> UOp:
    """Return `value`, whose gradient flows to `sources` as `rule` says, and nowhere else."""
    node = UOp(Ops.DETACH, value.dtype, (value, *sources), (name, next(_numbers)))
    _rules[node] = rule
    return node


def given_rules(graph: Iterable[UOp]) -> list[str]:
    """Return the names of the custom gradients of a graph."""
    return sorted({node.arg[0] for node in graph if node in _rules})


def with_formula(value: UOp, sources: Sequence[UOp], formula: Formula) -> UOp:
    """Return `value`, whose gradient flows to `sources` as `formula` says."""
    return UOp(Ops.DETACH, value.dtype, (value, *sources), formula)


def independent(value: UOp, *sources: UOp) -> UOp:
    """Return `value`, which was made of `sources` and is the same for all of them: their gradients
    are 0."""
    if not value.dtype.is_float:
        return value
    return with_formula(value, sources, Formula("independent", None, _none))


def depending(value: UOp, *sources: UOp) -> UOp:
    """Return `value`, whose own gradient flows on; those of `sources` are 0."""
    if not value.dtype.is_float:
        return value
    formula = Formula("depending", None, _of_value)
    return with_formula(value, (value, *sources), formula)


def as_source(value: UOp, source: UOp) -> UOp:
    """Return `value`, written otherwise than `source` but the same: its gradient is that of
    `source`."""
    if not value.dtype.is_float:
        return value
    return with_formula(value, (source,), Formula("as-source", None, _of_value))


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
