"""Gradients that somebody gives for a value: DETACH of the value, with what it was made of as
further sources. The function that returns their gradients stands beside the node, as long as it
lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from weakref import WeakKeyDictionary

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

OwnRule = Callable[[UOp], Sequence[UOp | None]]
_rules: WeakKeyDictionary[UOp, OwnRule] = WeakKeyDictionary()
_numbers = count(1)


def with_gradient(value: UOp, sources: Sequence[UOp], name: str, rule: OwnRule) -> UOp:
    """Return `value`, whose gradient flows to `sources` as `rule` says, and nowhere else."""
    node = UOp(Ops.DETACH, value.dtype, (value, *sources), (name, next(_numbers)))
    _rules[node] = rule
    return node


def has_own_gradient(node: UOp) -> bool:
    """Whether a DETACH hands gradients on, by a rule of its own."""
    return len(node.src) > 1


def own_gradient(g: UOp, n: UOp, *sources: UOp) -> tuple[UOp | None, ...] | None:
    """Return the gradients of the sources of a DETACH; None where it has no rule."""
    rule = _rules.get(n)
    return None if rule is None else (None, *rule(g))
