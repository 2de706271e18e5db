"""DETACH nodes through which a gradient flows: those with a gradient of their own, and occurrences.

A formula says the gradient of a value that is made of others, better than the rules of the ops
would: a function of this package, which a copy of the node has, too.

A gradient that somebody gives for a value is a DETACH of the value, with what it was made of as
further sources. The function that returns their gradients stands beside the node, as long as it
lives.

An occurrence is a value that is told from its equals: equal expressions are one node, but a
gradient is that of one tensor. Its gradient flows to what the value was made of (`DUPLICATE`), or,
where it was made of a tensor that has this value, to that (`ALIAS`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

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


class Occurrence(NamedTuple):
    """The arg of an occurrence."""

    number: int
    is_alias: bool


def with_gradient(value: UOp, sources: Sequence[UOp], name: str, rule: OwnRule) -> UOp:
    """Return `value`, whose gradient flows to `sources` as `rule` says, and nowhere else."""
    node = UOp(Ops.DETACH, value.dtype, (value, *sources), (name, next(_numbers)))
    _rules[node] = rule
    return node


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


def duplicate(value: UOp) -> UOp:
    """Return another occurrence of a float: a gradient of it does not count as one of `value`."""
    if isinstance(value.arg, Occurrence):
        return _occurrence(value.src[0], value.arg.is_alias)
    return _occurrence(value, False)


def alias(value: UOp) -> UOp:
    """Return an occurrence that was made of `value`, to which its gradient flows."""
    return _occurrence(value, True)


def is_duplicate(node: UOp) -> bool:
    """Whether a node is another occurrence of its source, and not made of it."""
    return isinstance(node.arg, Occurrence) and not node.arg.is_alias


def gradient_sources(node: UOp) -> tuple[UOp, ...]:
    """Return the sources that a gradient of a node may flow to."""
    if node.op is not Ops.DETACH or isinstance(node.arg, Occurrence):
        return node.src
    return node.src[1:]


def own_gradient(g: UOp, n: UOp, *sources: UOp) -> tuple[UOp | None, ...] | None:
    """Return the gradients of the sources of a DETACH; None where it has no rule."""
    if isinstance(n.arg, Occurrence):
        return (g,)
    if isinstance(n.arg, Formula):
        return (None, *n.arg.gradient(g, n.arg.parameter, *sources[1:]))
    rule = _rules.get(n)
    return None if rule is None else (None, *rule(g))


def _none(g: UOp, _: None, *sources: UOp) -> list[UOp]:
    return [source.like(0) for source in sources]


def _of_value(g: UOp, _: None, value: UOp, *sources: UOp) -> list[UOp]:
    return [g, *_none(g, _, *sources)]


def _occurrence(value: UOp, is_alias: bool) -> UOp:
    if not value.dtype.is_float:
        return value  # it has no gradient
    number = Occurrence(next(_numbers), is_alias)
    return UOp(Ops.DETACH, value.dtype, (value,), number)
