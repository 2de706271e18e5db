"""The plan of a record: the tensor graph, its cut into kernels with the reasons, repeated kernels,
and reads between kernels.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision, ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.decisions import decision_row, ranked
from workbench.viz.model.graph import GraphNode, TensorGraph, folded, graph_nodes, is_cut
from workbench.viz.model.loops import decision_recipe
from workbench.viz.model.training.activations import activations, stored_reads
from workbench.viz.model.training.phases import PHASES, phase_colour
from workbench.viz.model.words import short
from workbench.viz.record.nodes import Lines, Nodes, bounded
from workbench.viz.schema.plan import (
    ActivationRow,
    DecisionRow,
    PhaseRow,
    PlanEdge,
    PlanNode,
    PlanPicture,
    PlanRead,
    PlanRegion,
    RoutePoint,
)
from workbench.viz.still.picture import Box, Point, picture
from workbench.viz.still.svg import kernel_colour

LOG = logging.getLogger("workbench")
MOST_DRAWN = 3000
"""Most nodes of a graph that is laid out."""


def empty_plan() -> PlanPicture:
    """Return a plan without a picture. `compared` has its differences from the plan before."""
    return PlanPicture(0, 0, [], [], [], [], None, [], [], [], [], [])


def plan_picture(ex: ScheduledTensors, nodes: Nodes, lines: Lines) -> PlanPicture | None:
    """Return the picture of the tensor graph, or None: x and y are a box's left upper corner, an
    edge's `a` and `b` are places in the list of nodes."""
    graph = folded(ex.graph)
    if len(graph.nodes) > MOST_DRAWN:
        return None
    uops = graph_nodes(ex.outputs)
    try:
        drawing = picture(graph)
    except WorkbenchError as error:
        LOG.warning("%s", error)
        return None
    places = {node.number: i for i, node in enumerate(graph.nodes)}
    steps = decided_after(graph, uops, ex.decisions)
    return PlanPicture(
        width=round(drawing.width),
        height=round(drawing.height),
        nodes=[
            _node(node, uops[node.number], box, patch, steps[node.number], nodes, ex, lines)
            for node, box, patch in zip(graph.nodes, drawing.boxes, drawing.patches, strict=True)
        ],
        edges=[
            _edge(graph, places[e.source], places[e.target], route, band)
            for e, route, band in zip(graph.edges, drawing.routes, drawing.bands, strict=True)
        ],
        regions=region_rows(ex.kernels),
        decisions=[],
        compared=None,
        repeats=[],
        reads=[],
        runs=[],
        phases=[],
        activations=[],
    )


def _node(
    node: GraphNode,
    uop: UOp,
    box: Box,
    patch: str,
    step: int,
    nodes: Nodes,
    ex: ScheduledTensors,
    lines: Lines,
) -> PlanNode:
    line = lines.add(ex.lines.first(uop))
    return PlanNode(
        n=nodes.add(uop),
        label=short(node.label),
        x=round(box.x - box.width / 2, 1),
        y=round(box.y - box.height / 2, 1),
        w=round(box.width, 1),
        h=round(box.height, 1),
        kernels=list(node.kernels),
        stored_by=node.stored_by,
        role=node.role,
        bytes=node.size_bytes,
        line=-1 if line is None else line,
        output=node.is_requested,
        patch=patch,
        step=step,
    )


def decided_after(
    graph: TensorGraph, uops: Sequence[UOp], decisions: Sequence[Decision]
) -> dict[int, int]:
    """Return after how many decisions it is known in which kernels each node is, by its number.

    The readers of a value are decided before it is, so its kernels are known with its own decision;
    those of a value without one (it is moved, or is in memory) with the last of its readers.
    """
    own = {decision.node: number for number, decision in enumerate(decisions, 1)}
    steps = {node.number: own.get(uops[node.number], 0) for node in graph.nodes}
    readers: defaultdict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        readers[edge.source].append(edge.target)
    for node in reversed(graph.nodes):
        if not steps[node.number]:
            after = [steps[reader] for reader in readers[node.number]]
            steps[node.number] = max(after, default=0)
    return steps


def _edge(graph: TensorGraph, a: int, b: int, route: tuple[Point, ...], band: str) -> PlanEdge:
    source, target = graph.nodes[a], graph.nodes[b]
    return PlanEdge(
        a,
        b,
        route=[RoutePoint(round(x, 1), round(y, 1)) for x, y in route],
        cut=is_cut(source, target),
        bytes=source.size_bytes,
        band=band,
    )


def decision_rows(ex: ScheduledTensors, nodes: Nodes) -> list[DecisionRow]:
    """Return why every value is stored or fused, and by which kernel."""
    kernels = kernels_of(ex)
    computed = [item.nodes for item in ex.items if item.kernel is not None]
    kernel_of = zip(computed, ex.kernels, strict=True)
    titles = {node: kernel.title for nodes, kernel in kernel_of for node in nodes}
    rows = [
        decision_row(
            d,
            nodes.add(d.node),
            kernels.get(d.node),
            titles.get(d.node, ""),
            decision_recipe(place, d),
            ex.lines.name(d.node),
            ex.lines.on,
        )
        for place, d in enumerate(ex.decisions)
    ]
    return ranked(rows, ex.decisions)


def kernels_of(ex: ScheduledTensors) -> Mapping[UOp, int]:
    """Return per value the kernel that stores it, else the first that computes it."""
    numbers: dict[UOp, int] = {}
    kernels = [item for item in ex.items if item.kernel is not None]
    ends = {node for item in ex.items for node in item.nodes}
    for number, item in enumerate(kernels):
        for node in item.computed(ends):
            numbers.setdefault(node, number)
    return numbers


# kernels


def read_rows(items: Sequence[ScheduleItem], nodes: Nodes) -> list[PlanRead]:
    """Return the values that kernels read of each other, a copy to another device as its source."""
    return [
        PlanRead(read.source, read.reader, nodes.add(read.node), read.bytes)
        for read in stored_reads(items)
    ]


def region_rows(kernels: Sequence[Kernel]) -> list[PlanRegion]:
    """Return the areas of kernels; those of a phase of training have its colours."""
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
    return [
        PhaseRow(phase.name, phase.letter, list(phase.colours))
        for phase in PHASES
        if phase.name in present
    ]


def activation_rows(ex: ScheduledTensors, nodes: Nodes, lines: Lines) -> list[ActivationRow]:
    """Return the values that the forward stores for the backward."""
    return [
        ActivationRow(
            node=nodes.add(row.node),
            name=bounded(row.name),
            module=bounded(row.module),
            line=lines.add(row.line),
            kernel=row.kernel,
            readers=list(row.readers),
            bytes=row.bytes,
        )
        for row in activations(ex)
    ]
