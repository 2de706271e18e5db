"""Differences of kernels: sections of rows with a cell for each kernel, aligned by provenance.

A row is one fact: a loop, a node, a rule of a pass, an instruction. Loops are aligned by their
axis, nodes in pairs, rewrites by pass and rule. `workbench.compare` adds plans, answers and times.

Sections: Rows; Kernels; The alignment of rows.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord, unobserved
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import brief, own_name
from workbench.kernel.compiled import Compiled
from workbench.kernel.kernel import Kernel
from workbench.viz.model.loops import kernel_nest
from workbench.viz.model.node_pairs import node_pairs
from workbench.viz.model.passes import pass_rows
from workbench.viz.model.words import error_text, figure_text, opts_words, plural
from workbench.viz.schema.variant import Nest, NestRow

MOST_NODES = 3000
"""Most nodes of the kernels together that are compared node by node."""

# --------------------------------------------------------------------------------------------------
# Rows.


class Row(NamedTuple):
    """One fact: its label, and a text for each column ("": a column lacks it). `about` names what a
    reader may look at: a pass and a rule, or an axis."""

    label: str
    cells: tuple[str, ...]
    about: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the columns differ in it."""
        return len(set(self.cells)) > 1


@dataclass(frozen=True, slots=True)
class Section:
    """Rows about one subject. `text` is a difference line by line, where the subject is a text."""

    title: str
    rows: tuple[Row, ...]
    text: str = ""

    @property
    def different(self) -> tuple[Row, ...]:
        """The rows in which the columns differ."""
        return tuple(row for row in self.rows if row.differs)


# --------------------------------------------------------------------------------------------------
# Kernels.


def kernel_sections(kernels: Sequence[Kernel]) -> list[Section]:
    """Return the differences of kernels that are known without running them, the source last."""
    programs = [_compiled(kernel) for kernel in kernels]
    nests = [_nest(kernel) for kernel in kernels]
    passes = [_passes(kernel, program) for kernel, program in zip(kernels, programs, strict=True)]
    sections = [
        Section("kernel", tuple(_facts(kernels, programs))),
        Section("loops", tuple(_loops(nests))),
        Section("graph", tuple(_nodes(kernels))),
        Section("rules that fired", tuple(fired_rules(passes))),
        Section("counts", tuple(_counts(programs))),
        Section("instructions", tuple(_instructions(programs))),
        Section("memory", tuple(_buffers(nests))),
        _sources(programs),
    ]
    return [section for section in sections if section.rows or section.text]


def _compiled(kernel: Kernel) -> Compiled | str:
    """Return the compiled kernel, or why it cannot be compiled."""
    try:
        with unobserved():
            return kernel.compile()
    except Exception as error:  # a rule of the user's may raise anything
        return error_text(error)


def _nest(kernel: Kernel) -> Nest:
    try:
        return kernel_nest(kernel)
    except Exception:
        return Nest([], [])  # the row "program" has the error


def _passes(kernel: Kernel, program: Compiled | str) -> Sequence[PassRecord]:
    return kernel.observed(kernel.device) if isinstance(program, str) else program.passes


def _facts(kernels: Sequence[Kernel], programs: Sequence[Compiled | str]) -> list[Row]:
    texts: dict[str, list[str]] = {
        "computes": [k.title or k.name for k in kernels],
        "device": [k.device for k in kernels],
        "opts": [opts_words(k.applied_opts) or "none" for k in kernels],
        "rules off": [", ".join(k.rules_off) or "none" for k in kernels],
        "operations": [figure_text(k.estimates.flops) for k in kernels],
        "program": [p if isinstance(p, str) else p.built.source.language for p in programs],
        "in parallel": ["" if isinstance(p, str) else _parallel_text(p) for p in programs],
    }
    return [Row(label, tuple(cells)) for label, cells in texts.items() if any(cells)]


def _parallel_text(program: Compiled) -> str:
    """Return what a launch runs at once: threads of a processor, or work-groups of a GPU."""
    launch = program.built.source.launch
    if not Device[program.device].target.has_groups:
        return plural(launch.threads, "thread")
    groups, items = math.prod(launch.grid), math.prod(launch.group)
    return f"{plural(groups, 'work-group')} of {plural(items, 'work-item')}"


def _loops(nests: Sequence[Nest]) -> list[Row]:
    """Return a row for each loop, and below it a row for each buffer that it moves through."""
    loops = [[row for row in nest.rows if row.axis] for nest in nests]
    rows: list[Row] = []
    for key, found in aligned([[(row.axis, row) for row in column] for column in loops]):
        about = (str(key),)
        rows.append(Row(str(key), tuple(map(_loop_text, found)), about))
        names = dict.fromkeys(name for row in found if row is not None for name in row.uses)
        for name in names:
            cells = [_use_text(row, name) for row in found]
            rows.append(Row(f"  {key} in {name}", tuple(cells), about))
    return rows


def _nodes(kernels: Sequence[Kernel]) -> list[Row]:
    """Return a row for each node of the first kernel, with its partner in each other one, then a
    row for each node that only others have. Constants stand in the texts of their users."""
    first = kernels[0].ast.toposort()
    others = [kernel.ast for kernel in kernels[1:]]
    if len(first) + sum(len(root.toposort()) for root in others) > MOST_NODES:
        return []
    columns = [node_pairs([kernels[0].ast], [root]) for root in others]
    rows = []
    for node in first:
        if node.is_const:
            continue
        text = brief(node)
        cells = [text]
        for pairs in columns:
            partner = pairs.changed.get(node)
            cells.append(text if node in pairs.same else "" if partner is None else brief(partner))
        rows.append(Row(_node_label(node), tuple(cells)))
    for place, pairs in enumerate(columns, 1):
        for node in pairs.added:
            if not node.is_const:
                own = [brief(node) if n == place else "" for n in range(len(kernels))]
                rows.append(Row(_node_label(node), tuple(own)))
    return rows


def _node_label(node: UOp) -> str:
    return own_name(node) or node.op.name.lower()


def _loop_text(row: NestRow | None) -> str:
    if row is None:
        return ""
    vector = ", a vector" if row.vector else ""
    return f"{row.axis_kind.lower()}, {plural(row.size, 'step')}, depth {row.depth}{vector}"


def _use_text(row: NestRow | None, name: str) -> str:
    use = None if row is None else row.uses.get(name)
    return "" if use is None else f"stride {use.stride}, {use.bytes}"


def fired_rules(columns: Sequence[Sequence[PassRecord]]) -> list[Row]:
    """Return how often each rule fired in each pass."""
    counts = [
        [((r.name, rule.name), f"{rule.value:.0f}") for r in pass_rows(records) for rule in r.rules]
        for records in columns
    ]  # fmt: skip
    return [
        Row(f"{of_pass}: {rule}", tuple(cell or "" for cell in cells), (of_pass, rule))
        for (of_pass, rule), cells in aligned(counts)
    ]


def _counts(programs: Sequence[Compiled | str]) -> list[Row]:
    """Return the counts of each program. Where a processor stands beside a GPU, each cell says what
    it counts: a vector is one operation of a processor, but on a GPU each of its elements is."""
    known = [None if isinstance(p, str) else p for p in programs]
    on_gpu = {p.device: Device[p.device].target.has_groups for p in known if p is not None}
    is_mixed = len(set(on_gpu.values())) > 1
    rows = []
    for label, of_processor, of_gpu in _COUNTED:
        counts = [None if p is None else getattr(p.counts, label) for p in known]
        if not any(counts):
            continue
        units = [of_gpu if p is not None and on_gpu[p.device] else of_processor for p in known]
        cells = [
            "" if count is None else f"{figure_text(count)} {unit if is_mixed else ''}".rstrip()
            for count, unit in zip(counts, units, strict=True)
        ]
        rows.append(Row(label.replace("_", " "), tuple(cells)))
    return rows


_COUNTED = (
    ("loads", "instructions", "by work-items"),
    ("stores", "instructions", "by work-items"),
    ("fmas", "instructions", "of elements"),
    ("other", "instructions", "of elements"),
    ("bytes_loaded", "", ""),
    ("bytes_stored", "", ""),
    ("barriers", "", ""),
)
"""The counts of a program, and what they count on a processor and on a GPU."""


def _instructions(programs: Sequence[Compiled | str]) -> list[Row]:
    """Return how often each instruction stands in the machine code, most often first."""
    counts = [_mnemonics(p) for p in programs]
    together = sum(counts, Counter())
    return [
        Row(name, tuple(str(count[name] or "") for count in counts))
        for name, _ in together.most_common()
    ]


def _mnemonics(program: Compiled | str) -> Counter[str]:
    if isinstance(program, str):
        return Counter()
    try:
        lines = program.assembly_lines
    except WorkbenchError:  # a device without machine code, or without its compiler
        return Counter()
    return Counter(line.text.split()[0] for line in lines if line.text and not line.is_label)


def _buffers(nests: Sequence[Nest]) -> list[Row]:
    columns = [
        [(f"{b.user or b.name} ({b.role})", f"{b.dtype} x {b.size:,}") for b in nest.buffers]
        for nest in nests
    ]
    return [Row(str(key), tuple(c or "" for c in cells)) for key, cells in aligned(columns)]


def _sources(programs: Sequence[Compiled | str]) -> Section:
    """Return the difference of each column's source from the first one's."""
    texts = ["" if isinstance(p, str) else p.source for p in programs]
    numbers = range(1, len(texts))
    parts = [_text_difference(texts[0], texts[n], f"column {n + 1}") for n in numbers if texts[n]]
    sizes = tuple(plural(text.count("\n") + 1, "line") if text else "" for text in texts)
    return Section("source", (Row("length", sizes),), "\n".join(filter(None, parts)))


def _text_difference(one: str, other: str, name: str) -> str:
    lines = one.splitlines(), other.splitlines()
    return "\n".join(difflib.unified_diff(*lines, "column 1", name, lineterm="", n=2))


# --------------------------------------------------------------------------------------------------
# The alignment of rows.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def aligned(columns: Sequence[Sequence[tuple[K, V]]]) -> list[tuple[K, tuple[V | None, ...]]]:
    """Return a row for each key, with its value in each column (None: it has none), so that each
    column's rows keep their order as far as the columns before it allow. A key that comes n times
    in a column has n rows.

    >>> aligned([[("a", 1), ("c", 2)], [("a", 3), ("b", 4), ("c", 5)]])
    [('a', (1, 3)), ('b', (None, 4)), ('c', (2, 5))]
    """
    keyed = [_occurrences(column) for column in columns]
    order: list[tuple[K, int]] = []
    for column in keyed:
        order = _merged(order, list(column))
    return [(key, tuple(column.get((key, n)) for column in keyed)) for key, n in order]


def with_labels(
    columns: Sequence[Sequence[tuple[K, V]]], label: Callable[[K, V], str]
) -> list[list[tuple[K | str, V]]]:
    """Return columns in which a key that a column lacks is replaced by its label: what follows a
    changed value is another value, but is read as the same one."""
    counts = Counter(key for column in columns for key in {key for key, _ in column})
    return [
        [
            (key if counts[key] == len(columns) else label(key, value), value)
            for key, value in column
        ]
        for column in columns
    ]


def _occurrences(column: Sequence[tuple[K, V]]) -> dict[tuple[K, int], V]:
    seen: Counter[K] = Counter()
    found: dict[tuple[K, int], V] = {}
    for key, value in column:
        found[key, seen[key]] = value
        seen[key] += 1
    return found


def _merged(one: list[tuple[K, int]], other: Iterable[tuple[K, int]]) -> list[tuple[K, int]]:
    """Return the elements of both lists, each once; new ones of `other` come after the element
    before them, and after the occurrence before them."""
    places = {element: place for place, element in enumerate(one)}
    after: dict[int, list[tuple[K, int]]] = {}
    previous = -1
    for key, n in other:
        if (key, n) in places:
            previous = places[key, n]
            continue
        place = max(previous, places.get((key, n - 1), -1))
        places[key, n] = place
        after.setdefault(place, []).append((key, n))
    merged = after.get(-1, [])
    for place, element in enumerate(one):
        merged += [element, *after.get(place, [])]
    return merged
