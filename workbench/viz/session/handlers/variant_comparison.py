"""Comparison of variants in columns, for the page; in Python it is `workbench.compare`.

The first column may be a variant of this record, or the same variant on another device, without
some rules, or in another plan, or a variant of another exploration, of the notebook or of a file:
then it has a record of its own, which the page shows beside this one, pane by pane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from workbench.base.errors import DeviceError, WorkbenchError, cut
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import require_times
from workbench.measure.kernel_time import seconds_text
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.replanning import Value
from workbench.viz.model.differences import Row, Section, kernel_sections
from workbench.viz.model.graph import computing_kernels
from workbench.viz.model.node_pairs import node_pairs
from workbench.viz.plan_differences import plan_sections
from workbench.viz.schema.messages import (
    ComparedRow,
    ComparedSection,
    CompareReply,
    NodePair,
    NoResult,
    OtherPlan,
    OtherSide,
    OwnVariant,
    PairsReply,
)
from workbench.viz.schema.variant import VariantRow
from workbench.viz.session.handlers import (
    hand_choices,
    measurement,
    rule_toggles,
    variant_transfer,
    variants,
)
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name
from workbench.worker.client import DATA_BYTES

MOST_PLANS = 40
"""Most plans that are offered for a comparison."""
MOST_FILES = 10
"""Most files that are offered for a comparison: the latest beside the notebook."""
MOST_OWN = 300
"""Most variants of another exploration that are offered."""
MOST_TITLE = 60
"""Most characters of the title of a plan."""
MOST_NODES = 6000
"""Most nodes of two graphs that are paired: that takes less than a second."""
_FILE = "file "
"""A plan of this name in requests, followed by a path, is the exploration of a file."""
_BEFORE = "before"
"""The name of the plan before the present one, in requests."""


def compare(
    session: LiveRecord,
    variants: list[int],
    device: str | None,
    without: list[str],
    plan: str,
    own: int | None,
) -> CompareReply:
    """Return the differences of variants: all that is known without running them. Their times and
    checks are in the records.

    Errors: WorkbenchError for edited source, an unknown plan, a file that cannot be loaded, and a
    plan, a rule or a variant that is not possible; DeviceError for a missing device.
    """
    rows = [session.row(variant) for variant in variants]
    for row in rows:
        _require_kernel(row)
    names, kernels = [row.name for row in rows], [session.kernels[variant] for variant in variants]
    plans = _plans(session, plan)
    offered = [
        OtherPlan(key, cut(each.title, MOST_TITLE), each.kind) for key, each in plans.items()
    ]
    if device in (None, session.device) and not without and not plan and own is None:
        return CompareReply(names, _rows(kernel_sections(kernels)), offered, [], None, None)
    ex, page = _planned(session, plans, plan)
    if own is not None:
        side = _own_side(session, own, device, without, ex, page)
    else:
        side = _side(session, variants[0], device or session.device, without, ex, page)
    if side.live.device != session.device:
        names[1:] = [f"{name} on {session.device}" for name in names[1:]]
    if plan:
        this = "this plan" if plans[plan].kind == "plan" else "this exploration"
        names = [f"{side.name}, {plans[plan].title}", *(f"{name}, {this}" for name in names[1:])]
    else:
        names[0] = side.name
    sections: list[Section] = []
    values = None
    if side.live.recorder.exploration is not session.recorder.exploration:
        both = side.live.recorder.exploration, session.recorder.exploration
        times = _plan_times(session, side.live, page, plan)
        whole, *others = _of_plans(both)
        sections = [replace(whole, rows=(*times, *whole.rows)), *others]
        roots = both[0].outputs, both[1].outputs
        if _size(*roots) <= MOST_NODES:
            values = _paired(side.live, session, *roots)
    if side.kernel is not None:
        sections += kernel_sections([side.kernel, *kernels[1:]])
    listed = [] if page is None else _own_variants(page)
    return CompareReply(names, _rows(sections), offered, listed, side.reply(), values)


def _require_kernel(row: VariantRow) -> None:
    """Errors: WorkbenchError for edited source, which has no kernel."""
    if row.edited:
        what, because = f"{row.name} cannot be compared", "its code was edited by hand"
        raise WorkbenchError(what, because, "the pane Two programs, for two texts")


def _own_variants(page: LiveRecord) -> list[OwnVariant]:
    """Return the variants of another exploration that can be compared."""
    kernels = page.recorder.exploration.kernels
    return [
        OwnVariant(place, f"{row.name} of {kernels[row.kernel].title}" if kernels[1:] else row.name)
        for place, row in enumerate(page.record.variants)
        if not row.deleted and not row.edited
    ][:MOST_OWN]


def pairs(session: LiveRecord, side: int | None, before: list[int], now: list[int]) -> PairsReply:
    """Return the pairs of the nodes of two graphs, the first of which is in the record of a side.

    Errors: WorkbenchError for a side that is no longer known, for nodes that it lacks, and for
    large graphs.
    """
    what = "these graphs cannot be paired"
    other = session if side is None else _kept(session, side, what)
    if any(place >= len(other.record.nodes.op) for place in before):
        raise WorkbenchError(what, "the other record has fewer nodes")
    roots = [other.recorder.node(n) for n in before], [session.recorder.node(n) for n in now]
    size = _size(*roots)
    if size > MOST_NODES:
        raise WorkbenchError(what, f"they have {size:,} nodes", "another pass")
    return _paired(other, session, *roots)


def _size(*roots: Sequence[UOp]) -> int:
    """Return the number of nodes of some graphs."""
    return sum(len(UOp.sink(*nodes).toposort()) for nodes in roots)


def _paired(
    other: LiveRecord, session: LiveRecord, before: Sequence[UOp], now: Sequence[UOp]
) -> PairsReply:
    """Return the pairs of two graphs, by the places of their nodes in two records."""
    found = node_pairs(before, now)
    first, second = other.recorder.place, session.recorder.place
    return PairsReply(
        [NodePair(first(a), second(b)) for a, b in found.same.items()],
        [NodePair(first(a), second(b)) for a, b in found.changed.items()],
        [first(node) for node in found.removed],
        [second(node) for node in found.added],
    )


def measure(session: LiveRecord, side: int, before: int, now: int, cold: bool | None) -> NoResult:
    """Time a variant of a record that stands beside this one, and a variant of this one, in turns.

    Errors: WorkbenchError for a side that is no longer known, for edited source, and for large
    data; DeviceError for devices without times, and for two that no process has together.
    """
    what = "these two cannot be timed in turns"
    other = _kept(session, side, what)
    if before >= len(other.kernels):
        raise WorkbenchError(what, "the other record has fewer variants", "comparing again")
    both = (other, before), (session, now)
    for live, variant in both:
        _require_turns(live, variant, what)
    size = measurement.data_bytes([live.kernels[variant] for live, variant in both])
    if size > DATA_BYTES // 2:
        raise WorkbenchError(what, f"together they read {size:,.0f} bytes", "smaller tensors")
    with session.jobs.use_worker(session.device) as worker:
        if not worker.serves(other.device) and other.device != session.device:
            because = f"no process has both {other.device} and {session.device}"
            raise DeviceError(what, because, "timing each on its own page")
        rows = []
        for live, variant in both:
            key = measurement.data_key(
                live, worker, live.kernels[variant], live.row(variant).kernel
            )
            rows.append(measurement.worker_row(live, variant) | {"data": key})
        task = {
            "do": "measure", "kernels": rows, "cold": bool(cold), "samples": measurement.SAMPLES,
            "budget_s": 2 * measurement.BUDGET_S,
        }  # fmt: skip
        timings = measurement.measured(session, worker, task, "measure")
    run = run_name()
    with session.lock:
        for (live, variant), row, timing in zip(both, rows, timings, strict=True):
            measurement.set_timings(live, [(variant, row)], [timing], run)
            live.send_changes()
    return NoResult()


def _require_turns(live: LiveRecord, variant: int, what: str) -> None:
    """Errors: WorkbenchError for edited source and on an emulator; DeviceError for a machine that
    is not here."""
    require_times(live.device)
    measurement.refuse_emulator(live, what)
    if variant in live.edited:
        because = f"the code of {live.row(variant).name} was edited by hand"
        raise WorkbenchError(what, because, "the variant that it was edited from")


def _kept(session: LiveRecord, side: int, what: str) -> LiveRecord:
    """Return the record of a side. Errors: WorkbenchError for one that is no longer kept."""
    other = session.sides.get(side)
    if other is None:
        raise WorkbenchError(what, "the other record is not kept any more", "comparing again")
    return other


def _rows(sections: Sequence[Section]) -> list[ComparedSection]:
    return [
        ComparedSection(
            section.title,
            [
                ComparedRow(row.label, list(row.cells), row.differs, list(row.about))
                for row in section.rows
            ],
            section.text,
        )
        for section in sections
        if section.rows or section.text
    ]


def _of_plans(plans: Sequence[Exploration]) -> list[Section]:
    """Return the differences of plans; their rules have a title beside those of a kernel."""
    return [
        replace(section, title=f"{section.title} in scheduling")
        if section.title == "rules that fired"
        else section
        for section in plan_sections(plans)
    ]


def _plan_times(
    session: LiveRecord, live: LiveRecord, page: LiveRecord | None, plan: str
) -> list[Row]:
    """Return the times of the plan beside this one and of this one, with the default opts: what is
    predicted, and what was measured of both. `live` is the record of that plan, `page` the one that
    has its measured times (None: there is none)."""
    sides = (session if live.device == session.device else live, live), (session, session)
    predicted = [
        hand_choices.plan_prediction(speeds, each.recorder.exploration) for speeds, each in sides
    ]
    rows = [Row("time predicted", tuple(s and f"~{seconds_text(s)}" or "" for s in predicted))]
    compared = session.record.plan.compared
    if plan == _BEFORE and compared is not None and compared.seconds is not None:
        rows.append(Row("time measured", tuple(map(seconds_text, compared.seconds))))
        rows.append(Row("beside the first", ("", compared.speed)))
    elif page is not None and page.device == live.device:
        measured = [_measured_s(page), _measured_s(session)]
        known = [seconds_text(s) for s in measured if s is not None]
        if len(known) == len(measured):
            rows.append(Row("time measured, not in one run", tuple(known)))
    return [row for row in rows if any(row.cells)]


def _measured_s(live: LiveRecord) -> float | None:
    """Return the sum of the measured times of all kernels with the default opts; None while one has
    no time."""
    runs = live.record.plan.runs
    own = [run if run.measured_s is not None else runs[run.like] for run in runs]
    times = [run.measured_s for run in own if run.measured_s is not None]
    return sum(times) if own and len(times) == len(own) else None


# --------------------------------------------------------------------------------------------------
# The other side: a variant of another device, plan or set of rules, with its record.


@dataclass(frozen=True, slots=True)
class _Side:
    """A record that stands beside this one, with the kernel and the variant that are compared."""

    live: LiveRecord
    number: int | None
    variant: int | None
    name: str

    @property
    def kernel(self) -> Kernel | None:
        return None if self.variant is None else self.live.kernels[self.variant]

    def reply(self) -> OtherSide:
        """Return the side as the page gets it, with what its panes show."""
        self.live.recorder.beside(self.variant)
        self.live.recorder.patch()  # dropped: the page gets the whole record, which has it
        return OtherSide(self.live.number, self.live.packed(), self.number, self.variant)


def _side(
    session: LiveRecord,
    variant: int,
    device: str,
    without: Sequence[str],
    ex: Exploration,
    page: LiveRecord | None,
) -> _Side:
    """Return a variant in the plan of `ex`, on a device and without some rules. The record has the
    variants of the `page` of that plan, if it has one."""
    scheduling = [rule for rule in without if rule_toggles.schedules(ex, rule)]
    if scheduling:
        ex = ex.planned_again(ex.choices, (*ex.rules_off, *scheduling))
    live, _ = _live_side(session, ex, page, device)
    number = _kernel_in(session, session.row(variant).kernel, ex)
    if number is None:
        return _Side(live, None, None, "no kernel")
    root = live.record.kernels[number].root
    place = variant_transfer.transferred(live, session, variant, root)
    own = root if place is None else place
    own = _without(live, own, [rule for rule in without if rule not in scheduling])
    words = [live.row(own).name, *(f"without {rule}" for rule in scheduling)]
    words += [f"on {device}"] if device != session.device else []
    lacks = " (its opts do not apply there)" if place is None else ""
    return _Side(live, number, own, " ".join(words) + lacks)


def _own_side(
    session: LiveRecord,
    own: int,
    device: str | None,
    without: Sequence[str],
    ex: Exploration,
    page: LiveRecord | None,
) -> _Side:
    """Return a variant of the record of another exploration, on a device (None: its own), and
    without some rules of compiling.

    Errors: WorkbenchError for a variant that is not there, or not possible so.
    """
    what = "this variant cannot stand beside the selected one"
    if page is None or own >= len(page.kernels) or page.row(own).deleted:
        raise WorkbenchError(
            what, "that exploration has no such variant", "another one of the list"
        )
    row = page.row(own)
    _require_kernel(row)
    if scheduling := [rule for rule in without if rule_toggles.schedules(ex, rule)]:
        because = f"it would belong to another plan without {', '.join(scheduling)}"
        raise WorkbenchError(what, because, "the opts of a variant of this record there")
    live, places = _live_side(session, ex, page, device or page.device, own)
    place = places[own]
    if place is None:
        because = f"the opts of {row.name} do not apply on {live.device}"
        raise WorkbenchError(what, because, f"it on {page.device}")
    place = _without(live, place, without)
    on = [f"on {live.device}"] if live.device != session.device else []
    return _Side(live, row.kernel, place, " ".join([live.row(place).name, *on]))


def _live_side(
    session: LiveRecord,
    ex: Exploration,
    page: LiveRecord | None,
    device: str,
    wanted: int | None = None,
) -> tuple[LiveRecord, Sequence[int | None]]:
    """Return a record of `ex` on a device, and in it the places of the variants of the `page` of
    that exploration, `wanted` in any case."""
    live, places = session.side(ex), list[int | None]()
    if page is not None and ex is page.recorder.exploration:
        if live.device != page.device:
            variants.show_device(live, page.device)
        places = variant_transfer.copy_variants(live, page, wanted)
    if live.device != device:
        variants.show_device(live, device)
    return live, places


def _without(live: LiveRecord, variant: int, rules: Sequence[str]) -> int:
    """Return the variant of a record without some rules of compiling."""
    if not rules:
        return variant
    row = live.row(variant)
    root = live.kernels[live.record.kernels[row.kernel].root]
    changed = root.without(*rules).apply(*live.kernels[variant].applied_opts)
    named = f"{row.name} without {', '.join(rules)}"
    return variants.variant_of(live, changed, variant, named)


def _kernel_in(session: LiveRecord, number: int, ex: Exploration) -> int | None:
    """Return the kernel of another plan that does the work of a kernel of this one: an equal one,
    or one that stores the same values, or that computes them, or has the same title; else the first
    (None: there are none)."""
    here = session.recorder.exploration
    same = variant_transfer.places_now(here, ex)[number]
    if same is not None:
        return same
    stored = [item.nodes for item in here.items if item.kernel is not None][number]
    inside = computing_kernels(ex.items)
    computing = [kernel for node in stored for kernel in inside.get(node, ())]
    if computing:
        return computing[0]
    title = here.kernels[number].title
    titles = [kernel.title for kernel in ex.kernels]
    return titles.index(title) if title in titles else 0 if titles else None


# --------------------------------------------------------------------------------------------------
# Other plans: the one before this one, those of the other pages of this Python session, those of
# files, and those with one decision turned over.


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan that can stand beside the present one, what it is, and how its exploration is made,
    with the record of its page, if it has one."""

    title: str
    kind: Literal["plan", "exploration", "file"]
    explored: Callable[[], tuple[Exploration, LiveRecord | None]]


def _plans(session: LiveRecord, chosen: str) -> dict[str, _Plan]:
    """Return the plans that can be compared with the present one, by their names in requests: the
    `chosen` one, too, if it is of a file."""
    ex = session.recorder.exploration
    found: dict[str, _Plan] = {}
    if session.before is not None:
        before = session.before.exploration
        found[_BEFORE] = _Plan("the plan before", "plan", lambda: (before, None))
    for other in session.others():
        own = other.recorder.exploration
        line = own.headline if own.line is None else f"{own.line.text} ({own.line})"
        title = " ".join(filter(None, [line, own.origin.words]))
        found[f"page {other.number}"] = _Plan(title, "exploration", partial(_as_it_is, other))
    files = [path.name for path in ex.page.saved_files(Path())[:MOST_FILES]]
    if chosen.startswith(_FILE):
        files.append(chosen.removeprefix(_FILE))
    for name in files:
        title = name if len(name) <= MOST_TITLE else f"…{name[1 - MOST_TITLE :]}"
        found[f"{_FILE}{name}"] = _Plan(title, "file", partial(_of_file, session, name))
    for place, row in enumerate(session.record.plan.decisions):
        if not row.is_requested and not row.is_copy:
            change: dict[Value, bool | None] = {ex.decisions[place].node: not row.stored}
            title = f"{row.name} {'fused' if row.stored else 'stored'}"
            found[f"decision {place}"] = _Plan(title, "plan", partial(_replanned, ex, change))
    return dict(islice(found.items(), MOST_PLANS))


def _as_it_is(page: LiveRecord) -> tuple[Exploration, LiveRecord]:
    return page.recorder.exploration, page


def _of_file(session: LiveRecord, name: str) -> tuple[Exploration, LiveRecord]:
    ex = session.exploration_of(Path(name).expanduser())
    page: LiveRecord = ex.display.session
    return ex, page


def _replanned(ex: Exploration, change: Mapping[Value, bool | None]) -> tuple[Exploration, None]:
    return ex.replan(change), None


def _planned(
    session: LiveRecord, plans: Mapping[str, _Plan], name: str
) -> tuple[Exploration, LiveRecord | None]:
    """Return the exploration of a plan ("": the present one), and the record of its page.

    Errors: WorkbenchError for an unknown name, for a decision that cannot be turned over, and for a
    file that cannot be loaded.
    """
    ex = session.recorder.exploration
    if ex.waits:
        because = f"this one waits for a guess: {ex.waits.splitlines()[0]}"
        raise WorkbenchError("cannot compare these plans", because, "a guess")
    if not name:
        return ex, None
    if name not in plans:
        because = f"there is no plan {name!r:.40} beside this one"
        raise WorkbenchError("cannot compare these plans", because, "another one of the list")
    return plans[name].explored()
