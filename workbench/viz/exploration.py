"""Exploration: the kernels of some tensors and how they were scheduled, as a value to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from workbench.base.display import Displayed
from workbench.base.files import write_whole
from workbench.base.source import Calls
from workbench.base.unpicklable import Unpicklable
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.tensor.tensor import Tensor
from workbench.viz.forced_decisions import forced_by
from workbench.viz.model.words import plural
from workbench.viz.page.panel import pane_of
from workbench.viz.pane import Pane
from workbench.viz.planned import planned
from workbench.viz.record.variants import kernel_row, where
from workbench.viz.scheduled_tensors import ScheduledTensors
from workbench.viz.schema.messages import ViewState
from workbench.viz.tables import Decisions, PassTable
from workbench.viz.text.kernels import kernel_heading, work_text
from workbench.viz.view import checked_view

MOST_KERNELS = 12
"""Kernels shown in full; further ones are counted or listed by title."""


class Page(Protocol):
    """Shows explorations in a notebook or a file. `explore` passes one in, so that this file
    imports none."""

    def baseline(self, ex: Exploration, name: str, run: Callable[[], object]) -> None:
        """Add a row to compare with."""

    def select(self, ex: Exploration, view: ViewState) -> None:
        """Show something in the widgets of an exploration."""

    def to_html(self, ex: Exploration) -> str:
        """Return it as one file."""

    def to_widget(self, ex: Exploration) -> Any:
        """Return it as a widget."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exploration(ScheduledTensors, Unpicklable, Displayed):
    """ScheduledTensors to show: printed, in panes, in a notebook, as a file. `page` shows it;
    `show` names the one pane that is shown and printed ("": all)."""

    page: Page = field(kw_only=True)
    show: str = ""

    @property
    def loops(self) -> Pane:
        """The pane of the loop nests of the kernels."""
        return self.pane("loops")

    @property
    def plan(self) -> Pane:
        """The pane of the tensor graph, cut into kernels, with the reasons."""
        return self.pane("plan")

    @property
    def results(self) -> Pane:
        """The pane of the variants of the kernels, with times and checks."""
        return self.pane("results")

    def rewrites(self, kernel: Kernel | int | None = None) -> Pane:
        """Return passes and rewrites of a kernel (its place, or a variant of it; None: of all).

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return self.pane("rewrites", kernel)

    def code(self, kernel: Kernel | int | None = None) -> Pane:
        """Return the C of a kernel (its place, or a variant of it; None: of all).

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return self.pane("code", kernel)

    def pane(self, name: str, kernel: Kernel | int | None = None) -> Pane:
        """Return a pane by its name, of a kernel (its place, or a variant of it; None: of all):
        one of those above, or that of a panel of your own.

        Errors: WorkbenchError for a pane that does not exist, and for a kernel of another
        exploration.
        """
        pane_of(name, "ex.pane({})")
        return Pane(self, name, None if kernel is None else self.form(kernel))

    def replan(self, changes: Mapping[UOp | Tensor, bool | None]) -> Exploration:
        """Return the Exploration with some decisions forced: a value is stored (True: "cut
        here"), fused into every kernel that reads it (False: "fuse anyway"), or left to the
        scheduler again (None). A value is a node of `decisions`, or a Tensor.

        Errors: WorkbenchError where that is impossible: for a result, a value that is copied to a
        device, and one that no kernel computes.
        """
        forced = forced_by(changes, self.forced, self.outputs)
        return of(
            self.tensors, self.page, forced, self.rules_off, self.show, self.viewer
        )

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

        Errors: WorkbenchError where the file cannot be written; an existing file is then unchanged.
        """
        return write_whole(path, lambda: self.page.to_html(self))

    def to_widget(self) -> Any:
        """Return the workbench as a Jupyter widget, to be put beside others."""
        return self.page.to_widget(self)

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
            parts.append("decisions\n" + _indented(str(self.decisions)))
        parts.append("passes\n" + _indented(str(self.passes)))
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
    """Return the Exploration of `tensors` as scheduled now; `viewer` are the user's calls."""
    plan = planned(tensors, forced, rules_off, viewer)
    return Exploration(
        tensors, tuple(plan.kernels), tuple(plan.items), Decisions(plan.decisions),
        PassTable(plan.passes), tuple(plan.outputs), plan.line, plan.lines, viewer, forced,
        rules_off, plan.error, page=page, show=show,
    )  # fmt: skip


def _kernel_text(place: int, kernel: Kernel) -> str:
    row = kernel_row(kernel)
    head = f"{kernel_heading(place, row, where(kernel))}  ({work_text(row)})"
    return f"{head}\n{_indented(str(kernel))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
