"""The statement of a piece of code. A statement is a line of the language that all kernels are read
in, by its number: programs in two languages are of the same statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Compiled
from workbench.viz.model.provenance import Links


@dataclass(frozen=True, eq=False)
class Statements:
    """The statement of each node of a program."""

    by_node: Mapping[UOp, int]

    def of(self, nodes: Sequence[UOp]) -> int | None:
        """Return the statement of the nodes of a line of code, in program order: that of the last
        one that has one, because a line computes the others for its last."""
        return next((s for n in reversed(nodes) if (s := self.by_node.get(n))), None)

    def of_tree(self, links: Links, tree: Set[UOp]) -> dict[UOp, int]:
        """Return the statement of each loop and statement of a statement tree, which `links` say
        the origins of: of several the one in most loops."""
        loops = {n.src[0].axis_name: n for n in tree if n.op is Ops.LOOP}
        depths: dict[UOp, int] = {}
        numbers: dict[UOp, int] = {}
        for node, around in zip(links.linear, links.loops, strict=True):
            number = self.by_node.get(node)
            if number is None:
                continue
            origins = links.ancestry.of(node).keys() & tree
            if node.op is Ops.LOOP and node.src[0].axis_name in loops:
                origins = {loops[node.src[0].axis_name]}
            for origin in origins:
                if len(around) > depths.get(origin, -1):
                    depths[origin], numbers[origin] = len(around), number
        return numbers


def statements_of(readable: Compiled) -> Statements:
    """Return the statements of a kernel in the language that all kernels are read in. A node that
    several lines compute is of the line that computes the others for it, else of the first; the
    end of a loop is of the line that begins it."""
    linear, source = readable.built.linear, readable.built.source
    lines = [(n, places) for n, places in enumerate(source.lines, 1) if places]
    by_node: dict[UOp, int] = {}
    for number, places in lines:
        by_node.setdefault(linear[max(places)], number)
    for number, places in lines:
        for place in places:
            by_node.setdefault(linear[place], number)
    begun: list[UOp] = []
    for node in linear:
        if node.op is Ops.LOOP:
            begun.append(node)
        elif node.op is Ops.ENDLOOP:
            begin = begun.pop()
            if begin in by_node:
                by_node[node] = by_node[begin]
    return Statements(by_node)
