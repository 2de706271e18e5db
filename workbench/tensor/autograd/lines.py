"""The user's lines of gradients: a gradient has the line of the forward whose rule made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import ref

from workbench.base.source import (
    Calls,
    Derivation,
    SourceLine,
    derivations_below,
    line_of,
    nodes_between,
)
from workbench.ir.node.uop import UOp

GRADIENT_OF = "gradient of "
"""Begins the method of a gradient, before that of its forward."""


class GradientStep(Derivation):
    """The derivation of a gradient on the way: its calls are those of its forward."""

    __slots__ = ()


class GradientDerivation(Derivation):
    """The derivation of a gradient: the user's `calls` that asked for it, and, worked out when
    somebody looks, a derivation for each gradient on the way, with the calls of its forward.

    It refers weakly to all nodes: lines keep no activation in memory."""

    __slots__ = ("_forward", "_origins", "_steps")

    def __init__(
        self, node: UOp, calls: Calls, forward: Derivation, origins: Mapping[UOp, UOp]
    ):
        self._node = ref(node)
        self.calls, self._forward = calls, forward
        self.owner, self.method = (
            forward.owner,
            f"{GRADIENT_OF}{forward.method.strip('_')}",
        )
        self._origins = [(ref(g), ref(n)) for g, n in origins.items()]
        self._steps: tuple[Derivation, ...] | None = None

    @property
    def sources(self) -> tuple[Derivation, ...]:  # type: ignore[override]
        """The derivation of the forward, and those of the gradients, in their order."""
        if self._steps is None:
            forward = dict(_by_node(self._forward))
            pairs = ((g(), n()) for g, n in self._origins)
            steps = [
                _step(gradient, forward[node])
                for gradient, node in pairs
                if gradient is not None and node in forward
            ]
            self._steps = (self._forward, *steps)
        return self._steps


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
                yield node, one
            ends.add(one.node)


def line_of_node(node: UOp, derivation: Derivation | None) -> SourceLine | None:
    """Return the user's line that made a node of an expression; None where it is unknown."""
    if derivation is None:
        return None
    calls = next((c for n, c in calls_by_node(derivation) if n is node), ())
    return line_of(calls[0]) if calls else None
