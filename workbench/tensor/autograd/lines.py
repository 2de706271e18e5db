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
        self._origins = [(ref(g), ref(n)) for g, n in origins.items()]
        self._steps: tuple[Derivation, ...] | None = None

    @property
    def sources(self) -> tuple[Derivation, ...]:  # type: ignore[override]
        """The derivation of the forward, and those of the gradients, in their order."""
        if self._steps is None:
            calls_of = dict(calls_by_node(self._forward))
            pairs = ((g(), n()) for g, n in self._origins)
            steps = [
                GradientStep(gradient, calls_of[node])
                for gradient, node in pairs
                if gradient is not None and node in calls_of
            ]
            self._steps = (self._forward, *steps)
        return self._steps


def calls_by_node(derivation: Derivation) -> Iterator[tuple[UOp, Calls]]:
    """Yield each node of an expression that is alive, with the user's calls that made it."""
    ends: set[UOp] = set()
    for one in derivations_below([derivation]):
        if one.node is not None:
            for node in nodes_between(one.node, ends):
                yield node, one.calls
            ends.add(one.node)


def line_of_node(node: UOp, derivation: Derivation | None) -> SourceLine | None:
    """Return the user's line that made a node of an expression; None where it is unknown."""
    if derivation is None:
        return None
    calls = next((c for n, c in calls_by_node(derivation) if n is node), ())
    return line_of(calls[0]) if calls else None
