"""Saved data of an expression: the user's variants with their results, in the user's cache; and the
exploration as a file for others, with the expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from workbench.base.source import ModuleCall
from workbench.base.typed import Amount, Count
from workbench.viz.schema.record import BaselineRow
from workbench.viz.schema.variant import CheckRow, ErrorWords, SearchRow, TimingRow


class SavedEdit(Struct, forbid_unknown_fields=True):
    """Source that was edited by hand, the device that runs it, and its verdict or its error;
    `level` is that of IR text ("": source text)."""

    device: str
    text: str
    check: CheckRow | None
    error: ErrorWords | None
    level: Literal["", "tree", "linear"] = ""


class SavedVariant(Struct, forbid_unknown_fields=True):
    """A variant: `opts` on a kernel of the plan, or source edited by hand. `timings` are by device;
    `origins` are digests of the notebooks that have it. `plan_off` are the rules that are off in
    the plan, `rules_off` those that are off when the variant is compiled. `parent` is a digest of
    the variant that it was made from ("": the kernel without opts). `searches` are those that found
    it; older files have one, as `search`. Units: `when` it was made, in seconds of the epoch."""

    kernel: int
    opts: list[str]
    name: str = ""
    note: str = ""
    search: SearchRow | None = None
    pinned: bool = False
    timings: dict[str, TimingRow] = {}
    when: int = 0
    edited: SavedEdit | None = None
    origins: list[str] = []
    rules_off: list[str] = []
    plan_off: list[str] = []
    parent: str = ""
    searches: list[SearchRow] = []

    def __post_init__(self) -> None:
        if self.search is not None:
            self.searches, self.search = [self.search, *self.searches], None


class SavedVariants(Struct, forbid_unknown_fields=True):
    """The file of an expression's variants, each a SavedVariant: rows are read one by one, so that
    one of another version hides no other. Another format will have another file name."""

    v: Literal[1]
    variants: list[Any]


class SavedLine(Struct, forbid_unknown_fields=True):
    """A line of the user's code; `inner` are the places of the lines that it called."""

    name: str
    line: int
    text: str
    inner: list[Count]


class FileVariant(Struct, forbid_unknown_fields=True):
    """A variant in a file: `parent` is a place in the list of variants; `checks` are by device."""

    parent: int | None
    rules_off: list[str]
    checks: dict[str, CheckRow]
    saved: SavedVariant


class SavedShare(Struct, array_like=True, forbid_unknown_fields=True):
    """What a rule of a gradient pass handed on, as a list of places of nodes: from the gradient `g`
    of `node`, its `source` gets `value`."""

    node: Count
    g: Count
    source: Count
    value: Count


class SavedGradients(Struct, forbid_unknown_fields=True):
    """A gradient pass: the places of its root, of the root's own gradient, and of each target with
    its gradient; and the shares that its rules handed on, in order. Units: `seconds` that it
    took."""

    root: Count
    seed: Count
    gradients: list[tuple[Count, Count]]
    shares: list[SavedShare]
    seconds: Amount

    def places(self) -> Iterator[int]:
        """Yield the places of all nodes of the pass."""
        yield from (self.root, self.seed, *chain.from_iterable(self.gradients))
        for share in self.shares:
            yield from (share.node, share.g, share.source, share.value)


class SavedChoices(Struct, forbid_unknown_fields=True):
    """The choices by hand but those to store or fuse a value. Values are places among the sources
    of the root, the first of which is the first value after the tensors."""

    values: Count
    recompute: list[tuple[Count, list[Count]]] = []
    split: list[tuple[Count, Count]] = []
    before: list[tuple[Count, Count]] = []
    in_place: list[tuple[Count, Count | None]] = []

    def places(self) -> Iterator[int]:
        """Yield the places of all values."""
        yield from chain.from_iterable(((node, *own) for node, own in self.recompute))
        yield from (node for node, _ in self.split)
        yield from chain.from_iterable(self.before)
        for node, over in self.in_place:
            yield from (node, node if over is None else over)


class SavedStep(Struct, forbid_unknown_fields=True):
    """Choices by hand about the values of a plan. `graph` is a digest of the graph that it
    computes, and `nodes` are the places of the values in it: first those that are `forced`, then
    those that the other choices are about."""

    graph: str
    nodes: list[Count]
    forced: list[bool]
    by_hand: SavedChoices | None = None

    @property
    def count(self) -> int:
        """The number of choices."""
        others = self.by_hand
        if others is None:
            return len(self.forced)
        of_graph = len(others.recompute) + len(others.split)
        return len(self.forced) + of_graph + len(others.before) + len(others.in_place)


class SavedPlan(Struct, forbid_unknown_fields=True):
    """A plan by hand of a notebook. Where some choices name values that others make, there are two
    `steps`: the second is about the plan that the first leads to. `rules_off` are off in the plan,
    `origins` are digests of the notebooks that have it. Units: `when` the last choice was made, in
    seconds of the epoch."""

    id: str
    when: Count
    steps: list[SavedStep]
    rules_off: list[str]
    origins: list[str]


class SavedPlans(Struct, forbid_unknown_fields=True):
    """The file of an expression's plans by hand, each a SavedPlan, read as in SavedVariants."""

    v: Literal[1]
    plans: list[Any]


class SavedBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """A budget of memory, as `MemoryBudget` has it."""

    limit_bytes: Count
    peak_bytes: tuple[Count, Count]
    kernels: tuple[Count, Count]
    predicted_s: tuple[Amount | None, Amount | None]
    recomputed: Count
    moved: Count


class SavedExploration(Struct, forbid_unknown_fields=True):
    """The file of an exploration, without the tensors' data; a later format has another `v`.

    `graph` is IR text. The sources of its root are the tensors, with an entry in `devices` for each
    (null: any), then the values that are `forced`, then others that choices `by_hand` are about
    (null: there are no others), then the nodes of the `gradients`. Nodes are
    named by their places in the order of the graph. Lists with an entry for each node in that
    order: `node_lines` has places in `lines`, `node_names` the user's names, `node_modules` paths
    of modules, each with its method, and `node_phases` the phase of training ("": none; no entries
    where nothing is trained). `plan` is a hash of the kernels, `device` the device that the
    variants were on, `cpu` and `cores` the machine of their times, `line` the place of the line
    that explored a model (null: there is none). `budget` is that of memory which the plan keeps to
    (null: there is none). Units: `when` is in seconds of the epoch.
    """

    format: Literal["workbench exploration"]
    v: Literal[1]
    program: str
    when: Annotated[int, Meta(ge=0, lt=1 << 37)]
    cpu: str
    cores: int
    graph: str
    devices: list[str | None]
    forced: list[bool]
    rules_off: list[str]
    show: str
    lines: list[SavedLine]
    node_lines: list[list[Count]]
    node_names: list[list[str]]
    node_modules: list[list[ModuleCall]]
    plan: str
    device: str
    variants: list[FileVariant]
    baselines: list[BaselineRow]
    node_phases: list[str] = []
    gradients: list[SavedGradients] = []
    by_hand: SavedChoices | None = None
    line: Count | None = None
    budget: SavedBudget | None = None
