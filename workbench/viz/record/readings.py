"""Phrases of nodes as rows of a record: nodes that differ only in their sources share a row."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.phrases import LEAVES, TENSOR, Part, Phrase, Slot, call_parts, phrase, typed
from workbench.ir.text.printer import LETTERS, RESERVED, own_name
from workbench.viz.model.families import family_of
from workbench.viz.schema.reading import Reading, Role, SlotRow, ValuesOf

MOST_WORDS = 200
"""Most characters of a part: an argument may be long."""
ROLES: dict[Ops, Role] = {
    Ops.CONST: "constant", Ops.SINK: "join", Ops.RANGE: "axis", Ops.INDEX: "place",
    Ops.LOOP: "loop", Ops.REDUCE: "loop", Ops.STAGE: "loop", Ops.ACCUMULATE: "loop",
    Ops.LOAD: "access", Ops.STORE: "access", Ops.GRADIENT: "due",
}  # fmt: skip


class Readings:
    """The table of phrases, each once."""

    def __init__(self) -> None:
        self.listed: list[Reading] = []
        self._places: dict[tuple[object, ...], int] = {}

    def add(self, node: UOp, arg: str, shape: str, label: str, values: ValuesOf) -> int:
        """Return the place of the phrase of `node`; `arg`, `shape` and `label` are its columns of
        the record, `values` says whether its values can be computed."""
        memory = label if node.op is Ops.BUFFER else ""  # which the user may have named
        of_sources = _of_sources(node), values
        key = node.op, node.dtype, len(node.src), arg, shape, memory, of_sources
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.listed)
            self.listed.append(_reading(node, label, values))
        return place


def _of_sources(node: UOp) -> object:
    """Return the part of a node's phrase that depends on its sources."""
    match node.op:
        case Ops.WHERE:
            return node.src[2].op
        case Ops.END:
            return node.src[0].op
        case Ops.LOOP:
            return node.axis.arg, node.axis.extent
        case Ops.RANGE:
            return node.extent
    return None


def _reading(node: UOp, label: str, values: ValuesOf) -> Reading:
    own = phrase(node)
    name = _name(node)
    is_void = node.dtype is dtypes.void
    return Reading(
        family=family_of(node.op).letter,
        parts=[name or label] if node.op in LEAVES else _parts(own.parts),
        binds=own.binds,
        line=own.line,
        negated=_parts(own.negated),
        root=_parts(own.root),
        statement=_parts(own.statement),
        box=_parts(_box(node, own, label)),
        body=own.body,
        is_leaf=node.op in LEAVES,
        rank=node.slot if node.op is Ops.PARAM else 0,
        name=name,
        letter=LETTERS.get(node.op, "v"),
        typed="" if is_void else typed(node),
        is_tensor=node.op in TENSOR,
        is_index=node.dtype is dtypes.index and node.op is not Ops.STAGE,
        values=values,
        role=ROLES.get(node.op, ""),
        size=node.extent if node.op is Ops.RANGE else None,
    )


def _box(node: UOp, own: Phrase, label: str) -> tuple[Part, ...]:
    """Return the parts in a box, with the text of its label."""
    row = OPS[node.op]
    if own.line == "never":
        return ()
    if row.symbol and row.label != row.symbol:
        first, sign, second = own.parts
        return first, str(sign).replace(row.symbol, row.label), second
    return () if row.symbol else call_parts(label, len(node.src))


def _name(node: UOp) -> str:
    """Return a node's own name, if it is valid."""
    name = own_name(node)
    is_usable = name.isidentifier() and name.isascii() and name not in RESERVED
    return name if is_usable else ""


def _parts(parts: Sequence[Part]) -> list[str | SlotRow]:
    return [
        SlotRow(*part)
        if isinstance(part, Slot)
        else part
        if len(part) <= MOST_WORDS
        else f"{part[:MOST_WORDS]}\u2026"
        for part in parts
    ]
