"""The record of a page: an expression, its devices and its tables.

Rows name each other by place: a node, a line, a text, a rule or a pass by its place in the
table of that name.

Sections: A kernel that runs in the browser; A question of a record, and the parts of it that are
hidden until the reader guesses; The glossary of the page; Readings; Recipes; The record of a
page.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from workbench.ir.text.phrases import OwnLine
from workbench.viz.schema.plan import PlanPicture
from workbench.viz.schema.variant import ErrorWords, NamedNumber, TimingRow, VariantRow

# --------------------------------------------------------------------------------------------------
# A kernel that runs in the browser.


class PageBuffer(Struct, forbid_unknown_fields=True):
    """A buffer of a kernel, by slot. `data` are its bytes, little-endian, in base64: of an input
    what the kernel reads, of one that is `written` the right answer, which no element may miss by
    more than `tolerance`; "" for a slot that the kernel never touches."""

    dtype: str
    size: int
    written: bool
    data: str
    tolerance: float


class PageData(Struct, forbid_unknown_fields=True):
    """The buffers of a kernel, and what the right answers are those of (`against`); or the `error`
    that says why they are not here."""

    buffers: list[PageBuffer]
    error: ErrorWords | None = None
    against: str = ""


# --------------------------------------------------------------------------------------------------
# A question of a record, and the parts of it that are hidden until the reader guesses.


class HiddenPart(Struct, forbid_unknown_fields=True, frozen=True):
    """What stands at a path into the record until the reader guesses: `value`; or of a table the
    rows that have the fields `only`. A step of a path is a field, or "*" for every row.
    """

    path: list[str]
    value: Any = None
    only: dict[str, Any] | None = None


class QuestionRow(Struct, forbid_unknown_fields=True):
    """A question. The first of `answers`, paths into the record, that leads to a value is its
    answer; a step there may be fields that a row must have, and a list counts. `judgement` says how
    a guess is judged: by how far off it is, within a `factor`, whether it is the same, which parts
    are. An answer is shown in `unit`s, of which each is `scale`. `choices` are what one may guess
    ([]: a number)."""

    name: str
    text: str
    judgement: Literal["number", "factor", "choice", "set"]
    answers: list[list[Any]]
    hides: list[HiddenPart]
    unit: str
    scale: float
    factor: float
    choices: list[str]


# --------------------------------------------------------------------------------------------------
# The glossary of the page: words in groups, each with its meaning.


class TermRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A word, letter or sign, and what it means in a sentence or two, as a list."""

    word: str
    meaning: str


class TermGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Words that are met together."""

    name: str
    terms: list[TermRow]


# --------------------------------------------------------------------------------------------------
# Readings: the text of a record's nodes, and their box in a graph, which is all that the page knows
# of ops.

Shape = Literal["cut", "slant", "six", "pill", "box", "round"]
ValuesOf = Literal["", "lowered", "none"]
Role = Literal["", "constant", "join", "loop", "axis", "access", "place", "due"]


class FamilyRow(Struct, frozen=True, forbid_unknown_fields=True):
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


# --------------------------------------------------------------------------------------------------
# Recipes: parts of the Python code for a view of the page, which the page joins and copies.


class PageRecipes(Struct, forbid_unknown_fields=True):
    """Python code for the view of a page. `plan` follows the lines of the expression; `opts` is
    what can be pasted, `baseline` how to compare with something else, `add` how a cell shows a
    variant; `without` is the text around the name of a rule, to do without it."""

    plan: str
    opts: str
    baseline: str
    add: str
    without: list[str]


class PassRecipe(Struct, forbid_unknown_fields=True):
    """Python code for a pass: `outcome` prints what it made, `match` is the text around the
    place of one of its matches. It follows the lines of the expression and of the variant."""

    outcome: str
    match: list[str]


# --------------------------------------------------------------------------------------------------
# The record of a page.


class ExpressionRow(Struct, forbid_unknown_fields=True):
    """The user's expression, and Python that explores it again."""

    text: str
    line: int | None
    python: str


class DeviceRow(Struct, forbid_unknown_fields=True):
    """A device that there is, with the names of its languages. Where it is available, `how_to_get`
    says what it is. `elsewhere` is a machine that is not here, `groups` says that it has
    work-groups, as a GPU has, and `machine_code` that there is some to read."""

    name: str
    available: bool
    how_to_get: str
    emulator: bool
    elsewhere: bool = False
    languages: list[str] = []
    groups: bool = False
    machine_code: bool = False


class LanguageRow(Struct, forbid_unknown_fields=True):
    """A language that code is shown in, and which `device` runs it ("": none). It may be what each
    device makes another one of: machine code, or statements. `comment`, `word` and `head` are
    regular expressions."""

    name: str
    title: str
    comment: str
    word: str
    head: str
    device: str
    role: Literal["program", "machine", "statements"] = "program"


class WithoutRow(Struct, forbid_unknown_fields=True):
    """The rules that are off, and in words what that changes."""

    rules: list[str]
    differs: str


class CacheSize(Struct, array_like=True, forbid_unknown_fields=True):
    """A cache and its bytes, as a list."""

    level: str
    size_bytes: int


class LevelSpeed(Struct, array_like=True, forbid_unknown_fields=True):
    """A cache, or "memory", and its bytes a second, as a list."""

    level: str
    speed: float


class OneThread(Struct, forbid_unknown_fields=True):
    """The speeds of one thread; units as in MachineRow."""

    peak: dict[str, float]
    bandwidth: list[LevelSpeed]
    copy: list[LevelSpeed]


class MachineRow(Struct, forbid_unknown_fields=True):
    """This machine, or one that is not here, by its published figures: its `cores` are then of a
    `kind`. Units: bytes of each cache, peak in operations a second, bandwidth and copy in bytes a
    second; null where no speed is known."""

    cpu: str
    cores: int
    caches: list[CacheSize]
    peak: dict[str, float] | None
    bandwidth: list[LevelSpeed] | None
    copy: list[LevelSpeed] | None
    one_thread: OneThread | None
    kind: str = "core"
    sources: list[str] = []


class KindRow(Struct, forbid_unknown_fields=True):
    """A kind of axis, in words."""

    letter: str
    name: str
    caption: str


class OptKindRow(Struct, forbid_unknown_fields=True):
    """What a kind of opt does: `here`, on a processor, and on a GPU."""

    here: str
    on_gpu: str


class LineRow(Struct, forbid_unknown_fields=True):
    """A line of the user's code."""

    where: str
    text: str


class CauseRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Why a node is there, one step back, as a list: a pass, the number of its rewrite from 1 (0:
    none), and the node that it was."""

    place: int
    number: int
    node: int


class NodeColumns(Struct, forbid_unknown_fields=True):
    """Every node, a list for each field, sources before users. `causes` say why it is there;
    `dtype` is "" for none; `reading` is a place in the record's `readings`; `lines` are the user's
    that made it, the one to show first: of each its place, and those of the lines in functions that
    it called."""

    op: list[str]
    dtype: list[str]
    shape: list[str]
    arg: list[str]
    src: list[list[int]]
    label: list[str]
    reading: list[int]
    lines: list[list[list[int]]]
    causes: list[list[CauseRow]]


class RuleRow(Struct, forbid_unknown_fields=True):
    """A rule, an opt or a step that fired, and where it stands. One that `is_fixed` cannot be
    switched off."""

    name: str
    text: str
    doc: str
    file: str
    line: int
    set: str
    is_fixed: bool = False


class PassOutcome(Struct, forbid_unknown_fields=True):
    """What came of a pass. `depth` counts the passes that it ran inside of; `changed` is False
    where it left its input as it was; `unit` is what a match is called; the observer
    dropped `dropped` of the `matches`."""

    name: str
    doc: str
    depth: int
    unit: str
    seconds: float
    changed: bool
    error: str | None
    matches: int
    dropped: int


class PassRow(PassOutcome, forbid_unknown_fields=True):
    """A pass alone: how often rules fired in it, the busiest first."""

    rules: list[NamedNumber]


class RewriteRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A rewrite, as a list: a rule (-1: none), the node before, the node after, and the root then
    (-1: not recorded). `about`: what a step of a function is about, in words."""

    rule: int
    before: int
    after: int
    root: int
    about: str = ""


class RecordedPass(PassOutcome, forbid_unknown_fields=True):
    """A pass. `before` and `after` are its roots, the texts are places; there may be more matches
    than rewrites that are listed."""

    before: list[int]
    after: list[int]
    text_before: int | None
    text_after: int | None
    rewrites: list[RewriteRow]
    kernel: int | None
    variant: int | None
    device: str | None
    python: PassRecipe


class KernelRow(Struct, forbid_unknown_fields=True):
    """A kernel of the plan; `root` is its un-optimised variant, and `opens` the one that a page
    opens with, where that is another; `data` are its buffers, for a page that runs it. `modules`
    are the user's that made what it computes, each with the method that it called; `module` is the
    path of the first. `phases` are those of training that it belongs to; none where nothing is
    trained. `opts_in_code` says which opts the user's code asks for, or why they are refused.
    `draws_numbers`: it only draws random numbers, as the first weights of a model are."""

    title: str
    name: str
    decoded: str
    line: int | None
    inner: list[int]
    flops: float
    bytes: float
    decision: int | None
    root: int
    module: str
    modules: list[str]
    phases: list[str]
    data: PageData | None = None
    opens: int | None = None
    opts_in_code: str = ""
    draws_numbers: bool = False


class BaselineRow(Struct, forbid_unknown_fields=True):
    """Something to compare with."""

    name: str
    timing: TimingRow | None
    error: str | None


class PanelSection(Struct, forbid_unknown_fields=True):
    """What one panel alone needs: `data` is of a type of its own, or there is an `error`."""

    data: Any
    error: ErrorWords | None


class PageRecord(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that a page shows. `panels` has the sections of panels, by their names; null where
    one is not built yet. `n` counts the patches of a session; a record that no
    session has made has none. `origin` says which file it was loaded from. `saved`
    counts the variants that other notebooks saved of the expression, and that are not shown. `ask`
    is the question that waits for a guess; `left_out` says in words what a saved copy lacks."""

    v: int
    key: str
    expr: ExpressionRow
    device: str
    elsewhere: str
    devices: list[DeviceRow]
    languages: list[LanguageRow]
    headline: str
    nothing: str
    without: WithoutRow
    recipes: PageRecipes
    machine: MachineRow
    kinds: dict[str, KindRow]
    opt_kinds: dict[str, OptKindRow]
    glossary: list[TermGroup]
    lines: list[LineRow]
    nodes: NodeColumns
    readings: list[Reading]
    families: dict[str, FamilyRow]
    texts: list[str]
    rules: list[RuleRow]
    passes: list[RecordedPass]
    plan: PlanPicture
    kernels: list[KernelRow]
    variants: list[VariantRow]
    pinned: int | None
    saved: int
    baselines: list[BaselineRow]
    panels: dict[str, PanelSection | None]
    n: int | UnsetType = UNSET
    origin: str = ""
    ask: QuestionRow | None = None
    left_out: str = ""
