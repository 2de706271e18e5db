"""The geometry of the tensor graph's picture: boxes, lines and a region per kernel.

Still pictures and the live one are drawn from this. Units: CSS pixels, y downwards; a line
goes through its points, leaving and entering each of them vertically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from workbench.viz.javascript import layered
from workbench.viz.model.graph import GraphNode, TensorGraph
from workbench.viz.model.words import shape_text
from workbench.viz.schema.record import Shape

# sizes in pixels
NODE = 36
SMALL = 20
MARGIN = 18
GAP = 24.0
BETWEEN = 24
"""Between two layers: room for the words on a line."""
LETTER = 8.6
"""Of a label: so wide are the smallest letters that people can read, where the whole picture is
shown at two thirds of its size."""
SMALL_LETTER = 6.0
"""Of a second line, which only a picture near its size has."""
SIDES: Mapping[Shape, int] = {"round": 20, "pill": 24, "box": 20, "six": 26, "slant": 20, "cut": 24}
"""What the outline of a box takes at both sides of its label together."""
BAND = 13
"""Half the width of a region along a line."""
LONGEST_BAND = 12 * (NODE + BETWEEN)
"""Most length of a line with a coloured ground, in pixels: a longer one would cross other kernels'
grounds."""
MOST_BENDS = 40
"""In a picture of more layers than this, lines bend only at some of them, the same for all."""
Point = tuple[float, float]


class Box(NamedTuple):
    """The box of a node: its middle, its width and its height."""

    x: float
    y: float
    width: float
    height: float


class PictureRow(NamedTuple):
    """A layer: its middle and its height."""

    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The geometry of a picture: a box per node and the points of each edge, in the graph's order.

    The coloured ground of a kernel is a closed SVG path: the `patches` behind its nodes and the
    `bands` along the edges between them ("" where there is none), which all have one direction of
    rotation, so that they fill as one area. `regions` has it per kernel ("" for one without a
    node here)."""

    graph: TensorGraph
    boxes: tuple[Box, ...]
    routes: tuple[tuple[Point, ...], ...]
    patches: tuple[str, ...]
    bands: tuple[str, ...]
    width: float
    height: float

    @property
    def regions(self) -> tuple[str, ...]:
        """The ground of each kernel: a node that several compute stands on that of the first."""
        places = {node.number: i for i, node in enumerate(self.graph.nodes)}
        parts: list[list[str]] = [[] for _ in self.graph.titles]
        for node, patch in zip(self.graph.nodes, self.patches, strict=True):
            if patch:
                parts[node.kernels[0]].append(patch)
        for edge, band in zip(self.graph.edges, self.bands, strict=True):
            if band:
                source = self.graph.nodes[places[edge.source]]
                parts[source.kernels[0]].append(band)
        return tuple(map("".join, parts))


@lru_cache(maxsize=8)
def picture(graph: TensorGraph) -> Picture:
    """Return the geometry of a graph, which `folded` simplifies before. A still picture and a live
    one of the same graph share one layout."""
    places = {node.number: i for i, node in enumerate(graph.nodes)}
    widths = [_width(node) for node in graph.nodes]
    ends = [(places[e.source], places[e.target]) for e in graph.edges]
    layout = layered(widths, ends, GAP)
    heights = [_height(node) for node in graph.nodes]
    rows = _rows(layout.layer, heights)
    boxes = tuple(
        Box(x + MARGIN, rows[layer].y, w, height)
        for x, layer, w, height in zip(layout.x, layout.layer, widths, heights, strict=True)
    )
    every = -(-len(rows) // MOST_BENDS)
    routes = tuple(
        _points(route, boxes[a], boxes[b], rows, every)
        for route, (a, b) in zip(layout.routes, ends, strict=True)
    )
    last = rows[-1] if rows else PictureRow(BETWEEN / 2, 0.0)
    height = last.y + last.height / 2 + BETWEEN / 2
    inside = [node.kernels[0] if node.kernels else None for node in graph.nodes]
    patches = tuple(
        "" if kernel is None else _patch(box) for box, kernel in zip(boxes, inside, strict=True)
    )
    bands = tuple(
        "" if inside[a] is None or inside[a] != inside[b] else _band(route)
        for route, (a, b) in zip(routes, ends, strict=True)
    )
    width = layout.width + 2 * MARGIN
    return Picture(graph, boxes, routes, patches, bands, width, height)


def second_line(node: GraphNode) -> str:
    """Return the second line of a node's label: its shape, and the dtype of an input."""
    shape = shape_text(node.shape)
    return f"{shape} {node.dtype}" if node.role == "input" else shape


def curve(points: Sequence[Point], shift: float = 0.0, joins: bool = False) -> str:
    """Return the SVG path through points; `joins` goes on from where the pen is."""
    (x, y), *others = points
    words = [f"{'L' if joins else 'M'}{x + shift:.1f} {y:.1f}"]
    for next_x, next_y in others:
        middle = (y + next_y) / 2
        words.append(
            f"V{next_y:.1f}"
            if next_x == x
            else f"C{x + shift:.1f} {middle:.1f} {next_x + shift:.1f} {middle:.1f} "
            f"{next_x + shift:.1f} {next_y:.1f}"
        )
        x, y = next_x, next_y
    return "".join(words)


def _width(node: GraphNode) -> float:
    sides = SIDES[node.family.shape]
    if node.role == "movement":
        return max(40.0, LETTER * len(node.label) + sides)
    longest = max(LETTER * len(node.label), SMALL_LETTER * len(second_line(node)))
    return max(52.0, longest + sides)


def _height(node: GraphNode) -> int:
    return SMALL if node.role == "movement" else NODE


def _rows(layers: Sequence[int], heights: Sequence[int]) -> list[PictureRow]:
    """Return the position of each layer, which is as high as its highest node, so that a layer of
    movement takes little room."""
    highest: dict[int, int] = {}
    for layer, height in zip(layers, heights, strict=True):
        highest[layer] = max(height, highest.get(layer, 0))
    rows, top = [], BETWEEN / 2
    for layer in range(max(layers, default=-1) + 1):
        height = highest.get(layer, SMALL)
        rows.append(PictureRow(top + height / 2, height))
        top += height + BETWEEN
    return rows


def _points(
    route: Sequence[tuple[float, int]],
    source: Box,
    target: Box,
    rows: Sequence[PictureRow],
    every: int,
) -> tuple[Point, ...]:
    """Return the points of an edge: straight down past the nodes of the layers between, of which
    only each `every`-th counts."""
    (first, layer), (last, _) = route[0], route[-1]
    points = [(round(first + MARGIN, 1), source.y + source.height / 2)]
    for at, passed in route[every - layer % every : -1 : every]:
        x, row = round(at + MARGIN, 1), rows[passed]
        _go_on(points, (x, row.y - row.height / 2))
        _go_on(points, (x, row.y + row.height / 2))
    _go_on(points, (round(last + MARGIN, 1), target.y - target.height / 2))
    return tuple(points)


def _go_on(points: list[Point], point: Point) -> None:
    """Append a point, and drop the one before if it lies on a straight vertical line."""
    if len(points) > 1 and points[-1][0] == points[-2][0] == point[0]:
        points.pop()
    points.append(point)


def _band(route: Sequence[Point]) -> str:
    """Return the ground along a line, clockwise; "" along one that is too long."""
    if route[-1][1] - route[0][1] > LONGEST_BAND:
        return ""
    return f"{curve(route, BAND)}{curve(route[::-1], -BAND, joins=True)}Z"


def _patch(box: Box) -> str:
    """Return a rectangle with round corners behind a box, clockwise."""
    round_, width, height = 11, box.width + 16 - 22, box.height + 14 - 22
    x, y = box.x - box.width / 2 - 8 + round_, box.y - box.height / 2 - 7
    arc = f"a{round_} {round_} 0 0 1 "
    return (
        f"M{x:.1f} {y:.1f}h{width:.1f}{arc}{round_} {round_}v{height:.1f}"
        f"{arc}-{round_} {round_}h{-width:.1f}{arc}-{round_} -{round_}v{-height:.1f}"
        f"{arc}{round_} -{round_}Z"
    )
