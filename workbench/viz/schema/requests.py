"""Requests of a page: one type each, with its name in the field "do"."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct, field

from workbench.viz.schema.messages import (
    AccessesReply,
    BisectReply,
    CompareReply,
    EditedCode,
    LoweredReply,
    NodeChecksReply,
    NodeValue,
    NoResult,
    OfferedChoices,
    OptsReply,
    PairsReply,
    PatchCount,
    RuleCode,
    RuleReply,
    RuleTrialReply,
    SearchedReply,
    StoppedJobs,
    TimedVariants,
    ValueTable,
    VariantReply,
    WholeRecord,
    WhyNotReply,
)
from workbench.viz.schema.plan import HandKind

MOST_TEXT = 400_000
MOST_AT_ONCE = 16
"""Most variants that one request names."""
MOST_ROOTS = 1000
"""Most roots of one graph."""
MOST_OPTS = 100
"""Most texts of one list of opts."""
MOST_AMOUNT = 1 << 31
MOST_SECONDS = 600.0


def place(name: str, *table: str) -> Meta:
    """Return the constraint on a place in a table of the record; `table` is the table's path."""
    return Meta(ge=0, title=name, extra={"table": table})


def text(name: str) -> Meta:
    """Return the constraint on a text: its length, and no half of a surrogate pair."""
    return Meta(max_length=MOST_TEXT, pattern=r"^[^\ud800-\udfff]*\Z", title=name)


Kernel = Annotated[int, place("kernel", "kernels")]
Node = Annotated[int, place("node", "nodes", "op")]
Nodes = Annotated[list[Node], Meta(max_length=100, title="list of at most 100 nodes")]
Pass = Annotated[int, place("pass", "passes")]
Rule = Annotated[int, place("rule", "rules")]
Variant = Annotated[int, place("variant", "variants")]
Text = Annotated[str, text(f"text of at most {MOST_TEXT:,} characters")]
Name = Annotated[str, text("name")]
Program = Annotated[str, Meta(title="text of a program")]
"""The text of a program for a compiler; `Source` says which texts it accepts."""
Seconds = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS, title=f"time of more than 0 and at most {MOST_SECONDS:g} seconds"),
]
Variants = Annotated[
    list[Variant],
    Meta(min_length=1, max_length=MOST_AT_ONCE, title=f"list of 1 to {MOST_AT_ONCE} variants"),
]
OptTexts = Annotated[
    list[Text], Meta(max_length=MOST_OPTS, title=f"list of at most {MOST_OPTS} texts")
]
Place = Annotated[int, Meta(ge=0, title="place in the list")]
Names = Annotated[
    list[Name], Meta(max_length=MOST_AT_ONCE, title=f"list of at most {MOST_AT_ONCE} names")
]
Roots = Annotated[
    list[Place], Meta(max_length=MOST_ROOTS, title=f"list of at most {MOST_ROOTS} nodes")
]
NodePlaces = Annotated[
    list[Node], Meta(max_length=MOST_ROOTS, title=f"list of at most {MOST_ROOTS} nodes")
]
Rounds = Annotated[int, Meta(ge=1, le=1000, title="number of rounds from 1 to 1000")]
Steps = Annotated[int, Meta(ge=1, le=1 << 20, title="number of steps")]
GroupNumbers = Annotated[
    list[Place], Meta(max_length=3, title="list of at most 3 numbers of a work-group")
]
Corner = Annotated[
    list[Place], Meta(min_length=2, max_length=2, title="row and column of the first number")
]
OptAmount = Annotated[int, Meta(ge=0, le=MOST_AMOUNT, title="amount")]
Positions = Annotated[dict[str, int], Meta(max_length=MOST_AT_ONCE, title="position by axis")]


class Request(Struct, tag_field="do", kw_only=True, forbid_unknown_fields=True):
    """The fields of every request: the `id` that its reply carries, and the number of the `record`
    beside the session's that it is about (null: the session's own). `reply` is the type of the
    reply's result."""

    id: int | None = None
    record: Place | None = None
    reply: ClassVar[type[Struct]] = NoResult


class ApplyRequest(Request, tag="apply"):
    """Apply an opt, or several, to a variant."""

    reply: ClassVar[type[Struct]] = VariantReply
    variant: Variant
    opt: Text


class OptsRequest(Request, tag="opts"):
    """Say of each opt of a list whether it is legal after those before it, on the un-optimised
    kernel of a variant. Of the opt at `place` the reply has the legal amounts, too; with `amount`
    that opt gets this amount first."""

    reply: ClassVar[type[Struct]] = OptsReply
    variant: Variant
    opts: OptTexts
    place: Place | None = None
    amount: OptAmount | None = None


class PasteRequest(Request, tag="paste"):
    """Apply a list of opts to the un-optimised kernel of a variant. `name` is for the variant with
    them ("": it keeps its name)."""

    reply: ClassVar[type[Struct]] = VariantReply
    variant: Variant
    text: Text
    name: Text = ""


class AutoRequest(Request, tag="auto"):
    """Apply the default opts to a kernel."""

    reply: ClassVar[type[Struct]] = VariantReply
    kernel: Kernel


class CodeRequest(Request, tag="code"):
    """Render a variant in a language, for a device (null: the session's)."""

    reply: ClassVar[type[Struct]] = VariantReply
    variant: Variant
    language: Text
    device: Name | None = None


class OffersRequest(Request, tag="offers"):
    """List the next opts of a variant."""

    variant: Variant


class PassesRequest(Request, tag="passes"):
    """Compile a variant, so that the record gets its passes."""

    variant: Variant


class DataRequest(Request, tag="data"):
    """Add the buffers of a kernel, with which the page runs it."""

    kernel: Kernel


class PinRequest(Request, tag="pin"):
    """Pin a variant; null: pin none."""

    variant: Variant | None


class NameRequest(Request, tag="name"):
    """Name a variant; "": after its opts."""

    variant: Variant
    text: Text


class DeleteRequest(Request, tag="delete"):
    """Delete variants, or bring them `back`."""

    variants: Variants
    back: bool = False


class SavedRequest(Request, tag="saved"):
    """Show the variants that other notebooks saved of the expression; or the saved edits that the
    record counts in the words `edits`; or make a saved `plan` by hand again."""

    edits: Text = ""
    plan: Name = ""


class ForgetRequest(Request, tag="forget"):
    """Delete from disk the variants of the expression that other notebooks saved, and that are not
    shown; or a saved `plan` by hand."""

    plan: Name = ""


class NoteRequest(Request, tag="note"):
    """Set the note of a variant."""

    variant: Variant
    text: Text


class DeviceRequest(Request, tag="device"):
    """Switch the session to another device."""

    name: Name


class MeasureRequest(Request, tag="measure"):
    """Time variants in turns, also with cold caches if `cold`."""

    reply: ClassVar[type[Struct]] = TimedVariants
    variants: Variants
    cold: bool | None = None


class CheckRequest(Request, tag="check"):
    """Compare the result of a variant with the reference."""

    variant: Variant


class EditRequest(Request, tag="edit"):
    """Run source that was edited by hand."""

    reply: ClassVar[type[Struct]] = VariantReply
    variant: Variant
    language: Text
    text: Program


class CompileRequest(Request, tag="compile"):
    """Compile source that is being edited, without running it; `text` null: the source that the
    variant was edited to before."""

    reply: ClassVar[type[Struct]] = EditedCode
    variant: Variant
    language: Text
    text: Program | None


class CostsRequest(Request, tag="costs"):
    """Add the costs of a variant's instructions on a device (null: the session's), if a tool here
    knows them."""

    variant: Variant
    device: Name | None = None


class CompilerPassesRequest(Request, tag="compiler_passes"):
    """Add the passes of the compiler that made the machine code of a variant."""

    variant: Variant


class BaselineRequest(Request, tag="baseline"):
    """Time the baselines in turns with the pinned variant and `variants`."""

    variants: Variants | None = None


class ValuesRequest(Request, tag="values"):
    """Compute the value of a node of a pass at positions of its axes."""

    reply: ClassVar[type[Struct]] = NodeValue
    variant: Variant | None
    place: Pass = field(name="pass")
    node: Node
    at: Positions


class TableRequest(Request, tag="table"):
    """Compute the values of a node (null: the result of the variant's kernel) along two of its
    axes ("": the last ones), at the positions `at` of the others; the numbers that are sent begin
    at row and column `first`. A node of several kernels is that of the variant's kernel."""

    reply: ClassVar[type[Struct]] = ValueTable
    variant: Variant | None
    node: Node | None
    rows: Name
    columns: Name
    at: Positions
    first: Corner


class CheckNodesRequest(Request, tag="check_nodes"):
    """Find the first value of the expression that differs from numpy's."""

    reply: ClassVar[type[Struct]] = NodeChecksReply


class AccessesRequest(Request, tag="accesses"):
    """List the accesses of at most `steps` steps of an axis of a variant ("": its innermost loop),
    from step `first` on, with the axes around it at the positions `at`; or those of the loads and
    stores of the `warp` of this number."""

    reply: ClassVar[type[Struct]] = AccessesReply
    variant: Variant
    axis: Name
    at: Positions
    first: Place
    steps: Steps
    warp: Place | None = None


class CompareRequest(Request, tag="compare"):
    """Compare variants in columns. The first may be of another `device`, without the rules
    `without`, and in another `plan` ("": this one); `plans` of a reply has the names of plans, and
    "file PATH" is one, too. `own`: that other exploration's own variant (null: the opts of the
    first variant there). `device` null: this record's, or that of `own`."""

    reply: ClassVar[type[Struct]] = CompareReply
    variants: Variants
    device: Text | None = None
    without: Names = []
    plan: Text = ""
    own: Place | None = None


class PairsRequest(Request, tag="pairs"):
    """Pair the nodes below roots of a graph of the first column with those below roots of one in
    this record. `side` is the number of the first column's record (null: this record)."""

    reply: ClassVar[type[Struct]] = PairsReply
    side: Place | None
    before: Roots
    now: NodePlaces


class MeasureBesideRequest(Request, tag="measure_beside"):
    """Time a variant of the first column's record and one of this record in turns, also with cold
    caches if `cold`. `side` is the number of the first column's record."""

    side: Place
    before: Place
    now: Variant
    cold: bool | None = None


class LowerOnRequest(Request, tag="lower_on"):
    """Make the program that a variant would be if a pass stopped after `step` rewrites, in a
    language of the session's device (another one: in the language that the device runs)."""

    reply: ClassVar[type[Struct]] = LoweredReply
    variant: Variant
    place: Pass = field(name="pass")
    step: Place
    language: Text


class WhyNotRequest(Request, tag="why_not"):
    """Say why a rule does not fire at a node."""

    reply: ClassVar[type[Struct]] = WhyNotReply
    place: Pass = field(name="pass")
    node: Node
    rule: Rule


class RuleCodeRequest(Request, tag="rule_code"):
    """Send the source text of a rule or a step."""

    reply: ClassVar[type[Struct]] = RuleCode
    rule: Name


class RuleOffRequest(Request, tag="rule_off"):
    """Switch a rule (a place or a name) off, or `on` again: in the expression if scheduling uses
    the rule, else in the variant `of` of a kernel (null: the un-optimised one)."""

    reply: ClassVar[type[Struct]] = RuleReply
    kernel: Kernel | None
    rule: Rule | Name
    on: bool | None
    of: Variant | None = None


class TryRuleRequest(Request, tag="try_rule"):
    """Test a rule that the reader typed on values; unless it is wrong, add the variant with it. The
    reply has the lines of a language that the rule changes."""

    reply: ClassVar[type[Struct]] = RuleTrialReply
    variant: Variant
    text: Text
    language: Text


class BisectRequest(Request, tag="bisect"):
    """Find the first rewrite after which a variant is wrong."""

    reply: ClassVar[type[Struct]] = BisectReply
    variant: Variant


class ReplanRequest(Request, tag="replan"):
    """Plan again with a choice by hand about a value. Of "changes": it is stored, fused, or left to
    the scheduler (null). Of others, unless they `undo` one: the readers that compute it again, the
    number of partial results, the value of the kernel after its own, the value that it is written
    over (none: over no other). Without a node all choices are undone."""

    reply: ClassVar[type[Struct]] = PatchCount
    node: Node | None
    store: bool | None = None
    kind: HandKind = "changes"
    others: Nodes = []
    parts: OptAmount = 0
    undo: bool = False


class ChoicesRequest(Request, tag="choices"):
    """List the choices by hand about a value, with what the plan would be with each; with `parts`
    (not 0) that many partial results alone."""

    reply: ClassVar[type[Struct]] = OfferedChoices
    node: Node
    parts: OptAmount = 0


class PlansRequest(Request, tag="plans"):
    """Time this plan and the one before it."""


class CheckAllRequest(Request, tag="check_all"):
    """Compare all kernels and all results with the reference."""


class KernelsRequest(Request, tag="kernels"):
    """Time the kernels that have no time yet, with the default opts."""


class RunRequest(Request, tag="run"):
    """Run all kernels `repeat` times, as they were chosen."""

    repeat: Rounds


class SearchAllRequest(Request, tag="search_all"):
    """Search for faster opts of all kernels, for `budget_s` seconds, and write them to the tuning
    file."""

    reply: ClassVar[type[Struct]] = SearchedReply
    budget_s: Seconds


class SearchRequest(Request, tag="search"):
    """Search for faster opts, for `budget_s` seconds."""

    reply: ClassVar[type[Struct]] = VariantReply
    variant: Variant
    budget_s: Seconds


class EmulateRequest(Request, tag="emulate"):
    """Run a variant on the emulator, and record each step of a work-group, by its numbers along x,
    y and z (null: the group of the first finding, or else the first group). `without` is the number
    of a barrier that is removed from the program. `unasked`: the page sent the request by itself;
    a run that takes long is then left out."""

    variant: Variant
    group: GroupNumbers | None = None
    without: Place | None = None
    unasked: bool = False


class StopJobs(Request, tag="stop"):
    """Drop the jobs that are under way."""

    reply: ClassVar[type[Struct]] = StoppedJobs


class PingRequest(Request, tag="ping"):
    """Send the number of patches, and the whole record if the page has another number (`have`;
    null: never send the record)."""

    reply: ClassVar[type[Struct]] = WholeRecord
    have: int | None = None


AnyRequest = (
    AccessesRequest
    | ApplyRequest
    | CompareRequest
    | OptsRequest
    | PasteRequest
    | AutoRequest
    | CodeRequest
    | OffersRequest
    | DataRequest
    | PassesRequest
    | PinRequest
    | NameRequest
    | DeleteRequest
    | SavedRequest
    | ForgetRequest
    | NoteRequest
    | DeviceRequest
    | MeasureRequest
    | CheckRequest
    | EditRequest
    | CompileRequest
    | CostsRequest
    | CompilerPassesRequest
    | BaselineRequest
    | TableRequest
    | ValuesRequest
    | WhyNotRequest
    | LowerOnRequest
    | RuleCodeRequest
    | RuleOffRequest
    | TryRuleRequest
    | BisectRequest
    | ReplanRequest
    | ChoicesRequest
    | PlansRequest
    | CheckAllRequest
    | CheckNodesRequest
    | KernelsRequest
    | RunRequest
    | SearchAllRequest
    | SearchRequest
    | EmulateRequest
    | PairsRequest
    | MeasureBesideRequest
    | StopJobs
    | PingRequest
)
"""A request of a page."""
