"""Exploration: what became of some tensors on the way to kernels, as a value to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from workbench.base.display import Displayed
from workbench.base.errors import WorkbenchError
from workbench.base.files import write_whole
from workbench.base.source import Calls, SourceLine
from workbench.base.unpicklable import Unpicklable
from workbench.check.bisect import Culprit
from workbench.check.node_values import NodeValues, values_of_tensor
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.explain import Explanation
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.schedule.item import ScheduleItem
from workbench.kernel.kernel import NOWHERE, Kernel
from workbench.tensor.tensor import Tensor
from workbench.viz import export
from workbench.viz.bisect import bisected
from workbench.viz.forced_decisions import forced_by
from workbench.viz.model.decisions import decisions_text
from workbench.viz.model.graph import TensorGraph, tensor_graph
from workbench.viz.model.lines import UserLines
from workbench.viz.model.passes import pass_rows, passes_text
from workbench.viz.model.why import why_not
from workbench.viz.model.words import (
    bytes_text,
    error_text,
    figure_text,
    kernel_number,
    plural,
)
from workbench.viz.planned import planned
from workbench.viz.text.pane import Pane
from workbench.viz.text.tables import Decisions, PassTable
from workbench.viz.view import checked_view

if TYPE_CHECKING:
    import graphviz
    import networkx

MOST_KERNELS = 12
"""Kernels shown in full; further ones are counted or listed by title."""


class Page(Protocol):
    """What shows explorations in a notebook or a file. `explore` hands one in, so that this file
    knows none."""

    def baseline(self, ex: Exploration, name: str, run: Callable[[], object]) -> None:
        """Add a row to compare with."""

    def select(self, ex: Exploration, view: dict[str, Any]) -> None:
        """Show something in the widgets of an exploration."""

    def to_html(self, ex: Exploration) -> str:
        """Return it as one file."""

    def to_widget(self, ex: Exploration) -> Any:
        """Return it as a widget."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Exploration(Unpicklable, Displayed):
    """The kernels that compute `tensors`, un-optimised, and how scheduling came to them.

    `kernels` are in execution order; `items` are those and the copies between devices;
    `decisions` say of every value why it is stored or fused; `passes` are the scheduler's;
    `outputs` are the tensors' nodes as scheduled; `line` is the user's, `lines` has those of
    every value, as they are seen from the code that `asked`; `page` shows it in a notebook;
    `show` names the one pane that is shown and printed ("": all); `forced` has the decisions
    that were not left to the scheduler (see `replan`), and `rules_off` the rules that it does
    without. Where
    a rule of the scheduler raises, `error` says so: there are no kernels then, and `passes` are
    those up to the one that failed.
    """

    tensors: tuple[Tensor, ...]
    kernels: tuple[Kernel, ...]
    items: tuple[ScheduleItem, ...]
    decisions: Decisions
    passes: PassTable
    outputs: tuple[UOp, ...]
    page: Page
    line: SourceLine | None = None
    lines: UserLines = field(default_factory=UserLines, repr=False)
    asked: Calls = ()
    show: str = ""
    forced: Mapping[UOp, bool] = field(default_factory=dict)
    rules_off: tuple[str, ...] = ()
    error: Exception | None = None
    held: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What displaying it keeps: it lives as long as this does."""

    @property
    def loops(self) -> Pane:
        """The loop nests of the kernels, alone."""
        return Pane(self, "loops")

    @property
    def plan(self) -> Pane:
        """The tensor graph cut into kernels, and why it is cut there, alone."""
        return Pane(self, "plan")

    @property
    def results(self) -> Pane:
        """The forms of the kernels that were tried here, with times and checks, alone."""
        return Pane(self, "results")

    def rewrites(self, kernel: Kernel | int | None = None) -> Pane:
        """Return passes and rewrites of a kernel (its place, or a form of it; None: of all).

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return Pane(self, "rewrites", None if kernel is None else self.form(kernel))

    def code(self, kernel: Kernel | int | None = None) -> Pane:
        """Return the C of a kernel (its place, or a form of it; None: of all).

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return Pane(self, "code", None if kernel is None else self.form(kernel))

    def form(self, kernel: Kernel | int) -> tuple[int, Kernel]:
        """Return (its place, the kernel) of a kernel here (its place, or a form of it).

        Places are those of `.kernels`, from 0; in words and pictures kernels count from 1.

        Errors: WorkbenchError for a kernel of another exploration.
        """
        place = self._place(kernel)
        return place, kernel if isinstance(kernel, Kernel) else self.kernels[place]

    def replan(self, changes: Mapping[UOp | Tensor, bool | None]) -> Exploration:
        """Return the Exploration with some decisions forced: a value is stored (True: "cut
        here"), fused into every kernel that reads it (False: "fuse anyway"), or left to the
        scheduler again (None). A value is a node of `decisions`, or a Tensor.

        Errors: WorkbenchError where that cannot be: for what is asked for as a result, copied
        to a device, or computed nowhere.
        """
        forced = forced_by(changes, self.forced, self.outputs)
        return of(
            self.tensors, self.page, forced, self.rules_off, self.show, self.asked
        )

    def bisect(self, kernel: Kernel | int | None = None) -> Culprit | None:
        """Return the first rewrite after which a value is wrong, from the tensors to the program
        of a kernel (its place, or itself with any opts; None: of all); None where none is.

        Errors: WorkbenchError for a kernel of another exploration, and where tensors or kernel
        are too large to be computed again and again.
        """
        chosen = range(len(self.kernels)) if kernel is None else [kernel]
        for place, form in map(self.form, chosen):
            culprit = bisected(self.passes, self.items, form, place)
            if culprit is not None:
                return culprit
        return None

    def why_not(
        self, rule: Rule | str, node: UOp | Tensor, of_pass: str = ""
    ) -> Explanation:
        """Return why a rule (itself, or its name) fires, or does not fire, at a node; printed,
        the rule with the part that failed marked. `of_pass` is the name of a pass: there an
        earlier rule may come first. Of an opt: `kernel.why_not`.

        Errors: WorkbenchError for a rule that does not exist, and for what is no node.
        """
        return why_not(rule, node.uop if isinstance(node, Tensor) else node, of_pass)

    def values(self, node: UOp | Tensor, at: Mapping[str, int] = NOWHERE) -> NodeValues:
        """Return the values of a node of the tensor level, on the expression's own data. `at`
        fixes positions by axis: {"0": 3}. Of a kernel's node: `kernel.values`.

        Errors: WorkbenchError where the tensors are too large, and for a position that is not
        there.
        """
        return values_of_tensor(node.uop if isinstance(node, Tensor) else node, at)

    def _place(self, kernel: Kernel | int) -> int:
        """Return the place of a kernel, or of the kernel that a form of it was made from."""
        originals = [k.original for k in self.kernels]
        place: Any = kernel
        if isinstance(kernel, Kernel):
            place = (*originals, kernel.original).index(kernel.original)
        elif isinstance(kernel, np.integer):
            place = int(kernel)
        if type(place) is int and 0 <= place < len(originals):
            return place
        last = len(originals) - 1
        because = f"it has {plural(last + 1, 'kernel')}"
        hint = f"a number, 0 to {last}, or one of .kernels" if last > 0 else "0"
        hint = hint if originals else "an expression that has something to compute"
        raise WorkbenchError("this is no kernel of this exploration", because, hint)

    def baseline(self, name: str, run: Callable[[], object]) -> Exploration:
        """Add a row to compare with: `run()` is timed in this process, in turns with the pinned
        variant. Returns the exploration itself."""
        self.page.baseline(self, name, run)
        return self

    def select(self, **view: Any) -> None:
        """Show something in the notebook's workbench of this exploration: mode ("tune",
        "rewrites" or "plan"), kernel (or its place), variant, node, line (places in the
        record), axis (a name), language ("C", "LLVM", "asm" or "IR").

        Errors: WorkbenchError for anything else.
        """
        self.page.select(self, checked_view(self, view))

    def to_html(self, path: str | Path) -> Path:
        """Write the workbench as one file that opens offline; return its path.

        Errors: WorkbenchError where the file cannot be written; what was there stays.
        """
        return write_whole(path, lambda: self.page.to_html(self))

    def to_widget(self) -> Any:
        """Return the workbench as a Jupyter widget, to be put beside others."""
        return self.page.to_widget(self)

    @property
    def graph(self) -> TensorGraph:
        """The tensor graph as plain data, each node with the kernels that compute it."""
        titles = [k.title for k in self.kernels]
        return tensor_graph(self.outputs, self.items, titles, self.lines)

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return the tensor graph as a networkx.DiGraph.

        Nodes have op, dtype, shape, label, arg, line, kernels (their places), kernel (the first
        of them or None) and title; edges have position: which source of its target it is.
        """
        return export.to_networkx(self.graph)

    def to_graphviz(self) -> graphviz.Digraph:
        """Return the tensor graph as a graphviz.Digraph, kernels as clusters.

        Its `.source` is DOT text; only drawing it needs Graphviz's own `dot`.
        """
        return export.to_graphviz(self.graph)

    @property
    def headline(self) -> str:
        """How many kernels and copies, on which devices."""
        copies = len(self.items) - len(self.kernels)
        devices = dict.fromkeys(t.device for t in self.tensors)
        words = [plural(len(self.kernels), "kernel")]
        words += [plural(copies, "copy")] if copies else []
        failed = "" if self.error is None else ": scheduling failed"
        return ", ".join([*words, "on " + " and ".join(devices)]) + failed

    @property
    def nothing_to_do(self) -> str:
        """Why there is no kernel; "" where there is one."""
        if self.kernels:
            return ""
        if self.error is not None:
            failed = [record.name for record in self.passes if record.error]
            where = f" in pass {failed[-1]}" if failed else ""
            return f"Scheduling failed{where}.\n{error_text(self.error)}"
        if self.items:
            return "Nothing to compute: the values are only copied to the device."
        return "Nothing to compute: the values are constants, or in memory already."

    def __str__(self) -> str:
        if self.show:
            return str(Pane(self, self.show))
        line = "" if self.line is None else f"{self.line.text}   ({self.line})\n"
        parts = [f"{line}{self.headline}"]
        if self.nothing_to_do:
            parts.append(self.nothing_to_do)
        parts += [_kernel_text(i, k) for i, k in enumerate(self.kernels[:MOST_KERNELS])]
        if len(self.kernels) > MOST_KERNELS:
            parts.append(
                f"and {plural(len(self.kernels) - MOST_KERNELS, 'more kernel')}"
            )
        if self.decisions:
            parts.append("decisions\n" + _indented(decisions_text(self.decisions)))
        parts.append("passes\n" + _indented(passes_text(pass_rows(self.passes))))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        titles = ", ".join(k.title for k in self.kernels)
        return f"Exploration({self.headline}{': ' if titles else ''}{titles})"


def of(
    tensors: tuple[Tensor, ...],
    page: Page,
    forced: Mapping[UOp, bool],
    rules_off: tuple[str, ...] = (),
    show: str = "",
    viewer: Calls = (),
) -> Exploration:
    """Return the Exploration of `tensors` as scheduled now; `viewer` are the calls that led
    here."""
    plan = planned(tensors, forced, rules_off, viewer)
    return Exploration(
        tensors, tuple(plan.kernels), tuple(plan.items), Decisions(plan.decisions),
        PassTable(plan.passes), tuple(plan.outputs), page, plan.line, plan.lines, viewer, show,
        forced, rules_off, plan.error,
    )  # fmt: skip


def _kernel_text(place: int, kernel: Kernel) -> str:
    where = "" if kernel.line is None else f"  {kernel.line}"
    figures = kernel.estimates
    work = f"{figure_text(figures.flops)} operations, {bytes_text(figures.bytes)}"
    head = f"kernel {kernel_number(place)}: {kernel.title}{where}  ({work})"
    return f"{head}\n{_indented(str(kernel))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
