"""The plan of a record: the tensor graph as it is drawn, and the reasons of its cuts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench.viz.schema.variant import CheckRow, NamedNumber


class PlanNode(Struct, forbid_unknown_fields=True):
    """A box of the picture: `x` and `y` are its left upper corner, `n` its node in the record.
    `patch` is the ground behind it, as an SVG path ("": it is in no kernel). `step` is the number
    of decisions after which its kernels are known."""

    n: int
    label: str
    x: float
    y: float
    w: float
    h: float
    kernels: list[int]
    stored_by: int | None
    role: str
    bytes: int
    line: int
    output: bool
    patch: str
    step: int


class RoutePoint(Struct, array_like=True, forbid_unknown_fields=True):
    """A point of an edge, as a list."""

    x: float
    y: float


class PlanEdge(Struct, forbid_unknown_fields=True):
    """An edge of the picture: `a` and `b` are places in the list of the plan's nodes. `band` is
    the ground along it as an SVG path, if one kernel has both nodes."""

    a: int
    b: int
    route: list[RoutePoint]
    cut: bool
    bytes: int
    band: str


class PlanRegion(Struct, forbid_unknown_fields=True):
    """The area of a kernel, whose ground is the patches and bands of what it computes; a node of
    several kernels stands on the ground of the first."""

    kernel: int
    title: str
    colour: str


class CostChoice(Struct, forbid_unknown_fields=True):
    """One of the ways to compute a value that a decision compared: what is done, and its estimated
    cost in operations, beyond computing each element once."""

    text: str
    cost: float
    wins: bool


class DecisionRow(Struct, forbid_unknown_fields=True):
    """Why a value is stored or fused. `estimates` are the numbers that decided, by name; `choices`
    are the ways that were compared, and `costs` says the same in sentences. `tradeoff`: the value
    is fused although that costs something. `rank` is its place, from 0, among the decisions that
    explain best why there are not more kernels (None: it is not one of them). `value` is the value
    in words; `name` is that, too, or the title of the kernel that ends with it, after the user's
    name. `is_requested`: it is a result, or asked to be stored. `is_copy`: it is only copied to a
    device. `python` prints the decision, after the lines of the expression. `rewrites` are the
    steps, from 1, of the pass `rewritten_by` (null: none) that make kernels of the value."""

    node: int
    name: str
    value: str
    stored: bool
    reason: str
    estimates: list[NamedNumber]
    choices: list[CostChoice]
    tradeoff: bool
    rank: int | None
    costs: str
    kernel: int | None
    forced: bool
    is_requested: bool
    is_copy: bool
    python: str
    rewritten_by: int | None
    rewrites: list[int]


HandKind = Literal["changes", "recompute", "split", "before", "in_place"]
"""The kind of a choice by hand: the argument of `replan` that makes it."""


class HandChoiceRow(Struct, forbid_unknown_fields=True):
    """A choice by hand in words: the node that it is about (null: it is not in the record), and its
    kind, as in the request that undoes it."""

    node: int | None
    kind: HandKind
    text: str


class ComparedPlans(Struct, forbid_unknown_fields=True):
    """This plan beside the one before it; `kernels` and `seconds` are those of the earlier one and
    of this one. `change` is the place of the decision that was forced, `moved` are the places of
    others that changed. `speed` says which plan is faster, `verdict` says it as a sentence. On a
    busy machine neither has `seconds`: `busy_s` are estimates, from which no ratio follows.
    `predicted_s` is the predicted time of the earlier plan (null: not known), `bytes` the most that
    each holds at once, `operations` those of all its kernels. `number` is that of this plan;
    `kernels_now` and `variants_now` have the places that the kernels and variants of the earlier
    plan have in this record (null: none)."""

    kernels: tuple[int, int]
    change: int | None
    moved: list[int]
    seconds: tuple[float, float] | None
    speed: str
    verdict: str
    predicted_s: float | None
    bytes: tuple[int, int]
    operations: tuple[int, int]
    number: int = -1
    kernels_now: list[int | None] = []
    variants_now: list[int | None] = []
    busy_s: tuple[float, float] | None = None


class PlanRepeat(Struct, forbid_unknown_fields=True):
    """A fold: `size` kernels from kernel `first` on, repeated `times` times one after the other.
    `title` names the kernels of one time, without those that only draw random numbers, unless all
    do. `module` is the path of the user's module that all belong to ("": none); a module that is
    folded comes once, and so do the kernels that draw weights."""

    first: int
    size: int
    times: int
    title: str
    module: str


class PlanRead(Struct, array_like=True, forbid_unknown_fields=True):
    """A value that a kernel reads from memory, as a list: the earlier kernel that stored it
    (`source`), the reader, its node in the record, its bytes."""

    source: int
    reader: int
    node: int
    bytes: int


class PlanRun(Struct, forbid_unknown_fields=True):
    """A run of a kernel with the default opts and warm caches. `like` is the first kernel that is
    equal; a kernel without times of its own has those of that one. `spread` is a share of the
    median. `busy_s` is the time of a run in which other programs had the cores in every sample,
    which is no measured time. `is_certain`: nothing speaks against the measured time. Units:
    seconds, null where the time is not known."""

    like: int
    predicted_s: float | None
    measured_s: float | None
    spread: float | None
    busy_s: float | None = None
    is_certain: bool = True


class MemoryValue(Struct, forbid_unknown_fields=True):
    """A value that a schedule computes: its node in the record, its name, its bytes, and whether it
    is a result, which stays, or is on the way to one."""

    node: int
    name: str
    bytes: int
    is_result: bool


class MemoryStep(Struct, forbid_unknown_fields=True):
    """The memory while a kernel runs (null: a copy to a device): the live values, as places in the
    list of values, their bytes, and the bytes that are allocated for such values."""

    kernel: int | None
    bytes: int
    allocated: int
    values: list[int]


class MemoryChart(Struct, forbid_unknown_fields=True):
    """The memory of a schedule, step by step, if only its results are read later. `peak` is the
    place of the first step with most live bytes (None: there are no steps); `words` describe it.
    `budget` says what a budget of memory did to the plan ("": it has none)."""

    values: list[MemoryValue]
    steps: list[MemoryStep]
    peak: int | None
    words: str
    budget: str = ""

    @property
    def sentence(self) -> str:
        """The words, and those of the budget."""
        return "; ".join(filter(None, (self.words, self.budget)))


class PhaseRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A phase of kernels: its letter, and the colours that its kernels have in turn."""

    name: str
    letter: str
    colours: list[str]


class ActivationRow(Struct, forbid_unknown_fields=True):
    """A value that a kernel of the forward stores and kernels of the backward read: its node in the
    record, its name, the module and the line that made it, its kernel, its readers, its bytes."""

    node: int
    name: str
    module: str
    line: int | None
    kernel: int
    readers: list[int]
    bytes: int


class PlanPicture(Struct, forbid_unknown_fields=True):
    """The tensor graph, drawn and cut into kernels; without nodes where it is too large. `repeats`
    are in the order of their kernels, outer ones before inner ones; `runs` has a row for each
    kernel. `phases` are those of the kernels ([]: nothing is trained, and no weights are drawn),
    `activations` begin with the largest. `hint` says what would make a simpler plan ("": nothing is
    known). `check` is the verdict on all kernels and results (null: not checked). `by_hand` are the
    reader's choices."""

    width: float
    height: float
    nodes: list[PlanNode]
    edges: list[PlanEdge]
    regions: list[PlanRegion]
    decisions: list[DecisionRow]
    compared: ComparedPlans | None
    repeats: list[PlanRepeat]
    reads: list[PlanRead]
    runs: list[PlanRun]
    phases: list[PhaseRow]
    activations: list[ActivationRow]
    by_hand: list[HandChoiceRow]
    hint: str = ""
    check: CheckRow | None = None
