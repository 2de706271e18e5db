"""Mimebundles: what Jupyter shows for an Exploration, a Kernel, a Compiled and a PassRecord.

Everything is one HTML fragment without scripts or anything from outside, and a text form.
"""

from __future__ import annotations

import time
from html import escape

from workbench.base.display import Bundle, register
from workbench.base.trace import PassRecord
from workbench.ir.schedule.item import Decision
from workbench.kernel.kernel import Compiled, Kernel
from workbench.measure.kernel_time import seconds_text
from workbench.viz.exploration import (
    MOST_KERNELS,
    Exploration,
)
from workbench.viz.model import rewrites
from workbench.viz.model.graph import TensorGraph
from workbench.viz.model.passes import outcome, pass_rows, passes_text
from workbench.viz.model.words import (
    bytes_text,
    figure_text,
    kernel_number,
    plural,
)
from workbench.viz.still.cards import (
    badge,
    kernel_card,
    nest_of,
    passes_part,
    source_summary,
)
from workbench.viz.still.html import code, fold, muted, page, source, table, tag
from workbench.viz.still.palette import kernel_colour
from workbench.viz.still.svg import graph_picture, graph_rows
from workbench.viz.text.nest import nest_text
from workbench.viz.text.pane import Pane

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
        parts.append(kernel_card(kernel, number, decisions, deadline))
    rest = ex.kernels[MOST_KERNELS:]
    if rest:
        listed = [
            (str(kernel_number(place)), escape(kernel.title))
            for place, kernel in enumerate(rest, MOST_KERNELS)
        ]
        summary = f"{plural(len(rest), 'more kernel')}, by title"
        parts.append(fold(summary, table(["kernel", "computes"], listed)))
    parts.append(passes_part("Scheduling", ex.passes))
    return {"text/html": page(*parts), "text/plain": str(ex)}


def pane_bundle(pane: Pane) -> Bundle:
    """Return the picture of one pane of an Exploration: its text, the plan with its graph."""
    text = str(pane)
    graph = _graph_part(pane.exploration.graph) if pane.name == "plan" else ""
    return {"text/html": page(graph, source(text)), "text/plain": text}


def kernel_bundle(kernel: Kernel) -> Bundle:
    """Return the picture of a Kernel: its loops, text, opts and source."""
    deadline = time.perf_counter() + DETAIL_S
    html = page(kernel_card(kernel, None, (), deadline))
    return {"text/html": html, "text/plain": kernel_text(kernel)}


def kernel_text(kernel: Kernel) -> str:
    """Return a Kernel as text: what it is, its loops, and why it has the default opts."""
    why = f"\nthe default opts:\n{kernel.steps}" if kernel.steps else ""
    nest = nest_of(kernel)
    loops = nest if isinstance(nest, str) else nest_text(nest)
    return f"{kernel!r}\n{loops}{why}"


def compiled_bundle(compiled: Compiled) -> Bundle:
    """Return the picture of a Compiled: source, statement tree, passes, counts."""
    counts = compiled.counts
    columns = (
        ("loads", counts.loads), ("stores", counts.stores), ("FMAs", counts.fmas),
        ("other operations", counts.other), ("barriers", counts.barriers),
    )  # fmt: skip
    words = [f"{figure_text(value)} {name}" for name, value in columns]
    words.append(f"{bytes_text(counts.bytes_loaded)} loaded")
    words.append(f"{bytes_text(counts.bytes_stored)} stored")
    program = compiled.built.source
    about = f"{program.language} for device {compiled.device}"
    head = tag("b", escape(program.name)) + muted(about)
    body = [
        tag("div", head, "title"),
        tag("div", escape("One run: " + ", ".join(words)), "capt"),
        fold(source_summary(compiled), source(compiled.source), is_open=True),
        fold("Statement tree", source(rewrites.text(compiled["lowered"]))),
        passes_part("Compiling", compiled.passes),
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
        tag("span", f"{badge(i)} {escape(title)}", style=f"--wb-k:{kernel_colour(i)}")
        for i, title in enumerate(graph.titles)
    ]
    legend = tag("div", " ".join(names), "legend") if names else ""
    note = tag(
        "div",
        "Each coloured region is one kernel. A framed value with a number is what that kernel "
        "stores; a heavy line is a value that goes through memory from one kernel to the next.",
        "capt",
    )
    picture = tag("div", graph_picture(graph), "scroll")
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
    own = kernels[number]
    below = set(own.computed({node for item in ex.items for node in item.nodes}))
    fused = [d for d in ex.decisions if not d.stored and d.node in below]
    return (*own.decisions, *fused)
