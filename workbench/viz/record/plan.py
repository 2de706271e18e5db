"""The plan of a record: the tensor graph drawn, cut into kernels, and why it is cut there."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.viz.exploration import Exploration
from workbench.viz.model.decisions import decision_row
from workbench.viz.model.graph import (
    GraphNode,
    TensorGraph,
    folded,
    graph_nodes,
    is_cut,
)
from workbench.viz.model.lines import UserLines
from workbench.viz.model.recipes import decision_recipe
from workbench.viz.model.words import short
from workbench.viz.record.nodes import Lines, Nodes
from workbench.viz.schema.plan import (
    DecisionRow,
    PlanEdge,
    PlanNode,
    PlanPicture,
    PlanRegion,
    RoutePoint,
)
from workbench.viz.still.palette import kernel_colour
from workbench.viz.still.picture import Box, Point, picture

LOG = logging.getLogger("workbench")
MOST_DRAWN = 3000
"""Most nodes of a graph that is laid out."""


def empty_plan() -> PlanPicture:
    """Return a plan without a picture. `compared` has its differences from the plan before."""
    return PlanPicture(0, 0, [], [], [], [], None)


def plan_picture(ex: Exploration, nodes: Nodes, lines: Lines) -> PlanPicture | None:
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
    return PlanPicture(
        width=round(drawing.width),
        height=round(drawing.height),
        nodes=[
            _node(node, uops[node.number], box, nodes, ex.lines, lines)
            for node, box in zip(graph.nodes, drawing.boxes, strict=True)
        ],
        edges=[
            _edge(graph, places[e.source], places[e.target], route)
            for e, route in zip(graph.edges, drawing.routes, strict=True)
        ],
        regions=[
            PlanRegion(k, title, path, kernel_colour(k))
            for k, (title, path) in enumerate(
                zip(graph.titles, drawing.regions, strict=True)
            )
        ],
        decisions=[],
        compared=None,
    )


def _node(
    node: GraphNode,
    uop: UOp,
    box: Box,
    nodes: Nodes,
    user_lines: UserLines,
    lines: Lines,
) -> PlanNode:
    line = lines.add(user_lines.first(uop))
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
        output=node.is_output,
    )


def _edge(graph: TensorGraph, a: int, b: int, route: tuple[Point, ...]) -> PlanEdge:
    source, target = graph.nodes[a], graph.nodes[b]
    return PlanEdge(
        a,
        b,
        route=[RoutePoint(round(x, 1), round(y, 1)) for x, y in route],
        cut=is_cut(source, target),
        bytes=source.size_bytes,
    )


def decision_rows(ex: Exploration, nodes: Nodes) -> list[DecisionRow]:
    """Return why every value is stored or fused, and by which kernel."""
    kernels = kernels_of(ex)
    computed = [item.nodes for item in ex.items if item.kernel is not None]
    kernel_of = zip(computed, ex.kernels, strict=True)
    titles = {node: kernel.title for nodes, kernel in kernel_of for node in nodes}
    return [
        decision_row(
            d,
            nodes.add(d.node),
            kernels.get(d.node),
            titles.get(d.node, ""),
            decision_recipe(place, d),
        )
        for place, d in enumerate(ex.decisions)
    ]


def kernels_of(ex: Exploration) -> Mapping[UOp, int]:
    """Return per value the kernel that stores it, else the first that computes it."""
    numbers: dict[UOp, int] = {}
    kernels = [item for item in ex.items if item.kernel is not None]
    ends = {node for item in ex.items for node in item.nodes}
    for number, item in enumerate(kernels):
        for node in item.computed(ends):
            numbers.setdefault(node, number)
    return numbers
