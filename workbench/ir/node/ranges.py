"""Open ranges: the RANGEs that a value depends on, and the nodes that close them.

A RANGE is open in all nodes above it until a REDUCE, END or STAGE closes it. The ranges that a node
closes are a list among its sources; a STAGE closes the ranges of its indexes.
"""

from __future__ import annotations

from typing import Any

from workbench.ir.node.ops import Ops

Node = Any  # a UOp: uop.py imports this file, not the other way round

_NONE: frozenset[Node] = frozenset()


def ranges_of(node: Node) -> frozenset[Node]:
    """Return the open ranges of `node`; those of its sources are known."""
    if node.op is Ops.RANGE:
        return frozenset((node,))
    if not node.src:
        return _NONE
    if node.op is Ops.WMMA:
        return _of_product(node)
    if node.op is Ops.EXCHANGE:
        rows, *axes = node.src  # none of these at the linear level
        return rows.ranges.difference(axes[1:]).union(axes[:1])  # type: ignore[no-any-return]
    if node.op in (Ops.REDUCE, Ops.END, Ops.STAGE):
        return node.src[0].ranges.difference(closed(node))  # type: ignore[no-any-return]
    if len(node.src) == 1:
        return node.src[0]._ranges  # type: ignore[no-any-return]
    return _NONE.union(*[s._ranges for s in node.src])


def _of_product(node: Node) -> frozenset[Node]:
    """A WMMA (below the linear level) closes the elements that a lane holds of its operands, and
    opens those that it holds of the result."""
    a, b, *elements = node.src
    operands: frozenset[Node] = a.ranges | b.ranges
    return operands.difference(elements[1:]).union(elements[:1])


def closed(node: Node) -> tuple[Node, ...]:
    """Return the ranges that a REDUCE, END or STAGE closes, in the order they are listed."""
    if node.op is Ops.STAGE:
        ranges = {r: None for s in node.src[1:] for r in sorted(s.ranges, key=_name)}
        return tuple(ranges)
    return node.src[1:]  # type: ignore[no-any-return]


def _name(node: Node) -> str:
    return str(node.axis_name)


def listed_sources(node: Node, src: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return sources for `node` in which the list of a REDUCE or END holds RANGEs only: an
    expression in it stands for all ranges of the expression, each once."""
    if node.op not in (Ops.REDUCE, Ops.END):
        return src
    listed: dict[Node, None] = {}
    for source in src[1:]:
        if source.op is Ops.RANGE:
            listed[source] = None
        else:
            listed.update(dict.fromkeys(sorted(source.ranges, key=_name)))
    return (src[0], *listed)
