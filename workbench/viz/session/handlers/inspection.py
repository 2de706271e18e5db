"""Requests for details: of rewrites, of machine code, and of steps of the emulator.

Sections: Requests about rewrites and accesses; Details of machine code on request; The request of
the pane GPU.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec.structs import replace

from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import PassRecord
from workbench.check.bisect import FirstWrongRewrite
from workbench.emulator.emulate import (
    MOST_PAGE_S,
    UNASKED_S,
    emulate_for_steps,
    emulate_if_small,
    seconds_for_steps,
    target_of,
)
from workbench.emulator.steps import Trace
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, stopped, without
from workbench.kernel.accesses import buffer_of, innermost, nest_axes
from workbench.kernel.kernel import Kernel
from workbench.kernel.warp_accesses import WarpAccesses, WarpInstruction
from workbench.pipeline import recorded
from workbench.viz.exploration.questions import bisected
from workbench.viz.listing.instructions import instruction_costs
from workbench.viz.model import passes as model_passes
from workbench.viz.model.loops import statement_text
from workbench.viz.model.words import kernel_number, short
from workbench.viz.record import rules
from workbench.viz.record.about import ASSEMBLY
from workbench.viz.record.links import writers
from workbench.viz.record.variants import code_row
from workbench.viz.schema.messages import (
    AccessedBuffer,
    AccessesReply,
    AccessStatement,
    BisectReply,
    LoweredReply,
    NoResult,
    RuleCode,
    WhyNotReply,
)
from workbench.viz.schema.record import RecordedPass
from workbench.viz.schema.variant import AxisRow, CodeRow, CompilerPass, CompilerPasses
from workbench.viz.session.handlers import edits, measurement, variant_transfer, variants
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import parse_opts

# --------------------------------------------------------------------------------------------------
# Requests about rewrites and accesses: the elements that a loop touches, why a rule did not fire,
# and the wrong rewrite.

MOST_ACCESSES = 1 << 15
"""Most accesses that one reply has."""


def accesses(
    session: LiveRecord,
    variant: int,
    axis: str,
    at: dict[str, int],
    first: int,
    steps: int,
    warp: int | None,
) -> AccessesReply:
    """Return the accesses of `steps` steps of an axis of a variant ("": of its innermost loop), or
    of fewer if they have more than MOST_ACCESSES accesses; or those of a `warp`.

    Errors: WorkbenchError for edited source, an axis, a warp or a position that does not exist, and
    for one step of more accesses.
    """
    if session.row(variant).edited:
        what, because = "its accesses are not known", "its code was edited by hand"
        raise WorkbenchError(what, because, "the variant that it was made from")
    kernel = session.kernels[variant]
    axes = nest_axes(kernel)
    if warp is not None:
        return _of_warp(kernel, axes, kernel.warp(warp, at))
    axis = axis or innermost(kernel)
    one = kernel.accesses(axis, at, first, 1)
    each = sum(len(buffer.steps) for buffer in one.buffers)
    if each > MOST_ACCESSES:
        because = f"one step has {each:,}, and a page gets at most {MOST_ACCESSES:,}"
        raise WorkbenchError("these accesses are too many to show", because, "an inner loop")
    count = min(steps, MOST_ACCESSES // max(1, each), one.extent - first)
    found = kernel.accesses(axis, at, first, count)
    before = [*axes][: [*axes].index(axis)]  # loops come first, outer ones before those inside
    around = {name: axes[name] for name in before if not axes[name].axis_kind.is_lane}
    buffers = [
        AccessedBuffer(
            b.name, short(b.user), b.dtype, b.itemsize, b.line_bytes, list(b.shape), b.space,
            b.steps.tolist(), b.elements.tolist(), b.writes.tolist(), b.statements.tolist(), [],
            b.unknown,
        )
        for b in found.buffers
    ]  # fmt: skip
    with session.lock:
        statements = [
            AccessStatement(statement_text(s), session.recorder.place(s)) for s in found.statements
        ]
    return AccessesReply(
        _axis_rows(axes), axis, first, count, 1, [], _axis_rows(around), dict(at), statements,
        buffers,
    )  # fmt: skip


def _axis_rows(axes: Mapping[str, UOp]) -> list[AxisRow]:
    return [AxisRow(name, axis.axis_kind.name, axis.extent) for name, axis in axes.items()]


def _of_warp(kernel: Kernel, axes: Mapping[str, UOp], found: WarpAccesses) -> AccessesReply:
    """Return the accesses of a warp: each of its loads and stores is a step.

    Errors: WorkbenchError for more than MOST_ACCESSES accesses.
    """
    known = [i for i in found.instructions if i.elements is not None and i.space != "scratch"]
    total = sum(i.elements.size for i in known if i.elements is not None)
    if total > MOST_ACCESSES:
        because = f"they are {total:,}, and a page gets at most {MOST_ACCESSES:,}"
        raise WorkbenchError("these accesses are too many to show", because, "a loop")
    buffers = []
    for buffer in dict.fromkeys(i.buffer for i in found.instructions):
        shown = buffer_of(kernel, buffer)
        rows = [(step, i) for step, i in enumerate(known) if i.buffer is buffer]
        parts = [_lanes_of(step, i) for step, i in rows] or [np.zeros((4, 0), np.int64)]
        steps, elements, writes, lanes = np.concatenate(parts, axis=1)
        unknown = sum(i.buffer is buffer and i.elements is None for i in found.instructions)
        if rows or unknown:
            buffers.append(
                AccessedBuffer(
                    shown.name, short(shown.user), shown.dtype, shown.itemsize, shown.line_bytes,
                    list(shown.shape), shown.space, steps.tolist(), elements.tolist(),
                    writes.astype(bool).tolist(), [], lanes.tolist(), unknown,
                )
            )  # fmt: skip
    names = [f"{i.name}: {i.cost}" for i in known]
    return AccessesReply(
        _axis_rows(axes), "", found.warp, len(known), found.warps, names, _axis_rows(found.axes),
        dict(found.at), [], buffers,
    )  # fmt: skip


def _lanes_of(step: int, instruction: WarpInstruction) -> Any:
    """Return the accesses of an instruction in columns: step, element, whether it writes, lane."""
    assert instruction.elements is not None
    lanes, _ = np.nonzero(instruction.elements >= 0)
    elements = instruction.elements[instruction.elements >= 0]
    still = np.ones_like(elements)
    return np.stack([still * step, elements, still * instruction.is_store, lanes])


def bisect(session: LiveRecord, variant: int) -> BisectReply:
    """Return the first wrong rewrite between the tensors and a variant's program: a sentence, the
    position of its pass, and its number there; None and 0 if all states agree.

    Errors: WorkbenchError if the states are too large to compute, and for edited source.
    """
    kernel, row = session.kernels[variant], session.row(variant)
    if row.edited:
        because = "its source was edited by hand: no rewrite made it"
        raise WorkbenchError(
            "this cannot be bisected", because, "the variant that it was made from"
        )
    ex = session.recorder.exploration
    session.status("bisect", 0, 1, "computing states")
    try:
        wrong_rewrite = bisected(ex.passes, ex.items, kernel, row.kernel)
    finally:
        session.status(None)
    if wrong_rewrite is None:
        return BisectReply("every state computes the same", None, 0)
    with session.lock:
        if not row.passes:
            session.recorder.add_compiled(variant)
        place = _place_of(session, variant, wrong_rewrite)
    text = str(wrong_rewrite).split("\n")[0]
    return BisectReply(text, place, wrong_rewrite.number)


def _place_of(session: LiveRecord, variant: int, wrong_rewrite: FirstWrongRewrite) -> int | None:
    """Return the position of a rewrite's pass, of scheduling or the variant's own; None: not
    found."""
    rows, row = session.record.passes, session.row(variant)
    scheduling = [p for p, entry in enumerate(rows) if entry.variant is None]
    places = [*scheduling, *row.passes]
    named = [
        p for p in places
        if rows[p].name == wrong_rewrite.stage and rows[p].kernel in (None, row.kernel)
    ]  # fmt: skip
    matches = [p for p in named if _has_step(session, rows[p], wrong_rewrite)]
    return next(iter(matches or reversed(named)), None)


def _has_step(session: LiveRecord, row: RecordedPass, wrong_rewrite: FirstWrongRewrite) -> bool:
    """Whether the pass of a row has the rewrite: several passes may have one name."""
    if not 0 < wrong_rewrite.number <= len(row.rewrites):
        return False
    rewrite, node = row.rewrites[wrong_rewrite.number - 1], session.recorder.node
    is_same = node(rewrite.before) is wrong_rewrite.before
    return is_same and node(rewrite.after) is wrong_rewrite.after


def lower_on(
    session: LiveRecord, variant: int, place: int, step: int, language: str
) -> LoweredReply:
    """Return the program of a variant if a pass stops after `step` rewrites, and those after it
    work on that state. A pass of scheduling makes a plan of its own, of which it is the kernel that
    does the work of this one.

    Errors: WorkbenchError for edited source, and for a pass that is not a rewrite of one graph;
    CompileError where the passes after it cannot work on the state.
    """
    row, kernel = session.record.passes[place], session.kernels[variant]
    what = "this state cannot be lowered on"
    if session.row(variant).edited:
        because = "the source was edited by hand: no pass made it"
        raise WorkbenchError(what, because, "the variant that it was edited from")
    if row.unit != "rewrite" or len(row.before) != 1 or not row.rewrites:
        because = f"no rule fires in {row.name}: there is no state between its two ends"
        raise WorkbenchError(what, because, "a pass with rewrites")
    count = min(step, len(row.rewrites))
    words = [
        f"This is what the kernel would be from here: {row.name} stops after {count} of "
        f"{plural(len(row.rewrites), 'rewrite')}, and the passes after it work on that state."
    ]
    root = session.recorder.node(row.before[0])
    records: Sequence[PassRecord] = ()
    with stopped(row.name, root, count):
        if row.variant is None:
            kernel, records, more = _planned_on(session, variant)
            words += more
        for info, own in writers(kernel.device, language):
            with without(kernel.rules_off):
                opts = kernel.applied_opts
                reached, lowering = recorded(kernel.original, info.name, "source", opts, own)
            ran = [r for r in (*records, *lowering) if r.name == row.name and r.before is root]
            if any(len(each.matches) == count for each in ran):
                lines = reached.source.text.split("\n")
                code = code_row(info, lines, (), own)
                if code.language != language:
                    words.append(f"It is in {code.language}, which {info.name} runs.")
                return LoweredReply(code, " ".join(words))
    because = f"{row.name} works on several graphs at once, or not on this one again"
    raise WorkbenchError(what, because, "another pass")


def _planned_on(
    session: LiveRecord, variant: int
) -> tuple[Kernel, Sequence[PassRecord], Sequence[str]]:
    """Return the kernel of a plan that is made now that does the work of a variant, with its opts
    if they apply; the passes of that plan; and what else it is, in words."""
    ex = session.recorder.exploration
    planned = ex.planned_again(ex.choices, ex.rules_off)
    if planned.error is not None:
        raise planned.error
    if not planned.kernels:
        raise WorkbenchError("there is no kernel from here", "nothing is computed in that plan")
    same = session.row(variant).kernel
    words = []
    if len(planned.kernels) != len(ex.kernels):
        same = variant_transfer.places_now(ex, planned)[same] or 0
        words.append(
            f"The plan has {plural(len(planned.kernels), 'kernel')} then, and this is kernel "
            f"{kernel_number(same)}."
        )
    kernel = variants.on_device(planned.kernels[same], session.device)
    opts = session.kernels[variant].applied_opts
    try:
        kernel = kernel.apply(*opts)
    except WorkbenchError as error:
        words.append(f"It has no opts: {error.because}.")
    return kernel, planned.passes, words


def why_not(session: LiveRecord, place: int, node: int, rule: int) -> WhyNotReply:
    """Return why a rule does not fire at a node: its text, the range of the failing part, and a
    sentence.

    Errors: WorkbenchError for an opt or a step, which are not rules.
    """
    of_pass = session.record.passes[place].name
    explanation = model_passes.why_not(rule_at(session, rule), session.recorder.node(node), of_pass)
    because = f"it fires: {explanation.because}" if explanation.fires else explanation.because
    return WhyNotReply(explanation.text, explanation.start, explanation.end, because)


def rule_at(session: LiveRecord, place: int) -> Rule:
    """Return the rule at a place of the record.

    Errors: WorkbenchError for an opt or a step, which are not rules.
    """
    rule = session.recorder.rule(place)
    if rule is None:
        name = session.record.rules[place].name
        raise WorkbenchError(f"{name} is not a rule", "it is a step of its own")
    return rule


def rule_code(session: LiveRecord, rule: str) -> RuleCode:
    """Return the source text of a rule or a step, by its name: one that fired here, or one of the
    package.

    Errors: WorkbenchError for a name that is none of theirs.
    """
    known = session.recorder.switch(rule)
    if known is None:
        because = "it is an opt, or a rule that was typed here, or none"
        raise WorkbenchError(
            f"{rule} has no code to show", because, "a rule with a file and a line"
        )
    return RuleCode(rules.rule_code(known))


# --------------------------------------------------------------------------------------------------
# Details of machine code on request: the costs of its instructions, and the passes of its compiler.


def costs(session: LiveRecord, variant: int, device: str | None) -> NoResult:
    """Add the costs of a variant's instructions on a device (None: the session's), if a tool here
    knows them."""
    row = _machine_code(session, variant, device)
    is_here = row is not None and not row.note  # the tool knows this machine's processor
    outcome = instruction_costs(row.lines) if row is not None and is_here else None
    if row is not None and outcome is not None:
        changes = {"costs": outcome.lines, "costs_by": outcome.source}
        _replace(session, variant, row, changes)
    return NoResult()


def compiler_passes(session: LiveRecord, variant: int) -> NoResult:
    """Add the passes of the compiler that made the machine code of a variant.

    Errors: WorkbenchError for a compiler that does not report its passes.
    """
    row = _machine_code(session, variant)
    if row is None:
        return NoResult()
    with session.lock:
        candidate = measurement.worker_row(session, variant)
    with session.jobs.use_worker(row.device) as worker:
        worker.start()
        task = {"do": "passes", "kernel": candidate}
        answer = measurement.ask(session, worker, task, "the compiler's passes")
    _replace(session, variant, row, {"made_by": _passes(answer["passes"])})
    return NoResult()


def _passes(listed: list[tuple[str, str, list[str]]]) -> CompilerPasses:
    places: dict[str, int] = {}
    passes = [
        CompilerPass(name, title, [places.setdefault(x, len(places)) for x in lines])
        for name, title, lines in listed
    ]
    return CompilerPasses(list(places), passes)


def _machine_code(session: LiveRecord, variant: int, device: str | None = None) -> CodeRow | None:
    with session.lock:
        row = session.row(variant)
        code = row.code
        if device is not None:
            both = *row.code, *row.code_elsewhere
            code = [c for c in both if c.device == device]
        return next((c for c in code if c.language == ASSEMBLY.name), None)


def _replace(session: LiveRecord, variant: int, row: CodeRow, changes: dict[str, Any]) -> None:
    """Change a code row of a variant, unless another one has replaced it: the device changed."""
    with session.lock:
        changed = replace(row, **changes)
        for field in ("code", "code_elsewhere"):
            code = getattr(session.row(variant), field)
            if any(other is row for other in code):
                both = [changed if other is row else other for other in code]
                session.set(variant, field, both)


# --------------------------------------------------------------------------------------------------
# The request of the pane GPU: a kernel on the emulator, one group of it step by step.

COUNT_S = 4.0
"""Most seconds for counting the accesses of all offers of a variant."""
OFFER_S = 0.4
"""Most seconds of the run of one offer."""


def emulate(
    session: LiveRecord, variant: int, group: list[int] | None, without: int | None, unasked: bool
) -> NoResult:
    """Add to a variant its run on the emulator, with the steps of one group (None: of the first
    finding, or of the first group), `without` one of the program's barriers, by number. A run that
    is `unasked` is left out if it would take more than UNASKED_S.

    Errors: WorkbenchError if its data are not here, for edited source, and for a group that does
    not exist; TaskStopped.
    """
    kernel, mine = session.kernels[variant], session.recorder
    edited = session.edited.get(variant)
    if edited is not None and edits.is_emulated(edited):
        measurement.refuse_foreign(session, variant)
        edits.emulate_edited(session, variant, group, without)
        return NoResult()
    if session.row(variant).edited:
        what, because = "this cannot be stepped", "its code was edited by hand, and runs as it is"
        raise WorkbenchError(what, because, "the variant that it was made from")
    if unasked and seconds_for_steps(kernel) > UNASKED_S:
        return NoResult()
    most_s = UNASKED_S if unasked else MOST_PAGE_S
    first = True if group is None else group
    with edits.emulating(session, "running all work-items"):
        run = emulate_for_steps(kernel, target_of(kernel), first, without, most_s)
    with session.lock:
        if session.recorder is mine and session.kernels[variant] is kernel:
            mine.add_trace(variant, run, without)
            session.send_changes()
    if without is None and run.is_whole:
        _count_offers(session, variant, run)
    return NoResult()


def _count_offers(session: LiveRecord, variant: int, run: Trace) -> None:
    """Set the changes of counts that the offers of a variant would bring, for as many offers as
    COUNT_S allows."""
    kernel, mine = session.kernels[variant], session.recorder
    words: dict[str, str] = {}
    end_s = time.monotonic() + COUNT_S
    for offer in session.row(variant).offers:
        if time.monotonic() > end_s or session.jobs.is_stopped():
            break
        session.status("emulate", len(words), 0, f"counting {offer.opt}")
        with suppress(WorkbenchError):
            changed = emulate_if_small(kernel.apply(*parse_opts(offer.opt)), OFFER_S)
            if changed is not None:
                words[offer.opt] = counts_text(run, changed)
    session.status(None)
    with session.lock:
        if session.recorder is not mine:
            return
        listed = session.row(variant).offers
        rows = [replace(o, counts=words.get(o.opt, o.counts)) for o in listed]
        session.set(variant, "offers", rows)
        session.send_changes()


def counts_text(before: Trace, after: Trace) -> str:
    """Return the counts that differ between two runs as text: "sectors 4,608 -> 1,024"."""
    pairs = {
        "sectors": [t.total("global").transactions for t in (before, after)],
        "conflicts": [t.total("shared").conflicts for t in (before, after)],
        "barriers": [sum(t.barriers.values()) for t in (before, after)],
    }
    texts = [f"{n} {a:,} -> {b:,}" for n, (a, b) in pairs.items() if a != b]
    return ", ".join(texts) or f"sectors {pairs['sectors'][0]:,}, as before"
