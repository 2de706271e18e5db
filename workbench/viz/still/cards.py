"""HTML cards of a kernel, a program, a pass and a plan, with tables and folds.

Sections: HTML elements; HTML cards of a kernel, a program, a pass and a plan, with tables and
folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from workbench.measure.kernel_time import seconds_text
from workbench.viz.decision_text import decision_cells, outcome
from workbench.viz.model.graph import KINDS, ink, pattern
from workbench.viz.model.passes import RewriteStep
from workbench.viz.model.words import bytes_text, figure_text, kernel_number, plural
from workbench.viz.schema.plan import DecisionRow, MemoryChart, PlanPicture
from workbench.viz.schema.record import KernelRow, LineRow, NodeColumns, PassRow, Reading
from workbench.viz.schema.variant import (
    BufferRow,
    CodeRow,
    Nest,
    NestRow,
    OfferRow,
    StepRow,
    VariantRow,
)
from workbench.viz.still.svg import STYLE, graph_picture, graph_rows
from workbench.viz.text import memory_text, work_text

# --------------------------------------------------------------------------------------------------
# HTML elements: escaped text, folds, tables of passes and opts. Strings in, strings out.

MOST_LINES = 1000
"""Most lines of code in one block."""


def page(*parts: str) -> str:
    """Return parts as one self-contained fragment with its own style sheet."""
    return f'<div class="wb-ex"><style>\n{STYLE}\n</style>{"".join(parts)}</div>'


def tag(name: str, content: str, kind: str = "", **more: str) -> str:
    """Return an element around `content`, which is HTML already; attributes are escaped."""
    pairs = ({"class": kind} if kind else {}) | more
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in pairs.items())
    return f"<{name}{attributes}>{content}</{name}>"


def code(words: str) -> str:
    """Return text as inline code."""
    return tag("code", escape(words))


def source(words: str) -> str:
    """Return text of several lines as a block of code, cut where it is very long."""
    lines = words.split("\n")
    if len(lines) > MOST_LINES:
        more = f"... and {len(lines) - MOST_LINES:,} more lines"
        words = "\n".join([*lines[:MOST_LINES], more])
    return tag("pre", escape(words), "src")


def line_diff(words: str) -> str:
    """Return a difference line by line as a block of code, in which added and removed lines have
    their colours."""
    kinds = {"+": "added", "-": "removed"}
    lines = words.split("\n")
    marked = [
        tag("span", escape(line), kinds[line[0]]) if line[:1] in kinds else escape(line)
        for line in lines[:MOST_LINES]
    ]
    more = len(lines) - len(marked)
    marked += [f"... and {more:,} more lines"] if more else []
    return tag("pre", "\n".join(marked), "src")


def fold(summary: str, body: str, is_open: bool = False) -> str:
    """Return `body` under a line that shows and hides it; both are HTML."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{summary}</summary>{tag('div', body, 'body')}</details>"


def muted(words: str) -> str:
    """Return text in a muted colour."""
    return tag("span", escape(words), "mu")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = ()) -> str:
    """Return a table of cells that are HTML already; `kinds` are the columns' classes."""
    kinds = kinds or [""] * len(heads)
    head = "".join(tag("th", h, k) for h, k in zip(heads, kinds, strict=True))
    body = "".join(
        tag("tr", "".join(tag("td", c, k) for c, k in zip(row, kinds, strict=True))) for row in rows
    )
    markup = f"<table><thead>{tag('tr', head)}</thead><tbody>{body}</tbody></table>"
    return tag("div", markup, "scroll")


def chip(kind: str) -> str:
    """Return the letter of an axis kind on its colour."""
    axis_kind = KINDS[kind]
    paint = f"color:{ink(axis_kind)};background-color:{axis_kind.colour}"
    return tag("span", axis_kind.badge, "chip", style=paint, title=axis_kind.words)


def bars(around: Sequence[str], step: int = 16) -> str:
    """Return the style of a cell inside loops: a bar per loop, in its colour and pattern."""
    layers = [
        f"{pattern(KINDS[kind])} {8 + step * depth}px 0/5px 100% no-repeat"
        for depth, kind in enumerate(around)
    ]
    paint = f"background:{','.join(layers)};" if layers else ""
    return f"{paint}padding-left:{8 + step * len(around)}px"


# --------------------------------------------------------------------------------------------------
# HTML cards of a kernel, a program, a pass and a plan, with tables and folds.

NAMED = "the function's name in the source"
COUNTS = {
    "loads": "loads", "stores": "stores", "fmas": "FMAs", "other": "other operations",
    "barriers": "barriers",
}  # fmt: skip
"""The words for counts."""


def card(parts: Sequence[str], colour: str = "") -> str:
    """Return parts as a card in the colour of its kernel ("": it is not one of several)."""
    style = {"style": f"--wb-k:{colour}"} if colour else {}
    return tag("div", "".join(parts), "card", **style)


def failed(words: str) -> str:
    """Return the reason why a part is missing."""
    return tag("div", escape(words), "bad")


# a kernel


def kernel_title(kernel: KernelRow, where: str, opts: Sequence[str], number: int | None) -> str:
    """Return what a kernel computes, `where` it comes from, its work, its name, and its opts."""
    parts = [] if number is None else [badge(number)]
    parts.append(tag("b", escape(kernel.title)))
    parts += [muted(where)] if where else []
    intensity = f"{kernel.flops / max(1, kernel.bytes):.3g} per byte"
    parts.append(muted(f"{work_text(kernel)}: {intensity}"))
    about = ". ".join(filter(None, [NAMED, kernel.decoded]))
    parts.append(tag("span", code(kernel.name), "mu", title=about))
    applied = ", ".join(opts)
    opts_part = tag("div", "Applied: " + code(applied), "capt") if applied else ""
    return tag("div", " ".join(parts), "title") + opts_part


def steps_part(steps: Sequence[StepRow]) -> str:
    """Return the steps of the default opts as a fold; "" without steps."""
    if not steps:
        return ""
    rows = [
        (
            escape(step.name),
            ", ".join(code(opt) for opt in step.opts),
            escape(step.why),
            muted(step.counts),
        )
        for step in steps
    ]
    summary = f"Why these opts: {plural(len(rows), 'step')} of the default"
    heads = ["step", "opts", "because", "counts"]
    return fold(summary, table(heads, rows, ["", "w", "w", "w"]))


def nest_part(nest: Nest, explains: bool) -> str:
    """Return the loop table; where it `explains`, with a sentence on how to read it."""
    heads = [tag("th", "loop"), tag("th", "steps", "n")]
    heads += [tag("th", _buffer_head(b), "n b", colspan="2") for b in nest.buffers]
    names = [b.name for b in nest.buffers]
    body = "".join(_loop_row(row, names) for row in nest.rows)
    head = f"<thead>{tag('tr', ''.join(heads))}</thead>"
    grid = tag("div", f"<table>{head}<tbody>{body}</tbody></table>", "scroll")
    used = dict.fromkeys(r.axis_kind for r in nest.rows if r.axis)
    legend = "".join(tag("span", f"{chip(k)} {escape(KINDS[k].words)}") for k in used)
    note = (
        "Per buffer: <b>elements moved by one step</b> (1: the neighbour, 0: the same again), "
        "then bytes touched by one whole run of the loop."
    )
    words = tag("div", note, "capt") if explains else ""
    return grid + words + tag("div", legend, "capt legend")


def _buffer_head(buffer: BufferRow) -> str:
    size = muted(f"{buffer.dtype}[{buffer.size:,}]")
    user = f"<b>{escape(buffer.user)}</b> " if buffer.user else ""
    return f"{user}{escape(buffer.name)} {escape(buffer.role)}<br>{size}"


def _loop_row(row: NestRow, names: Sequence[str]) -> str:
    style = bars(row.around)
    if not row.axis:
        statement = tag("pre", escape(row.text))
        cell = tag("td", statement, "st", colspan=str(2 + 2 * len(names)), style=style)
        return tag("tr", cell)
    note = muted(" vector") if row.vector else ""
    name = muted(KINDS[row.axis_kind].words)
    first = f"{chip(row.axis_kind)} {code(row.axis)} {name}{note}"
    cells = [tag("td", first, style=style), tag("td", f"{row.size:,}", "n")]
    for name in names:
        use = row.uses.get(name)
        cells.append(tag("td", "" if use is None else escape(use.stride), "n s"))
        cells.append(tag("td", "" if use is None else escape(use.bytes), "n by"))
    return tag("tr", "".join(cells))


def decisions_part(decisions: Sequence[DecisionRow], count: int) -> str:
    """Return the decisions that made a kernel: the first ones of `count`, that of the stored value
    before the others; "" without decisions."""
    if not decisions:
        return ""
    rows = []
    for decision in decisions:
        value, result, reason, estimates = map(escape, decision_cells(decision))
        rows.append((value, tag("b", result), reason, tag("span", estimates, "mu")))
    summary = f"Why this kernel: {escape(decisions[0].reason)}"
    if count > 1:
        summary += muted(f"; {plural(count - 1, 'value')} fused into it")
    if count > len(decisions):
        rows.append(("...", "", ".decisions has them all", ""))
    heads = ["value", "", "because", "estimates"]
    return fold(summary, table(heads, rows, ["", "", "w", "w"]))


def memory_part(chart: MemoryChart, titles: Sequence[str]) -> str:
    """Return the memory of a schedule; "" where it has fewer than two kernels."""
    if sum(step.kernel is not None for step in chart.steps) < 2:
        return ""
    summary = f"Memory: {escape(chart.sentence)}"
    return fold(summary, source(memory_text(chart, titles)))


def offers_part(offers: Sequence[OfferRow]) -> str:
    """Return the legal opts of a kernel, by kind."""
    by_op: dict[str, list[OfferRow]] = {}
    for offer in offers:
        by_op.setdefault(offer.op, []).append(offer)
    groups = []
    for op, listed in by_op.items():
        caption = f"{op} on a processor: {listed[0].does}. On a GPU: {listed[0].on_gpu}."
        groups.append(tag("div", escape(caption), "capt"))
        groups.append(tag("div", "".join(code(o.opt) for o in listed), "opts"))
    kinds = ", ".join(f"{len(listed)} {op}" for op, listed in by_op.items())
    summary = f"{plural(len(offers), 'legal opt')} {muted(kinds)}"
    return fold(summary, "".join(groups))


def program_part(program: CodeRow, is_open: bool = False) -> str:
    """Return the source of a kernel below its language and device."""
    lines = f"{len(program.lines):,} lines"
    about = f"{program.language} for device {program.device}, {lines}"
    body = source("\n".join(program.lines))
    return fold(f"Source {muted(about)}", body, is_open)


def counts_part(name: str, program: CodeRow, counts: Mapping[str, int]) -> str:
    """Return the name of a program, its language and device, and the counts of one run."""
    words = [f"{figure_text(counts[key])} {word}" for key, word in COUNTS.items()]
    words.append(f"{bytes_text(counts['bytes_loaded'])} loaded")
    words.append(f"{bytes_text(counts['bytes_stored'])} stored")
    about = muted(f"{program.language} for device {program.device}")
    head = tag("div", tag("b", escape(name)) + about, "title")
    return head + tag("div", escape("One run: " + ", ".join(words)), "capt")


# passes


def passes_part(what: str, rows: Sequence[PassRow]) -> str:
    """Return a fold with a table of passes; `what` they did is its summary."""
    total = sum(r.seconds for r in rows if not r.depth)
    counts = [plural(len(rows), "pass")]
    for unit in ("decision", "opt", "rewrite"):
        matches = sum(r.matches for r in rows if r.unit == unit)
        counts += [plural(matches, unit)] if matches else []
    summary = f"{what}: {', '.join(counts)} {muted(seconds_text(total))}"
    cells = []
    for row in rows:
        busiest = ", ".join(f"{rule.name} {rule.value}" for rule in row.rules[:4])
        more = f", and {len(row.rules) - 4} more" if len(row.rules) > 4 else ""
        state = "" if row.changed or row.error else "off"
        cells.append(
            (
                "&nbsp;" * 4 * row.depth + code(row.name),
                tag("span", escape(outcome(row)), state),
                seconds_text(row.seconds),
                tag("span", escape(row.doc), state),
                muted(busiest + more),
            )
        )
    heads = ["pass", "outcome", "time", "what holds after it", "rules"]
    return fold(summary, table(heads, cells, ["", "", "n", "w", "w"]))


def pass_part(row: PassRow, steps: Sequence[RewriteStep], difference: str) -> str:
    """Return a pass with its first rewrites, and what it changed as a whole."""
    folds = [
        fold(
            f"{s.number}. {code(s.rule)} {muted(s.doc)}",
            (code(s.rule_text) if s.rule_text != s.rule else "")
            + (source(s.difference) if s.difference else ""),
        )
        for s in steps
    ]
    more = row.matches - row.dropped - len(steps)
    folds += [muted(f"and {more:,} more")] if more else []
    about = muted(f"{outcome(row)}, {seconds_text(row.seconds)}")
    head = tag("div", tag("b", escape(row.name)) + about, "title")
    whole = "The whole pass as a difference"
    difference_part = fold(whole, source(difference), is_open=not folds)
    end = difference_part if difference else ""
    return "".join([head, tag("div", escape(row.doc), "capt"), *folds, end])


# a plan


def headline(expression: str, line: LineRow | None, summary: str, nothing: str) -> str:
    """Return what was explored (the user's `line` if it is known, else the `expression` in words),
    a summary, and, if there is `nothing` to do, why."""
    first = escape(expression) if line is None else code(line.text)
    parts = [tag("span", first, "expr")]
    if line is not None:
        parts.append(tag("span", escape(line.where), "sum"))
    parts.append(tag("span", escape(summary), "sum"))
    nothing_part = tag("div", escape(nothing)) if nothing else ""
    return tag("div", " ".join(parts), "head") + nothing_part


def graph_part(
    plan: PlanPicture, nodes: NodeColumns, readings: Sequence[Reading], lines: Sequence[LineRow]
) -> str:
    """Return the tensor graph, drawn and as a table; "" for one without nodes. `nodes`, their
    `readings`, and `lines` are what the plan refers to."""
    if not plan.nodes:
        return ""
    names = [
        tag("span", f"{badge(row.kernel)} {escape(row.title)}", style=f"--wb-k:{row.colour}")
        for row in plan.regions
    ]
    legend = tag("div", " ".join(names), "legend") if names else ""
    note = tag(
        "div",
        "Each coloured region is one kernel. A framed value with a number is what that kernel "
        "stores; a heavy line is a value that goes through memory from one kernel to the next.",
        "capt",
    )
    picture = tag("div", graph_picture(plan, nodes, readings), "scroll")
    heads = ["value", "size", "computed from", "kernels", "line"]
    cells = [[escape(cell) for cell in row] for row in graph_rows(plan, nodes, lines)]
    listed = fold("The graph as a table", table(heads, cells, ["", "", "w", "", ""]))
    return fold("Plan: the tensor graph, cut into kernels", legend + picture + note + listed, True)


def variants_part(
    rows: Sequence[VariantRow], times: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]
) -> str:
    """Return a table of the user's variants with their `times`, and the verdicts on their
    `answers`; "" where there are none."""
    if not rows:
        return ""
    cells = [
        (
            str(kernel_number(row.kernel)),
            escape(row.name),
            code(", ".join(row.opts)) if row.opts else muted("no opts"),
            "<br>".join(map(escape, texts)) or muted("not timed"),
            "<br>".join(map(escape, verdicts)) or muted("not checked"),
            escape(row.note),
        )
        for row, texts, verdicts in zip(rows, times, answers, strict=True)
    ]
    heads = ["kernel", "variant", "opts", "time", "answer", "note"]
    summary = f"Tried: {plural(len(rows), 'variant')}"
    listed = table(heads, cells, ["", "", "w", "w", "w", "w"])
    return tag("div", fold(summary, listed, is_open=True), "wb-ex")


def verdict(row: VariantRow) -> str:
    """Return whether the answer of a variant is right, or how it failed; "" if it was not run."""
    error = f"failed: {row.error.what}: {row.error.because}" if row.error else ""
    return row.check.text if row.check else error.rstrip(": ")


def left_out_part(words: str) -> str:
    """Return what was left out of a saved copy; "" where nothing was."""
    if not words:
        return ""
    line = f"Left out of the saved copy: {words}. Run the cell again to have all."
    return tag("div", muted(line), "wb-ex")


def titles_part(summary: str, titles: Sequence[str], places: Sequence[int]) -> str:
    """Return the titles of the kernels at some places, which are not shown in full; "" without
    places."""
    if not places:
        return ""
    rows = [(str(kernel_number(n)), escape(titles[n])) for n in places]
    return fold(escape(summary), table(["kernel", "computes"], rows))


def badge(place: int) -> str:
    """Return the number of the kernel at `place` of `.kernels`, on its colour."""
    return tag("span", str(kernel_number(place)), "no")
