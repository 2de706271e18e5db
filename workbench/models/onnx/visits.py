"""The limits of a walk through the graphs of a file, which functions and loops make longer than the
file: 30 functions that call each other twice are a billion nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.models.onnx.file import MOST_DEPTH, OnnxNode, cannot_compute

MOST_VALUES = 300_000
"""The maximal number of inputs and outputs of the nodes of a walk."""


class Visits:
    """Counts the values of the nodes that a walk visits, and the graphs that it is in."""

    def __init__(self) -> None:
        self._values = self._depth = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Visit a graph, or the nodes of a function."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def add(self, node: OnnxNode) -> None:
        """Visit a node. Errors: ModelError where the walk is too long, or too deep."""
        self._values += 1 + len(node.inputs) + len(node.outputs)
        if self._values > MOST_VALUES:
            because = "its loops and functions have too many nodes"
            raise cannot_compute(node, f"{because}: {MOST_VALUES:,} values are computed for a call")
        if self._depth > MOST_DEPTH:
            because = f"graphs and functions are nested more than {MOST_DEPTH} times"
            raise cannot_compute(node, f"{because}, or a function calls itself")
