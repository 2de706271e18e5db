"""Differences of kernels or of plans, in columns: `workbench.compare`.

Two or more variants of a kernel, or plans of some tensors, stand beside each other in a table of
sections: each row is one fact (a loop, a rule of a pass, a decision), each column one of the
compared values. Rows are aligned by provenance: loops by the axis, rewrites by pass and rule,
decisions and kernels by the value that they are about. Values of two explorations are the same if
their expressions are equal up to the data that they read; what has no equal is aligned by its name.

Sections: The table; The values that are compared; Kernels; Plans; Times, in turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, cut, kind_of
from workbench.base.terminal import Bundle, Printed, register
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import answers, require_times
from workbench.measure.kernel_time import seconds_text
from workbench.measure.side_by_side import Ratio, ratio
from workbench.measure.timing import Samples, interleave
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.explore import explore
from workbench.viz.exploration.tables import Variant
from workbench.viz.model.differences import (
    Row,
    Section,
    aligned,
    fired_rules,
    kernel_sections,
    with_labels,
)
from workbench.viz.model.title import value_name
from workbench.viz.model.words import (
    bytes_text,
    error_text,
    figure_text,
    kernel_number,
    opts_words,
    plural,
    shape_text,
)
from workbench.viz.names import variables
from workbench.viz.page.panels.memory.panel import memory_chart
from workbench.viz.record.variants import kernel_row
from workbench.viz.still import cards
from workbench.viz.text import work_text

# --------------------------------------------------------------------------------------------------
# The table.

NAME_WIDTH = 28
"""Most characters of the name of a column."""
CELL_WIDTH = 60
"""Most characters of a cell in printed text; a longer one ends in an ellipsis."""
MOST_ROWS = 40
"""Most rows of a section that are printed."""


@dataclass(frozen=True, slots=True, repr=False)
class Differences(Printed):
    """Kernels or plans in columns with these `names`. Printed, it shows the rows that differ, and
    counts those that are equal; `sections` have all."""

    names: tuple[str, ...]
    sections: tuple[Section, ...]

    def __getitem__(self, title: str) -> Section:
        """Return the section of a title. Errors: WorkbenchError for another title."""
        for section in self.sections:
            if section.title == title:
                return section
        because = "there are " + ", ".join(section.title for section in self.sections)
        raise WorkbenchError(f"there is no section {title!r:.40}", because)

    def __str__(self) -> str:
        return "\n\n".join(_section_text(section, self.names) for section in self.sections)


def equal_text(section: Section) -> str:
    """Return what is said of the rows that do not differ; "" if all do."""
    same = len(section.rows) - len(section.different)
    if not section.different and not section.text:
        return "no difference"
    return f"{plural(same, 'row')} equal" if same else ""


def _section_text(section: Section, names: Sequence[str]) -> str:
    rows = [[row.label, *row.cells] for row in section.different[:MOST_ROWS]]
    lines = [section.title]
    if not rows and not section.text:
        return f"{section.title}: {equal_text(section)}"
    if rows:
        grid = [["", *names], *([cut(text, CELL_WIDTH) for text in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines += [
            "  " + "  ".join(f"{c:{w}}" for c, w in zip(cells, widths, strict=True)).rstrip()
            for cells in grid
        ]
    more = len(section.different) - len(rows)
    lines += [f"  and {plural(more, 'more row')}"] if more else []
    equal = equal_text(section)
    lines += [f"  {equal}"] if equal else []
    lines += [f"  {line}" for line in section.text.splitlines()[: 2 * MOST_ROWS]]
    return "\n".join(lines)


def differences_bundle(differences: Differences) -> Bundle:
    """Return Differences as tables: the rows that differ, and the others folded."""
    parts = [_section_part(section, differences.names) for section in differences.sections]
    html = cards.page(cards.card(parts))
    return {"text/html": html, "text/plain": str(differences)}


register(Differences, differences_bundle)


def _section_part(section: Section, names: Sequence[str]) -> str:
    heads = ["", *map(escape, names)]
    differ, equal = section.different, [row for row in section.rows if not row.differs]
    tables = [cards.table(heads, map(_html_cells, rows)) for rows in (differ, equal) if rows]
    words = equal_text(section)
    if equal and differ:
        tables[1] = cards.fold(cards.muted(words), tables[1])
    if section.text:
        tables.append(cards.fold("line by line", cards.source(section.text)))
    summary = f"{escape(section.title)} {cards.muted(words)}"
    return cards.fold(summary, "".join(tables), is_open=bool(differ))


def _html_cells(row: Row) -> list[str]:
    return [cards.muted(row.label), *map(escape, row.cells)]


# --------------------------------------------------------------------------------------------------
# The values that are compared.

Compared = Kernel | Variant | Exploration | Tensor
"""What can be compared: kernels with each other, plans with each other."""
_HINT = "compare(k, k.optimized()), or compare(ex, ex.replan({..: True}))"


def compare(*values: Compared | Mapping[str, Compared], seconds: float = 0.0) -> Differences:
    """Return the differences of two or more variants of a kernel, or plans of some tensors.

    `compare(k, k.optimized())`, `compare(*ex.variants)`, `compare(ex, ex.replan({h: True}))`,
    `compare(explore(y), load("yesterday.explore"))`; a dict names the columns:
    `compare({"plain": k, "tiled": k2})`. A Tensor stands for its exploration. Kernels need not be
    of one device or with the same rules: `compare(k, k.without("form-fma"))`,
    `compare(k, k.on("CUDA:H100").kernel)`.

    Kernels are compared in their opts, loops (with the stride and the touched bytes for each
    buffer), rules that fired, counts, instructions, memory, answers and source; plans in their
    kernels, decisions, values, rules that fired and memory. If `seconds` is not 0, they are timed
    in turns for about so long, a plan's kernels with the default opts, and the first column is
    what others are compared with.

    Errors: WorkbenchError for fewer than two values, and for a kernel beside a plan; DeviceError
    for times of a machine that is not here.
    """
    named = values[0] if len(values) == 1 and isinstance(values[0], Mapping) else None
    columns = list(named.values()) if named is not None else list(values)
    if len(columns) < 2:
        because = f"there is {plural(len(columns), 'value')}" if columns else "there is no value"
        raise WorkbenchError("nothing to compare", because, _HINT)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        because = f"seconds={seconds!r:.40} is not a number of seconds, 0 or more"
        raise WorkbenchError("cannot compare times", because, "compare(a, b, seconds=0.5)")
    sides = [_side(column, place) for place, column in enumerate(columns, 1)]
    names = map(str, named) if named is not None else _names(columns, sides)
    kernels = [side for side in sides if isinstance(side, Kernel)]
    plans = [side for side in sides if isinstance(side, Exploration)]
    if kernels and plans:
        because = "a kernel and a plan of kernels have no rows in common"
        raise WorkbenchError("cannot compare these", because, "compare(k, ex.kernels[0])")
    sections = _of_kernels(kernels, seconds) if kernels else _of_plans(plans, seconds)
    return Differences(_distinct(names), tuple(sections))


def _side(value: object, place: int) -> Kernel | Exploration:
    """Return the kernel or the plan that a value stands for."""
    if isinstance(value, Tensor):
        return explore(value)
    if isinstance(value, Variant):
        return value.kernel
    if isinstance(value, Kernel | Exploration):
        return value
    because = "kernels, variants, explorations and Tensors can be compared"
    raise WorkbenchError(f"cannot compare argument {place}, {kind_of(value)}", because, _HINT)


def _names(values: Sequence[object], sides: Sequence[Kernel | Exploration]) -> list[str]:
    """Return the user's names for values; else a variant's name, a kernel's opts, a plan's line."""
    kinds = Exploration, Kernel, Tensor
    users = {id(value): name for kind in kinds for name, value in variables(kind)}
    return [
        users.get(id(value)) or _name(value, side)
        for value, side in zip(values, sides, strict=True)
    ]


def _name(value: object, side: Kernel | Exploration) -> str:
    if isinstance(value, Variant):
        return value.name
    if isinstance(side, Kernel):
        words = [opts_words(side.applied_opts) or "no opts"]
        words += [f"without {rule}" for rule in side.rules_off]
        return cut(", ".join(words), NAME_WIDTH)
    words = [side.line.text] if side.line is not None else [side.headline]
    return cut(" ".join(words), NAME_WIDTH)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of columns; one that comes again has its number."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)


# --------------------------------------------------------------------------------------------------
# Kernels: what is known without running them, then answers and times.


def _of_kernels(kernels: Sequence[Kernel], seconds: float) -> list[Section]:
    facts, *sections = kernel_sections(kernels)
    answer = Row("answer", ("the first", *(_answer(kernels[0], k) for k in kernels[1:])))
    sections.insert(0, replace(facts, rows=(*facts.rows, answer)))
    if seconds:
        runs = [[partial(k.launch, k.device)] for k in _timeable(kernels)]
        sections.insert(-1, Section("time", tuple(_times(runs, seconds))))
    return sections


def _answer(first: Kernel, kernel: Kernel) -> str:
    """Return whether a kernel's answer is that of the first, each on its own device."""
    try:
        error, tolerance, equal = answers(first, kernel, (first.device, kernel.device))
    except Exception as refused:
        return f"not compared: {error_text(refused)}".splitlines()[0]
    if equal is None:
        return "another computation"
    verdict = "equal" if equal else "DIFFERENT"
    return f"{verdict} (greatest difference {error:.3g}, tolerance {tolerance:.3g})"


# --------------------------------------------------------------------------------------------------
# Plans.


def _of_plans(plans: Sequence[Exploration], seconds: float) -> list[Section]:
    for place, plan in enumerate(plans, 1):
        if plan.waits:
            because = f"argument {place} waits for a guess: {plan.waits.splitlines()[0]}"
            raise WorkbenchError("cannot compare these", because, "ex.guess(..)")
    numbering = _Numbering()
    values = [numbering.of(plan) for plan in plans]
    sections = [
        Section("plan", tuple(_plan_facts(plans))),
        Section("kernels", tuple(_plan_kernels(plans, values))),
        Section("decisions", tuple(_decisions(plans, values))),
        Section("values", tuple(_values(plans, values))),
        Section("rules that fired", tuple(fired_rules([plan.passes for plan in plans]))),
        Section("variants", tuple(_variants(plans))),
    ]
    if seconds:
        runs = [
            [partial(k.launch, k.device) for k in _timeable([k.optimized() for k in plan.kernels])]
            for plan in plans
        ]
        sections.append(Section("time", tuple(_times(runs, seconds))))
    if all(len(plan.kernels) == 1 for plan in plans):
        of_kernel = _of_kernels([plan.kernels[0] for plan in plans], 0.0)
        sections += [s for s in of_kernel if s.title != "rules that fired"]
    return [section for section in sections if section.rows]


def _plan_facts(plans: Sequence[Exploration]) -> list[Row]:
    charts = [memory_chart(plan) for plan in plans]
    texts = {
        "line": [str(plan.line or "") for plan in plans],
        "kernels": [plan.kernel_counts for plan in plans],
        "rules off": [", ".join(plan.rules_off) or "none" for plan in plans],
        "operations": [figure_text(sum(k.estimates.flops for k in p.kernels)) for p in plans],
        "memory": ["0 B" if c.peak is None else bytes_text(c.steps[c.peak].bytes) for c in charts],
        "error": ["" if p.error is None else error_text(p.error) for p in plans],
    }
    rows = [Row(label, tuple(cells)) for label, cells in texts.items() if any(cells)]
    moved = [int(sum(kernel_row(k).bytes for k in plan.kernels)) for plan in plans]
    return [*rows, Row("bytes read and written", tuple(map(bytes_text, moved)))]


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
    return rows


class _KernelCell(NamedTuple):
    title: str
    text: str


def _kernel_text(kernel: Kernel) -> _KernelCell:
    row = kernel_row(kernel)
    return _KernelCell(row.title, f"{row.title}: {work_text(row)}")


def _decisions(plans: Sequence[Exploration], values: Sequence[_Values]) -> list[Row]:
    """Return whether each value is stored or fused, and why."""
    labels: dict[int, str] = {}
    columns = []
    for plan, of in zip(plans, values, strict=True):
        known = [decision for decision in plan.decisions if decision.node in of]
        for decision in known:
            labels.setdefault(of[decision.node], _value_label(plan, decision.node))
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
    """Return a row for each value of the tensor graphs, "computed" where a plan has it."""
    labels: dict[int, str] = {}
    columns = []
    for plan, of in zip(plans, values, strict=True):
        for node, number in of.items():
            if number not in labels:
                labels[number] = _value_label(plan, node)
        columns.append([(number, "in the graph") for number in dict.fromkeys(of.values())])
    return [Row(labels[k], tuple(c or "" for c in cells)) for k, cells in aligned(columns)]


def _value_label(plan: Exploration, node: UOp) -> str:
    name = plan.lines.name(node) or value_name(node, plan.lines.on)
    return f"{name} {shape_text(node.shape)}"


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


# --------------------------------------------------------------------------------------------------
# Times, in turns.


def _timeable(kernels: Sequence[Kernel]) -> Sequence[Kernel]:
    """Return kernels that have times. Errors: DeviceError for a machine that is not here."""
    for kernel in kernels:
        require_times(kernel.device)
        if Device[kernel.device].is_emulator:
            because = f"{kernel.device} is an emulator, whose times say nothing"
            raise WorkbenchError("cannot compare times", because, "another device, or seconds=0")
    return kernels


def _times(columns: Sequence[Sequence[Callable[[], Callable[[], None]]]], s: float) -> list[Row]:
    """Return the time of each column, the sum of its runs, and its ratio to the first. The samples
    of one round were taken together, so that the times of each round are added up."""
    runs = {f"{n}-{i}": make() for n, column in enumerate(columns) for i, make in enumerate(column)}
    samples = interleave(runs, s, warms=True) if runs else {}
    rounds = min((len(one.samples_s) for one in samples.values()), default=0)
    sums = [
        np.sum([_rounds(samples[f"{n}-{i}"], rounds) for i in range(len(column))], axis=0)
        if column
        else np.zeros(rounds)
        for n, column in enumerate(columns)
    ]
    if not rounds:
        return []
    times = tuple(seconds_text(float(np.median(each))) for each in sums)
    ratios = ("", *(_verdict(sums[0], each) for each in sums[1:]))
    return [Row("one run", times), Row("beside the first", ratios)]


def _rounds(samples: Samples, count: int) -> np.ndarray[Any, Any]:
    return np.asarray(samples.samples_s[:count], dtype=np.float64)


def _verdict(base: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> str:
    if not base.all() or not other.all():
        return "nothing runs"
    found: Ratio = ratio(list(base), list(other))
    return str(found)
