"""The layers, places and ways of a graph's picture, without heights: for callers that draw
rows themselves.

    layers_of -> proper -> ordered -> placed

Every node stands in a layer below its sources; the lines of one value run down together and
branch off to its readers, into the port of the operand that they are.
Source: Sugiyama, Tagawa, Toda 1981, whose four steps these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.viz.layout.coordinates import placed, sides
from workbench.viz.layout.layering import layers_of
from workbench.viz.layout.ordering import ordered
from workbench.viz.layout.proper import proper


class Layered(NamedTuple):
    """`x` is the middle of each node, `layer` its layer from the top; `routes` are the points
    (x, layer) of each edge, in the order given, the last at its port (an edge that stays out
    has but two); `width` is that of the whole drawing."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]
    width: float


def layered(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 16.0
) -> Layered:
    """Return the layout of nodes with these widths and edges (source, target), no cycle.

    The edges into one target are in the order of its operands.
    """
    if not widths:
        return Layered((), (), (), 0.0)
    graph = proper(layers_of(len(widths), edges), widths, edges)
    x = placed(graph, ordered(graph), gap)
    left, right = sides(graph, x)
    x = [place - left for place in x]
    points = [(place, graph.layer[v]) for v, place in enumerate(x)]
    # a line once, of which its edges are parts: a hub's are as long as the graph is deep
    lines = [
        (points[source], *(points[v] for v in line))
        for source, line in enumerate(graph.lines)
    ]
    routes = []
    for number, (source, target) in enumerate(edges):
        port = x[target] + graph.ports[number] * widths[target]
        way = lines[source][: 1 + (graph.leaves[number] or 0)]
        routes.append((*way, (port, graph.layer[target])))
    count = len(widths)
    return Layered(
        tuple(x[:count]), tuple(graph.layer[:count]), tuple(routes), right - left
    )
