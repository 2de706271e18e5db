"""Where the nodes of a graph go: in layers, sources above, lines crossing little.

    layers_of   -> proper -> ordered  -> placed -> curves     a graph on its own
    kept_layers -> proper -> inserted -> placed -> curves     the next state of one (follow.py)

Every node stands in a layer below its sources; the lines of one value run down together and
branch off to its readers, into the port of the operand that they are.
Source: Sugiyama, Tagawa, Toda 1981, whose four steps these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from workbench.viz.layout.coordinates import placed, sides
from workbench.viz.layout.layering import layers_of
from workbench.viz.layout.ordering import Rows, ordered
from workbench.viz.layout.proper import Proper, proper
from workbench.viz.layout.routes import Curve, Point, curve, slope

Size = tuple[float, float]
"""Width and height of a node, in pixels."""
Edge = tuple[int, int]
"""Source and target, by number. The edges into one target are in the order of its operands."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """Pixels between neighbours in a layer, and between the nodes of two layers."""

    nodes: float = 16.0
    layers: float = 36.0


WIDE = Spacing()
CLEAR = 2.0
"""How far above and below the nodes that it passes a line begins to bend."""
PIECES = 2
"""Pieces of a line for each layer that it passes: down to its nodes, and past them."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The last piece of an edge: from where it leaves its source's line, after so many `pieces`
    of that, to its port. `far`: the edge is not routed but runs straight, behind nodes."""

    pieces: int
    points: Curve
    far: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Pixels, y downward. `x` and `y` are the middle of each node, `layer` counts its layer.
    `lines` is per node the curve that its edges share, PIECES per layer that it passes (empty
    where all readers stand right below); `branches` is the rest of each edge. The box around
    all of it begins at `left`, `top`; `pitch` is the height of a layer."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    layer: tuple[int, ...]
    lines: tuple[Curve, ...]
    branches: tuple[Branch, ...]
    left: float
    top: float
    width: float
    height: float
    pitch: float

    def route(self, edge: int, source: int) -> Curve:
        """Return the whole curve of edge number `edge`, whose source is given."""
        branch = self.branches[edge]
        shared = self.lines[source][: 3 * branch.pieces]
        return shared + branch.points

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as lists and numbers, for JSON; rounded to a tenth of a pixel."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


NOTHING = Layout((), (), (), (), (), 0.0, 0.0, 0.0, 0.0, 0.0)


def arrange(
    sizes: Sequence[Size], edges: Sequence[Edge], spacing: Spacing = WIDE
) -> Layout:
    """Return the layout of a graph without cycles; its box begins at 0, 0."""
    if not sizes:
        return NOTHING
    layers = layers_of(len(sizes), edges)
    graph = proper(layers, [w for w, _ in sizes], edges)
    return drawn(graph, ordered(graph), sizes, edges, spacing, None)


@dataclass(frozen=True, slots=True)
class Frame:
    """What a layout carries on: the number of its first layer, the height of a layer (0: as
    the nodes want it), and where vertices stood."""

    first: int = 0
    pitch: float = 0.0
    anchors: Mapping[int, float] | None = None


def drawn(
    graph: Proper,
    rows: Rows,
    sizes: Sequence[Size],
    edges: Sequence[Edge],
    spacing: Spacing,
    frame: Frame | None,
) -> Layout:
    """Return the layout with these rows; a `frame` says what was where before."""
    frame = frame or Frame()
    x = placed(graph, rows, spacing.nodes, frame.anchors)
    pitch = frame.pitch or max(h for _, h in sizes) + spacing.layers
    left, right = sides(graph, x)
    if not frame.anchors:
        x, left, right = [place - left for place in x], 0.0, right - left
    y = [(layer + frame.first + 0.5) * pitch for layer in graph.layer]
    band = max(h for _, h in sizes) / 2 + CLEAR
    curves = _Curves(graph, sizes, x, y, band)
    count = graph.nodes
    return Layout(
        tuple(x[:count]), tuple(y[:count]),
        tuple(layer + frame.first for layer in graph.layer[:count]),
        tuple(curves.line(n) for n in range(count)),
        tuple(curves.branch(number, *edge) for number, edge in enumerate(edges)),
        left, frame.first * pitch, right - left, graph.height * pitch, pitch,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Curves:
    """Past the nodes of a layer a line runs straight, over `band` above and below its dummy."""

    graph: Proper
    sizes: Sequence[Size]
    x: Sequence[float]
    y: Sequence[float]
    band: float

    def line(self, source: int) -> Curve:
        """Return the curve that the edges of a node share."""
        if not self.graph.lines[source]:
            return ()
        points, slopes = [self._foot(source)], [0.0]
        for place in range(1, len(self.graph.lines[source]) + 1):
            steep = self._slope(source, place)
            for end in (-1, 1):
                points.append(self._past(source, place, end, steep))
                slopes.append(steep)
        return curve(points, slopes)

    def branch(self, number: int, source: int, target: int) -> Branch:
        """Return how an edge leaves its source's line, and gets to its port."""
        leaf, (width, height) = self.graph.leaves[number], self.sizes[target]
        shift = self.graph.ports[number] * width
        end = (self.x[target] + shift, self.y[target] - height / 2)
        start, steep = self._foot(source), 0.0
        if leaf:
            steep = self._slope(source, leaf)
            start = self._past(source, leaf, 1, steep)
        pieces = PIECES * (leaf or 0)
        return Branch(pieces, curve((start, end), (steep, 0.0)), leaf is None)

    def _past(self, source: int, place: int, end: int, steep: float) -> Point:
        """Return where a line comes to the nodes that it passes (`end` -1), or leaves them."""
        x, y = self._at(self.graph.lines[source][place - 1])
        return x + end * steep * self.band, y + end * self.band

    def _slope(self, source: int, place: int) -> float:
        """Return the slope of a node's line at its dummy number `place`, from 1."""
        line = self.graph.lines[source]
        here, below = line[place - 1], line[place : place + 1]
        above = self._at(line[place - 2]) if place > 1 else self._foot(source)
        if not below:  # the end of the line: towards the middle of what reads it there
            below = [vertex for vertex, _ in self.graph.down[here]]
        x = sum(self.x[v] for v in below) / len(below)
        return slope(above, self._at(here), (x, self.y[below[0]]))

    def _at(self, vertex: int) -> Point:
        return self.x[vertex], self.y[vertex]

    def _foot(self, node: int) -> Point:
        return self.x[node], self.y[node] + self.sizes[node][1] / 2


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Branch):
        return {
            "pieces": value.pieces,
            "points": _plain(value.points),
            "far": value.far,
        }
    return value
