"""Graphs as rows of plain values, each after its sources: pickle cannot nest as deeply as they."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Row = tuple[Ops, DType, tuple[int, ...], Any]
"""The op, the dtype, the numbers of the rows of the sources, and the arg of a node."""


def numbered(roots: Iterable[UOp]) -> dict[UOp, int]:
    """Return all nodes of graphs, sources first, each with its number."""
    nodes = [*UOp.sink(*dict.fromkeys(roots)).toposort()][:-1]
    return {node: number for number, node in enumerate(nodes)}


def rows_of(numbers: dict[UOp, int]) -> list[Row]:
    """Return the rows of nodes that `numbered` has returned."""
    return [(n.op, n.dtype, tuple([numbers[s] for s in n.src]), n.arg) for n in numbers]


def nodes_of(rows: Sequence[Row], own: Callable[[UOp], UOp] = lambda buffer: buffer) -> list[UOp]:
    """Return the nodes of rows, in their order. The name of a BUFFER is that of memory of another
    process: `own` returns the one to take for it."""
    nodes: list[UOp] = []
    for op, dtype, sources, arg in rows:
        node = UOp(op, dtype, tuple([nodes[s] for s in sources]), arg)
        nodes.append(own(node) if op is Ops.BUFFER else node)
    return nodes
