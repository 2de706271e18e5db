"""What Python tells a page: replies to what it asked, patches of its record, and progress."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from workbench.viz.schema.reading import Reading
from workbench.viz.schema.record import (
    LineRow,
    NodeColumns,
    RecordedPass,
    RuleRow,
)
from workbench.viz.schema.variant import ErrorWords, VariantRow


class AppendedRows(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The new rows of the tables that grew; of `nodes` the new part of every column."""

    nodes: NodeColumns | None = None
    readings: list[Reading] = []
    texts: list[str] = []
    rules: list[RuleRow] = []
    passes: list[RecordedPass] = []
    lines: list[LineRow] = []
    variants: list[VariantRow] = []


class RecordPatch(Struct, forbid_unknown_fields=True):
    """What changed in a record: first rows are appended, then values are set, each at a path
    of names and places."""

    append: AppendedRows
    set: list[tuple[list[str | int], Any]]


class ReplyMessage(Struct, forbid_unknown_fields=True):
    """The reply to the request of the same `id`."""

    id: int | None
    ok: bool
    error: ErrorWords | None
    result: Any
    patch: RecordPatch | None = None


class ProgressRow(Struct, forbid_unknown_fields=True):
    """What is under way; null: nothing."""

    task: str | None
    done: int
    total: int
    text: str


class StatusMessage(Struct, forbid_unknown_fields=True):
    """Progress."""

    status: ProgressRow


class PatchMessage(Struct, forbid_unknown_fields=True):
    """A patch that nobody asked for."""

    patch: RecordPatch


class WholeRecord(Struct, forbid_unknown_fields=True):
    """The number of patches that there were, and the packed record (null: the page has it)."""

    n: int
    record: str | None


class RenewedMessage(Struct, forbid_unknown_fields=True):
    """All began anew: the record as it is now."""

    result: WholeRecord


class ViewState(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What of a record a page looks at; nodes, lines, kernels and variants are places."""

    mode: str | None = None
    kernel: int | None = None
    variant: int | None = None
    node: int | None = None
    line: int | None = None
    axis: str | None = None
    language: str | None = None
