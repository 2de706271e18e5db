"""The plan of a record: the tensor graph as it is drawn, and the reasons of its cuts."""

from __future__ import annotations

from msgspec import Struct

from workbench.viz.schema.variant import CheckRow, NamedNumber


class PlanNode(Struct, forbid_unknown_fields=True):
    """A box of the picture: `x` and `y` are its left upper corner, `n` its node in the record.
    `patch` is the ground behind it, as an SVG path; "" outside of all kernels. `step` is the
    number of decisions after which it is known in which kernels it is."""

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
    the ground along it, where both are in one kernel, as an SVG path."""

    a: int
    b: int
    route: list[RoutePoint]
    cut: bool
    bytes: int
    band: str


class PlanRegion(Struct, forbid_unknown_fields=True):
    """The area of a kernel, whose ground is the patches and bands of what it computes; a node of
    several kernels stands on that of the first."""

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
    """Why a value is stored or fused; `estimates` are those that decided, by name, `choices` what
    was compared, and `costs` what they say, as sentences. `tradeoff`: it is fused although that
    costs something. `rank`: its place among the decisions that explain why there are not more
    kernels, from 0, the most interesting first; None: it explains nothing. `value` says what it is,
    `name` does too, but where a kernel ends with it: there it is what that computes.
    `is_requested`: a result, or asked to be stored. `is_copy`: it is only copied to a device.
    `python` prints it, after the lines of the expression."""

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


class ComparedPlans(Struct, forbid_unknown_fields=True):
    """This plan beside the one before it: kernels and seconds are those of both. `change` and
    `moved` are places in the list of decisions, `speed` says which is the faster, and `verdict`
    says it as a sentence. `number` is this plan's own; `kernels_now` and `variants_now` have the
    places here of the kernels and variants of the plan before, null where there is none."""

    kernels: tuple[int, int]
    change: int | None
    moved: list[int]
    seconds: tuple[float, float] | None
    speed: str
    verdict: str
    number: int = -1
    kernels_now: list[int | None] = []
    variants_now: list[int | None] = []


class PlanRepeat(Struct, forbid_unknown_fields=True):
    """`size` kernels from kernel `first` on, that come `times` times, one after the
    other; `title` names those of one time, without those that only draw random numbers, unless all
    do. `module` is the path of the user's module that they are
    all of, "" where there is none; a module that is folded comes once."""

    first: int
    size: int
    times: int
    title: str
    module: str


class PlanRead(Struct, array_like=True, forbid_unknown_fields=True):
    """A value that a kernel reads from memory, where an earlier one stored it, as a list: both
    kernels, its node in the record, its bytes."""

    source: int
    reader: int
    node: int
    bytes: int


class PlanRun(Struct, forbid_unknown_fields=True):
    """A run of a kernel with the default opts, warm. `like` is the first kernel that is equal: its
    times are those of all of them that have none of their own. `spread` is a share of the median.
    Units: seconds, null where none is known."""

    like: int
    predicted_s: float | None
    measured_s: float | None
    spread: float | None


class MemoryValue(Struct, forbid_unknown_fields=True):
    """A value that a schedule computes: its node in the record, what it is called, its bytes, and
    whether it is a result, which stays, or is on the way to one."""

    node: int
    name: str
    bytes: int
    is_result: bool


class MemoryStep(Struct, forbid_unknown_fields=True):
    """The memory while a kernel runs (null: a copy to a device): the values that live then, as
    places in the list of values, their bytes, and all that is allocated for such values."""

    kernel: int | None
    bytes: int
    allocated: int
    values: list[int]


class MemoryChart(Struct, forbid_unknown_fields=True):
    """The memory of a schedule, step by step, were nothing else to be read later. `peak` is the
    place of the first step at which most bytes live, None without steps; `words` say it as
    sentences."""

    values: list[MemoryValue]
    steps: list[MemoryStep]
    peak: int | None
    words: str


class PhaseRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A phase of training: its letter, and the colours that its kernels have in turn."""

    name: str
    letter: str
    colours: list[str]


class ActivationRow(Struct, forbid_unknown_fields=True):
    """A value that a kernel of the forward stores and kernels of the backward read: its node in the
    record, what it is called, where it was made in the user's model and code, its bytes."""

    node: int
    name: str
    module: str
    line: int | None
    kernel: int
    readers: list[int]
    bytes: int


class PlanPicture(Struct, forbid_unknown_fields=True):
    """The tensor graph, drawn and cut into kernels; without nodes where it is too large. `repeats`
    are in the order of their kernels, outer ones before those in them; `runs` has a row for each
    kernel. `phases` are those that kernels belong to, `activations` the largest first; none where
    nothing is trained. `hint` says what would make a simpler plan, "" where nothing is known.
    `check` is the verdict on all kernels and results (null: not checked)."""

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
    hint: str = ""
    check: CheckRow | None = None
