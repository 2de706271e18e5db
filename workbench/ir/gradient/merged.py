"""The graph of a value as a gradient reads it: equal values are merged, except those that must stay
apart.

Each tensor is an occurrence of its value (`occurrences.py`). The targets of a gradient are kept
apart; all other occurrences of equal values are one node again, whose gradient is handed on once,
so that it costs nothing to write an expression twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from workbench.ir.gradient.custom import gradient_sources
from workbench.ir.gradient.occurrences import Twins, is_alias
from workbench.ir.node.uop import UOp


class MergedGraph:
    """The graph under `root` down to where no gradient flows, in which the occurrences in
    `separate` are nodes of their own.

    `order` has one node of each value, sources first; `of` has that of every node. `twins` are the
    occurrences that are one with what other nodes read: a gradient of this graph does not tell
    them apart.
    """

    def __init__(self, root: UOp, separate: frozenset[UOp]):
        self.root, self.separate = root, separate
        self.order: list[UOp] = []
        self.of: dict[UOp, UOp] = {}
        self._recomputed: dict[UOp, UOp] = {}
        self._read: dict[UOp, UOp | None] = {}
        """Of each value the one occurrence that is read, None where several are."""
        self._equals: dict[Any, UOp] = {}
        nodes = list(self.walk())
        for node in nodes:
            self._add(node)
        self._note_read(root)
        self.twins = frozenset(self._twins(nodes))

    def walk(self, gate: Callable[[UOp], bool] | None = None) -> Iterator[UOp]:
        """Yield all nodes, sources first; it does not look below one for which `gate` is False."""
        visited: set[UOp] = set()
        stack: list[tuple[UOp, bool]] = [(self.root, False)]
        while stack:
            node, is_ready = stack.pop()
            if node in visited:
                continue
            below = () if is_ready or (gate and not gate(node)) else self._below(node)
            if not below:
                visited.add(node)
                yield node
                continue
            stack.append((node, True))
            stack += [(s, False) for s in reversed(below) if s not in visited]

    def source(self, node: UOp) -> UOp:
        """Return the node of the value of the first source of `node`."""
        return self.of[node.src[0]]

    def occurrence(self, node: UOp) -> UOp:
        """Return what is read of the value of `node`, if that is one occurrence; else the node."""
        return self._read.get(node) or node

    def _below(self, node: UOp) -> tuple[UOp, ...]:
        if not gradient_sources(node):
            return ()
        twins = node.arg
        if not isinstance(twins, Twins) or self.separate.isdisjoint(twins.occurrences):
            return node.src
        if node not in self._recomputed:
            self._recomputed[node] = twins.differentiate(self.separate)
        return (self._recomputed[node],)

    def _add(self, node: UOp) -> None:
        below = self._below(node)
        is_separate = node in self.separate
        if isinstance(node.arg, Twins) or (is_alias(node) and not is_separate):
            self.of[node] = self.of[below[0]]
            return
        first = node
        if below and not is_separate:
            values = tuple([self.of[s] for s in below])
            key = node.op, node.dtype, values, node.arg, node.arg.__class__
            first = self._equals.setdefault(key, node)
        self.of[node] = first
        if first is node:
            self.order.append(node)
        for source in below:
            self._note_read(source)

    def _note_read(self, node: UOp) -> None:
        if self._read.setdefault(self.of[node], node) is not node:
            self._read[self.of[node]] = None

    def _twins(self, nodes: list[UOp]) -> Iterator[UOp]:
        for node in nodes:
            if isinstance(node.arg, Twins):
                yield from node.arg.occurrences
            elif is_alias(node) and self._read.get(self.of[node], node) is None:
                yield node
