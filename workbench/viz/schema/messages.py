"""Messages from Python to a page: replies, patches of its record, and progress.

Sections: Replies of Python to the requests of a page; Messages from Python to a page.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from workbench.viz.schema.plan import HandKind
from workbench.viz.schema.record import LineRow, NodeColumns, Reading, RecordedPass, RuleRow
from workbench.viz.schema.variant import AxisRow, CodeRow, ErrorWords, OptRow, VariantRow

# --------------------------------------------------------------------------------------------------
# Replies of Python to the requests of a page.

Value = bool | int | float | str
"""A number or a bool, or the name of a number that is not finite."""


class NoResult(Struct, forbid_unknown_fields=True):
    """No result: what changed comes as a patch."""


class SearchedReply(Struct, forbid_unknown_fields=True):
    """What the search of all kernels has found, in lines."""

    said: str


class VariantReply(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The variant that a request made, or led to; `said` is what a reader must know of it ("":
    nothing)."""

    variant: int
    said: str = ""


class OptVerdict(Struct, forbid_unknown_fields=True):
    """An opt of a list, as Python (`text`) and in words (`row`). If it is not legal after the opts
    before it, `because` says why, and `try` what to do; both are "" if it is legal."""

    text: str
    row: OptRow
    because: str
    hint: str = field(name="try")


class OptsReply(Struct, forbid_unknown_fields=True):
    """A list of opts, each with its verdict, and the list as Python (`text`); `amounts` are the
    legal amounts of the opt at the place that was named."""

    opts: list[OptVerdict]
    amounts: list[int]
    text: str


class EditedCode(Struct, forbid_unknown_fields=True):
    """Source that is being edited, compiled: `code` has the source and its machine code, or nothing
    if there is an error."""

    code: list[CodeRow]
    error: ErrorWords | None


class RuleTrialReply(Struct, forbid_unknown_fields=True):
    """The trial of a typed rule in words, whether the first of them say that the rule is wrong, and
    the variant with the rule (null: it is wrong, and was not applied)."""

    words: list[str]
    is_wrong: bool
    variant: int | None


class RuleReply(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The variant without a rule; or the number of patches `n`, where the record began anew."""

    variant: int | None = None
    n: int | None = None


class TimedVariants(Struct, forbid_unknown_fields=True):
    """The variants that were timed on request."""

    variants: list[int]


class PatchCount(Struct, forbid_unknown_fields=True):
    """The number of patches so far, with which the record began anew."""

    n: int


class StoppedJobs(Struct, forbid_unknown_fields=True):
    """The number of jobs that were dropped."""

    stopped: int


class WholeRecord(Struct, forbid_unknown_fields=True):
    """The number of patches so far, and the packed record (null: the page did not need it)."""

    n: int
    record: str | None


class NodeValue(Struct, forbid_unknown_fields=True):
    """The value of a node at a position, or the first of several; the least and the greatest of all
    its values, their number of NaNs, and their shape."""

    value: Value | list[Value]
    least: Value | None = field(name="min")
    greatest: Value | None = field(name="max")
    nan: int
    shape: list[int]


class ValueAxis(Struct, forbid_unknown_fields=True):
    """An axis of a node's values: of a tensor the number of its dimension, of a kernel its name."""

    name: str
    size: int


class ValueSummary(Struct, forbid_unknown_fields=True):
    """Numbers of values, and of those that are NaN, infinite or zero; extremes and mean of the
    finite values (null: there is none). Bin i of their histogram goes from edge i to edge i + 1, or
    is the whole number at edge i (`is_whole`)."""

    size: int
    nan: int
    infinite: int
    zeros: int
    least: Value | None = field(name="min")
    greatest: Value | None = field(name="max")
    mean: float | None
    edges: list[float]
    counts: list[int]
    is_whole: bool


class ValuePicture(Struct, forbid_unknown_fields=True):
    """A matrix of `height` by `width` values in blocks of `block` rows and columns: the mean of the
    finite values of each (null: it has none), and its marks, a sum: 1 some NaN, 2 infinity, 4 minus
    infinity, 8 the least, 16 the greatest value of the matrix."""

    height: int
    width: int
    block: tuple[int, int]
    columns: int
    means: list[float | None]
    marks: list[int]


class ValueWindow(Struct, forbid_unknown_fields=True):
    """The values of a part of the matrix, row by row: the part begins at row and column `first`,
    and has `columns` columns. Whole numbers that JavaScript rounds are texts."""

    first: tuple[int, int]
    columns: int
    values: list[Value]


class ValueTable(Struct, forbid_unknown_fields=True):
    """The values of a node along two of its `axes`, `rows` and `columns` ("": it has fewer), at the
    positions `at` of its other ones. `kernel` is the kernel whose data they are of (null: of a
    tensor). `part`: axes that stand still in the summary, too, because all values would be too
    many."""

    text: str
    dtype: str
    kernel: int | None
    axes: list[ValueAxis]
    rows: str
    columns: str
    at: dict[str, int]
    part: list[str]
    summary: ValueSummary
    picture: ValuePicture
    window: ValueWindow


class NodeChecksReply(Struct, forbid_unknown_fields=True):
    """The comparison of all values with numpy's in words (`text`), and the first wrong value: its
    node (null: there is none), and the place of its greatest error."""

    text: str
    node: int | None
    at: list[int]


class AccessedBuffer(Struct, forbid_unknown_fields=True):
    """The accesses of a buffer by steps of an axis or by instructions of a warp, in order: the
    `step` of each, the number of its `element`, whether it is written, and its statement or lane.
    `unknown` counts the places in the program whose index depends on memory, which are not listed.
    Units: bytes of an element, and of a cache line."""

    name: str
    user: str
    dtype: str
    element_bytes: int
    line_bytes: int
    shape: list[int]
    space: str
    steps: list[int]
    elements: list[int]
    writes: list[bool]
    statements: list[int]
    lanes: list[int]
    unknown: int


class AccessStatement(Struct, forbid_unknown_fields=True):
    """A statement that accesses memory, as text and as a node of the record."""

    text: str
    node: int


class AccessesReply(Struct, forbid_unknown_fields=True):
    """The accesses of `count` steps of an axis from `first` on, or of the instructions of the warp
    `axis` "", number `first` of `warps`, whose names are `names`. `axes` are those of the loop
    nest, loops first; `around` those that stand still, and `at` has positions of these."""

    axes: list[AxisRow]
    axis: str
    first: int
    count: int
    warps: int
    names: list[str]
    around: list[AxisRow]
    at: dict[str, int]
    statements: list[AccessStatement]
    buffers: list[AccessedBuffer]


class ComparedRow(Struct, array_like=True, forbid_unknown_fields=True):
    """One fact about the compared variants, as a list: its label, a text for each ("": it lacks
    it), whether they differ, and what a reader may look at: a pass and a rule, or an axis."""

    label: str
    cells: list[str]
    differs: bool
    about: list[str]


class ComparedSection(Struct, forbid_unknown_fields=True):
    """Rows about one subject; `text` is a difference line by line ("": none)."""

    title: str
    rows: list[ComparedRow]
    text: str


class OtherPlan(Struct, array_like=True, forbid_unknown_fields=True):
    """A plan that can stand beside the present one, as a list: its name in requests, its title, and
    what it is: a plan of these tensors, another exploration of the notebook, or that of a file."""

    name: str
    title: str
    kind: Literal["plan", "exploration", "file"]


class OwnVariant(Struct, array_like=True, forbid_unknown_fields=True):
    """A variant of another exploration, as a list: its place there, its name."""

    place: int
    name: str


class OtherSide(Struct, forbid_unknown_fields=True):
    """The first column, where it is of another device, plan or set of rules: its number in
    requests, and its record, packed, with its kernel and its variant (null: no kernel there)."""

    number: int
    record: str
    kernel: int | None
    variant: int | None


class CompareReply(Struct, forbid_unknown_fields=True):
    """The differences of variants, in columns with these names. `plans` can be asked for instead of
    the present one, and `own` are the variants of the one that was asked for; `side` is the first
    column (null: it is of this record), `values` are the values of both plans (null: they are one
    plan, or very large)."""

    names: list[str]
    sections: list[ComparedSection]
    plans: list[OtherPlan]
    own: list[OwnVariant]
    side: OtherSide | None
    values: PairsReply | None


class NodePair(Struct, array_like=True, forbid_unknown_fields=True):
    """A node of the first graph, and its partner in the second, as a list of their places."""

    before: int
    now: int


class PairsReply(Struct, forbid_unknown_fields=True):
    """The nodes of two graphs: the pairs that are the same, those that are not, the nodes that only
    the first has, and those that only the second has."""

    same: list[NodePair]
    changed: list[NodePair]
    removed: list[int]
    added: list[int]


class PlanForecast(Struct, forbid_unknown_fields=True):
    """What is predicted of a plan: its kernels, the sum of their times with the default opts (null:
    not known), and the most bytes that are held at once."""

    kernels: int
    seconds: float | None
    bytes: int


class ChoiceOffer(Struct, forbid_unknown_fields=True):
    """A choice by hand, with the fields of its request, and what the plan would be with it (null:
    it is `refused`, for this reason)."""

    kind: HandKind
    title: str
    node: int
    store: bool | None
    others: list[int]
    parts: int
    undo: bool
    refused: str
    forecast: PlanForecast | None


class OfferedChoices(Struct, forbid_unknown_fields=True):
    """The choices about a value, the plan `now`, and the most partial results that the value can
    have (0: it is no reduction)."""

    offers: list[ChoiceOffer]
    now: PlanForecast
    most_parts: int


class WhyNotReply(Struct, forbid_unknown_fields=True):
    """Why a rule does not fire: the part of its text that failed begins and ends at the carets."""

    text: str
    caret_start: int
    caret_end: int
    because: str


class CodePart(Struct, forbid_unknown_fields=True):
    """Lines of source text, with what they are (`title`), their file as rows name it and its `path`
    on the machine of Python (both "" for a cell), and the first line's number; `more` lines after
    them are left out."""

    title: str
    file: str
    path: str
    line: int
    text: str
    more: int


class RuleCode(Struct, forbid_unknown_fields=True):
    """The code of a rule or a step: its row in the table, then the functions that the row names."""

    parts: list[CodePart]


class LoweredReply(Struct, forbid_unknown_fields=True):
    """A program that was made of a state in the middle of a pass, and what it is, in words."""

    code: CodeRow
    words: str


class BisectReply(Struct, forbid_unknown_fields=True):
    """The first wrong rewrite in words, with its step and its pass (null: there is none, or the
    record lacks it)."""

    text: str
    place: int | None = field(name="pass")
    step: int


# --------------------------------------------------------------------------------------------------
# Messages from Python to a page.


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
    """The changes of a record: first rows are appended, then values are set, each at a path of
    names and places."""

    append: AppendedRows
    set: list[tuple[list[str | int], Any]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not self.set and self.append == AppendedRows()


class ReplyMessage(Struct, forbid_unknown_fields=True):
    """The reply to the request of the same `id`; `result` is of the request's `reply` type, null
    where there is an error. `record` is the number of the record that it is about, where that
    stands beside the page's own."""

    id: int | None
    ok: bool
    error: ErrorWords | None
    result: Any
    patch: RecordPatch | None = None
    record: int | UnsetType = UNSET


class ProgressRow(Struct, forbid_unknown_fields=True):
    """The task under way (null: none), and how much of it is done."""

    task: str | None
    done: int
    total: int
    text: str


class StatusMessage(Struct, forbid_unknown_fields=True):
    """A message about the task under way."""

    status: ProgressRow


class NoticeMessage(Struct, forbid_unknown_fields=True):
    """A text that the page shows for a while."""

    notice: str


class PatchMessage(Struct, forbid_unknown_fields=True):
    """A patch that belongs to no reply; `record` as in a reply."""

    patch: RecordPatch
    record: int | UnsetType = UNSET


class RenewedMessage(Struct, forbid_unknown_fields=True):
    """The whole record, which began anew."""

    result: WholeRecord


Message = ReplyMessage | StatusMessage | NoticeMessage | PatchMessage | RenewedMessage
"""A message from Python to a page."""


Place = Annotated[int, Meta(ge=0)]


def _meaning(words: str, example: str) -> Meta:
    """Return a type's constraint: in words what its value must be, and an example."""
    return Meta(title=words, examples=[example])


def _place(name: str) -> Meta:
    words = f"a {name} is named by its place in the record, a whole number"
    return _meaning(words, f"{name}=0")


_GUESS = _meaning("a guess is a text", "guess=None")
_AXIS = _meaning("an axis is named by a text", "axis=None")


class ViewState(Struct, frozen=True, forbid_unknown_fields=True):
    """The selection of a page; nodes, lines, kernels and variants are places; `only` is the one
    pane that is shown. What is not set does not change."""

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
        """Return this view with the fields that a later one sets."""
        names = (n for n in self.__struct_fields__ if getattr(later, n) is not UNSET)
        return replace(self, **{name: getattr(later, name) for name in names})


NO_VIEW = ViewState()
"""A view that sets nothing."""
