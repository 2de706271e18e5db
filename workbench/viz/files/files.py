"""An exploration as the text of a file, without the tensors' data.

The file has what a plan is computed from (expression, forced decisions, rules that are off), the
user's lines, and the variants with their results. `load` plans again from it, and the record is the
same.

Sections: Gradient passes in the file of an exploration; An exploration as the text of a file,
without the tensors' data.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from os.path import basename
from typing import NamedTuple

from msgspec.structs import replace

from workbench.base.installation import version
from workbench.base.source import ModuleCall, SourceLine
from workbench.base.trace import PassRecord
from workbench.base.typed import to_json
from workbench.ir.gradient.backward import GRADIENT, Share, gradient_steps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import HandChoices
from workbench.ir.schedule.schedule import SIMPLIFY_TENSOR
from workbench.ir.text.printer import to_text
from workbench.ir.verify.tensor import marked
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.about import expression_text, machine_row
from workbench.viz.schema.saved import (
    FileVariant,
    SavedBudget,
    SavedChoices,
    SavedEdit,
    SavedExploration,
    SavedGradients,
    SavedLine,
    SavedShare,
    SavedVariant,
)
from workbench.viz.session.live_record import LiveRecord

# --------------------------------------------------------------------------------------------------
# Gradient passes in the file of an exploration: the gradients of rules, by node positions.


def gradient_passes(records: Iterable[PassRecord]) -> list[PassRecord]:
    """Return the gradient passes among records."""
    return [record for record in records if record.name == GRADIENT.name]


def nodes_of(record: PassRecord) -> Iterator[UOp]:
    """Yield the nodes that a saved gradient pass refers to by place."""
    shares = ((*match.before.src, match.after) for match in record.matches)
    yield from chain(record.after.src, *shares)


def saved_gradients(record: PassRecord, places: Mapping[UOp, int]) -> SavedGradients:
    """Return a gradient pass with the places of its nodes."""
    root, *gradients = record.after.src
    shares = [(*match.before.src, match.after) for match in record.matches]
    seed = next((g for _, node, g, _ in shares if node is root), root)
    targets = [_target(due, root) for due in record.before.src[1:]]
    return SavedGradients(
        root=places[root],
        seed=places[seed],
        gradients=[
            (places[target], places[gradient])
            for target, gradient in zip(targets, gradients, strict=True)
        ],
        shares=[
            SavedShare(places[node], places[g], places[source], places[value])
            for source, node, g, value in shares
        ],
        seconds=record.seconds,
    )


def gradient_record(saved: SavedGradients, nodes: Sequence[UOp]) -> PassRecord:
    """Return the record of a saved pass. Errors: LookupError for a place beyond the nodes."""
    pairs = [(nodes[target], nodes[gradient]) for target, gradient in saved.gradients]
    shares = [
        Share(nodes[s.node], nodes[s.g], nodes[s.source], nodes[s.value], nodes[s.value])
        for s in saved.shares
    ]
    root, seed = nodes[saved.root], nodes[saved.seed]
    before, after, matches = gradient_steps(root, seed, pairs, shares)
    doc = GRADIENT.doc
    return PassRecord(GRADIENT.name, doc, before, after, matches, saved.seconds)


def _target(due: UOp, root: UOp) -> UOp:
    """Return the node whose gradient is `due`: a GRADIENT, or a sum that ends with one; `root` for
    any other value."""
    while due.op is Ops.ADD and due.src[-1].op is Ops.GRADIENT:
        due = due.src[-1]
    return due.src[0] if due.op is Ops.GRADIENT else root


# --------------------------------------------------------------------------------------------------
# An exploration as the text of a file, without the tensors' data.


def file_text(ex: Exploration) -> str:
    """Return the text of the file of an exploration; it has variants if the exploration is
    displayed."""
    session: LiveRecord | None = ex.display.session
    roots = _scheduled(ex)
    passes = gradient_passes(ex.passes)
    named = dict.fromkeys(node for record in passes for node in nodes_of(record))
    root = UOp.sink(*roots, *ex.choices.nodes, *named)
    places = {node: place for place, node in enumerate(root.toposort())}
    table = _LineTable()
    columns = _node_columns(ex, root)
    this_machine = machine_row()
    saved = SavedExploration(
        format="workbench exploration",
        v=1,
        program=version(),
        when=int(time.time()),
        cpu=this_machine.cpu,
        cores=this_machine.cores,
        graph=expression_text(root),
        devices=list(ex.expression.devices),
        forced=list(ex.forced.values()),
        rules_off=list(ex.rules_off),
        show=ex.show,
        lines=table.rows,
        node_lines=list(map(table.places, columns.lines)),
        node_names=columns.names,
        node_modules=columns.modules,
        plan=plan_hash(ex.kernels),
        device=ex.device,
        variants=[],
        baselines=[],
        node_phases=columns.phases if any(columns.phases) else [],
        gradients=[saved_gradients(record, places) for record in passes],
        by_hand=saved_choices(ex.choices),
        line=None if ex.viewer.line is None else table.places([ex.viewer.line])[0],
        budget=None if ex.budget is None else SavedBudget(**asdict(ex.budget)),
    )
    if session is not None:
        with session.lock:
            saved.device = session.device
            saved.variants = _variants(session)
            saved.baselines = session.record.baselines
            return to_json(saved)
    return to_json(saved)


def saved_choices(choices: HandChoices) -> SavedChoices | None:
    """Return the choices but those to store or fuse a value; None if there are no others."""
    if choices == HandChoices(choices.stored):
        return None
    place = {node: number for number, node in enumerate(choices.nodes)}
    return SavedChoices(
        values=len(place),
        recompute=[
            (place[n], [place[reader] for reader in own]) for n, own in choices.recomputed.items()
        ],
        split=[(place[n], parts) for n, parts in choices.parts.items()],
        before=[(place[n], place[later]) for n, later in choices.before.items()],
        in_place=[
            (place[n], None if over is False else place[over])
            for n, over in choices.in_place.items()
        ],
    )


def loaded_choices(
    forced: Mapping[UOp, bool], saved: SavedChoices | None, nodes: Sequence[UOp]
) -> HandChoices:
    """Return the choices of a file, whose values are `nodes`. Errors: LookupError for a place
    beyond them."""
    if saved is None:
        return HandChoices(forced)
    return HandChoices(
        stored=forced,
        recomputed={nodes[n]: tuple([nodes[r] for r in own]) for n, own in saved.recompute},
        parts={nodes[n]: parts for n, parts in saved.split},
        before={nodes[n]: nodes[later] for n, later in saved.before},
        in_place={nodes[n]: False if over is None else nodes[over] for n, over in saved.in_place},
    )


class _NodeColumns(NamedTuple):
    """The facts about the nodes of a graph: lists in the order of the nodes."""

    lines: list[list[SourceLine]]
    names: list[list[str]]
    modules: list[list[ModuleCall]]
    phases: list[str]


def _node_columns(ex: Exploration, root: UOp) -> _NodeColumns:
    """Return the facts about the nodes of a graph. A node that scheduling made has those of the
    nodes that it replaces."""
    before, lines = UOp.sink(*ex.lines.roots).toposort(), ex.lines
    columns = _NodeColumns([], [], [], [])
    for node in root.toposort():
        is_own = node in before
        columns.lines.append(list(lines.own(node) if is_own else lines.of(node)))
        columns.names.append(list(lines.names(node)))
        calls = lines.own_modules(node) if is_own else lines.modules(node)
        columns.modules.append(list(calls))
        columns.phases.append(lines.own_phase(node) if is_own else lines.phase(node))
    return columns


def plan_hash(kernels: Sequence[Kernel]) -> str:
    """Return a hash of the un-optimised kernels of a plan, in their order."""
    texts = [to_text(marked(kernel.original, is_foreign=False)) for kernel in kernels]
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:32]


def _scheduled(ex: Exploration) -> list[UOp]:
    """Return the nodes of the tensors as scheduling began with them: there, values that had been
    computed before are BUFFERs."""
    places = ex.expression.places_by_device()
    first = [r.before for r in ex.passes if r.name == SIMPLIFY_TENSOR.name]
    roots = list(ex.lines.roots)
    if [len(root.src) for root in first] == [len(group) for group in places.values()]:
        for root, group in zip(first, places.values(), strict=True):
            for place, node in zip(group, root.src, strict=True):
                roots[place] = node
    return roots


class _LineTable:
    """The lines of a file, each once; of a path only the last part is saved."""

    def __init__(self) -> None:
        self.rows: list[SavedLine] = []
        self._places: dict[tuple[SourceLine, ...], int] = {}

    def places(self, lines: Iterable[SourceLine]) -> list[int]:
        """Return the places of lines, added where they are new."""
        return [self._add(line) for line in lines]

    def _add(self, line: SourceLine) -> int:
        chain = (line, *line.inner)
        if chain not in self._places:
            inner = self.places(line.inner)
            self._places[chain] = len(self.rows)
            row = SavedLine(basename(line.name), line.line, line.text, inner)
            self.rows.append(row)
        return self._places[chain]


def _variants(session: LiveRecord) -> list[FileVariant]:
    """Return the variants of a session that are not deleted, in the order of its record."""
    rows = session.record.variants
    listed = [place for place, row in enumerate(rows) if not row.deleted]
    places = {place: number for number, place in enumerate(listed)}

    def parent(place: int | None) -> int | None:
        while place is not None and rows[place].deleted:
            place = rows[place].parent
        return None if place is None else places[place]

    return [_variant(session, place, parent(rows[place].parent)) for place in listed]


def _variant(session: LiveRecord, place: int, parent: int | None) -> FileVariant:
    row, edited = session.row(place), session.edited.get(place)
    timings = {d: t for (v, d), t in session.timings.items() if v == place}
    saved = SavedVariant(
        kernel=row.kernel,
        opts=row.opts,
        name=row.name,
        note=row.note,
        pinned=session.record.pinned == place,
        timings={d: replace(t, samples=list(t.samples)) for d, t in timings.items()},
        when=row.when,
        searches=list(row.searches),
    )
    if edited is not None:
        saved.edited = SavedEdit(edited.device, edited.text, row.check, row.error, edited.level)
    checks = {d: check for (v, d), check in session.checks.items() if v == place}
    return FileVariant(parent, row.rules_off, checks, saved)
