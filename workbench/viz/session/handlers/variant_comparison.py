"""Comparison of variants in columns, for the page; in Python it is `workbench.compare`.

The first column may be a variant of this record, or the same variant on another device, without
some rules, or in another plan: then it has a record of its own, which the page shows beside this
one, pane by pane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from workbench.base.errors import DeviceError, WorkbenchError, cut
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import require_times
from workbench.measure.kernel_time import seconds_text
from workbench.viz.exploration.exploration import Exploration
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
    PairsReply,
)
from workbench.viz.session.handlers import measurement, rule_toggles, variant_transfer, variants
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name
from workbench.worker.client import DATA_BYTES

MOST_PLANS = 40
"""Most plans that are offered for a comparison."""
MOST_TITLE = 60
"""Most characters of the title of a plan."""
MOST_NODES = 6000
"""Most nodes of two graphs that are paired: that takes less than a second."""
_BEFORE = "before"
"""The name of the plan before the present one, in requests."""


def compare(
    session: LiveRecord, variants: list[int], device: str | None, without: list[str], plan: str
) -> CompareReply:
    """Return the differences of variants: all that is known without running them. Their times and
    checks are in the records.

    Errors: WorkbenchError for edited source, an unknown plan, and a plan or a rule that is not
    possible; DeviceError for a missing device.
    """
    rows = [session.row(variant) for variant in variants]
    for row in rows:
        if row.edited:
            what, because = f"{row.name} cannot be compared", "its code was edited by hand"
            raise WorkbenchError(what, because, "the pane Two programs, for two texts")
    names, kernels = [row.name for row in rows], [session.kernels[variant] for variant in variants]
    plans = _plans(session)
    offered = [OtherPlan(key, cut(each.title, MOST_TITLE)) for key, each in plans.items()]
    if device in (None, session.device) and not without and not plan:
        return CompareReply(names, _rows(kernel_sections(kernels)), offered, None, None)
    ex, page = _planned(session, plans, plan)
    side = _side(session, variants[0], device or session.device, without, ex, page)
    names[0] = ", ".join(filter(None, [side.name, plans[plan].title if plan else ""]))
    sections: list[Section] = []
    values = None
    if side.live.recorder.exploration is not session.recorder.exploration:
        both = side.live.recorder.exploration, session.recorder.exploration
        sections = [*_of_plans(both), *_plan_times(session, plan)]
        roots = both[0].outputs, both[1].outputs
        if _size(*roots) <= MOST_NODES:
            values = _paired(side.live, session, *roots)
    if side.kernel is not None:
        sections += kernel_sections([side.kernel, *kernels[1:]])
    return CompareReply(names, _rows(sections), offered, side.reply(), values)


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


def _plan_times(session: LiveRecord, plan: str) -> list[Section]:
    """Return the times of the plan before and of this one, if they were measured."""
    compared = session.record.plan.compared
    if plan != _BEFORE or compared is None or compared.seconds is None:
        return []
    times = Row("all kernels", tuple(map(seconds_text, compared.seconds)))
    return [Section("time of the plans", (times, Row("beside the first", ("", compared.speed))))]


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
    live = session.side(ex)
    if page is not None and ex is page.recorder.exploration:
        variant_transfer.copy_variants(live, page)
    if live.device != device:
        variants.show_device(live, device)
    number = _kernel_in(session, session.row(variant).kernel, ex)
    if number is None:
        return _Side(live, None, None, "no kernel")
    root = live.record.kernels[number].root
    place = variant_transfer.transferred(live, session, variant, root)
    own = root if place is None else place
    if compiling := [rule for rule in without if rule not in scheduling]:
        changed = live.kernels[root].without(*compiling).apply(*live.kernels[own].applied_opts)
        named = f"{live.row(own).name} without {', '.join(compiling)}"
        own = variants.variant_of(live, changed, own, named)
    words = [live.row(own).name, *(f"without {rule}" for rule in scheduling)]
    words += [f"on {device}"] if device != session.device else []
    lacks = " (its opts do not apply there)" if place is None else ""
    return _Side(live, number, own, " ".join(words) + lacks)


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
# Other plans: the one before this one, those with one decision turned over, and those of the other
# pages of this Python session.


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan that can stand beside the present one, how its exploration is made, and the record of
    its page, if it has one."""

    title: str
    explored: Callable[[], Exploration]
    page: LiveRecord | None = None


def _plans(session: LiveRecord) -> dict[str, _Plan]:
    """Return the plans that can be compared with the present one, by their names in requests."""
    ex = session.recorder.exploration
    found: dict[str, _Plan] = {}
    if session.before is not None:
        before = session.before.exploration
        found[_BEFORE] = _Plan("the plan before", lambda: before)
    for place, row in enumerate(session.record.plan.decisions):
        if not row.is_requested and not row.is_copy:
            node, stored = ex.decisions[place].node, row.stored
            title = f"{row.name} {'fused' if stored else 'stored'}"
            found[f"decision {place}"] = _Plan(title, partial(ex.replan, {node: not stored}))
    for other in session.others():
        ex = other.recorder.exploration
        line = ex.headline if ex.line is None else f"{ex.line.text} ({ex.line})"
        title = " ".join(filter(None, [line, ex.origin.words]))
        found[f"page {other.number}"] = _Plan(title, partial(_itself, ex), other)
    return dict(islice(found.items(), MOST_PLANS))


def _itself(ex: Exploration) -> Exploration:
    return ex


def _planned(
    session: LiveRecord, plans: Mapping[str, _Plan], name: str
) -> tuple[Exploration, LiveRecord | None]:
    """Return the exploration of a plan ("": the present one), and the record of its page.

    Errors: WorkbenchError for an unknown name, and for a decision that cannot be turned over.
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
    return plans[name].explored(), plans[name].page
