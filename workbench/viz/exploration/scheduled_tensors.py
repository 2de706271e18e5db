"""ScheduledTensors: the kernels of some tensors, and the plan that led to them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, integer_of, require
from workbench.base.source import SourceLine
from workbench.check.bisect import FirstWrongRewrite
from workbench.check.node_values import NodeValues, values_of_tensor
from workbench.execution.buffers import Array
from workbench.execution.memory_plan import MemoryPlan, alignment_of, plan_memory, why_not_over
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.explain import Explanation
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND, HandChoices, stored_by, value_text
from workbench.ir.schedule.plan import ScheduleItem, base
from workbench.kernel.compiled import budget
from workbench.kernel.kernel import NO_POSITIONS, Kernel
from workbench.kernel.run import ScheduleRun
from workbench.search.model_search import ModelKernel, ModelSearch, Report, search_model
from workbench.search.tuning import default_path
from workbench.tensor.tensor import Tensor
from workbench.viz import export
from workbench.viz.exploration.display import Display
from workbench.viz.exploration.node_checks import BUDGET_S, NodeChecks, checks_of_nodes
from workbench.viz.exploration.planned import Expression
from workbench.viz.exploration.questions import Checks, bisected, checks_of
from workbench.viz.exploration.tables import Decisions, KernelTuple, PassTable
from workbench.viz.export import TensorGraph, tensor_graph
from workbench.viz.model.lines import HERE, NOBODY, FileOrigin, UserLines, Viewer
from workbench.viz.model.passes import why_not
from workbench.viz.model.phases import WEIGHTS
from workbench.viz.model.words import error_text, plural

if TYPE_CHECKING:
    import graphviz
    import networkx


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ScheduledTensors:
    """The un-optimised kernels that compute `tensors`, with the scheduler's decisions and passes.

    `expression` is that of the tensors when they were explored. `kernels` are in execution order;
    `items` are the kernels and the copies between devices; `decisions` say why each value is stored
    or fused; `passes` are the scheduler's; `outputs` are the tensors' scheduled nodes. `line` is a
    line of the user; `lines` has the lines and names of all values, which come from the user's code
    (`viewer`). `choices` are the reader's, by hand, about values of a graph without them, which
    `originals` has for each value of a graph that they changed. `rules_off` are the rules that are
    switched off.
    If a rule of the scheduler fails, `error` is set, there are no kernels, and `passes` end with
    the one that failed. `origin` says where the tensors were loaded from, `on` is the device that
    was asked for ("": none); `runs` compute the results, a run for each device. While a question of
    `display` waits for a guess, the tables that would answer it print the question.
    """

    tensors: tuple[Tensor, ...]
    expression: Expression
    kernels: KernelTuple
    items: tuple[ScheduleItem, ...]
    decisions: Decisions
    passes: PassTable
    outputs: tuple[UOp, ...]
    line: SourceLine | None = None
    lines: UserLines = field(default_factory=UserLines, repr=False)
    viewer: Viewer = NOBODY
    choices: HandChoices = NOTHING_BY_HAND
    rules_off: tuple[str, ...] = ()
    error: Exception | None = None
    origin: FileOrigin = HERE
    on: str = ""
    runs: tuple[ScheduleRun, ...] = field(default=(), repr=False)
    originals: Mapping[UOp, UOp] = field(default_factory=dict, repr=False)
    display: Display = field(default_factory=Display, kw_only=True, repr=False)

    @property
    def forced(self) -> Mapping[UOp, bool]:
        """The values that the reader stores (True) or fuses (False)."""
        return self.choices.stored

    @property
    def device(self) -> str:
        """The device of the kernels: the one that was asked for, or else the first tensor's."""
        return self.on or self.tensors[0].device

    @property
    def budget_words(self) -> str:
        """What its budget of memory did to the plan; "" if it has none."""
        return ""

    @property
    def elsewhere(self) -> str:
        """A notice about a machine that is not here; "" if the kernels run here."""
        return Device[self.device].notice

    def kernel_at(self, kernel: Kernel | int) -> tuple[int, Kernel]:
        """Return the position and the Kernel of `kernel`, which is a position or a variant.

        Positions are those in `.kernels`, from 0; in text and pictures kernels count from 1.

        Errors: WorkbenchError for a kernel of another exploration.
        """
        place = self._place(kernel)
        return place, kernel if isinstance(kernel, Kernel) else self.kernels[place]

    def _place(self, kernel: Kernel | int) -> int:
        """Return the position of a kernel, or of the kernel of a variant."""
        originals = [k.original for k in self.kernels]
        if isinstance(kernel, Kernel):
            kernel = (*originals, kernel.original).index(kernel.original)
        place = integer_of(kernel)
        if place is not None and 0 <= place < len(originals):
            return place
        last = len(originals) - 1
        because = f"it has {plural(last + 1, 'kernel')}"
        hint = f"a number, 0 to {last}, or one of .kernels" if last > 0 else "0"
        hint = hint if originals else "an expression that has something to compute"
        raise WorkbenchError("this is not a kernel of this exploration", because, hint)

    def check(self) -> Checks:
        """Return the verdicts on all kernels, with the opts that they run with, and on the results
        as a whole: each is compared with what the expression means before any rule. They are true
        if all are right, and print as a line each.

        Errors: WorkbenchError if there are no kernels because a rule failed, and if the expression
        was loaded without its data.
        """
        self._require_data("cannot check this exploration")
        return checks_of(self.kernels, self.runs, self.on)

    @property
    def memory_plan(self) -> MemoryPlan:
        """The memory of the values while the kernels run, if only the results are read later."""
        inner = self.inner_buffers
        return plan_memory(self.items, inner, over=self._over(inner))

    def require_memory(self) -> None:
        """Check the choices of memory. Errors: WorkbenchError for one that is impossible."""
        self._over(self.inner_buffers)

    @property
    def inner_buffers(self) -> set[UOp]:
        """The BUFFERs of the values that are no results."""
        results = {base(output) for output in self.outputs}
        return {b for node, b in stored_by(self.items).items() if node not in results}

    def _over(self, inner: Collection[UOp]) -> dict[UOp, UOp | Literal[False]]:
        """Return the BUFFER that the value of a BUFFER is written over, by the choices by hand.

        Errors: WorkbenchError for a choice that is impossible.
        """
        images = {original: node for node, original in self.originals.items()}
        stored = stored_by(self.items)
        over: dict[UOp, UOp | Literal[False]] = {}
        for value, other in self.choices.in_place.items():
            node = images.get(value, value)
            if node not in stored:
                what = f"cannot choose the memory of {value_text(value)}"
                because = "no kernel stores it in this plan"
                hint = "a stored value, or in_place={value: None}, to undo"
                raise WorkbenchError(what, because, hint)
            if other is False:
                over[stored[node]] = False
                continue
            source = images.get(other, other)
            old = stored.get(source, source)
            what = f"cannot write {value_text(value)} over {value_text(other)}"
            because = "no kernel stores the other in this plan"
            if old.op is Ops.BUFFER:
                because = why_not_over(self.items, inner, stored[node], old)
            if not because and old in over.values():
                because = "another value is written over it"
            if because:
                raise WorkbenchError(what, because, "in_place={value: False}, or another value")
            over[stored[node]] = old
        return over

    def run(self, device: str = "") -> list[Array]:
        """Return the values of the tensors, computed by the kernels in their order, on `device`
        ("": the exploration's own) and in the memory of `memory_plan`: where it writes a value over
        another one, the run does. No tensor's memory is written.

        Errors: WorkbenchError if there are no kernels because a rule failed, and if the expression
        was loaded without its data.
        """
        self._require_data("cannot run this exploration")
        is_own = isinstance(device, str) and not device
        on = self.device if is_own else Device.canonical(device)
        places = self.expression.places_by_device()
        alignment = alignment_of(Device.runner(on))
        arrays: list[Array] = [np.empty(0)] * len(self.tensors)
        inner = self.inner_buffers
        over = self._over(inner)
        for run, own in zip(self.runs, places.values(), strict=True):
            plan = plan_memory(run.items, inner, lambda _: alignment, over=over)
            for place, array in zip(own, run.placed(on, plan), strict=True):
                arrays[place] = array.reshape(self.tensors[place].shape)
        return arrays

    def search(
        self,
        budget_s: float = 60.0,
        width: int = 2,
        path: str | os.PathLike[str] | None = None,
        executor: Any = None,
        progress: bool = True,
    ) -> ModelSearch:
        """Return the result of a search for faster opts of all kernels, and write these to a tuning
        file, with which `realize` and TinyJit run the kernels from then on.

            ex.search(budget_s=60)                          # workbench-tuning.jsonl of the folder
            ex.search(path="net.jsonl")                     # Context(TUNING="net.jsonl") uses it
            ex.search(executor=client)                      # Dask's client: its machines

        The time goes to the kernels whose runs can save most together; equal ones are searched
        once; what one needs is tried first for those of other sizes. Opts are written only if they
        are faster than the default ones beyond the noise, in a comparison at the end of each
        search. Ctrl-C ends it; what was found stays. `path` is the tuning file (None: that of the
        setting TUNING, or else of the folder of the model's file, or else of that of the script or
        notebook). `executor` is Dask's client or any of `concurrent.futures`: each of its machines
        gets rows of its own. With `progress` a line for each kernel is printed.

        Units: budget_s is seconds. Errors: WorkbenchError without kernels or with rules off;
        DeviceError for a machine without times of its own; FileError for a `path` that is not a
        tuning file; as `Kernel.search`.
        """
        require(progress, bool, "search: progress", "progress=False")
        report = print if progress else lambda result: None
        return search_all(self, report, budget_s, width, path, executor)

    def _require_data(self, what: str) -> None:
        """Errors: WorkbenchError if scheduling failed, or the tensors have no data."""
        if self.error is not None:
            because = "scheduling failed, so that nothing can run"
            raise WorkbenchError(what, because, "print(ex), which says where")
        for kernel in self.kernels:
            kernel.require_data(what)

    def check_nodes(self, budget_s: float = BUDGET_S) -> NodeChecks:
        """Return the first value of the expression, in its order, that differs from numpy's, with
        its line and its greatest error. Each value is computed by kernels as if it alone were asked
        for, and compared with the reference interpreter as `check` does it. `bisect` then says
        which rewrite it was.

        Units: budget_s is seconds, after which no further value is computed. Errors: as `check`.
        """
        seconds = budget(budget_s)
        if self.error is None:
            for kernel in self.kernels:
                kernel.require_data("cannot check these values")
        return checks_of_nodes(self.expression, self.lines, self.rules_off, self.on, seconds)

    def bisect(self, kernel: Kernel | int | None = None) -> FirstWrongRewrite | None:
        """Return the first rewrite after which a value is wrong, from the tensors to the program of
        a kernel (its position, or itself with any opts; None: of all); None if all are right.

        Errors: WorkbenchError for a kernel of another exploration, and if tensors or kernel are too
        large to be computed repeatedly.
        """
        places = range(len(self.kernels)) if kernel is None else [kernel]
        for place, variant in map(self.kernel_at, places):
            wrong_rewrite = bisected(self.passes, self.items, variant, place)
            if wrong_rewrite is not None:
                return wrong_rewrite
        return None

    def why_not(self, rule: Rule | str, node: UOp | Tensor, of_pass: str = "") -> Explanation:
        """Return why a rule (itself, or its name) fires, or does not fire, at a node; it prints as
        the rule, with the part that failed marked. `of_pass` is the name of a pass, in which an
        earlier rule may come first. For an opt: `kernel.why_not`.

        Errors: WorkbenchError for a rule that does not exist, and for a value that is not a node.
        """
        return why_not(rule, self._node(node), of_pass)

    def values(self, node: UOp | Tensor, at: Mapping[str, int] = NO_POSITIONS) -> NodeValues:
        """Return the values of a node of the tensor level, on the expression's own data. `at`
        fixes positions by axis: {"0": 3}. For a node of a kernel: `kernel.values`.

        Errors: WorkbenchError if the tensors are too large, and for a position out of range.
        """
        items = self.items
        stored = {b: n for i in items for b, n in zip(i.outputs, i.nodes, strict=True)}
        return values_of_tensor(self._node(node), at, stored)

    def _node(self, value: UOp | Tensor) -> UOp:
        return self.expression.node_of(value) if isinstance(value, Tensor) else value

    @property
    def shown_items(self) -> tuple[ScheduleItem, ...]:
        """The items of pictures: none while a question about the kernels waits for a guess."""
        return () if self.display.hides("kernels") else self.items

    @property
    def graph(self) -> TensorGraph:
        """The tensor graph as plain data: `.nodes`, `.edges`, and the `.titles` of the kernels."""
        return tensor_graph(self.outputs, self.shown_items, self._titles, self.lines)

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return the tensor graph as a networkx.DiGraph.

        Nodes have op, dtype, shape, label, arg, line, kernels (their positions), kernel (the first
        of them or None), title and stored_by; edges have positions (of the source among the sources
        of its target; two in x * x) and position (the first of them).
        """
        return export.to_networkx(self.graph)

    def to_graphviz(self) -> graphviz.Digraph:
        """Return the tensor graph as a graphviz.Digraph, kernels as clusters.

        Its `.source` is DOT text; only drawing it needs Graphviz's own `dot`.
        """
        return export.to_graphviz(self.outputs, self.shown_items, self._titles, self.lines)

    @property
    def _titles(self) -> list[str]:
        return [kernel.title for kernel in self.kernels] if self.shown_items else []

    @property
    def waits(self) -> str:
        """The text that is shown while a question waits for a guess; "" if none waits."""
        return self.display.waits

    @property
    def headline(self) -> str:
        """The numbers of kernels and copies, and their devices; while a question about them waits
        for a guess, that question."""
        return self.waits if self.display.hides("kernels") else self.kernel_counts

    @property
    def kernel_counts(self) -> str:
        """The numbers of kernels and copies, and their devices, even while a question waits."""
        copies = len(self.items) - len(self.kernels)
        devices = dict.fromkeys([self.on] if self.on else [t.device for t in self.tensors])
        weights = sum(kernel.phases == (WEIGHTS,) for kernel in self.kernels)
        words = [plural(len(self.kernels), "kernel") + (f" ({weights} of weights)" * bool(weights))]
        words += [plural(copies, "copy")] if copies else []
        failed = "" if self.error is None else ": scheduling failed"
        return ", ".join([*words, "on " + " and ".join(devices)]) + failed

    @property
    def nothing_to_do(self) -> str:
        """Why there is no kernel; "" if there is one."""
        if self.kernels:
            return ""
        if self.error is not None:
            failed = [record.name for record in self.passes if record.error]
            where = f" in pass {failed[-1]}" if failed else ""
            return f"Scheduling failed{where}.\n{error_text(self.error)}"
        if self.items:
            return "Nothing to compute: the values are only copied to the device."
        return "Nothing to compute: the values are constants, or in memory already."


def search_all(
    ex: ScheduledTensors,
    report: Report,
    budget_s: float,
    width: int = 2,
    path: str | os.PathLike[str] | None = None,
    executor: Any = None,
) -> ModelSearch:
    """Return what `ex.search` does; `report` is called with the result of each kernel, and ends the
    search as Ctrl-C does if it raises KeyboardInterrupt. Errors: as there."""
    what = "cannot search this exploration"
    if ex.rules_off:
        because = "it has rules off, and kernels run with all"
        raise WorkbenchError(what, because, "explore(..) without `without`")
    if not ex.kernels:
        raise WorkbenchError(what, "it has no kernels", "an expression to compute")
    require(path, (str, os.PathLike, NoneType), "search: path", '"net.jsonl"')
    kernels = [ModelKernel(k.original, k.device, title=k.title) for k in ex.kernels]
    path = default_path(ex.viewer.model_file) if path is None else path
    return search_model(kernels, budget_s, width, path, executor, report)
