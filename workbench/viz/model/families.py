"""Families of ops: the shape and colour of a graph's boxes, in still pictures and on the page,
whose graph.css has the same colours.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.viz.schema.reading import FamilyRow, Shape


class Family(NamedTuple):
    """Ops that look alike in a graph: `shape` is a name in the page's `graph/paths.js`, `light` and
    `dark` are its colours in the two themes."""

    letter: str
    name: str
    shape: Shape
    light: str
    dark: str
    ops: frozenset[Ops]


# fmt: off
MEMORY = Family("M", "memory", "cut", "#dcebfb", "#173253", frozenset({
    Ops.BUFFER, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.INDEX,
    Ops.LOAD, Ops.STORE, Ops.STAGE, Ops.SET,
}))
MOVED = Family("V", "movement", "slant", "#f3e9fb", "#38264a", MOVEMENT)
REDUCTION = Family("R", "reduction", "six", "#fbe3d3", "#532c12", frozenset({
    Ops.REDUCE, Ops.REDUCE_AXIS, Ops.ACCUMULATE, Ops.HREDUCE, Ops.WMMA, Ops.EXCHANGE,
    Ops.WARP_SHUFFLE,
}))
ORDER = Family("L", "loops and order", "pill", "#eef0f2", "#2a3036", frozenset({
    Ops.RANGE, Ops.VAR, Ops.LOOP, Ops.ENDLOOP, Ops.END, Ops.AFTER, Ops.BLOCK, Ops.SINK,
    Ops.BARRIER,
}))
CONSTANT = Family("C", "constant", "box", "#fff", "#111418", frozenset({
    Ops.CONST, Ops.INVALID, Ops.IOTA, Ops.LANES,
}))
ARITHMETIC = Family("A", "arithmetic", "round", "#fdf3d4", "#43370f", frozenset())
# fmt: on
FAMILIES = (MEMORY, MOVED, REDUCTION, ORDER, CONSTANT, ARITHMETIC)
_FAMILY_OF = {op: family for family in FAMILIES for op in family.ops}


def family_of(op: Ops) -> Family:
    """Return the family of an op; the arithmetic family where no other has it."""
    return _FAMILY_OF.get(op, ARITHMETIC)


def family_rows() -> dict[str, FamilyRow]:
    """Return a row for every family, by its letter."""
    return {f.letter: FamilyRow(f.name, f.shape) for f in FAMILIES}
