"""The plan of a record: the tensor graph, its cut into kernels with the reasons, repeated kernels,
and reads between kernels.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision, ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.decisions import decision_row, ranked
from workbench.viz.model.graph import FAMILIES, computing_kernels, folded, role_of, storing_kernels
from workbench.viz.model.loops import decision_recipe
from workbench.viz.model.phases import BACKWARD, FORWARD, PHASES, phase_colour
from workbench.viz.model.title import value_title
from workbench.viz.model.words import shape_text, short
from workbench.viz.record.nodes import Lines, Nodes, bounded, unlisted
from workbench.viz.schema.plan import (
    ActivationRow,
    DecisionRow,
    HandChoiceRow,
    HandKind,
    PhaseRow,
    PlanEdge,
    PlanNode,
    PlanPicture,
    PlanRead,
    PlanRegion,
)
from workbench.viz.still.picture import box_size, placed
from workbench.viz.still.svg import kernel_colour

LOG = logging.getLogger("workbench")
MOST_DRAWN = 3000
"""Most nodes of a graph that is laid out."""


def empty_plan() -> PlanPicture:
    """Return a plan without rows, which is compared with no other."""
    return PlanPicture(0, 0, [], [], [], [], None, [], [], [], [], [], [])


def plan_picture(ex: ScheduledTensors, nodes: Nodes, lines: Lines) -> PlanPicture | None:
    """Return the picture of the tensor graph; None if the graph is too large, or its layout fails,
    which is logged."""
    plan = plan_graph(ex, nodes, lines)
    if len(plan.nodes) > MOST_DRAWN:
        return None
    try:
        return placed(plan)
    except WorkbenchError as error:
        LOG.warning("%s", error)
        return None


def plan_graph(ex: ScheduledTensors, nodes: Nodes, lines: Lines) -> PlanPicture:
    """Return the boxes, edges and kernels of the tensor graph, without positions."""
    stored = storing_kernels(ex.shown_items)
    labels, edges = folded(ex.outputs, stored, ex.lines)
    inside, steps = computing_kernels(ex.shown_items), decided_after(labels, edges, ex.decisions)
    plan = empty_plan()
    plan.regions = region_rows(ex.kernels)
    for node, label in labels.items():
        row = _node(node, label, nodes, lines.add(ex.lines.first(node)), node in ex.outputs)
        row.kernels, row.stored_by = inside.get(node, []), stored.get(node)
        row.step = steps[node]
        plan.nodes.append(row)
    places = {node: place for place, node in enumerate(labels)}
    for source, target in edges:
        a, b = places[source], places[target]
        is_cut = source in stored and stored[source] not in plan.nodes[b].kernels
        plan.edges.append(PlanEdge(a, b, [], is_cut, _bytes(source), ""))
    return plan


def _node(node: UOp, label: str, nodes: Nodes, line: int | None, is_result: bool) -> PlanNode:
    """Return the box of a node, without a position."""
    role, place = role_of(node), nodes.add(node)
    shape = FAMILIES[nodes.family(place)].shape
    second = shape_text(node.shape) + (f" {node.dtype}" if role == "input" else "")
    width, height = box_size(label, second, shape, role == "movement")
    return PlanNode(
        n=place,
        label=short(label),
        x=0.0,
        y=0.0,
        w=width,
        h=height,
        kernels=[],
        stored_by=None,
        role=role,
        bytes=_bytes(node),
        line=-1 if line is None else line,
        output=is_result,
        patch="",
        step=0,
    )


def decided_after(
    nodes: Collection[UOp], edges: Sequence[tuple[UOp, UOp]], decisions: Sequence[Decision]
) -> dict[UOp, int]:
    """Return for each node the number of decisions after which its kernels are known.

    A value is decided after its readers, so its own decision settles its kernels. A value without a
    decision (of a movement, or in memory) is settled with the last of its readers.
    """
    own = {decision.node: number for number, decision in enumerate(decisions, 1)}
    steps = {node: own.get(node, 0) for node in nodes}
    readers: defaultdict[UOp, list[UOp]] = defaultdict(list)
    for source, target in edges:
        readers[source].append(target)
    for node in reversed(steps):
        if not steps[node]:
            steps[node] = max((steps[reader] for reader in readers[node]), default=0)
    return steps


def decision_rows(ex: ScheduledTensors, nodes: Nodes) -> list[DecisionRow]:
    """Return a row for each value: whether it is stored or fused, why, and in which kernel."""
    kernels = computing_kernels(ex.items)
    computed = [item.nodes for item in ex.items if item.kernel is not None]
    kernel_of = zip(computed, ex.kernels, strict=True)
    titles = {node: kernel.title for nodes, kernel in kernel_of for node in nodes}
    rows = [
        decision_row(
            d,
            nodes.add(d.node),
            next(iter(kernels.get(d.node, ())), None),
            titles.get(d.node, ""),
            decision_recipe(place, d),
            ex.lines.name(d.node),
            ex.lines.on,
        )
        for place, d in enumerate(ex.decisions)
    ]
    return ranked(rows, ex.decisions)


def hand_choice_rows(ex: ScheduledTensors, nodes: Nodes) -> list[HandChoiceRow]:
    """Return a row for each choice by hand, in words."""
    images = {original: node for node, original in ex.originals.items()}
    known = {*UOp.sink(*ex.outputs).toposort()}

    def row(node: UOp, kind: HandKind, text: str) -> HandChoiceRow:
        image = images.get(node, node)
        return HandChoiceRow(nodes.add(image) if image in known else None, kind, bounded(text))

    def name(node: UOp) -> str:
        return value_title(node if ex.lines.name(node) else images.get(node, node), ex.lines)

    choices = ex.choices
    rows = [
        row(n, "changes", f"{name(n)} is {'stored' if stored else 'fused into its readers'}")
        for n, stored in choices.stored.items()
    ]
    rows += [
        row(n, "recompute", f"{name(n)} is computed again in {', '.join(map(name, readers))}")
        for n, readers in choices.recomputed.items()
    ]
    rows += [
        row(n, "split", f"{name(n)} combines {parts} partial results")
        for n, parts in choices.parts.items()
    ]
    rows += [
        row(n, "before", f"the kernel of {name(n)} runs before that of {name(later)}")
        for n, later in choices.before.items()
    ]
    rows += [
        row(n, "in_place", f"{name(n)} is written over {name(old) if old else 'no other value'}")
        for n, old in choices.in_place.items()
    ]
    return rows


# kernels


def read_rows(items: Sequence[ScheduleItem], nodes: Nodes) -> list[PlanRead]:
    """Return the values that kernels read of each other; reading a copy on another device counts
    as reading its source."""
    reads = _stored_reads(items)
    return [
        PlanRead(source, reader, nodes.add(node), _bytes(node)) for source, reader, node in reads
    ]


def _stored_reads(items: Sequence[ScheduleItem]) -> Iterator[tuple[int, int, UOp]]:
    """Yield the values that kernels read of each other: the number of the kernel that stores the
    value, the number of the reader, and the node."""
    stored: dict[UOp, tuple[int, UOp]] = {}
    number = 0
    for item in items:
        sources = [stored[buffer] for buffer in item.inputs if buffer in stored]
        if item.kernel is None:
            stored |= dict(zip(item.outputs, sources, strict=False))
            continue
        for source, node in dict.fromkeys(sources):
            yield source, number, node
        values = [(number, node) for node in item.nodes]
        stored |= dict(zip(item.outputs, values, strict=True))
        number += 1


def _bytes(node: UOp) -> int:
    return node.size * node.dtype.itemsize


def region_rows(kernels: Sequence[Kernel]) -> list[PlanRegion]:
    """Return the area of each kernel, in the colour of its phase of training, if it has one."""
    return [
        PlanRegion(
            place,
            bounded(kernel.title or kernel.name),
            phase_colour(place, kernel.phases) if kernel.phases else kernel_colour(place),
        )
        for place, kernel in enumerate(kernels)
    ]


def phase_rows(kernels: Sequence[Kernel]) -> list[PhaseRow]:
    """Return the phases that kernels belong to, in the order in which they run."""
    present = {phase for kernel in kernels for phase in kernel.phases}
    return [phase for phase in PHASES if phase.name in present]


def activation_rows(
    ex: ScheduledTensors, lines: Lines, place: Callable[[UOp], int] = unlisted
) -> list[ActivationRow]:
    """Return the values that a kernel of the forward stores and a kernel of the backward alone
    reads, the largest first; `place` returns the place of a node in the record."""
    readers: dict[UOp, list[int]] = {}
    stored_by: dict[UOp, int] = {}
    for source, reader, node in _stored_reads(ex.items):
        phases = ex.kernels[reader].phases
        is_for_backward = BACKWARD in phases and FORWARD not in phases
        if FORWARD in ex.kernels[source].phases and is_for_backward:
            if ex.lines.phase(node) != BACKWARD:
                readers.setdefault(node, []).append(reader)
                stored_by[node] = source
    rows = [
        _activation(ex, node, stored_by[node], numbers, lines, place)
        for node, numbers in readers.items()
    ]
    return sorted(rows, key=lambda row: (-row.bytes, row.kernel))


def _activation(
    ex: ScheduledTensors,
    node: UOp,
    number: int,
    readers: list[int],
    lines: Lines,
    place: Callable[[UOp], int],
) -> ActivationRow:
    kernel = ex.kernels[number]
    calls = ex.lines.modules(node) or kernel.modules
    line = ex.lines.nearest(node) or kernel.line
    return ActivationRow(
        node=place(node),
        name=bounded(value_title(node, ex.lines)),
        module=bounded(str(calls[0])) if calls else "",
        line=lines.add(line.inner[-1] if line is not None and line.inner else line),
        kernel=number,
        readers=readers,
        bytes=_bytes(node),
    )
