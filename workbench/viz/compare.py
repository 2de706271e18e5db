"""Differences of kernels or of plans, in columns: `workbench.compare`.

Two or more variants of a kernel, or plans of some tensors, stand beside each other in a table of
sections: each row is one fact (a loop, a rule of a pass, a decision), each column one of the
compared values. Rows are aligned by provenance: loops by the axis, rewrites by pass and rule,
decisions and kernels by the value that they are about.

Sections: The table; The values that are compared; Kernels; Plans; Times, in turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from numbers import Real
from os import PathLike

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, cut, kind_of
from workbench.base.terminal import Bundle, Printed, register
from workbench.base.variables import variables
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import answers, require_times
from workbench.measure.kernel_time import busy_text, seconds_text
from workbench.measure.side_by_side import added, compared
from workbench.measure.timing import Samples, interleave
from workbench.tensor.tensor import Tensor
from workbench.viz import formatters
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.explore import explore
from workbench.viz.exploration.tables import Variant
from workbench.viz.model.differences import Row, Section, kernel_sections
from workbench.viz.model.node_pairs import node_pairs
from workbench.viz.model.words import error_text, opts_words, plural
from workbench.viz.plan_differences import plan_sections
from workbench.viz.still import cards

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
    plans: tuple[Exploration, ...] = ()
    """The compared plans, whose tensor graphs are drawn in a notebook."""

    def __getitem__(self, title: str) -> Section:
        """Return the section of a title. Errors: WorkbenchError for another title."""
        for section in self.sections:
            if section.title == title:
                return section
        because = "there are " + ", ".join(section.title for section in self.sections)
        raise WorkbenchError(f"there is no section {title!r:.40}", because, "one of them")

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
    if differences.plans:
        parts.insert(0, _graphs_part(differences))
    html = cards.page(cards.card(parts))
    return {"text/html": html, "text/plain": str(differences)}


register(Differences, differences_bundle)


def _graphs_part(differences: Differences) -> str:
    """Return the tensor graphs as pictures, with signs where there are two that differ."""
    plans = differences.plans
    signs = graph_signs(*plans) if len(plans) == 2 else [{} for _ in plans]
    pictures = [
        cards.muted(name) + formatters.marked_graph(plan, own)
        for name, plan, own in zip(differences.names, plans, signs, strict=True)
    ]
    said = "− is only in the first, + only in the second, ≠ differs" if any(signs) else ""
    return cards.fold(f"graphs {cards.muted(said)}", "".join(pictures), is_open=any(signs))


def graph_signs(one: Exploration, other: Exploration) -> tuple[dict[UOp, str], dict[UOp, str]]:
    """Return the signs of the nodes of two tensor graphs that differ, by node."""
    pairs = node_pairs(one.outputs, other.outputs)
    changed = [dict.fromkeys(side, "≠") for side in (pairs.changed, pairs.changed.values())]
    removed, added = dict.fromkeys(pairs.removed, "−"), dict.fromkeys(pairs.added, "+")
    return changed[0] | removed, changed[1] | added


def _section_part(section: Section, names: Sequence[str]) -> str:
    heads = ["", *map(escape, names)]
    differ, equal = section.different, [row for row in section.rows if not row.differs]
    tables = [cards.table(heads, map(_html_cells, rows)) for rows in (differ, equal) if rows]
    words = equal_text(section)
    if equal and differ:
        tables[1] = cards.fold(cards.muted(words), tables[1])
    if section.text:
        tables.append(cards.fold("line by line", cards.line_diff(section.text)))
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
    buffer), nodes, rules that fired, counts, instructions, memory, answers and source; plans in
    their kernels, decisions, values, rules that fired and memory. If `seconds` is not 0, they are
    timed in turns for about so long, a plan's kernels with the default opts, and the first column
    is what others are compared with.

    Errors: WorkbenchError for fewer than two values, and for a kernel beside a plan; DeviceError
    for times of a machine that is not here.
    """
    named = values[0] if len(values) == 1 and isinstance(values[0], Mapping) else None
    columns = list(named.values()) if named is not None else list(values)
    if len(columns) < 2:
        because = f"there is {plural(len(columns), 'value')}" if columns else "there is no value"
        raise WorkbenchError("nothing to compare", because, _HINT)
    if not isinstance(seconds, Real) or isinstance(seconds, bool) or not seconds >= 0:
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
    return Differences(_distinct(names), tuple(sections), tuple(plans))


def _side(value: object, place: int) -> Kernel | Exploration:
    """Return the kernel or the plan that a value stands for."""
    if isinstance(value, Tensor):
        return explore(value)
    if isinstance(value, Variant):
        return value.kernel
    if isinstance(value, Kernel | Exploration):
        return value
    because = "kernels, variants, explorations and Tensors can be compared"
    is_path = isinstance(value, str | PathLike)
    hint = f"compare(ex, load({str(value)!r:.80}))" if is_path else _HINT
    raise WorkbenchError(f"cannot compare argument {place}, {kind_of(value)}", because, hint)


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
        same = first.original is kernel.original
        return "the same computation, of other data" if same else "another computation"
    verdict = "equal" if equal else "DIFFERENT"
    return f"{verdict} (greatest difference {error:.3g}, tolerance {tolerance:.3g})"


# --------------------------------------------------------------------------------------------------
# Plans.


def _of_plans(plans: Sequence[Exploration], seconds: float) -> list[Section]:
    for place, plan in enumerate(plans, 1):
        if plan.waits:
            because = f"argument {place} waits for a guess: {plan.waits.splitlines()[0]}"
            raise WorkbenchError("cannot compare these", because, "ex.guess(..)")
    sections = plan_sections(plans)
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
    sums = [
        added([samples[f"{n}-{i}"] for i in range(len(column))]) if column else Samples(())
        for n, column in enumerate(columns)
    ]
    if not samples:
        return []
    times = tuple(map(_time_text, sums))
    ratios = ("", *(_verdict(sums[0], each) for each in sums[1:]))
    return [Row("one run", times), Row("beside the first", ratios)]


def _time_text(samples: Samples) -> str:
    if not samples.samples_s:
        return seconds_text(0.0)
    text = seconds_text(samples.median_s)
    return text if samples.had is None else f"{text}, {busy_text(samples.had)}"


def _verdict(base: Samples, other: Samples) -> str:
    if not base.samples_s or not other.samples_s:
        return "nothing runs"
    return str(compared(base, other))
