"""The plan of a record: the tensor graph as it is drawn, and why it is cut into kernels there."""

from __future__ import annotations

from msgspec import Struct

from workbench.viz.schema.variant import NamedNumber


class PlanNode(Struct, forbid_unknown_fields=True):
    """A box of the picture: `x` and `y` are its left upper corner, `n` its node in the record."""

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


class RoutePoint(Struct, array_like=True, forbid_unknown_fields=True):
    """A point of an edge, as a list."""

    x: float
    y: float


class PlanEdge(Struct, forbid_unknown_fields=True):
    """An edge of the picture: `a` and `b` are places in the list of the plan's nodes."""

    a: int
    b: int
    route: list[RoutePoint]
    cut: bool
    bytes: int


class PlanRegion(Struct, forbid_unknown_fields=True):
    """The area of a kernel, as the path of an SVG picture."""

    kernel: int
    title: str
    path: str
    colour: str


class DecisionRow(Struct, forbid_unknown_fields=True):
    """Why a value is stored or fused; `figures` are those that decided, by name, and `costs` what
    they say, as sentences. `value` says what it is, `name` does too, but where a kernel ends with
    it: there it is what that computes. `python` prints it, after the lines of the expression."""

    node: int
    name: str
    value: str
    stored: bool
    reason: str
    figures: list[NamedNumber]
    costs: str
    kernel: int | None
    forced: bool
    asked: bool
    python: str


class ComparedPlans(Struct, forbid_unknown_fields=True):
    """This plan beside the one before it: kernels and seconds are those of both. `asked` and
    `moved` are places in the list of decisions, `told` says which is the faster, and `verdict` says
    it as a sentence."""

    kernels: tuple[int, int]
    asked: int | None
    moved: list[int]
    seconds: tuple[float, float] | None
    told: str
    verdict: str


class PlanPicture(Struct, forbid_unknown_fields=True):
    """The tensor graph, drawn and cut into kernels; without nodes where it is too large."""

    width: float
    height: float
    nodes: list[PlanNode]
    edges: list[PlanEdge]
    regions: list[PlanRegion]
    decisions: list[DecisionRow]
    compared: ComparedPlans | None
