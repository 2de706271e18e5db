"""The geometry of the tensor graph's picture: boxes, lines and the grounds of kernels.

Still pictures and those of the page are drawn from its rows. Units: CSS pixels, y downwards. A line
goes through its points, and leaves and enters each of them vertically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from workbench.viz.javascript import Layered, layered
from workbench.viz.schema.plan import PlanNode, PlanPicture, RoutePoint
from workbench.viz.schema.record import Shape

# sizes in pixels
NODE = 36
SMALL = 20
MARGIN = 18
GAP = 24.0
LAYER_GAP = 24
"""Distance of two layers: it has room for the words on a line."""
LETTER_WIDTH = 8.6
"""Width of a letter of a label: the smallest that people can read where the whole picture is shown
at two thirds of its size."""
SMALL_LETTER_WIDTH = 6.0
"""Width of a letter of a second line, which is shown only near the picture's full size."""
OUTLINE_WIDTH: Mapping[Shape, int] = {
    "round": 20,
    "pill": 24,
    "box": 20,
    "six": 26,
    "slant": 20,
    "cut": 24,
}
"""Width that the outline of a box adds to its label, both sides together."""
BAND_HALF_WIDTH = 13
"""Half the width of a region along a line."""
LONGEST_BAND = 12 * (NODE + LAYER_GAP)
"""Greatest length of a line with a coloured ground, in pixels: the ground along a longer one would
cross those of other kernels."""
MOST_BENDS = 40
"""Most layers at which lines bend; of more layers they bend at every n-th one."""
Point = tuple[float, float]


class Layer(NamedTuple):
    """A layer: its middle and its height."""

    y: float
    height: float


def box_size(label: str, second: str, shape: Shape, is_small: bool) -> tuple[float, int]:
    """Return the width and the height of a box with a label, a second line and an outline; a small
    box has no second line."""
    sides = OUTLINE_WIDTH[shape]
    if is_small:
        return max(40.0, LETTER_WIDTH * len(label) + sides), SMALL
    longest = max(LETTER_WIDTH * len(label), SMALL_LETTER_WIDTH * len(second))
    return max(52.0, longest + sides), NODE


def placed(plan: PlanPicture) -> PlanPicture:
    """Return a plan, whose boxes have sizes, with the positions of the boxes, the points of the
    edges, and the coloured grounds of the kernels.

    The ground of a kernel is a closed SVG path: the patches behind its nodes, where a node of
    several kernels stands on the ground of the first, and the bands along the edges between them.
    All are drawn clockwise, so that they fill as one area.
    """
    nodes, ends = plan.nodes, [(edge.a, edge.b) for edge in plan.edges]
    layout = _layout(tuple(node.w for node in nodes), tuple(ends))
    layers = _layers(layout.layer, [node.h for node in nodes])
    last = layers[-1] if layers else Layer(LAYER_GAP / 2, 0.0)
    every = -(-len(layers) // MOST_BENDS)
    middles = [
        (x + MARGIN, layers[layer].y) for x, layer in zip(layout.x, layout.layer, strict=True)
    ]
    routes = [
        _points(
            route, middles[a][1] + nodes[a].h / 2, middles[b][1] - nodes[b].h / 2, layers, every
        )
        for route, (a, b) in zip(layout.routes, ends, strict=True)
    ]
    return replace(
        plan,
        width=round(layout.width + 2 * MARGIN),
        height=round(last.y + last.height / 2 + LAYER_GAP / 2),
        nodes=[
            replace(
                node,
                x=round(x - node.w / 2, 1),
                y=round(y - node.h / 2, 1),
                w=round(node.w, 1),
                h=round(node.h, 1),
                patch=_patch(x, y, node.w, node.h) if node.kernels else "",
            )
            for node, (x, y) in zip(nodes, middles, strict=True)
        ],
        edges=[
            replace(
                edge,
                route=[RoutePoint(round(x, 1), round(y, 1)) for x, y in route],
                band=_band(route) if is_inside(nodes[edge.a], nodes[edge.b]) else "",
            )
            for edge, route in zip(plan.edges, routes, strict=True)
        ],
    )


@lru_cache(maxsize=8)
def _layout(widths: tuple[float, ...], edges: tuple[tuple[int, int], ...]) -> Layered:
    """Return the layout of a graph: a still picture and a live one of the same graph share it."""
    return layered(widths, edges, GAP)


def is_inside(source: PlanNode, target: PlanNode) -> bool:
    """Whether an edge has a ground: both its nodes stand on the ground of one kernel."""
    return source.kernels[:1] == target.kernels[:1] != []


def curve(points: Sequence[Point], shift: float = 0.0, joins: bool = False) -> str:
    """Return the SVG path through points, moved right by `shift`; `joins` continues a path."""
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


def _layers(layers: Sequence[int], heights: Sequence[float]) -> list[Layer]:
    """Return the position of each layer, which is as high as its highest node: a layer of small
    boxes takes little room."""
    highest: dict[int, float] = {}
    for layer, height in zip(layers, heights, strict=True):
        highest[layer] = max(height, highest.get(layer, 0))
    rows, top = [], LAYER_GAP / 2
    for layer in range(max(layers, default=-1) + 1):
        height = highest.get(layer, SMALL)
        rows.append(Layer(top + height / 2, height))
        top += height + LAYER_GAP
    return rows


def _points(
    route: Sequence[tuple[float, int]], top: float, bottom: float, rows: Sequence[Layer], every: int
) -> list[Point]:
    """Return the points of an edge from `top` to `bottom`: it goes straight down past the nodes of
    every `every`-th layer between."""
    (first, layer), (last, _) = route[0], route[-1]
    points = [(round(first + MARGIN, 1), top)]
    for at, passed in route[every - layer % every : -1 : every]:
        x, row = round(at + MARGIN, 1), rows[passed]
        _go_on(points, (x, row.y - row.height / 2))
        _go_on(points, (x, row.y + row.height / 2))
    _go_on(points, (round(last + MARGIN, 1), bottom))
    return points


def _go_on(points: list[Point], point: Point) -> None:
    """Append a point, and drop the one before if it lies on a straight vertical line."""
    if len(points) > 1 and points[-1][0] == points[-2][0] == point[0]:
        points.pop()
    points.append(point)


def _band(route: Sequence[Point]) -> str:
    """Return the ground along a line, clockwise; "" along one that is too long."""
    if route[-1][1] - route[0][1] > LONGEST_BAND:
        return ""
    return f"{curve(route, BAND_HALF_WIDTH)}{curve(route[::-1], -BAND_HALF_WIDTH, joins=True)}Z"


def _patch(x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle with round corners behind a box about (x, y), clockwise."""
    round_ = 11
    x, y = x - width / 2 - 8 + round_, y - height / 2 - 7
    width, height = width + 16 - 22, height + 14 - 22
    arc = f"a{round_} {round_} 0 0 1 "
    return (
        f"M{x:.1f} {y:.1f}h{width:.1f}{arc}{round_} {round_}v{height:.1f}"
        f"{arc}-{round_} {round_}h{-width:.1f}{arc}-{round_} -{round_}v{-height:.1f}"
        f"{arc}{round_} -{round_}Z"
    )
