"""Differences of plans: rows with a cell for each plan, aligned by the values that they are about.

Values of two explorations are the same if their expressions are equal up to the data that they
read; what has no equal is aligned by its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from workbench.ir.nest.estimates import Estimates, loop_bytes, together
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.differences import Row, Section, aligned, fired_rules, with_labels
from workbench.viz.model.title import value_title
from workbench.viz.model.words import bytes_text, error_text, figure_text, kernel_number
from workbench.viz.page.panels.memory.panel import memory_chart
from workbench.viz.record.variants import kernel_row
from workbench.viz.text import work_text

WHOLE_PLAN = "whole plan"
"""The title of the section that is about all kernels of a plan together."""


def plan_estimates(plan: Exploration) -> Estimates:
    """Return the operations and bytes of all kernels of a plan."""
    return together(kernel.estimates for kernel in plan.kernels)


def plan_sections(plans: Sequence[Exploration]) -> list[Section]:
    """Return the differences of plans that are known without running them."""
    numbering = _Numbering()
    values = [numbering.of(plan) for plan in plans]
    return [
        Section(WHOLE_PLAN, tuple(_plan_facts(plans))),
        Section("kernels", tuple(_plan_kernels(plans, values))),
        Section("decisions", tuple(_decisions(plans, values))),
        Section("values", tuple(_values(plans, values))),
        Section("rules that fired", tuple(fired_rules([plan.passes for plan in plans]))),
        Section("variants", tuple(_variants(plans))),
    ]


def _plan_facts(plans: Sequence[Exploration]) -> list[Row]:
    charts = [memory_chart(plan) for plan in plans]
    work = [plan_estimates(plan) for plan in plans]
    texts = {
        "line": [str(plan.line or "") for plan in plans],
        "kernels": [plan.kernel_counts for plan in plans],
        "rules off": [", ".join(plan.rules_off) or "none" for plan in plans],
        "operations": [figure_text(each.flops) for each in work],
        "most memory held": [
            "0 B" if c.peak is None else bytes_text(c.steps[c.peak].bytes) for c in charts
        ],
        "error": ["" if p.error is None else error_text(p.error) for p in plans],
    }
    rows = [Row(label, tuple(cells)) for label, cells in texts.items() if any(cells)]
    moved = [sum(loop_bytes(k.original) for k in plan.kernels) for plan in plans]
    return [
        *rows,
        Row("bytes, each element once", tuple(bytes_text(each.bytes) for each in work)),
        Row("bytes, each read and write", tuple(map(bytes_text, moved))),
    ]


def _plan_kernels(plans: Sequence[Exploration], values: Sequence[_Values]) -> list[Row]:
    """Return a row for each kernel, aligned by the values that it stores."""
    columns = []
    for plan, of in zip(plans, values, strict=True):
        items = [item for item in plan.items if item.kernel is not None]
        keys = [tuple(of[node] for node in item.nodes) for item in items]
        columns.append([*zip(keys, map(_kernel_text, plan.kernels), strict=True)])
    rows = []
    for _, cells in aligned(with_labels(columns, lambda _, cell: cell.title)):
        label = next(cell.title for cell in cells if cell is not None)
        rows.append(Row(label, tuple("" if cell is None else cell.text for cell in cells)))
    return _numbered(rows)


def _numbered(rows: Sequence[Row]) -> list[Row]:
    """Return rows, those of one label numbered: two kernels may have one title."""
    counts = Counter(row.label for row in rows)
    seen: Counter[str] = Counter()
    result = []
    for row in rows:
        seen[row.label] += 1
        is_shared = counts[row.label] > 1
        label = f"{row.label} ({seen[row.label]} of {counts[row.label]})"
        result.append(row._replace(label=label) if is_shared else row)
    return result


class _KernelCell(NamedTuple):
    title: str
    text: str


def _kernel_text(kernel: Kernel) -> _KernelCell:
    row = kernel_row(kernel)
    moved = bytes_text(loop_bytes(kernel.original))
    return _KernelCell(row.title, f"{row.title}: {work_text(row)}, in {moved} of reads and writes")


def _decisions(plans: Sequence[Exploration], values: Sequence[_Values]) -> list[Row]:
    """Return whether each value is stored or fused, and why."""
    labels: dict[int, str] = {}
    columns = []
    for plan, of in zip(plans, values, strict=True):
        known = [decision for decision in plan.decisions if decision.node in of]
        for decision in known:
            labels.setdefault(of[decision.node], value_title(decision.node, plan.lines))
        columns.append([(of[decision.node], _decision_text(decision)) for decision in known])
    named = with_labels(columns, lambda number, _: labels[number])
    return [
        Row(key if isinstance(key, str) else labels[key], tuple(c or "" for c in cells))
        for key, cells in aligned(named)
    ]


def _decision_text(decision: Decision) -> str:
    result = "stored" if decision.stored else "fused"
    forced = " (forced)" if decision.forced else ""
    return f"{result}{forced}: {decision.reason}"


def _values(plans: Sequence[Exploration], values: Sequence[_Values]) -> list[Row]:
    """Return a row for each value of the tensor graphs, "in the graph" where a plan has it."""
    labels: dict[int, str] = {}
    columns = []
    for plan, of in zip(plans, values, strict=True):
        for node, number in of.items():
            if number not in labels:
                labels[number] = value_title(node, plan.lines)
        columns.append([(number, "in the graph") for number in dict.fromkeys(of.values())])
    return [Row(labels[k], tuple(c or "" for c in cells)) for k, cells in aligned(columns)]


def _variants(plans: Sequence[Exploration]) -> list[Row]:
    """Return the time of each variant that a plan has beside its plain kernels."""
    columns = []
    for plan in plans:
        rows = [v for v in plan.variants if v.name != "plain" or v.time]
        keys = [f"kernel {kernel_number(v.number)}, {v.name}" for v in rows]
        texts = [v.time or "not timed" for v in rows]
        columns.append([*zip(keys, texts, strict=True)])
    return [Row(str(key), tuple(c or "" for c in cells)) for key, cells in aligned(columns)]


_Values = Mapping[UOp, int]
"""The number of each value of an expression; values of two plans with one number are equal up to
the data that they read."""


class _Numbering:
    """Numbers values by their structure, so that equal ones of several expressions have the same
    number; a BUFFER counts by its order in its expression, its dtype and its shape."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, plan: Exploration) -> dict[UOp, int]:
        found: dict[UOp, int] = {}
        buffers = 0
        for node in UOp.sink(*plan.outputs).toposort():
            own: Hashable = node.arg
            if node.op is Ops.BUFFER:
                own = buffers, node.shape, node.device
                buffers += 1
            if node.op is Ops.SINK:
                continue
            key = node.op, node.dtype, own, tuple(found[source] for source in node.src)
            found[node] = self._numbers.setdefault(key, len(self._numbers))
        return found
