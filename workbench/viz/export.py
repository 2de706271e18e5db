"""The tensor graph as plain data, and for networkx and Graphviz, which are imported on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.model.graph import (
    FAMILIES,
    arg_text,
    computing_kernels,
    family_of,
    folded,
    graph_nodes,
    label_of,
    role_of,
    storing_kernels,
)
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import kernel_number, shape_text
from workbench.viz.schema.record import FamilyRow
from workbench.viz.still.svg import kernel_colour

if TYPE_CHECKING:
    import graphviz
    import networkx


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the tensor graph. `label` names it in a word or two; `kernels` are the positions of
    the kernels that compute it, `stored_by` is that of the kernel that stores it; `role` is
    "input", "constant", "movement" or "value"; `name` is the user's."""

    number: int
    op: str
    dtype: str
    shape: tuple[int, ...]
    label: str
    arg: str
    role: str
    kernels: tuple[int, ...] = ()
    stored_by: int | None = None
    size_bytes: int = 0
    line: str = ""
    is_requested: bool = False
    name: str = ""

    @property
    def family(self) -> FamilyRow:
        """The family of its op, which has the shape of its box."""
        return FAMILIES[family_of(Ops[self.op])]


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of the tensor graph: `source` is source number `position` of `target`."""

    source: int
    target: int
    position: int


@dataclass(frozen=True, slots=True)
class TensorGraph:
    """The tensor graph as plain data, sources first. Edges have the `number` of nodes; `titles` are
    those of the kernels."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    titles: tuple[str, ...]


def tensor_graph(
    outputs: Sequence[UOp], items: Sequence[ScheduleItem], titles: Sequence[str], lines: UserLines
) -> TensorGraph:
    """Return every node and edge under `outputs`; `titles` are the titles of the kernels among
    `items`."""
    inside, stored = computing_kernels(items), storing_kernels(items)
    numbers = {node: number for number, node in enumerate(graph_nodes(outputs))}
    nodes = []
    for node, number in numbers.items():
        line = lines.first(node)
        row = GraphNode(
            number, node.op.name, str(node.dtype), node.shape, label_of(node, lines.on),
            arg_text(node), role_of(node), tuple(inside.get(node, ())), stored.get(node),
            node.size * node.dtype.itemsize, "" if line is None else str(line), node in outputs,
            lines.name(node),
        )  # fmt: skip
        nodes.append(row)
    edges = [
        GraphEdge(numbers[source], number, position)
        for node, number in numbers.items()
        for position, source in enumerate(node.src)
    ]
    return TensorGraph(tuple(nodes), tuple(edges), tuple(titles))


def to_networkx(graph: TensorGraph) -> networkx.DiGraph[int]:
    """Return every node and edge of `graph`, with their data as attributes."""
    import networkx

    digraph: networkx.DiGraph[int] = networkx.DiGraph()
    for node in graph.nodes:
        first = node.kernels[0] if node.kernels else None
        digraph.add_node(
            node.number, op=node.op, dtype=node.dtype, shape=node.shape, label=node.label,
            arg=node.arg, line=node.line, kernels=node.kernels, kernel=first,
            title="" if first is None else graph.titles[first], stored_by=node.stored_by,
        )  # fmt: skip
    for edge in graph.edges:
        # x * x reads x twice: one edge, with both positions
        places = digraph.edges.get((edge.source, edge.target), {}).get("positions", ())
        digraph.add_edge(
            edge.source, edge.target,
            position=min((edge.position, *places)), positions=(*places, edge.position),
        )  # fmt: skip
    return digraph


def to_graphviz(
    outputs: Sequence[UOp], items: Sequence[ScheduleItem], titles: Sequence[str], lines: UserLines
) -> graphviz.Digraph:
    """Return the folded graph as DOT: a cluster for each kernel, in its colour, with its title."""
    import graphviz

    inside, stored = computing_kernels(items), storing_kernels(items)
    labels, edges = folded(outputs, stored, lines)
    numbers = {node: str(number) for number, node in enumerate(graph_nodes(outputs))}
    dot = graphviz.Digraph("tensors", node_attr={"shape": "box", "fontname": "Helvetica"})

    def add(part: graphviz.Digraph, node: UOp) -> None:
        size = f"{shape_text(node.shape)} {node.dtype}"
        label = graphviz.escape(labels[node]) + r"\n" + graphviz.escape(size)
        bold = {"penwidth": "2"} if node in stored else {}
        part.node(numbers[node], label=label, style="filled", fillcolor="white", **bold)

    for place, title in enumerate(titles):
        with dot.subgraph(name=f"cluster_{place}") as cluster:
            cluster.attr(
                label=graphviz.escape(f"{kernel_number(place)}  {title}"),
                style="filled,rounded",
                color=kernel_colour(place), fillcolor=kernel_colour(place) + "40",
            )  # fmt: skip
            for node in labels:
                if inside.get(node, [None])[0] == place:
                    add(cluster, node)
    for node in labels:
        if not inside.get(node):
            add(dot, node)
    for source, target in edges:
        dot.edge(numbers[source], numbers[target])
    return dot
