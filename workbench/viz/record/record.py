"""The record of an Exploration: one PageRecord with everything that a page shows.

`build(ex)` builds it whole. `Recorder` builds it in steps: `first()` adds what a page opens with,
each step of `rest()` adds a piece, variants are added as they arise, and `patch()` returns the
changes since its last call. Tables only grow, so places in them stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any

from workbench.backends.device import Device, DeviceInfo
from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import OptOps
from workbench.ir.rewriting.rewrite import Rule, added_rules, rules_in_force
from workbench.kernel.kernel import Compiled, Kernel
from workbench.measure.speeds import Speeds, beaten, speeds
from workbench.measure.speeds import earlier_speeds as earlier_speeds
from workbench.viz.exploration import Exploration
from workbench.viz.model.families import family_rows
from workbench.viz.model.graph import graph_nodes
from workbench.viz.model.kinds import kind_rows
from workbench.viz.model.provenance import links_of
from workbench.viz.model.recipes import compiled_passes
from workbench.viz.model.words import plural
from workbench.viz.page.panel import sections
from workbench.viz.record import variants as rows
from workbench.viz.record.about import (
    device_rows,
    expression_key,
    language_rows,
    machine,
    speed_rows,
)
from workbench.viz.record.changes import Changes, Path
from workbench.viz.record.compilations import Compilations
from workbench.viz.record.links import Linker, readable, to_read
from workbench.viz.record.nodes import Lines, Nodes, Texts, bounded
from workbench.viz.record.offers import NextRows, next_rows
from workbench.viz.record.passes import PassRows, kernel_numbers
from workbench.viz.record.plan import decision_rows, empty_plan, plan_picture
from workbench.viz.record.recipe import page_recipes, recipe
from workbench.viz.record.rules import RuleRows
from workbench.viz.record.sections import section_row
from workbench.viz.schema.messages import RecordPatch
from workbench.viz.schema.record import ExpressionRow, PageRecord, WithoutRow
from workbench.viz.schema.variant import CodeRow

VERSION = 1
FIRST_DRAWN = 250
"""Most nodes of a tensor graph that is laid out at once; a larger one is laid out later."""
FIRST_SHOWN = 600
"""Most nodes of all kernels together that get their loops and C at once."""
MOST_KERNELS = 12
"""Most kernels that get code, passes and offers without a request."""
MOST_NESTS = 200
"""Most kernels that get their loops without a request."""


def build(
    exploration: Exploration, detail: str = "full", machine_speeds: Speeds | None = None
) -> PageRecord:
    """Return the record of an exploration: "first" has what a page needs to open, "full" also
    passes, code in every language, offers and the default opts. Without `machine_speeds` they are
    measured, or read from disk."""
    recorder = Recorder(exploration, machine_speeds)
    recorder.first()
    if detail == "full":
        for _ in recorder.rest():
            pass
    return recorder.record


def _registered() -> tuple[object, ...]:
    """Return the registered opts and rules, on which offers depend."""
    return tuple(OptOps), rules_in_force()


class Recorder:
    """Builds a record. `record` is always consistent; `kernels` has the Kernel per variant.

    All costs and peaks follow from `speeds`, None until they are known: they are measured once, and
    a kernel that exceeds a peak raises it, here and in the record.
    """

    def __init__(self, exploration: Exploration, machine_speeds: Speeds | None = None):
        self.exploration = exploration
        self.rules = added_rules()
        """The rule sets that were registered at its construction."""
        self.speeds = machine_speeds or earlier_speeds()
        self.kernels: list[Kernel] = []
        self._lines, self._texts, self._rules = Lines(), Texts(), RuleRows()
        self._nodes = Nodes(self._lines, exploration.lines)
        self._passes = PassRows(self._nodes, self._texts, self._rules)
        # a model of equal layers has equal kernels: offers of each are computed once
        self._next: dict[tuple[object, ...], NextRows] = {}
        self._compilations = Compilations(self.kernels)
        self.record = self._opening()
        self._changes = Changes(self.record)

    def _opening(self) -> PageRecord:
        ex = self.exploration
        named = (
            ex.line.text
            if ex.line
            else f"explore of {plural(len(ex.tensors), 'tensor')}"
        )
        return PageRecord(
            v=VERSION,
            key=expression_key(ex.outputs),
            expr=ExpressionRow(bounded(named), self._lines.add(ex.line), recipe(ex)),
            device=ex.tensors[0].device,
            devices=device_rows(),
            languages=language_rows(),
            headline=ex.headline,
            nothing=bounded(ex.nothing_to_do),
            without=WithoutRow(list(ex.rules_off), ""),
            recipes=page_recipes(ex),
            machine=machine(self.speeds),
            kinds=kind_rows(),
            lines=self._lines.listed,
            nodes=self._nodes.columns,
            readings=self._nodes.readings.listed,
            families=family_rows(),
            texts=self._texts.listed,
            rules=self._rules.listed,
            passes=self._passes.listed,
            plan=empty_plan(),
            kernels=[],
            variants=[],
            pinned=None,
            baselines=[],
            panels=dict.fromkeys(sections()),
        )

    # adding to the record

    def first(self) -> None:
        """Add what a page opens with: the plan, the passes of scheduling, every kernel with its
        loops and C."""
        ex = self.exploration
        self._passes.add(ex.passes, kernel_numbers(ex.passes))
        self.record.plan.decisions = decision_rows(ex, self._nodes)
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
        self.patch()

    def rest(self) -> Iterator[str]:
        """Add everything else, a piece at a time; yield a name of each piece."""
        ex = self.exploration
        if not self.record.plan.nodes:
            self._draw()
            yield "plan"
        every = range(len(ex.kernels))
        for variant in every[:MOST_NESTS]:
            if self.record.variants[variant].loops is None:
                self.add_loops(variant)
                yield "loops"
        for name, section in sections().items():
            row = section_row(section, ex, self._nodes)
            self.put(("panels", name), row)
            yield "section"
        self.add_speeds()
        yield "speeds"
        plain = every[:MOST_KERNELS]
        for variant in plain:
            self.add_compiled(variant)
            for device in Device.renderers:
                self._add_readable_or_error(variant, device)
            yield "code"
            self.add_offers(variant)
            yield "offers"
        for variant in plain:
            with self._explained(variant):
                self._add_auto(variant)
            yield "auto"
        self._add_texts(range(len(ex.passes)), ex.passes)
        yield "texts"

    def complete(self, variant: int) -> None:
        """Add what a variant lacks on its device, of all that needs no request."""
        row = self.record.variants[variant]
        is_listed = row.kernel < MOST_KERNELS and row.error is None
        if not is_listed or row.edited:
            return
        if not row.passes:
            self.add_compiled(variant)
        is_root = self.record.kernels[row.kernel].root == variant
        if is_root and not row.offers and not row.refused:
            self.add_offers(variant)

    def _add_auto(self, variant: int) -> None:
        auto = self.kernels[variant].optimized()
        if auto.applied_opts:
            auto_variant = self.variant_of(variant, auto)
            if auto_variant is None:
                number = self.record.variants[variant].kernel
                auto_variant = self.add_variant(number, auto, "auto", variant)
            else:  # a user or a search added it already
                self.put(("variants", auto_variant, "name"), "auto")
                steps = rows.step_rows(auto.steps)
                self.put(("variants", auto_variant, "steps"), steps)
            self.add_compiled(auto_variant)

    def variant_of(self, root: int, kernel: Kernel) -> int | None:
        """Return the variant that `kernel` is, one of the kernel of variant `root`, and not source
        edited by hand; None where there is none."""
        listed = self.record.variants
        for variant, candidate in enumerate(self.kernels):
            row = listed[variant]
            same = row.kernel == listed[root].kernel and not row.edited
            same = same and candidate.rules_off == kernel.rules_off
            if same and candidate.ast is kernel.ast:
                return variant
        return None

    def add_variant(
        self, number: int, kernel: Kernel, name: str, parent: int | None = None
    ) -> int:
        """Add `kernel` as a variant of kernel `number`, with its loops and C; return its place."""
        variant = self._append(number, kernel, name, parent)
        self.add_loops(variant)
        self.add_c(variant)
        return variant

    def add_loops(self, variant: int) -> None:
        """Add the loops of a variant, and its Python code."""
        kernel = self.kernels[variant]
        with self._explained(variant):
            self.put(("variants", variant, "python"), kernel.to_python())
            nest = rows.nest_row(kernel, self._nodes)
            self.put(("variants", variant, "loops"), nest)

    def add_c(self, variant: int) -> None:
        """Add the C of a variant."""
        with self._explained(variant):
            code = rows.readable_code(self._compilations.source(variant)[0])
            self.put(("variants", variant, "code"), [code])

    def add_compiled(self, variant: int) -> None:
        """Compile a variant for its device; add code, counts and passes."""
        kernel, number = (
            self.kernels[variant],
            self.record.variants[variant].kernel,
        )
        with self._explained(variant):
            compiled = self._compiled(variant)
            self._add_passes(variant, compiled.passes)
            self.put(("variants", variant, "counts"), rows.counts_row(compiled))
            self.add_cost(variant)
            linker = self._linker(compiled, number)
            in_c = to_read(compiled, self._compilations.source(variant))
            c_linker = linker.elsewhere(in_c) or self._linker(in_c, number)
            code = rows.compiled_code(compiled, linker, in_c, c_linker)
            self.put(("variants", variant, "code"), code)
            nest = rows.nest_row(kernel, self._nodes, linker)
            self.put(("variants", variant, "loops"), nest)
            self._add_causes(linker)
            if c_linker.links.ancestry is not linker.links.ancestry:
                self._add_causes(c_linker)

    def add_readable(self, variant: int, device: DeviceInfo) -> None:
        """Add the code of a variant in the language of a device, which may be missing here. An
        error of a user's renderer reaches the caller."""
        number = self.record.variants[variant].kernel
        source = readable(self.kernels[variant], device.name)
        compiled = to_read(self._compiled(variant), source, device.name)
        linker = self._linker(compiled, number)
        row = rows.code_row(device, compiled.source.split("\n"), linker.source())
        self._put_code(variant, row)

    def _add_readable_or_error(self, variant: int, device: DeviceInfo) -> None:
        """Add the code of a variant in the language of a device; where its renderer raises, the
        error stands there instead."""
        try:
            self.add_readable(variant, device)
        except Exception as error:
            self._put_code(
                variant, rows.code_row(device, [], error=rows.error_row(error))
            )

    def _put_code(self, variant: int, row: CodeRow) -> None:
        """Add code to that of a variant; what there was in its language goes."""
        code = self.record.variants[variant].code
        others = [other for other in code if other.language != row.language]
        self.put(("variants", variant, "code"), [*others, row])

    def _compiled(self, variant: int) -> Compiled:
        """Compile a variant, once for each device. Where that fails, the passes up to the error are
        added."""
        try:
            return self._compilations.program(variant)
        except Exception as error:
            passes = self._compilations.passes_before(variant, error)
            self._add_passes(variant, passes, failed=True)
            raise

    def _add_passes(
        self, variant: int, records: Sequence[PassRecord], failed: bool = False
    ) -> None:
        """Add the passes of compiling a variant for its device."""
        number = self.record.variants[variant].kernel
        owner = self._compilations.owner(variant)
        python = compiled_passes(self.kernels[variant].device, failed)
        places = self._passes.add(records, number, owner, python)
        self.put(("variants", variant, "passes"), places)
        self._add_texts(places, records)

    def add_cost(self, variant: int) -> None:
        """Add the cost of a variant by its loop nest, and its bottleneck."""
        self.add_speeds()
        timing = self.record.variants[variant].timing
        measured_s = None if timing is None else timing.median_s
        costs = rows.cost_rows(self.kernels[variant], self.speeds, measured_s)
        if costs is not None:
            bound, cost = costs
            self.put(("variants", variant, "bound"), bound)
            self.put(("variants", variant, "cost"), cost)

    def add_speeds(self) -> None:
        """Add the speeds of this machine; where they are unknown, measuring them takes a second,
        once."""
        if self.speeds is None:
            with suppress(WorkbenchError):  # it needs a compiler
                self._put_speeds(speeds())
                self.raise_peaks()

    def raise_peaks(self, variant: int | None = None) -> None:
        """Raise the peaks that a timing of a variant (None: of any) exceeds, so that no speed in
        the record exceeds its peak."""
        listed = self.record.variants
        for row in listed if variant is None else [listed[variant]]:
            timing = row.timing
            # edited source may execute fewer operations than are counted
            if self.speeds is None or not timing or timing.emulator or row.edited:
                continue
            speed = timing.gflops * 1e9
            self._put_speeds(beaten(self.speeds, timing.kind, timing.threads, speed))

    def _put_speeds(self, machine_speeds: Speeds) -> None:
        self.speeds = machine_speeds
        for name, value in speed_rows(machine_speeds)._asdict().items():
            if getattr(self.record.machine, name) != value:
                self.put(("machine", name), value)

    def add_offers(self, variant: int) -> None:
        """Add the next opts of a variant: legal ones, and others with the reason."""
        self.add_speeds()
        kernel = self.kernels[variant]
        with self._explained(variant):
            same = kernel.ast, kernel.device, kernel.rules_off, *_registered()
            if same not in self._next:
                self._next[same] = next_rows(kernel, self.speeds)
            # each variant has rows of its own, for the measurements of its offers
            offers, refused = self._next[same]
            self.put(("variants", variant, "offers"), [copy(o) for o in offers])
            self.put(("variants", variant, "refused"), refused)

    def node(self, place: int) -> UOp:
        """Return the node at a place of the record."""
        return self._nodes.at(place)

    def rule(self, place: int) -> Rule | None:
        """Return the rule at a place of the record; None for an opt or a step."""
        return self._rules.at(place)

    def put(self, path: Path, value: Any) -> None:
        """Set one value of the record, so that the next patch says so."""
        self._changes.put(path, value)

    def patch(self) -> RecordPatch:
        """Return the changes since the last call, or since `first()`."""
        return self._changes.patch()

    # helpers

    @contextmanager
    def _explained(self, variant: int) -> Iterator[None]:
        """Catch an error of a variant, and show it with the variant. An internal error, too, must
        not end the whole page."""
        try:
            yield
        except Exception as error:
            earlier_error = self.record.variants[variant].error
            if earlier_error is None or isinstance(
                error, WorkbenchError
            ):  # its own message is enough
                self.put(("variants", variant, "error"), rows.error_row(error))

    def _draw(self) -> None:
        plan = plan_picture(self.exploration, self._nodes, self._lines)
        if plan is not None:
            for name in ("width", "height", "nodes", "edges", "regions"):
                self.put(("plan", name), getattr(plan, name))

    def _append(
        self, number: int, kernel: Kernel, name: str, parent: int | None
    ) -> int:
        self.kernels.append(kernel)
        row = rows.variant_row(number, kernel, name, parent)
        self.record.variants.append(row)
        return len(self.kernels) - 1

    def _linker(self, compiled: Compiled, number: int) -> Linker:
        value = [i.nodes[0] for i in self.exploration.items if i.kernel is not None][
            number
        ]
        passes = (*self.exploration.passes, *compiled.passes)
        ex = self.exploration
        links = links_of(compiled, ex.passes, ex.lines, value)
        places = tuple(map(self._passes.place, passes))
        return Linker(links, self._nodes, self._lines, places)

    def _add_causes(self, linker: Linker) -> None:
        """Add the causes of nodes to those known before: kernels may share nodes."""
        for node, causes in linker.causes():
            current = self._nodes.columns.made[node]
            both = [*current, *(row for row in causes if row not in current)]
            if both != current:
                self.put(("nodes", "made", node), both)

    def _add_texts(self, places: Sequence[int], records: Sequence[PassRecord]) -> None:
        for place, record in zip(places, records, strict=True):
            for name, text in self._passes.texts(record).items():
                self.put(("passes", place, name), text)
