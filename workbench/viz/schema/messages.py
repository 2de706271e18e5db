"""Messages from Python to a page: replies, patches of its record, and progress."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from workbench.viz.schema.reading import Reading
from workbench.viz.schema.record import LineRow, NodeColumns, RecordedPass, RuleRow
from workbench.viz.schema.replies import WholeRecord
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not self.set and self.append == AppendedRows()


class ReplyMessage(Struct, forbid_unknown_fields=True):
    """The reply to the request of the same `id`; `result` is of the type that the request says,
    null where there is an error."""

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
    """A patch without a request."""

    patch: RecordPatch


class RenewedMessage(Struct, forbid_unknown_fields=True):
    """All began anew: the record as it is now."""

    result: WholeRecord


Message = ReplyMessage | StatusMessage | PatchMessage | RenewedMessage
"""Whatever Python may say."""


Place = Annotated[int, Meta(ge=0)]


def _meaning(words: str, example: str) -> Meta:
    """Return what a value must be, in words, and an example of one."""
    return Meta(title=words, examples=[example])


def _place(name: str) -> Meta:
    words = f"a {name} is named by its place in the record, a whole number"
    return _meaning(words, f"{name}=0")


_GUESS = _meaning("a guess is a text", "guess=None")
_AXIS = _meaning("an axis is named by a text", "axis=None")


class ViewState(Struct, frozen=True, forbid_unknown_fields=True):
    """The selection of a page; nodes, lines, kernels and variants are places; `only` is
    the one pane that is shown. What is not set stays as it is."""

    mode: str | UnsetType = UNSET
    kernel: Annotated[Place, _place("kernel")] | UnsetType = UNSET
    variant: Annotated[Place | None, _place("variant")] | UnsetType = UNSET
    node: Annotated[Place | None, _place("node")] | UnsetType = UNSET
    line: Annotated[Place | None, _place("line")] | UnsetType = UNSET
    axis: Annotated[str | None, _AXIS] | UnsetType = UNSET
    language: str | UnsetType = UNSET
    only: str | UnsetType = UNSET
    guess: Annotated[str | None, _GUESS] | UnsetType = UNSET

    def then(self, later: ViewState) -> ViewState:
        """Return the view with what a later one sets."""
        names = (n for n in self.__struct_fields__ if getattr(later, n) is not UNSET)
        return replace(self, **{name: getattr(later, name) for name in names})


NO_VIEW = ViewState()
"""A view that says nothing."""
