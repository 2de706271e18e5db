"""The HTML of a kernel: a card with its loops, its decisions, what can be done next, its code."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape

from workbench.backends.device import Device
from workbench.base.context import LIVE
from workbench.base.trace import PassRecord, unobserved
from workbench.ir.opt.opt import OptOps
from workbench.ir.schedule.item import Decision
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.kernel import Compiled, Kernel
from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.decisions import MOST_DECISIONS, decision_cells
from workbench.viz.model.kinds import KIND_LOOKS
from workbench.viz.model.loops import loop_nest
from workbench.viz.model.passes import opts_by_op, outcome, pass_rows
from workbench.viz.model.title import decoded
from workbench.viz.model.words import (
    bytes_text,
    error_text,
    figure_text,
    kernel_number,
    plural,
)
from workbench.viz.schema.variant import BufferRow, Nest, NestRow
from workbench.viz.still.html import bars, chip, code, fold, muted, source, table, tag
from workbench.viz.still.palette import kernel_colour

NAMED = "the function's name in the source"


def kernel_card(
    kernel: Kernel, number: int | None, decisions: Sequence[Decision], deadline: float
) -> str:
    """Return a kernel as a card: its loops, text, decisions, opts and code; `number` is its place
    in an exploration. What is not begun by the `deadline` says how to ask for it."""
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
    estimates = kernel.estimates
    parts = [] if number is None else [badge(number)]
    parts.append(tag("b", escape(kernel.title or kernel.name)))
    if kernel.line is not None:
        parts.append(muted(str(kernel.line)))
    parts.append(
        muted(
            f"{figure_text(estimates.flops)} operations, {bytes_text(estimates.bytes)}: "
            f"{estimates.intensity:.3g} per byte"
        )
    )
    about = ". ".join(filter(None, [NAMED, decoded(kernel.original)]))
    parts.append(tag("span", code(kernel.name), "mu", title=about))
    applied = ", ".join(str(opt) for opt in kernel.applied_opts)
    opts_part = tag("div", "Applied: " + code(applied), "capt") if applied else ""
    return tag("div", " ".join(parts), "title") + opts_part + _steps_part(kernel)


def _steps_part(kernel: Kernel) -> str:
    """Return why a kernel has the default opts; "" for one that has others."""
    if not kernel.steps:
        return ""
    rows = [
        (
            escape(step.name),
            ", ".join(code(str(opt)) for opt in step.opts),
            escape(step.why),
            muted(
                ", ".join(
                    f"{name} {figure_text(n)}" for name, n in step.counts_in_words
                )
            ),
        )
        for step in kernel.steps
    ]
    summary = f"Why these opts: {plural(len(rows), 'step')} of the default"
    heads = ["step", "opts", "because", "figures"]
    return fold(summary, table(heads, rows, ["", "w", "w", "w"]))


def _device(kernel: Kernel) -> str:
    """Return the device that a kernel's own tensor is on."""
    if isinstance(kernel.data, FromSchedule):
        return kernel.data.run.items[kernel.data.number].device
    return Device.DEFAULT


def nest_of(kernel: Kernel) -> Nest | str:
    """Return the loops, or why there are none: a rule that raises must not hide the rest."""
    try:
        with unobserved():
            return loop_nest(kernel.ast, Device[_device(kernel)].target)
    except Exception as error:
        return error_text(error)


def _loops_part(kernel: Kernel, explains: bool) -> str:
    """Return the loop table; where it `explains`, with a sentence on how to read it."""
    nest = nest_of(kernel)
    if isinstance(nest, str):
        return _failed(nest)
    heads = [tag("th", "loop"), tag("th", "steps", "n")]
    heads += [tag("th", _buffer_head(b), "n b", colspan="2") for b in nest.buffers]
    names = [b.name for b in nest.buffers]
    body = "".join(_loop_row(row, names) for row in nest.rows)
    head = f"<thead>{tag('tr', ''.join(heads))}</thead>"
    grid = tag("div", f"<table>{head}<tbody>{body}</tbody></table>", "scroll")
    used = dict.fromkeys(r.axis_kind for r in nest.rows if r.axis)
    legend = "".join(
        tag("span", f"{chip(k)} {escape(KIND_LOOKS[k].name)}") for k in used
    )
    note = (
        "Per buffer: <b>elements moved by one step</b> (1: the neighbour, 0: the same again), "
        "then bytes touched by one whole run of the loop."
    )
    words = tag("div", note, "capt") if explains else ""
    return grid + words + tag("div", legend, "capt legend")


def _buffer_head(buffer: BufferRow) -> str:
    size = muted(f"{buffer.dtype}[{buffer.size:,}]")
    return f"{escape(buffer.name)} {escape(buffer.role)}<br>{size}"


def _loop_row(row: NestRow, names: Sequence[str]) -> str:
    style = bars(row.around)
    if not row.axis:
        statement = tag("pre", escape(row.text))
        cell = tag("td", statement, "st", colspan=str(2 + 2 * len(names)), style=style)
        return tag("tr", cell)
    note = muted(" vector") if row.vector else ""
    name = muted(KIND_LOOKS[row.axis_kind].name)
    first = f"{chip(row.axis_kind)} {code(row.axis)} {name}{note}"
    cells = [tag("td", first, style=style), tag("td", f"{row.size:,}", "n")]
    for name in names:
        use = row.uses.get(name)
        cells.append(tag("td", "" if use is None else escape(use.stride), "n s"))
        cells.append(tag("td", "" if use is None else escape(use.bytes), "n by"))
    return tag("tr", "".join(cells))


def _decisions_part(decisions: Sequence[Decision]) -> str:
    rows = []
    for decision in decisions[:MOST_DECISIONS]:
        value, result, reason, estimates = (escape(c) for c in decision_cells(decision))
        rows.append((value, tag("b", result), reason, tag("span", estimates, "mu")))
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
        groups.append(tag("div", escape(OptOps[op].caption), "capt"))
        groups.append(tag("div", chips, "opts"))
    kinds = ", ".join(f"{len(listed)} {op}" for op, listed in opts_by_op(legal))
    return fold(f"{plural(len(legal), 'possible opt')} {muted(kinds)}", "".join(groups))


def _compiled_part(kernel: Kernel) -> str:
    try:
        compiled = kernel.compile(_device(kernel))
    except Exception as error:
        passes = kernel.observed(_device(kernel))
        return _failed(error_text(error)) + passes_part(
            "Compiling, as far as it came", passes
        )
    source_part = fold(source_summary(compiled), source(compiled.source))
    return source_part + passes_part("Compiling", compiled.passes)


def source_summary(compiled: Compiled) -> str:
    """Return in a line what the source of a kernel is."""
    lines = compiled.source.count("\n") + 1
    language = compiled.built.source.language
    return (
        f"Source {muted(f'{language} for device {compiled.device}, {lines:,} lines')}"
    )


def passes_part(what: str, records: Sequence[PassRecord]) -> str:
    """Return a fold with a table of passes; `what` they did is its summary."""
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


def badge(place: int) -> str:
    """Return the number of a kernel, which stands at `place` of `.kernels`, on its colour."""
    return tag("span", str(kernel_number(place)), "no")
