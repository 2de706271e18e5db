"""Mimebundles: what Jupyter shows for an Exploration, a Kernel, a Compiled and a PassRecord.

Everything is one HTML fragment without scripts or anything from outside, and a text form.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape

from workbench.backends.device import Device
from workbench.context import LIVE
from workbench.display import Bundle, register
from workbench.ir.opt.apply import caption
from workbench.ir.opt.opt import OptOps
from workbench.ir.schedule.item import Decision
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.kernel import Compiled, Kernel
from workbench.kernel.timing import seconds_text
from workbench.trace import PassRecord, unobserved
from workbench.viz.exploration import (
    MOST_KERNELS,
    Exploration,
)
from workbench.viz.html import bars, chip, code, fold, muted, page, source, table, tag
from workbench.viz.model import loops, rewrites
from workbench.viz.model.decisions import MOST_DECISIONS, decision_cells
from workbench.viz.model.graph import TensorGraph
from workbench.viz.model.kinds import KINDS
from workbench.viz.model.loops import LoopNest, Row
from workbench.viz.model.passes import opts_by_op, outcome, pass_rows, passes_text
from workbench.viz.model.words import bytes_text, error_text, figure_text, plural
from workbench.viz.palette import kernel_colour
from workbench.viz.pane import Pane
from workbench.viz.svg import graph_picture, graph_rows

DETAIL_S = 0.25
"""Compiling and listing opts for a picture stops after this long; what is left says so."""
MOST_STEPS = 40
"""Rewrites of one pass shown with their text."""


def register_all() -> None:
    """Fill the table of pictures."""
    register(Exploration, exploration_bundle)
    register(Kernel, kernel_bundle, kernel_text)
    register(Compiled, compiled_bundle, compiled_text)
    register(PassRecord, pass_bundle, pass_text)
    register(Pane, pane_bundle)


def exploration_bundle(ex: Exploration, detail_s: float | None = None) -> Bundle:
    """Return the picture of an Exploration: headline, graph, kernels, passes.

    Units: detail_s, seconds that compiling and listing opts for it may take.
    """
    if ex.show:
        return pane_bundle(Pane(ex, ex.show))
    detail_s = DETAIL_S if detail_s is None else detail_s
    deadline = time.perf_counter() + detail_s
    graph = ex.graph
    parts = [_headline(ex), _graph_part(graph)]
    for number, kernel in enumerate(ex.kernels[:MOST_KERNELS]):
        decisions = _decisions_of(ex, number)
        parts.append(_kernel_card(kernel, number, decisions, deadline))
    rest = ex.kernels[MOST_KERNELS:]
    if rest:
        listed = [(str(MOST_KERNELS + i), escape(k.title)) for i, k in enumerate(rest)]
        summary = f"{plural(len(rest), 'more kernel')}, by title"
        parts.append(fold(summary, table(["kernel", "computes"], listed)))
    parts.append(_passes_part("Scheduling", ex.passes))
    return {"text/html": page(*parts), "text/plain": str(ex)}


def pane_bundle(pane: Pane) -> Bundle:
    """Return the picture of one pane of an Exploration: its text, the plan with its graph."""
    text = str(pane)
    graph = _graph_part(pane.exploration.graph) if pane.name == "plan" else ""
    return {"text/html": page(graph, source(text)), "text/plain": text}


def kernel_bundle(kernel: Kernel) -> Bundle:
    """Return the picture of a Kernel: its loops, text, opts and source."""
    deadline = time.perf_counter() + DETAIL_S
    html = page(_kernel_card(kernel, None, (), deadline))
    return {"text/html": html, "text/plain": kernel_text(kernel)}


def kernel_text(kernel: Kernel) -> str:
    """Return a Kernel as text: what it is, and its loops."""
    return f"{kernel!r}\n{_nest_text(kernel)}"


def compiled_bundle(compiled: Compiled) -> Bundle:
    """Return the picture of a Compiled: source, statement tree, passes, counts."""
    counts = compiled.counts
    figures = (
        ("loads", counts.loads), ("stores", counts.stores), ("FMAs", counts.fmas),
        ("other operations", counts.other), ("barriers", counts.barriers),
    )  # fmt: skip
    words = [f"{figure_text(value)} {name}" for name, value in figures]
    words.append(f"{bytes_text(counts.bytes_loaded)} loaded")
    words.append(f"{bytes_text(counts.bytes_stored)} stored")
    made = compiled.built.source
    about = f"{made.language} for device {compiled.device}"
    head = tag("b", escape(made.name)) + muted(about)
    body = [
        tag("div", head, "title"),
        tag("div", escape("One run: " + ", ".join(words)), "capt"),
        fold(_source_summary(compiled), source(compiled.source), is_open=True),
        fold("Statement tree", source(rewrites.text(compiled["lowered"]))),
        _passes_part("Compiling", compiled.passes),
    ]
    html = page(tag("div", "".join(body), "card"))
    return {"text/html": html, "text/plain": compiled_text(compiled)}


def compiled_text(compiled: Compiled) -> str:
    """Return a Compiled as text: its source, and its passes."""
    return f"{compiled.source}\n\n{passes_text(pass_rows(compiled.passes))}"


def pass_bundle(record: PassRecord) -> Bundle:
    """Return the picture of a PassRecord: its rewrites, and what it changed as a whole."""
    row = pass_rows([record])[0]
    steps = [
        rewrites.step(record, i + 1)
        for i in range(min(len(record.matches), MOST_STEPS))
    ]
    folds = [
        fold(
            f"{s.number}. {code(s.rule)} {muted(s.doc)}",
            (code(s.rule_text) if s.rule_text != s.rule else "")
            + (source(s.difference) if s.difference else ""),
        )
        for s in steps
    ]
    if len(record.matches) > MOST_STEPS:
        folds.append(muted(f"and {len(record.matches) - MOST_STEPS:,} more"))
    head = tag("b", escape(record.name)) + muted(
        f"{outcome(row)}, {seconds_text(row.seconds)}"
    )
    whole = rewrites.pass_difference(record)
    body = [tag("div", head, "title"), tag("div", escape(record.doc), "capt"), *folds]
    if whole:
        body.append(
            fold("The whole pass as a difference", source(whole), is_open=not folds)
        )
    html = page(tag("div", "".join(body), "card"))
    return {"text/html": html, "text/plain": pass_text(record)}


def pass_text(record: PassRecord) -> str:
    """Return a PassRecord as text: what came of it, and what it changed as a whole."""
    lines = [passes_text(pass_rows([record])), record.doc]
    return "\n".join([*lines, rewrites.pass_difference(record)])


# an Exploration's parts


def _headline(ex: Exploration) -> str:
    expression = (
        f"explore of {plural(len(ex.tensors), 'tensor')}" if ex.line is None else ""
    )
    first = code(ex.line.text) if ex.line else escape(expression)
    parts = [tag("span", first, "expr")]
    if ex.line is not None:
        parts.append(tag("span", escape(str(ex.line)), "sum"))
    parts.append(tag("span", escape(ex.headline), "sum"))
    nothing = tag("div", escape(ex.nothing_to_do)) if ex.nothing_to_do else ""
    return tag("div", " ".join(parts), "head") + nothing


def _graph_part(graph: TensorGraph) -> str:
    if not graph.nodes:
        return ""
    names = [
        tag("span", f"{_number(i)} {escape(title)}", style=f"--wb-k:{kernel_colour(i)}")
        for i, title in enumerate(graph.titles)
    ]
    legend = tag("div", " ".join(names), "legend") if names else ""
    note = tag(
        "div",
        "Each coloured region is one kernel. A framed value with a number is what that kernel "
        "stores; a heavy line is a value that goes through memory from one kernel to the next.",
        "capt",
    )
    picture = tag("div", graph_picture(graph), "scroll plan")
    heads = ["value", "size", "computed from", "kernels", "line"]
    cells = [[escape(cell) for cell in row] for row in graph_rows(graph)]
    listed = fold("The graph as a table", table(heads, cells, ["", "", "w", "", ""]))
    return fold(
        "Plan: the tensor graph, cut into kernels",
        legend + picture + note + listed,
        True,
    )


def _decisions_of(ex: Exploration, number: int) -> tuple[Decision, ...]:
    """Return the decisions about what kernel `number` stores and fuses, the stored one first."""
    kernels = [item for item in ex.items if item.kernel is not None]
    own = kernels[number].decision
    others = {item.node for item in ex.items} - {own.node}
    below = own.node.toposort(lambda n: n not in others)
    fused = [d for d in ex.decisions if not d.stored and d.node in below]
    return (own, *fused)


def _number(number: int) -> str:
    return tag("span", str(number), "no")


# a kernel


def _kernel_card(
    kernel: Kernel, number: int | None, decisions: Sequence[Decision], deadline: float
) -> str:
    parts = [_kernel_title(kernel, number), _loops_part(kernel, not number)]
    parts.append(fold("Kernel as text", source(str(kernel))))
    if decisions:
        parts.append(_decisions_part(decisions))
    parts.append(
        _in_time(deadline, lambda: _opts_part(kernel), "Possible opts: .legal_opts()")
    )
    parts.append(
        _in_time(deadline, lambda: _compiled_part(kernel), "Source: .compile().source")
    )
    colour = "" if number is None else f"--wb-k:{kernel_colour(number)}"
    return tag("div", "".join(parts), "card", **({"style": colour} if colour else {}))


def _in_time(deadline: float, make: Callable[[], str], otherwise: str) -> str:
    """Return what `make` makes if there is time left, else how to ask for it. A page that is
    written to be read later (LIVE is 0) has the time, and is the same on every machine."""
    is_in_time = LIVE.value < 1 or time.perf_counter() < deadline
    return make() if is_in_time else tag("div", code(otherwise))


def _kernel_title(kernel: Kernel, number: int | None) -> str:
    figures = kernel.estimates
    parts = [] if number is None else [_number(number)]
    parts.append(tag("b", escape(kernel.title or kernel.name)))
    if kernel.line is not None:
        parts.append(muted(str(kernel.line)))
    parts.append(
        muted(
            f"{figure_text(figures.flops)} operations, {bytes_text(figures.bytes)}: "
            f"{figures.intensity:.3g} per byte"
        )
    )
    parts.append(
        tag("span", code(kernel.name), "mu", title="the function's name in the source")
    )
    applied = ", ".join(str(opt) for opt in kernel.applied_opts)
    done = tag("div", "Applied: " + code(applied), "capt") if applied else ""
    return tag("div", " ".join(parts), "title") + done


def _device(kernel: Kernel) -> str:
    """Return the device that a kernel's own tensor is on."""
    if isinstance(kernel.data, FromSchedule):
        return str(kernel.data.run.items[kernel.data.number].buffers[0].arg[1])
    return Device.DEFAULT


def _nest(kernel: Kernel) -> LoopNest | str:
    """Return the loops, or why there are none: a rule that raises must not hide the rest."""
    try:
        with unobserved():
            return loops.loop_nest(kernel.ast, Device[_device(kernel)].target)
    except Exception as error:
        return error_text(error)


def _nest_text(kernel: Kernel) -> str:
    nest = _nest(kernel)
    return nest if isinstance(nest, str) else loops.to_text(nest)


def _loops_part(kernel: Kernel, explains: bool) -> str:
    """Return the loop table; where it `explains`, with a sentence on how to read it."""
    nest = _nest(kernel)
    if isinstance(nest, str):
        return _failed(nest)
    heads = [tag("th", "loop"), tag("th", "steps", "n")]
    heads += [tag("th", _buffer_head(b), "n b", colspan="2") for b in nest.buffers]
    names = [b.name for b in nest.buffers]
    body = "".join(_loop_row(row, names) for row in nest.rows)
    head = f"<thead>{tag('tr', ''.join(heads))}</thead>"
    grid = tag("div", f"<table>{head}<tbody>{body}</tbody></table>", "scroll")
    used = dict.fromkeys(r.axis_kind for r in nest.rows if r.axis_kind is not None)
    legend = "".join(tag("span", f"{chip(k)} {escape(KINDS[k].name)}") for k in used)
    note = (
        "Per buffer: <b>elements moved by one step</b> (1: the neighbour, 0: the same again), "
        "then bytes touched by one whole run of the loop."
    )
    words = tag("div", note, "capt") if explains else ""
    return grid + words + tag("div", legend, "capt legend")


def _buffer_head(buffer: loops.BufferInfo) -> str:
    size = muted(f"{buffer.dtype}[{buffer.size:,}]")
    return f"{escape(buffer.name)} {escape(buffer.role)}<br>{size}"


def _loop_row(row: Row, names: Sequence[str]) -> str:
    style = bars(row.around)
    if row.axis_kind is None:
        statement = tag("pre", escape(row.text))
        cell = tag("td", statement, "st", colspan=str(2 + 2 * len(names)), style=style)
        return tag("tr", cell)
    note = muted(" vector") if row.is_vector else ""
    first = f"{chip(row.axis_kind)} {code(row.axis)} {muted(KINDS[row.axis_kind].name)}{note}"
    cells = [tag("td", first, style=style), tag("td", f"{row.size:,}", "n")]
    for name in names:
        use = row.uses.get(name)
        cells.append(tag("td", "" if use is None else escape(use.stride_text), "n s"))
        cells.append(tag("td", "" if use is None else escape(use.bytes_text), "n by"))
    return tag("tr", "".join(cells))


def _decisions_part(decisions: Sequence[Decision]) -> str:
    rows = []
    for decision in decisions[:MOST_DECISIONS]:
        value, result, reason, figures = (escape(c) for c in decision_cells(decision))
        rows.append((value, tag("b", result), reason, tag("span", figures, "mu")))
    summary = f"Why this kernel: {escape(decisions[0].reason)}"
    if len(decisions) > 1:
        summary += muted(f"; {plural(len(decisions) - 1, 'value')} fused into it")
    if len(decisions) > MOST_DECISIONS:
        rows.append(("...", "", ".decisions has them all", ""))
    return fold(
        summary, table(["value", "", "because", "figures"], rows, ["", "", "w", "w"])
    )


def _failed(words: str) -> str:
    return tag("div", escape(words), "bad")


def _opts_part(kernel: Kernel) -> str:
    try:
        legal = kernel.legal_opts()
    except Exception as error:
        return _failed(error_text(error))
    groups = []
    for op, listed in opts_by_op(legal):
        chips = "".join(code(text) for text in listed)
        groups.append(tag("div", escape(caption(OptOps[op])), "capt"))
        groups.append(tag("div", chips, "opts"))
    kinds = ", ".join(f"{len(listed)} {op}" for op, listed in opts_by_op(legal))
    return fold(f"{plural(len(legal), 'possible opt')} {muted(kinds)}", "".join(groups))


def _compiled_part(kernel: Kernel) -> str:
    try:
        compiled = kernel.compile(_device(kernel))
    except Exception as error:
        seen = kernel.observed(_device(kernel))
        return _failed(error_text(error)) + _passes_part(
            "Compiling, as far as it came", seen
        )
    made = fold(_source_summary(compiled), source(compiled.source))
    return made + _passes_part("Compiling", compiled.passes)


def _source_summary(compiled: Compiled) -> str:
    lines = compiled.source.count("\n") + 1
    language = compiled.built.source.language
    return (
        f"Source {muted(f'{language} for device {compiled.device}, {lines:,} lines')}"
    )


def _passes_part(what: str, records: Sequence[PassRecord]) -> str:
    rows = pass_rows(records)
    total = sum(r.seconds for r in rows if not r.depth)
    counts = [plural(len(rows), "pass")]
    for unit in ("decision", "opt", "rewrite"):
        matches = sum(r.matches for r in rows if r.unit == unit)
        counts += [plural(matches, unit)] if matches else []
    summary = f"{what}: {', '.join(counts)} {muted(seconds_text(total))}"
    cells = []
    for row in rows:
        busiest = ", ".join(f"{name} {count}" for name, count in row.rules[:4])
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
