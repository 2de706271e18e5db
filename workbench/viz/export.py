"""The tensor graph for other tools: networkx and Graphviz. Both are imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.viz.model.graph import GraphNode, TensorGraph, folded, size_text
from workbench.viz.model.words import kernel_number
from workbench.viz.still.svg import kernel_colour

if TYPE_CHECKING:
    import graphviz
    import networkx


def to_networkx(graph: TensorGraph) -> networkx.DiGraph[int]:
    """Return every node and edge, with their data as attributes."""
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
        # x * x reads x twice: one edge, with both its places
        places = digraph.edges.get((edge.source, edge.target), {}).get("positions", ())
        digraph.add_edge(
            edge.source, edge.target,
            position=min((edge.position, *places)), positions=(*places, edge.position),
        )  # fmt: skip
    return digraph


def to_graphviz(graph: TensorGraph) -> graphviz.Digraph:
    """Return the folded graph as DOT: a cluster per kernel, in its colour and with its title."""
    import graphviz

    folded_graph = folded(graph)
    dot = graphviz.Digraph("tensors", node_attr={"shape": "box", "fontname": "Helvetica"})
    for place, title in enumerate(graph.titles):
        with dot.subgraph(name=f"cluster_{place}") as cluster:
            cluster.attr(
                label=graphviz.escape(f"{kernel_number(place)}  {title}"),
                style="filled,rounded",
                color=kernel_colour(place), fillcolor=kernel_colour(place) + "40",
            )  # fmt: skip
            for node in folded_graph.nodes:
                if node.kernels and node.kernels[0] == place:
                    _add(cluster, node)
    for node in folded_graph.nodes:
        if not node.kernels:
            _add(dot, node)
    for edge in folded_graph.edges:
        dot.edge(str(edge.source), str(edge.target))
    return dot


def _add(dot: graphviz.Digraph, node: GraphNode) -> None:
    import graphviz

    label = graphviz.escape(node.label) + r"\n" + graphviz.escape(size_text(node))
    bold = {"penwidth": "2"} if node.stored_by is not None else {}
    dot.node(str(node.number), label=label, style="filled", fillcolor="white", **bold)
