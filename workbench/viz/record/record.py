"""The record of an Exploration: one PageRecord with all data of the page.

`build(ex)` builds it whole. `Recorder` builds it in steps: `first()` adds what a page opens with,
`rest()` adds one more piece at each step, variants are added as they arise, and `patch()` returns
the changes since its last call. Tables only grow, so that places in them stay valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.emulator.steps import Trace
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Switch
from workbench.ir.rewriting.rewrite import Rule, added_rules
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds, earlier_speeds
from workbench.pipeline import switches
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.questions import question_row
from workbench.viz.model.decisions import weights_hint
from workbench.viz.model.graph import graph_nodes
from workbench.viz.page.panel import panes, section_row, sections
from workbench.viz.record import kernels
from workbench.viz.record import variants as rows
from workbench.viz.record.about import MachineSpeeds
from workbench.viz.record.changes import Changes, Path
from workbench.viz.record.code import VariantCode
from workbench.viz.record.film import rewrites_of_decisions
from workbench.viz.record.gpu import gpu_trace
from workbench.viz.record.kernels import KernelRuns, fold_rows, run_rows
from workbench.viz.record.offers import OfferLists
from workbench.viz.record.page_run import page_data
from workbench.viz.record.passes import kernel_numbers
from workbench.viz.record.plan import (
    activation_rows,
    decision_rows,
    hand_choice_rows,
    phase_rows,
    plan_picture,
    read_rows,
    region_rows,
)
from workbench.viz.record.recipe import Tables, opening
from workbench.viz.run.run import run_rows as run_rows_of
from workbench.viz.schema.messages import RecordPatch
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import Nest

FIRST_DRAWN = 250
"""Most nodes of a tensor graph that `first()` lays out; `rest()` lays out a larger one."""
FIRST_SHOWN = 600
"""Most nodes of all kernels together that get their loops and C in `first()`."""
MOST_KERNELS = 12
"""Most kernels that get code, passes and offers without a request."""
LARGE_PLAN = 24
"""Most kernels of a plan that has as many in detail."""
LARGEST = 2
"""The kernels of a larger plan that get these beside the one that a page opens with: a plan of a
hundred kernels is read as a plan, and each kernel takes as long as scheduling all of them."""
MOST_NESTS = 200
"""Most kernels that get their loops without a request."""


def build(
    exploration: Exploration, detail: str = "full", machine_speeds: Speeds | None = None
) -> PageRecord:
    """Return the record of an exploration: with `detail` "first" what a page needs to open, with
    "full" also passes, code in every language, offers and the default opts. Speeds that are not
    given are read from disk, or else measured where they are needed."""
    recorder = Recorder(exploration, machine_speeds)
    recorder.first()
    if detail == "full":
        for _ in recorder.rest():
            pass
    return recorder.record


class Recorder:
    """The builder of a record. `record` is always consistent; `kernels` has the Kernel per variant,
    `machine` the speeds from which all costs and peaks follow."""

    def __init__(self, exploration: Exploration, machine_speeds: Speeds | None = None):
        self.exploration = exploration
        self.rules = added_rules()
        """The rule sets that were registered at its construction."""
        machine_speeds = machine_speeds or earlier_speeds()
        self.kernels: list[Kernel] = []
        tables = Tables.of(exploration)
        self._lines, self._rules = tables.lines, tables.rules
        self._nodes, self._passes = tables.nodes, tables.passes
        self._offers = OfferLists()
        self._nests: dict[Hashable, Nest] = {}
        """The loops of the first of each set of equal kernels."""
        self._upcoming: Callable[[], object] | None = None
        """What the next piece needs, and can be computed before it."""
        self.record = opening(exploration, tables, machine_speeds)
        self.record.runs = run_rows_of(exploration.display.runs)
        if exploration.display.ask:
            self.record.ask = question_row(exploration.display.ask, self.record)
        self._changes = Changes(self.record)
        self.machine = MachineSpeeds(self.record, self._changes, machine_speeds)
        self.runs = KernelRuns(self.record, self._changes, self.kernels)
        self.code = VariantCode(
            exploration,
            self.record,
            self._changes,
            self.kernels,
            self._passes,
            self._nodes,
            self._lines,
        )

    @property
    def speeds(self) -> Speeds | None:
        """The speeds of this machine; None until they are known."""
        return self.machine.speeds

    # adding to the record

    def first(self) -> None:
        """Add what a page opens with: the plan, the passes of scheduling, every kernel, and the
        loops and C of as many kernels as FIRST_SHOWN allows."""
        ex = self.exploration
        passes = self._passes.add(ex.passes, kernel_numbers(ex.passes))
        plan = self.record.plan
        plan.decisions = decision_rows(ex, self._nodes)
        rewrites = rewrites_of_decisions(ex.passes)
        for decided, built in zip(ex.decisions, plan.decisions, strict=True):
            at, built.rewrites = rewrites.get(decided.node, (None, []))
            built.rewritten_by = None if at is None else passes[at]
        plan.by_hand = hand_choice_rows(ex, self._nodes)
        plan.repeats = fold_rows(ex.kernels)
        plan.reads = read_rows(ex.items, self._nodes)
        plan.runs = run_rows(ex.kernels)
        plan.regions = region_rows(ex.kernels)
        plan.phases = phase_rows(ex.kernels)
        plan.hint = weights_hint(ex.kernels)
        plan.activations = activation_rows(ex, self._lines, self._nodes.add)
        if len(graph_nodes(ex.outputs)) <= FIRST_DRAWN:
            self._draw()
        places = {d: i for i, d in enumerate(map(id, ex.decisions))}
        own = [id(i.decisions[0]) for i in ex.items if i.kernel is not None]
        room = FIRST_SHOWN
        for number, kernel in enumerate(ex.kernels):
            variant = self._append(number, kernel, "plain", None)
            line, inner = self._lines.add(kernel.line), self._lines.inner(kernel.line)
            decision = places.get(own[number])
            row = rows.kernel_row(kernel, line, inner, decision, variant)
            self.record.kernels.append(row)
            room -= len(kernel.ast.toposort())
            if room >= 0:
                self.add_loops(variant)
                self.add_c(variant)
        # a pane of steps opens with the default opts: without them, groups have one work-item
        for variant in self._stepped():
            with self._explained(variant):
                self.record.kernels[variant].opens = self._add_auto(variant)
        self.patch()

    def rest(self) -> Iterator[str]:
        """Add everything else, a piece at a time; yield the name of each piece."""
        ex = self.exploration
        every = range(len(ex.kernels))
        yield from self._plan_picture()
        for variant in every[:MOST_NESTS]:
            if self.record.variants[variant].loops is None:
                self.add_loops(variant)
                yield "loops"
        yield from self._sections()
        for variant in self._stepped():
            opens = self.record.kernels[variant].opens
            self._add_steps(variant if opens is None else opens)
            yield "steps"
        self._upcoming = self.machine.prepare
        yield "machine"
        self.machine.measure()
        yield "speeds"
        for _ in self.runs.predict(self.speeds, MOST_KERNELS):
            yield "prediction"
        plain = self._detailed()
        for variant in plain:
            if not self.record.variants[variant].passes:
                self.add_compiled(variant)
            for device in Device.renderers:
                for language in device.languages:
                    self.code.add_readable_or_error(variant, device, language)
            if not self._lists_offers(variant):
                self._upcoming = partial(self._list_offers, variant)
            yield "code"
            if not self._lists_offers(variant):
                self.add_offers(variant)
            yield "offers"
        for variant in plain:
            yield from self._default_opts(variant)
        self.code.add_texts(range(len(ex.passes)), ex.passes)
        yield "texts"
        for _ in self.runs.predict(self.speeds):
            yield "prediction"

    def beside(self, variant: int | None) -> None:
        """Add what a comparison shows of this record beside another: the plan, the sections of
        panels, and a variant with its code and its passes."""
        for _ in (*self._plan_picture(), *self._sections()):
            pass
        if variant is not None:
            self.add_compiled(variant)
        self.code.add_texts(range(len(self.exploration.passes)), self.exploration.passes)

    def _plan_picture(self) -> Iterator[str]:
        if not self.record.plan.nodes:
            self._draw()
            yield "plan"

    def _sections(self) -> Iterator[str]:
        for name, section in sections().items():
            row = section_row(section, self.exploration, self._nodes)
            self.put(("panels", name), row)
            yield "section"

    def _default_opts(self, variant: int) -> Iterator[str]:
        """Add the default opts of a kernel as a variant; for a pane of steps the run of the kernel
        without opts, and for a device that runs in the page its buffers. Yield the name of each
        piece."""
        auto = None
        with self._explained(variant):
            auto = self._add_auto(variant)
            if auto is not None:
                self.add_compiled(auto)
        if auto is not None:  # a user opens it next
            self._upcoming = partial(self._list_offers, auto)
        yield "auto"
        if auto is not None and variant in self._stepped():
            self._add_steps(variant)
            yield "steps"
        if Device[self.kernels[variant].device].runs_in_page:
            self.add_data(self.record.variants[variant].kernel)
            yield "data"

    def complete(self, variant: int) -> None:
        """Add all that a variant gets without a request and still lacks on its device."""
        row = self.record.variants[variant]
        is_listed = row.kernel in self._detailed() and row.error is None
        if not is_listed or row.edited:
            return
        if not row.passes:
            self.add_compiled(variant)
        is_root = self.record.kernels[row.kernel].root == variant
        if is_root and not row.offers and not row.refused:
            self.add_offers(variant)

    def _detailed(self) -> list[int]:
        """Return the kernels that a record has in detail without a request: the first ones; of a
        larger plan the first, and the LARGEST that have most operations with those equal to
        them."""
        first, runs = self._first(MOST_KERNELS), self.record.plan.runs
        computing = [k for k, row in enumerate(self.record.kernels) if not row.draws_numbers]
        if len(computing) <= LARGE_PLAN:
            return first
        operations: Counter[int] = Counter()
        for k in computing:
            operations[runs[k].like] += int(self.record.kernels[k].flops)
        del operations[runs[first[0]].like]
        return sorted([first[0], *[k for k, _ in operations.most_common(LARGEST)]])

    def _first(self, count: int) -> list[int]:
        """Return the first `count` kernels; kernels that only draw random numbers come last."""
        rows = self.record.kernels
        return sorted(range(len(rows)), key=lambda k: rows[k].draws_numbers)[:count]

    def _stepped(self) -> list[int]:
        """Return the kernels that get a run on the emulator without a request, for a pane of
        steps that is shown alone."""
        show = self.exploration.show
        count = kernels.MOST_KERNELS if show and panes()[show].has_steps else 0
        return self._first(count)

    def _add_steps(self, variant: int) -> None:
        """Add the run of a variant on the emulator, unless it takes long. Errors are left out: a
        page shows them on request."""
        with suppress(WorkbenchError):
            run = kernels.unasked_run(self.kernels[variant])
            if run is not None:
                self.add_trace(variant, run, None)

    def _add_auto(self, variant: int) -> int | None:
        """Add a variant with the default opts of a kernel; return its place, None if there are no
        default opts."""
        auto = self.kernels[variant].optimized()
        auto_variant = None
        if auto.applied_opts:
            auto_variant = self.variant_of(variant, auto)
            if auto_variant is None:
                number = self.record.variants[variant].kernel
                auto_variant = self.add_variant(number, auto, "auto", variant)
            else:  # a user or a search added it already
                self.put(("variants", auto_variant, "name"), "auto")
                steps = rows.step_rows(auto.steps)
                self.put(("variants", auto_variant, "steps"), steps)
            self.put(("variants", auto_variant, "default_of"), auto.device)
        return auto_variant

    def variant_of(self, root: int, kernel: Kernel) -> int | None:
        """Return the variant of the kernel of `root` that equals `kernel`, None where there is
        none. Source edited by hand never equals a kernel."""
        listed = self.record.variants
        for variant, candidate in enumerate(self.kernels):
            row = listed[variant]
            same = row.kernel == listed[root].kernel and not row.edited
            same = same and candidate.rules_off == kernel.rules_off
            if same and candidate.ast is kernel.ast:
                return variant
        return None

    def add_variant(
        self, number: int, kernel: Kernel, name: str, parent: int | None = None, when: int = 0
    ) -> int:
        """Add `kernel` as a variant of kernel `number`, with its loops and C; return its place.

        Units: `when` it was made, in seconds of the epoch.
        """
        variant = self._append(number, kernel, name, parent, when)
        self.add_loops(variant)
        self.add_c(variant)
        return variant

    def add_loops(self, variant: int) -> None:
        """Add the loops of a variant, and its Python code."""
        kernel = self.kernels[variant]
        with self._explained(variant):
            self.put(("variants", variant, "python"), kernel.to_python())
            key = kernel.ast, kernel.device, kernel.rules_off
            if key in self._nests:
                nest = rows.equal_nest(self._nests[key], kernel)
            else:
                nest = self._nests[key] = rows.nest_row(kernel, self._nodes)
            self.put(("variants", variant, "loops"), nest)

    def add_c(self, variant: int) -> None:
        """Add the C of a variant."""
        with self._explained(variant):
            self.code.add_c(variant)

    def add_compiled(self, variant: int) -> None:
        """Compile a variant for its device; add code, cost, counts and passes."""
        with self._explained(variant):
            self.code.compile(variant)
            self.add_cost(variant)
            self.code.add_compiled(variant)

    def add_cost(self, variant: int) -> None:
        """Add the cost of a variant by its loop nest, and its bottleneck."""
        self.machine.measure()
        timing = self.record.variants[variant].timing
        measured_s = timing.median_s if timing is not None and timing.is_comparable else None
        registers = self.code.registers(variant)
        costs = rows.cost_rows(self.kernels[variant], self.speeds, measured_s, registers)
        if costs is not None:
            bound, cost = costs
            self.put(("variants", variant, "bound"), bound)
            self.put(("variants", variant, "cost"), cost)

    def add_data(self, number: int) -> None:
        """Add the buffers with which a page runs a kernel, or the error that says why it cannot."""
        data = page_data(self.kernels[self.record.kernels[number].root])
        self.put(("kernels", number, "data"), data)

    def add_offers(self, variant: int) -> None:
        """Add the next opts of a variant: legal ones, and others with the reason."""
        self.machine.measure()
        with self._explained(variant):
            # each variant has rows of its own, for the measurements of its offers
            offers, refused = self._offers.of(self.kernels[variant], self.speeds)
            self.put(("variants", variant, "offers"), [copy(o) for o in offers])
            self.put(("variants", variant, "refused"), refused)

    def _lists_offers(self, variant: int) -> bool:
        """Return whether the offers of a variant are known: a page may have asked for them."""
        row = self.record.variants[variant]
        return bool(row.offers or row.refused)

    def prepare(self) -> None:
        """Compute what the next piece needs, speeds of the machine or offers: many seconds, on a
        busy machine. It needs no lock, since the record does not change. An error is raised again
        where the piece is added, which shows it."""
        work, self._upcoming = self._upcoming, None
        if work is not None:
            with suppress(Exception), unobserved():
                work()

    def _list_offers(self, variant: int) -> object:
        return self._offers.of(self.kernels[variant], self.speeds)

    def add_trace(self, variant: int, trace: Trace, without: int | None) -> None:
        """Add the run of a variant on the emulator, with its steps; `without` is the number of the
        barrier that was removed (None: none)."""
        row = gpu_trace(trace, self._nodes, self.kernels[variant].names, without)
        self.put(("variants", variant, "gpu"), row)

    def node(self, place: int) -> UOp:
        """Return the node at a place of the record."""
        return self._nodes.at(place)

    def place(self, node: UOp) -> int:
        """Return the place of a node of the record."""
        return self._nodes.add(node)

    def rule(self, place: int) -> Rule | None:
        """Return the rule at a place of the record; None for an opt or a step."""
        return self._rules.at(place)

    def switch(self, name: str) -> Switch | None:
        """Return the rule or the step of this name: one of the record, else one of the passes."""
        known = (*self._rules.switches(), *switches())
        return next((each for each in known if each.name == name), None)

    def put(self, path: Path, value: Any) -> None:
        """Set one value of the record; the next patch has it."""
        self._changes.put(path, value)

    def patch(self) -> RecordPatch:
        """Return the changes since the last call, or since `first()`."""
        self.machine.put_shares()
        return self._changes.patch()

    # helpers

    @contextmanager
    def _explained(self, variant: int) -> Iterator[None]:
        """Catch an error, and show it with the variant. An internal error must not end the page,
        either."""
        try:
            yield
        except Exception as error:
            earlier_error = self.record.variants[variant].error
            # an internal error does not replace an earlier one
            if earlier_error is None or isinstance(error, WorkbenchError):
                self.put(("variants", variant, "error"), rows.error_row(error))

    def _draw(self) -> None:
        plan = plan_picture(self.exploration, self._nodes, self._lines)
        if plan is not None:
            for name in ("width", "height", "nodes", "edges"):
                self.put(("plan", name), getattr(plan, name))

    def _append(
        self, number: int, kernel: Kernel, name: str, parent: int | None, when: int = 0
    ) -> int:
        self.kernels.append(kernel)
        row = rows.variant_row(number, kernel, name, parent, when)
        if parent is not None:
            row.default_of = self.record.variants[parent].default_of
        self.record.variants.append(row)
        return len(self.kernels) - 1
