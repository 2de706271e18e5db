"""Mimebundles for Jupyter: of an Exploration, a Pane, a Kernel, a Compiled, a PassRecord, the
lanes of a tensor core's tile and a Sweep.

Each has an HTML fragment, without scripts and without anything from outside, and a text. Both print
rows as a record has them; only rows that are printed are built.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from workbench.base.context import LIVE
from workbench.base.terminal import Bundle, register
from workbench.base.trace import PassRecord
from workbench.ir.meaning.tiles import LaneMap
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Compiled, Kernel
from workbench.viz.decision_text import passes_text
from workbench.viz.exploration.exploration import MOST_KERNELS, Exploration
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model import passes as rewrites
from workbench.viz.model.decisions import folded_kernels, printed_decisions
from workbench.viz.model.loops import kernel_nest
from workbench.viz.model.passes import pass_rows
from workbench.viz.model.phases import weights_title
from workbench.viz.model.words import error_text, explained, plural
from workbench.viz.page.panels.memory.panel import memory_chart
from workbench.viz.pane import Pane
from workbench.viz.record.nodes import Lines, Nodes
from workbench.viz.record.offers import offer_rows
from workbench.viz.record.plan import plan_graph, region_rows
from workbench.viz.record.variants import (
    counts_row,
    kernel_origin,
    kernel_row,
    source_row,
    step_rows,
)
from workbench.viz.run.sweep import Sweep, places_of, value_text
from workbench.viz.schema.record import LineRow
from workbench.viz.still import cards
from workbench.viz.still.cards import code, fold, page, source, tag
from workbench.viz.still.lane_picture import TileLanes, lane_map_html
from workbench.viz.still.picture import LETTER_WIDTH
from workbench.viz.still.svg import graph_picture
from workbench.viz.still.sweep_picture import SweepPicture, sweep_html
from workbench.viz.text import nest_text

DETAIL_S = 0.25
"""Seconds after which a picture compiles no further kernel: it says how to ask for the rest."""
MOST_STEPS = 40
"""Most rewrites of one pass that are shown with their text."""


def register_all() -> None:
    """Register the picture, and the text, of each of these types."""
    register(Exploration, exploration_bundle)
    register(Kernel, kernel_bundle, kernel_text)
    register(Compiled, compiled_bundle, compiled_text)
    register(PassRecord, pass_bundle, pass_text)
    register(Pane, pane_bundle)
    register(LaneMap, lane_map_bundle)
    register(Sweep, sweep_bundle)


def exploration_bundle(ex: Exploration, detail_s: float | None = None) -> Bundle:
    """Return the picture of an Exploration: headline, graph, kernels, passes. With `show` it is the
    one pane; while a question waits for a guess, the question.

    Units: detail_s, seconds that compiling and listing opts for it may take (None: DETAIL_S).
    """
    if ex.waits:
        return {"text/html": page(source(ex.waits)), "text/plain": ex.waits}
    if ex.show:
        return pane_bundle(Pane(ex, ex.show))
    detail_s = DETAIL_S if detail_s is None else detail_s
    deadline = time.perf_counter() + detail_s
    line = None if ex.line is None else LineRow(str(ex.line), ex.line.text)
    expression = f"explore of {plural(len(ex.tensors), 'tensor')}"
    parts = [cards.headline(expression, line, ex.headline, ex.nothing_to_do), _graph_part(ex)]
    titles = [kernel.title for kernel in ex.kernels]
    weights = folded_kernels(ex.kernels)
    others = [number for number in range(len(titles)) if number not in weights]
    colours = [row.colour for row in region_rows(ex.kernels)]
    for number in others[:MOST_KERNELS]:
        decisions = _decisions_of(ex, number)
        kernel, colour = ex.kernels[number], colours[number]
        parts.append(_kernel_card(kernel, number, colour, decisions, deadline))
    rest = others[MOST_KERNELS:]
    more = f"{plural(len(rest), 'more kernel')}, by title"
    parts.append(cards.titles_part(more, titles, rest))
    parts.append(cards.titles_part(weights_title(len(weights)), titles, weights))
    parts.append(_part(lambda: cards.memory_part(memory_chart(ex), titles)))
    parts.append(cards.passes_part("Scheduling", pass_rows(ex.passes)))
    return {"text/html": page(*parts), "text/plain": str(ex)}


def pane_bundle(pane: Pane) -> Bundle:
    """Return the picture of one pane of an Exploration: its text, and for the plan the graph."""
    text = str(pane)
    is_drawn = pane.name == "plan" and not pane.exploration.waits
    graph = _graph_part(pane.exploration) if is_drawn else ""
    return {"text/html": page(graph, source(text)), "text/plain": text}


def kernel_bundle(kernel: Kernel) -> Bundle:
    """Return the picture of a Kernel: its loops, text, opts and source."""
    deadline = time.perf_counter() + DETAIL_S
    html = page(_kernel_card(kernel, None, "", (), deadline))
    return {"text/html": html, "text/plain": kernel_text(kernel)}


def kernel_text(kernel: Kernel) -> str:
    """Return a Kernel as text: what it is, its loops, and why it has the default opts."""
    why = f"\nthe default opts:\n{kernel.steps}" if kernel.steps else ""
    loops = explained(lambda: nest_text(kernel_nest(kernel)))
    return f"{kernel!r}\n{loops}{why}"


def compiled_bundle(compiled: Compiled) -> Bundle:
    """Return the picture of a Compiled: source, statement tree, passes, counts."""
    program = source_row(compiled)
    parts = [
        cards.counts_part(compiled.built.source.name, program, counts_row(compiled)),
        cards.program_part(program, is_open=True),
        fold("Statement tree", source(rewrites.text(compiled["lowered"]))),
        cards.passes_part("Compiling", pass_rows(compiled.passes)),
    ]
    return {"text/html": page(cards.card(parts)), "text/plain": compiled_text(compiled)}


def compiled_text(compiled: Compiled) -> str:
    """Return a Compiled as text: its source, and its passes."""
    return f"{compiled.source}\n\n{passes_text(pass_rows(compiled.passes))}"


def pass_bundle(record: PassRecord) -> Bundle:
    """Return the picture of a PassRecord: its rewrites, and the difference that they made."""
    count = min(len(record.matches), MOST_STEPS)
    steps = [rewrites.step(record, number) for number in range(1, count + 1)]
    whole = rewrites.pass_difference(record)
    (row,) = pass_rows([record])
    html = page(cards.card([cards.pass_part(row, steps, whole)]))
    return {"text/html": html, "text/plain": pass_text(record)}


def pass_text(record: PassRecord) -> str:
    """Return a PassRecord as text: its outcome, its description, and the difference it made."""
    lines = [passes_text(pass_rows([record])), record.doc]
    return "\n".join([*lines, rewrites.pass_difference(record)])


def lane_map_bundle(lanes: LaneMap) -> Bundle:
    """Return the picture of the tile of a tensor core: which lane has which element."""
    holders = [[(int(i), int(j)) for i, j in row] for row in lanes.holders]
    count, each = lanes.rows.shape
    tile = TileLanes(lanes.title, count, each, holders)
    return {"text/html": lane_map_html(tile), "text/plain": str(lanes)}


def sweep_bundle(sweep: Sweep) -> Bundle:
    """Return the picture of a Sweep: its times by size, and the roofline, over its table."""
    rows = [row for row in sweep.rows if not row.error]
    picture = SweepPicture(
        sweep.name, [value_text(row.value) for row in rows], places_of(rows),
        [row.measured_s for row in rows], [row.predicted_s for row in rows],
        [row.peak_s for row in rows], [row.memory_s for row in rows],
        [row.flops for row in rows], [row.bytes for row in rows], sweep.ceilings, str(sweep),
    )  # fmt: skip
    return {"text/html": sweep_html(picture), "text/plain": str(sweep)}


def _graph_part(ex: ScheduledTensors) -> str:
    lines = Lines()
    nodes = Nodes(lines, ex.lines, ex.items)
    plan = plan_graph(ex, nodes, lines)
    return cards.graph_part(plan, nodes.columns, nodes.readings.listed, lines.listed)


def marked_graph(ex: ScheduledTensors, signs: Mapping[UOp, str]) -> str:
    """Return the tensor graph of an Exploration as a picture, with a sign before the label of some
    nodes; "" where there are none."""
    lines = Lines()
    nodes = Nodes(lines, ex.lines, ex.items)
    plan = plan_graph(ex, nodes, lines)
    for row in plan.nodes:
        sign = signs.get(nodes.at(row.n))
        if sign is not None:
            row.label = f"{sign} {row.label}"
            row.w += LETTER_WIDTH * (len(sign) + 1)
    return tag("div", graph_picture(plan, nodes.columns, nodes.readings.listed), "scroll")


# a kernel's card


def _kernel_card(
    kernel: Kernel, number: int | None, colour: str, decisions: Sequence[Decision], deadline: float
) -> str:
    """Return a kernel as a card: its loops, text, decisions, opts and code. `number` is its
    position in an exploration, which has a `colour` for it. A part that has not begun by the
    `deadline` is replaced by the call that returns it."""
    applied = [str(opt) for opt in kernel.applied_opts]
    parts = [
        cards.kernel_title(kernel_row(kernel), kernel_origin(kernel), applied, number),
        cards.steps_part(step_rows(kernel.steps)),
        _part(lambda: cards.nest_part(kernel_nest(kernel), not number)),
        fold("Kernel as text", source(str(kernel))),
        cards.decisions_part(printed_decisions(decisions), len(decisions)),
    ]
    for make, otherwise in (
        (lambda: cards.offers_part(offer_rows(kernel)), "Legal opts: .legal_opts()"),
        (lambda: _compiled_part(kernel), "Source: .compile().source"),
    ):
        is_in_time = LIVE.value < 1 or time.perf_counter() < deadline
        # with LIVE=0 a page is read later: it is complete, and the same on every machine
        parts.append(_part(make) if is_in_time else tag("div", code(otherwise)))
    return cards.card(parts, colour)


def _part(make: Callable[[], str]) -> str:
    """Return a part, or its error: a rule that raises must not hide the other parts."""
    try:
        return make()
    except Exception as error:
        return cards.failed(error_text(error))


def _compiled_part(kernel: Kernel) -> str:
    try:
        compiled = kernel.compile()
    except Exception as error:
        passes = pass_rows(kernel.observed(kernel.device))
        as_far = cards.passes_part("Compiling, as far as it came", passes)
        return cards.failed(error_text(error)) + as_far
    passes = pass_rows(compiled.passes)
    program = cards.program_part(source_row(compiled))
    return program + cards.passes_part("Compiling", passes)


def _decisions_of(ex: Exploration, number: int) -> tuple[Decision, ...]:
    """Return the decisions about what kernel `number` stores, then those about what it fuses."""
    kernels = [item for item in ex.items if item.kernel is not None]
    own = kernels[number]
    below = set(own.computed({node for item in ex.items for node in item.nodes}))
    fused = [d for d in ex.decisions if not d.stored and d.node in below]
    return (*own.decisions, *fused)
