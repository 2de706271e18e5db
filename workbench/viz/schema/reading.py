"""Readings: the text of a record's nodes, and their box in a graph, which is all that the page
knows of ops.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench.ir.text.phrases import OwnLine

Shape = Literal["cut", "slant", "six", "pill", "box", "round"]
ValuesOf = Literal["", "lowered", "none"]
Role = Literal["", "constant", "join", "loop", "axis", "access", "place", "due"]


class FamilyRow(Struct, forbid_unknown_fields=True):
    """A family of ops: its name, and the shape of its boxes."""

    name: str
    shape: Shape


class SlotRow(Struct, array_like=True, forbid_unknown_fields=True):
    """Room for the words of a source, as a list; a Slot of workbench/ir/text/phrases.py."""

    source: int
    tight: int
    signed: bool


class Reading(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What nodes have in common that differ in their sources only.

    Words, as in workbench/ir/text/phrases.py: parts are text and slots. `name` is the node's own
    ("": it gets one of `letter`); `typed` is its dtype and shape, for graphs with a node that
    `is_tensor`; leaves have their names first, by `rank`; `box` are the parts in a box of a graph,
    where they are others.

    In a graph: `family` is a letter in the record's `families`. `is_index`: arithmetic of indexes,
    which may stand in the words of its readers. The role: a "constant" always does; a "join" has
    nothing of its own; a "loop" can be closed; an "axis" has `size` steps; an "access" reads or
    writes at its first source; a "place" is memory and then indexes; what is "due" stands for what
    a rule will make of its sources, and is explained by their names.

    `values`: "" where Python can compute the node's values; "lowered" where they are in registers
    of the lowered program; "none" where it has none.
    """

    family: str
    parts: list[str | SlotRow]
    binds: int
    line: OwnLine
    negated: list[str | SlotRow] = []
    root: list[str | SlotRow] = []
    statement: list[str | SlotRow] = []
    box: list[str | SlotRow] = []
    body: int | None = None
    is_leaf: bool = False
    rank: int = 0
    name: str = ""
    letter: str = "v"
    typed: str = ""
    is_tensor: bool = False
    is_index: bool = False
    values: ValuesOf = ""
    role: Role = ""
    size: int | None = None
