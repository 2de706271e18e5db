"""The tensor graph for other tools: networkx and Graphviz. Both are imported on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.model.graph import (
    arg_text,
    computing_kernels,
    folded,
    graph_nodes,
    label_of,
    storing_kernels,
)
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import kernel_number, shape_text
from workbench.viz.still.svg import kernel_colour

if TYPE_CHECKING:
    import graphviz
    import networkx


def to_networkx(
    outputs: Sequence[UOp], items: Sequence[ScheduleItem], titles: Sequence[str], lines: UserLines
) -> networkx.DiGraph[int]:
    """Return every node and edge under `outputs`, with their data as attributes; `titles` are the
    titles of the kernels among `items`."""
    import networkx

    inside, stored = computing_kernels(items), storing_kernels(items)
    digraph: networkx.DiGraph[int] = networkx.DiGraph()
    numbers = {node: number for number, node in enumerate(graph_nodes(outputs))}
    for node, number in numbers.items():
        kernels, line = tuple(inside.get(node, ())), lines.first(node)
        first = kernels[0] if kernels else None
        digraph.add_node(
            number, op=node.op.name, dtype=str(node.dtype), shape=node.shape,
            label=label_of(node, lines.on), arg=arg_text(node),
            line="" if line is None else str(line), kernels=kernels, kernel=first,
            title="" if first is None else titles[first], stored_by=stored.get(node),
        )  # fmt: skip
    for node, number in numbers.items():
        for position, source in enumerate(node.src):
            # x * x reads x twice: one edge, with both positions
            places = digraph.edges.get((numbers[source], number), {}).get("positions", ())
            digraph.add_edge(
                numbers[source], number,
                position=min((position, *places)), positions=(*places, position),
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
