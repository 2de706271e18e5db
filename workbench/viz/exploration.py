"""Exploration: what became of some tensors on the way to kernels, as a value to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.display import Displayed
from workbench.ir.schedule.item import Decision, ScheduleItem
from workbench.ir.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.source import SourceLine
from workbench.tensor.tensor import Tensor
from workbench.trace import PassRecord
from workbench.viz import export
from workbench.viz.model.graph import TensorGraph, label_of, tensor_graph
from workbench.viz.model.passes import pass_rows, passes_text
from workbench.viz.model.words import bytes_text, figure_text, plural, shape_text

if TYPE_CHECKING:
    import graphviz
    import networkx

MOST_KERNELS = 12
"""Kernels shown in full; further ones are counted or listed by title."""
MOST_DECISIONS = 60
"""Decisions shown in one place; `.decisions` has them all."""


@dataclass(frozen=True, slots=True, eq=False)
class Exploration(Displayed):
    """The kernels that compute `tensors`, un-optimised, and how scheduling came to them.

    `kernels` are in execution order; `items` are those and the copies between devices;
    `decisions` say of every value why it is stored or fused; `passes` are the scheduler's;
    `outputs` are the tensors' nodes as scheduled.
    """

    tensors: tuple[Tensor, ...]
    kernels: tuple[Kernel, ...]
    items: tuple[ScheduleItem, ...]
    decisions: tuple[Decision, ...]
    passes: tuple[PassRecord, ...]
    outputs: tuple[UOp, ...]
    line: SourceLine | None = None

    @property
    def graph(self) -> TensorGraph:
        """The tensor graph as plain data, each node with the kernels that compute it."""
        return tensor_graph(self.outputs, self.items, [k.title for k in self.kernels])

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return the tensor graph as a networkx.DiGraph.

        Nodes have op, dtype, shape, label, arg, line, kernels (their numbers), kernel (the first
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
        return ", ".join([*words, "on " + " and ".join(devices)])

    @property
    def nothing_to_do(self) -> str:
        """Why there is no kernel; "" where there is one."""
        if self.kernels:
            return ""
        if self.items:
            return "Nothing to compute: the values are only copied to the device."
        return "Nothing to compute: the values are constants, or in memory already."

    def __str__(self) -> str:
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


def decisions_text(decisions: tuple[Decision, ...]) -> str:
    """Return a line per decision: the value, what became of it, why, and the figures."""
    rows = [decision_cells(d) for d in decisions[:MOST_DECISIONS]]
    widths = [max((len(r[i]) for r in rows), default=0) for i in range(3)]
    lines = []
    for row in rows:
        cells = [f"{c:{w}}" for c, w in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[3]]).rstrip())
    if len(decisions) > MOST_DECISIONS:
        lines.append(f"and {plural(len(decisions) - MOST_DECISIONS, 'more decision')}")
    return "\n".join(lines)


def decision_cells(decision: Decision) -> tuple[str, str, str, str]:
    """Return (value, "stored" or "fused", reason, figures) of a decision as words."""
    node = decision.node
    value = f"{label_of(node)} {shape_text(node.shape)}"
    words = [
        f"{k.replace('_', ' ')} {figure_text(v)}" for k, v in decision.figures.items()
    ]
    outcome = "stored" if decision.stored else "fused"
    return value, outcome, decision.reason, ", ".join(words)


def _kernel_text(number: int, kernel: Kernel) -> str:
    where = "" if kernel.line is None else f"  {kernel.line}"
    figures = kernel.estimates
    work = f"{figure_text(figures.flops)} operations, {bytes_text(figures.bytes)}"
    return f"kernel {number}: {kernel.title}{where}  ({work})\n{_indented(str(kernel))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
