"""The geometry of the tensor graph's picture: boxes, lines and a region per kernel.

Still pictures and the live one are drawn from this. Units: CSS pixels, y downwards; a line
goes through its points, leaving and entering each of them vertically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from workbench.viz.layout import layered
from workbench.viz.model.graph import GraphNode, TensorGraph
from workbench.viz.model.words import shape_text

# sizes in pixels
NODE = 36
SMALL = 20
MARGIN = 18
GAP = 24.0
BETWEEN = 24
"""Between two layers: room for the words on a line."""
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
    """The geometry of a picture: a box per node and the points of each edge, in the graph's order;
    `regions` has a closed SVG path per kernel ("" for a kernel that has no node here)."""

    graph: TensorGraph
    boxes: tuple[Box, ...]
    routes: tuple[tuple[Point, ...], ...]
    regions: tuple[str, ...]
    width: float
    height: float


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
        for x, layer, w, height in zip(
            layout.x, layout.layer, widths, heights, strict=True
        )
    )
    every = -(-len(rows) // MOST_BENDS)
    routes = tuple(
        _points(route, boxes[a], boxes[b], rows, every)
        for route, (a, b) in zip(layout.routes, ends, strict=True)
    )
    last = rows[-1] if rows else PictureRow(BETWEEN / 2, 0.0)
    height = last.y + last.height / 2 + BETWEEN / 2
    regions = _regions(graph, boxes, routes, ends)
    return Picture(graph, boxes, routes, regions, layout.width + 2 * MARGIN, height)


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
    if node.role == "movement":
        return max(40.0, 6.1 * len(node.label) + 16)
    longest = max(6.9 * len(node.label), 6.0 * len(second_line(node)))
    return max(52.0, longest + 22)


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


def _regions(
    graph: TensorGraph,
    boxes: Sequence[Box],
    routes: Sequence[Sequence[Point]],
    ends: Sequence[tuple[int, int]],
) -> tuple[str, ...]:
    """Return per kernel the coloured ground of all it computes: a patch behind each node and a band
    along each line. All have the same direction of rotation, so that they fill as one area."""
    parts: list[list[str]] = [[] for _ in graph.titles]
    inside = [n.kernels[0] if n.kernels else None for n in graph.nodes]
    for box, kernel in zip(boxes, inside, strict=True):
        if kernel is not None:
            parts[kernel].append(_patch(box))
    for route, (a, b) in zip(routes, ends, strict=True):
        kernel, is_short = inside[a], route[-1][1] - route[0][1] <= LONGEST_BAND
        if kernel is not None and kernel == inside[b] and is_short:
            band = f"{curve(route, BAND)}{curve(route[::-1], -BAND, joins=True)}Z"
            parts[kernel].append(band)
    return tuple(map("".join, parts))


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
