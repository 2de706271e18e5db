"""A record reduced to a number of bytes, for the copy that a saved notebook has.

The user's work is never left out: variants with their opts, times, checks, notes, searches and
edited source. Rows that Python can compute again are left out, one kind after the other, until the
rest fits: first those of variants that are not selected, then those of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from workbench.viz.model.words import plural
from workbench.viz.page.document import Constants, packed
from workbench.viz.record.about import ASSEMBLY
from workbench.viz.run.run import without_timeline
from workbench.viz.schema.record import NodeColumns, PageRecord, RecordedPass
from workbench.viz.schema.variant import CodeRow, SearchRow, VariantRow


class OptionalPart(NamedTuple):
    """A kind of rows of variants: its name, and the values of the fields without it."""

    words: str
    without: Callable[[VariantRow], dict[str, Any]]


PARTS = (
    OptionalPart("run on the emulator", lambda _: {"gpu": None}),
    OptionalPart("code for other devices", lambda _: {"code_elsewhere": []}),
    OptionalPart("machine code", lambda row: {"code": _code(row, _is_readable)}),
    OptionalPart("passes", lambda _: {"passes": []}),
    OptionalPart("code", lambda row: {"code": _code(row, lambda _: False)}),
    OptionalPart("opts to try", lambda _: {"offers": [], "refused": []}),
    OptionalPart("loops", lambda _: {"loops": None}),
)
"""The parts that are left out, in this order: the least used one first."""


class Reduced(NamedTuple):
    """A packed record, and in words what was left out of it ("": nothing)."""

    record: str
    left_out: str


def reduced(
    record: PageRecord, visible: Collection[int], most_bytes: int, constants: Constants
) -> Reduced:
    """Return a record packed without `constants` into at most `most_bytes`, or into as few bytes as
    possible. `visible` are the selected variants. The record's `left_out` has the same words."""
    text = packed(record, constants)
    if len(text) <= most_bytes:
        return Reduced(text, "")
    small = replace(record, variants=[copy(row) for row in record.variants])
    words: list[str] = []
    for left_out in _reductions(small, visible, constants):
        if not left_out:
            continue
        words = [*(w for w in words if not _is_part_of(w, left_out)), left_out]
        small.left_out = ", ".join(words)
        text = packed(small, constants)
        if len(text) <= most_bytes:
            break
    return Reduced(text, small.left_out)


def _is_part_of(words: str, later: str) -> bool:
    """Whether `later` includes `words`: the same part of more variants, or code, which includes
    machine code."""
    part, _, _ = words.partition(" of ")
    whole, _, _ = later.partition(" of ")
    return part in (whole, f"machine {whole}")


def _reductions(
    record: PageRecord, visible: Collection[int], constants: Constants
) -> Iterator[str]:
    """Take one kind of rows after the other out of a record; after each, yield in words what was
    taken out ("": nothing)."""
    others = [row for place, row in enumerate(record.variants) if place not in visible]
    counts: dict[str, int] = {}
    for part in PARTS:
        counts[part.words] = _take_out(part, others)
        _tidy(record)
        yield _of_variants(part.words, counts[part.words])
    runs, record.runs = record.runs, [without_timeline(run) for run in record.runs]
    yield "the timeline of the run" if record.runs != runs else ""
    rules = record.panels.get("rules")
    if rules is not None and to_builtins(rules) != constants.sections.get("rules"):
        record.panels = {**record.panels, "rules": None}
        yield "the rules"
    for part in PARTS:
        further = _take_out(part, record.variants)
        _tidy(record)
        yield _of_variants(part.words, counts[part.words] + further) if further else ""
    passes, record.passes = record.passes, [_without_rewrites(each) for each in record.passes]
    record.texts = []
    record.nodes = _plan_nodes(record)
    yield "the rewrites of scheduling" if record.passes != passes else ""
    for row in record.variants:
        row.searches = [_best(search) for search in row.searches]
    yield "candidates of searches" if any(row.searches for row in record.variants) else ""
    plan, record.plan = record.plan, replace(record.plan, nodes=[], edges=[])
    record.nodes = _plan_nodes(record)
    yield "the picture of the plan" if record.plan != plan else ""


def _of_variants(words: str, count: int) -> str:
    return f"{words} of {plural(count, 'variant')}" if count else ""


def _take_out(part: OptionalPart, rows: Sequence[VariantRow]) -> int:
    """Take a part out of some variants; return how many had it."""
    count = 0
    for row in rows:
        fields = part.without(row)
        count += any(getattr(row, name) != value for name, value in fields.items())
        for name, value in fields.items():
            setattr(row, name, value)
    return count


def _code(row: VariantRow, stays: Callable[[CodeRow], bool]) -> list[CodeRow]:
    """Return the programs of a variant that `stays` selects, and the user's edited source."""
    own = row.code[:1] if row.edited else []
    return [code for code in row.code if code in own or stays(code)]


def _is_readable(code: CodeRow) -> bool:
    return code.language != ASSEMBLY.name and not code.made_by


def _best(search: SearchRow) -> SearchRow:
    """Return a search with only the candidates that led to the best one."""
    by_number = {candidate.number: candidate for candidate in search.candidates}
    number: int | None = search.best
    path = []
    while number is not None:
        path.append(by_number[number])
        number = path[-1].parent
    return replace(search, candidates=path[::-1])


# rows that nothing refers to any more


def _tidy(record: PageRecord) -> None:
    """Empty the passes that no variant refers to any more, and their texts; places stay."""
    places = {place for row in record.variants for place in row.passes}
    record.passes = [
        each if each.variant is None or place in places else _without_rewrites(each)
        for place, each in enumerate(record.passes)
    ]
    read = {t for p in record.passes for t in (p.text_before, p.text_after)}
    record.texts = [t if i in read else "" for i, t in enumerate(record.texts)]


def _without_rewrites(row: RecordedPass) -> RecordedPass:
    return replace(row, before=[], after=[], text_before=None, text_after=None, rewrites=[])


def _plan_nodes(record: PageRecord) -> NodeColumns:
    """Return the nodes of a record without passes: those of the plan and their sources stay, others
    become empty. The loops and the code of variants no longer refer to nodes."""
    for row in record.variants:
        if row.loops is not None:
            rows = [replace(each, nodes=[]) for each in row.loops.rows]
            row.loops = replace(row.loops, rows=rows)
        row.code = [_without_nodes(code) for code in row.code]
    plan, nodes = record.plan, record.nodes
    waiting = [
        *(box.n for box in plan.nodes),
        *(decision.node for decision in plan.decisions),
        *(activation.node for activation in plan.activations),
        *(read.node for read in plan.reads),
    ]
    stay: set[int] = set()
    while waiting:
        place = waiting.pop()
        if place not in stay:
            stay.add(place)
            waiting += nodes.src[place]
    return NodeColumns(
        **{
            name: [v if i in stay else "" for i, v in enumerate(getattr(nodes, name))]
            for name in ("op", "dtype", "shape", "arg", "label")
        },
        src=[v if i in stay else [] for i, v in enumerate(nodes.src)],
        reading=[v if i in stay else 0 for i, v in enumerate(nodes.reading)],
        lines=[v if i in stay else [] for i, v in enumerate(nodes.lines)],
        causes=[[] for _ in nodes.causes],
    )


def _without_nodes(code: CodeRow) -> CodeRow:
    links = [link and replace(link, nodes=[]) for link in code.links]
    return replace(code, links=links)
