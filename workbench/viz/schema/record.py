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

from workbench.base.typed import Amount, Count
from workbench.ir.text.phrases import OwnLine
from workbench.viz.schema.plan import PlanPicture
from workbench.viz.schema.run import RunRecord
from workbench.viz.schema.variant import ErrorWords, NamedNumber, TimingRow, VariantRow

# --------------------------------------------------------------------------------------------------
# A kernel that runs in the browser.


class PageBuffer(Struct, forbid_unknown_fields=True):
    """The buffer of a slot of a kernel. `data` has its elements, little-endian, in base64. If it is
    `written`, they are the right result, and an element may be off by at most `tolerance`;
    otherwise they are what the kernel reads ("": it never touches the slot)."""

    dtype: str
    size: int
    written: bool
    data: str
    tolerance: float


class PageData(Struct, forbid_unknown_fields=True):
    """The buffers of a kernel, and in words the reference of its right results (`against`); or the
    `error` that says why there are none."""

    buffers: list[PageBuffer]
    error: ErrorWords | None = None
    against: str = ""


# --------------------------------------------------------------------------------------------------
# A question of a record, and the parts of it that are hidden until the reader guesses.


class HiddenPart(Struct, forbid_unknown_fields=True, frozen=True):
    """A part of the record that is hidden until the reader guesses. Its `path` leads to `value`
    instead; with `only`, the table there has only the rows with these fields. A step of a path is a
    field, or "*" for every row.
    """

    path: list[str]
    value: Any = None
    only: dict[str, Any] | None = None


class QuestionRow(Struct, forbid_unknown_fields=True):
    """A question about the record. Its answer is the first value that one of the paths in `answers`
    leads to (of a list its length); a step of such a path may also be the fields that a row must
    have. A guess is judged by its distance ("number"), by whether it is within the `factor`
    ("factor"), whether it is the same ("choice"), or part by part ("set"). Numbers are guessed in a
    `unit`, which is `scale` of the record's unit. `choices` are the possible guesses ([]: any
    number)."""

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
    """The words of one subject."""

    name: str
    terms: list[TermRow]


# --------------------------------------------------------------------------------------------------
# Readings: the text of a record's nodes, and their boxes in a graph. The page knows nothing else of
# ops.

Shape = Literal["cut", "slant", "six", "pill", "box", "round"]
ValuesOf = Literal["", "lowered", "none"]
Role = Literal["", "constant", "join", "loop", "axis", "access", "place", "due"]


class FamilyRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A family of ops: its name, and the shape of its boxes."""

    name: str
    shape: Shape


class SlotRow(Struct, array_like=True, forbid_unknown_fields=True):
    """The gap for the words of a source, as a list: a Slot of workbench/ir/text/phrases.py."""

    source: int
    tight: int
    signed: bool


class Reading(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The phrase and the box of nodes that differ only in their sources.

    Words, as in workbench/ir/text/phrases.py: parts are text and slots. `name` is the node's own
    name ("": the page makes one that begins with `letter`); `typed` is its dtype and shape, for
    graphs with a node that `is_tensor`; leaves are named first, by `rank`; `box` has the parts in a
    box of a graph ([]: the same parts).

    In a graph: `family` is a letter in the record's `families`. Arithmetic of indexes (`is_index`)
    may stand in the words of its readers. The role: a "constant" always stands in them; a "join"
    has nothing of its own; a "loop" can be closed; an "axis" has `size` steps; an "access" reads or
    writes at its first source; a "place" has the memory as its first source, then indexes; what is
    "due" will be made of its sources by a rule, and is explained by their names.

    `values`: "" where Python can compute the node's values; "lowered" where they are in registers
    of the lowered program; "none" where the node has none.
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
    """Python code that a page copies. `plan` prints the plan, after the lines of the expression;
    `opts` are examples of opts, `baseline` adds a function to compare with, `add` adds a variant;
    `without` is the text before and after the name of a rule that is to be off; `replan` makes the
    choices by hand again ("": there are none); `script` writes all kernels as a script."""

    plan: str
    opts: str
    baseline: str
    add: str
    without: list[str]
    replan: str
    script: str


class PassRecipe(Struct, forbid_unknown_fields=True):
    """Python code for a pass, after the lines of the expression and of the variant: `outcome`
    prints its result, `match` is the text before and after the number of one of its matches."""

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
    """A device, with the names of its languages. `how_to_get` says what to install, or what the
    device is if it is `available`. `elsewhere`: it is a machine that is not here. `groups`: it has
    work-groups, as a GPU has. `machine_code`: there is machine code to read."""

    name: str
    available: bool
    how_to_get: str
    emulator: bool
    elsewhere: bool = False
    languages: list[str] = []
    groups: bool = False
    machine_code: bool = False


class LanguageRow(Struct, forbid_unknown_fields=True):
    """A language that code is shown in, and the `device` that runs it ("": none). `is_emulated`:
    edited text runs on the emulator where that device is not here. Code of the role "machine",
    "statements" or "text" differs from device to device; edited, a "text" (the IR) runs on each.
    Regular expressions: `comment`, `word` (shown in bold), and `head`, of the line where the kernel
    begins."""

    name: str
    title: str
    comment: str
    word: str
    head: str
    device: str
    role: Literal["program", "machine", "statements", "text"] = "program"
    is_emulated: bool = False


class WithoutRow(Struct, forbid_unknown_fields=True):
    """The rules that are off, and in words what differs without them."""

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
    """This machine, or one that is not here, by its published figures, with their `sources`. `kind`
    says what its `cores` are ("core", or "unit" of a GPU). Units: bytes of each cache, peak in
    operations a second, bandwidth and copy in bytes a second; null where no speed is known."""

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
    """The effect of a kind of opt, in words: `here`, on a processor, and on a GPU."""

    here: str
    on_gpu: str


class LineRow(Struct, forbid_unknown_fields=True):
    """A line of the user's code."""

    where: str
    text: str


class CauseRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The cause of a node, one step back, as a list: a pass, the number of its rewrite from 1 (0:
    the whole pass), and the node that it was before."""

    place: int
    number: int
    node: int


class NodeColumns(Struct, forbid_unknown_fields=True):
    """Every node, a list for each field, sources before users. `dtype` is "" for void; `reading` is
    a place in the record's `readings`. `lines` are the user's lines that made the node, the one to
    show first; each is a list of places: its own, then those of the lines in functions that it
    called. `causes` say where the node comes from."""

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
    """A rule, an opt or a step that fired, with the file and the line of its source, and its table
    (`set`). One that `is_fixed` cannot be switched off."""

    name: str
    text: str
    doc: str
    file: str
    line: int
    set: str
    is_fixed: bool = False


class PassOutcome(Struct, forbid_unknown_fields=True):
    """The outcome of a pass. `depth` counts the passes that it ran inside of; `changed` is False
    where it left its input as it was; `unit` is the word for its matches. Of the `matches`,
    `dropped` were not recorded."""

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
    """The outcome of a pass, and how often each rule fired in it, the most frequent first."""

    rules: list[NamedNumber]


class RewriteRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A rewrite, as a list: a rule (-1: none), the node before, the node after, and the root after
    it (-1: not recorded). `about` is the subject in words, such as the value that is read ("":
    none)."""

    rule: int
    before: int
    after: int
    root: int
    about: str = ""


class RecordedPass(PassOutcome, forbid_unknown_fields=True):
    """A pass with its states and rewrites. `before` and `after` are the roots of the states, their
    texts are places in `texts`. Of many matches only the first ones have rewrites."""

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
    """A kernel of the plan. `root` is its un-optimised variant; `opens` is the variant that a page
    opens with, if that is another. `data` has its buffers, for a page that runs it. `modules` are
    the user's modules that made what it computes, each with the method that was called; `module`
    is the path of the first, and `fused` names the others in few words. `phases` are its phases:
    "weights" for a kernel that draws them, those of training, or [] where nothing is trained.
    `opts_in_code` says which opts the user's code asks for, or why they are refused.
    `draws_numbers`: it only draws random numbers, as kernels of weights do."""

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
    fused: str
    phases: list[str]
    data: PageData | None = None
    opens: int | None = None
    opts_in_code: str = ""
    draws_numbers: bool = False


class ModuleTime(Struct, forbid_unknown_fields=True):
    """The time of a run in a module, without those that it calls. Units: seconds."""

    path: str
    seconds: Amount


class BaselineRow(Struct, forbid_unknown_fields=True):
    """A function to compare with: its timing, or its `error`; both are null before it is timed.
    `about` says how it runs, and `modules` are those of a model. `is_ours`: it is the run of all
    kernels with the default opts."""

    name: str
    timing: TimingRow | None
    error: str | None
    about: str = ""
    modules: list[ModuleTime] = []
    is_ours: bool = False


class PanelSection(Struct, forbid_unknown_fields=True):
    """The section of one panel: `data` of a type of its own, or the `error` of building it."""

    data: Any
    error: ErrorWords | None


class RestoringRow(Struct, forbid_unknown_fields=True):
    """How many saved variants are restored, of all that are."""

    done: Count
    total: Count


class SavedPlanRow(Struct, forbid_unknown_fields=True):
    """A plan that an earlier session of the notebook saved: its name, and the number of its choices
    by hand. Units: `when` the last one was made, in seconds of the epoch."""

    id: str
    choices: Count
    when: Count


class PageRecord(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that a page shows. `panels` has the section of each panel by its name (null: not
    built yet). `n` counts the patches of a session, and is missing without one. `origin` says which
    file the record was loaded from. `saved` counts the variants of the expression that other
    notebooks saved, and that are not shown; `saved_edits` are words, each on edited texts that are
    not shown because they failed, or because other rules were off; `restoring` counts those that
    are being restored (null: none); `unsaved` are words on what a limit leaves out of what is
    saved. `saved_plans` can be made again. `runs` are the last two runs of the kernels, the latest
    last. `ask` is the question that waits for a guess; `left_out` says in words what a saved copy
    lacks."""

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
    saved_edits: list[str]
    restoring: RestoringRow | None
    unsaved: list[str]
    saved_plans: list[SavedPlanRow]
    baselines: list[BaselineRow]
    panels: dict[str, PanelSection | None]
    n: int | UnsetType = UNSET
    origin: str = ""
    runs: list[RunRecord] = []
    ask: QuestionRow | None = None
    left_out: str = ""
