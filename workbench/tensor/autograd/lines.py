"""The user's source lines of gradients: the line of the forward op whose rule made the gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import ref

from workbench.base.source import (
    Calls,
    Derivation,
    SourceLine,
    derivations_below,
    line_of,
    nodes_between,
)
from workbench.base.trace import PassRecord
from workbench.ir.gradient.backward import GRADIENT, Backward
from workbench.ir.gradient.custom import given_rules
from workbench.ir.gradient.occurrences import is_alias, without_alias
from workbench.ir.gradient.steps import Share, gradient_steps
from workbench.ir.node.uop import UOp

GRADIENT_OF = "gradient of "
"""Begins the method of a gradient, before that of its forward."""


class GradientStep(Derivation):
    """The derivation of a gradient on the way: its calls are those of its forward."""

    __slots__ = ()


class BackwardPass:
    """What a backward pass did, which all its gradients share: worked out on demand.

    `user_rules` names the rules of the user's that it applied. It refers weakly to all nodes: lines
    keep no activation in memory."""

    __slots__ = ("_ends", "_gradients", "_shares", "_steps", "forward", "user_rules", "seconds")

    def __init__(self, result: Backward, forward: Derivation):
        self.forward, self.seconds = forward, result.seconds
        self.user_rules = given_rules(share.node for share in result.shares)
        self._ends: Any = ref(result.root), ref(result.seed)
        self._gradients = [(ref(t), ref(g)) for t, g in result.gradients.items()]
        self._shares: Any = [tuple(map(ref, share)) for share in result.shares]
        self._steps: tuple[Derivation, ...] | None = None

    def shares(self) -> Iterator[Share]:
        """Yield what the rules handed on, as far as it is alive."""
        for references in self._shares:
            nodes = [reference() for reference in references]
            if None not in nodes:
                yield Share(*nodes)

    def steps(self) -> tuple[Derivation, ...]:
        """Return the derivations of the gradients on the way, in their order."""
        if self._steps is None:
            forward = dict(_by_node(self.forward))
            origins: dict[UOp, UOp] = {}
            for share in self.shares():
                origins.setdefault(share.total, without_alias(share.node))
            self._steps = tuple(
                _step(gradient, forward[node])
                for gradient, node in origins.items()
                if node in forward
            )
        return self._steps

    def record(self) -> PassRecord | None:
        """Return the record of the pass, as an observer would have made it; None where its root is
        no longer alive."""
        root, seed = (end() for end in self._ends)
        if root is None or seed is None:
            return None
        pairs = [(target(), gradient()) for target, gradient in self._gradients]
        alive = [(t, g) for t, g in pairs if t is not None and g is not None]
        before, after, matches = gradient_steps(root, seed, alive, self.shares())
        name, doc = GRADIENT.name, GRADIENT.doc
        return PassRecord(name, doc, before, after, matches, self.seconds)


class GradientDerivation(Derivation):
    """The derivation of a gradient: the user's `calls` that asked for it, and, worked out when
    one is read, a derivation for each gradient on the way of `made_by`, with the calls of its
    forward."""

    __slots__ = ("made_by",)

    def __init__(self, node: UOp, calls: Calls, made_by: BackwardPass):
        self._node = ref(node)
        forward = made_by.forward
        self.calls, self.made_by = calls, made_by
        self.owner = forward.owner
        self.method = f"{GRADIENT_OF}{forward.method.strip('_')}"

    @property
    def sources(self) -> tuple[Derivation, ...]:  # type: ignore[override]
        """The derivation of the forward, and those of the gradients, in their order."""
        return (self.made_by.forward, *self.made_by.steps())


def backward_passes(derivations: Iterable[Derivation]) -> list[BackwardPass]:
    """Return the backward passes that made gradients below some derivations, in their order."""
    gradients = (
        one for one in derivations_below(derivations) if isinstance(one, GradientDerivation)
    )
    return list(dict.fromkeys(one.made_by for one in gradients))


def _step(gradient: UOp, forward: Derivation) -> Derivation:
    """Return the derivation of a gradient, whose rule is that of a value of the forward."""
    method = f"{GRADIENT_OF}{forward.method.strip('_')}"
    return GradientStep(gradient, forward.calls, (), forward.owner, method)


def calls_by_node(derivation: Derivation) -> Iterator[tuple[UOp, Calls]]:
    """Yield each node of an expression that is alive, with the user's calls that made it."""
    for node, own in _by_node(derivation):
        yield node, own.calls


def _by_node(derivation: Derivation) -> Iterator[tuple[UOp, Derivation]]:
    """Yield each node of an expression that is alive, with its own derivation."""
    ends: set[UOp] = set()
    for one in derivations_below([derivation]):
        if one.node is not None:
            for node in nodes_between(one.node, ends):
                if not is_alias(node):
                    yield node, one
            ends.add(one.node)


def line_of_node(node: UOp, derivation: Derivation | None) -> SourceLine | None:
    """Return the user's line that made a node of an expression; None where it is unknown."""
    if derivation is None:
        return None
    calls = next((c for n, c in calls_by_node(derivation) if n is node), ())
    return line_of(calls[0]) if calls else None
