"""Families of ops: what shape the boxes of a graph have; graph.css has a colour for each letter."""

from __future__ import annotations

from typing import NamedTuple

from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.viz.schema.reading import FamilyRow, Shape


class Family(NamedTuple):
    """Ops that look alike in a graph: `shape` is a name in the page's `graph/paths.js`."""

    letter: str
    name: str
    shape: Shape
    ops: frozenset[Ops]


# fmt: off
MEMORY = Family("M", "memory", "cut", frozenset({
    Ops.BUFFER, Ops.COPY, Ops.CONTIGUOUS, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.INDEX, Ops.LOAD,
    Ops.STORE, Ops.STAGE, Ops.SET,
}))
MOVED = Family("V", "movement", "slant", MOVEMENT)
REDUCTION = Family("R", "reduction", "six", frozenset({
    Ops.REDUCE, Ops.REDUCE_AXIS, Ops.ACCUMULATE, Ops.HREDUCE,
}))
ORDER = Family("L", "loops and order", "pill", frozenset({
    Ops.RANGE, Ops.VAR, Ops.LOOP, Ops.ENDLOOP, Ops.END, Ops.AFTER, Ops.BLOCK, Ops.SINK,
}))
CONSTANT = Family("C", "constant", "box", frozenset({
    Ops.CONST, Ops.INVALID, Ops.IOTA, Ops.LANES,
}))
ARITHMETIC = Family("A", "arithmetic", "round", frozenset())
# fmt: on
FAMILIES = (MEMORY, MOVED, REDUCTION, ORDER, CONSTANT, ARITHMETIC)
_FAMILY_OF = {op: family for family in FAMILIES for op in family.ops}


def family_of(op: Ops) -> Family:
    """Return the family of an op; the arithmetic family where no other has it."""
    return _FAMILY_OF.get(op, ARITHMETIC)


def family_rows() -> dict[str, FamilyRow]:
    """Return a row for every family, by its letter."""
    return {f.letter: FamilyRow(f.name, f.shape) for f in FAMILIES}
