"""The graph with every edge cut into pieces from one layer to the next, as sweeps want it.

Where an edge passes a layer stands a dummy. The edges of one value share theirs: its line
runs down once and readers branch off. Where that takes too many dummies, the edges that run
longest without a reader stay out, and are drawn straight.
Source: Sugiyama, Tagawa, Toda 1981 (the "proper hierarchy").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DUMMY = 8.0
"""The room a passing line takes, as wide."""
DUMMIES, DUMMIES_PER_NODE = 1500, 3
"""How many dummies a graph may have: the greater of the two."""


@dataclass(frozen=True, slots=True)
class Proper:
    """Vertices are the nodes and then the dummies. `up` are the vertices in the layer above
    that lead to each, in the order of operands, `port` where each comes in (-0.5 the left end
    of the node, 0.5 the right); `down` is (vertex below, place in its `up`). `lines` are the
    dummies under each node; `leaves` says of each edge from which vertex of its source's line
    it comes (0: the source itself), and `ports` where it ends; it is None for an edge that
    stays out."""

    nodes: int
    layer: list[int]
    width: list[float]
    up: list[list[int]]
    port: list[list[float]]
    down: list[list[tuple[int, int]]]
    lines: list[list[int]]
    leaves: list[int | None]
    ports: list[float]

    @property
    def height(self) -> int:
        """How many layers there are."""
        return max(self.layer, default=-1) + 1


def proper(
    layers: Sequence[int], widths: Sequence[float], edges: Sequence[tuple[int, int]]
) -> Proper:
    """Return the graph in pieces; edges into one target are in the order of its operands."""
    ends = _ends(layers, edges)
    graph = Proper(
        len(layers), list(layers), list(widths), [[] for _ in layers],
        [[] for _ in layers], [[] for _ in layers], [[] for _ in layers], [], [],
    )  # fmt: skip
    operands, numbers = [0] * len(layers), [0] * len(layers)
    for _, target in edges:
        operands[target] += 1
    for source, target in edges:
        numbers[target] += 1
        port = numbers[target] / (operands[target] + 1) - 0.5
        graph.ports.append(port)
        if layers[target] > ends[source]:
            graph.leaves.append(None)
            continue
        line = graph.lines[source]
        leaf = layers[target] - layers[source] - 1
        while len(line) < leaf:
            _extend(graph, source, line)
        _link(graph, line[leaf - 1] if leaf else source, target, port)
        graph.leaves.append(leaf)
    return graph


def _extend(graph: Proper, source: int, line: list[int]) -> None:
    """Add a dummy at the end of a node's line."""
    vertex, above = len(graph.layer), line[-1] if line else source
    graph.layer.append(graph.layer[above] + 1)
    graph.width.append(DUMMY)
    for beside in (graph.up, graph.port, graph.down):
        beside.append([])
    _link(graph, above, vertex, 0.0)
    line.append(vertex)


def _link(graph: Proper, above: int, below: int, port: float) -> None:
    graph.down[above].append((below, len(graph.up[below])))
    graph.up[below].append(above)
    graph.port[below].append(port)


def _ends(layers: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each node the layer of the last reader that its line runs down to."""
    readers: list[set[int]] = [{layer} for layer in layers]
    for source, target in edges:
        readers[source].add(layers[target])
    stops = [sorted(r) for r in readers]
    steps = sorted({b - a for s in stops for a, b in zip(s, s[1:], strict=False)})
    most = max(DUMMIES, DUMMIES_PER_NODE * len(layers))
    low, high = 0, len(steps)
    while low < high:  # the most steps that still fit
        middle = (low + high + 1) // 2
        ends = [_end(s, steps[middle - 1]) for s in stops]
        if sum(max(0, e - s[0] - 1) for e, s in zip(ends, stops, strict=True)) <= most:
            low = middle
        else:
            high = middle - 1
    return [_end(s, steps[low - 1] if low else 1) for s in stops]


def _end(stops: Sequence[int], longest: int) -> int:
    """Return the last stop before one that is more than `longest` layers farther down."""
    for here, following in zip(stops, stops[1:], strict=False):
        if following - here > longest:
            return here
    return stops[-1]
