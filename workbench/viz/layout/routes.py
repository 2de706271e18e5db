"""The curves along which edges run, as the points of cubic Bezier pieces: start, then three each.

A curve is a smooth function of the height: straight down out of a node and into a port, and
past each dummy at the slope that does not overshoot, so that it never turns back.
Source: Fritsch and Butland 1984 (slopes of a monotone piecewise cubic).
"""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
Curve = tuple[Point, ...]
STEEPEST = 0.5
"""How far aside a line may run, per pixel down, where it passes between two nodes."""
PULL = 0.42
"""How much of a piece's height its ends keep their slope."""


def curve(points: Sequence[Point], slopes: Sequence[float]) -> Curve:
    """Return the curve through `points`, downward, with these slopes (sideways per down)."""
    found = list(points[:1])
    for (x, y), (to_x, to_y), slope, to_slope in zip(
        points, points[1:], slopes, slopes[1:], strict=False
    ):
        reach = PULL * (to_y - y)
        found.append((x + slope * reach, y + reach))
        found.append((to_x - to_slope * reach, to_y - reach))
        found.append((to_x, to_y))
    return tuple(found)


def slope(above: Point, here: Point, below: Point) -> float:
    """Return the slope at which a line passes `here`: none where it would turn back."""
    before = (here[0] - above[0]) / max(here[1] - above[1], 1e-9)
    after = (below[0] - here[0]) / max(below[1] - here[1], 1e-9)
    if before * after <= 0:
        return 0.0
    mean = 2 * before * after / (before + after)
    return max(-STEEPEST, min(STEEPEST, mean))


def path_text(points: Curve) -> str:
    """Return a curve as the `d` of an SVG path, which a canvas's Path2D takes as well."""
    (x, y), rest = points[0], points[1:]
    pieces = [rest[i : i + 3] for i in range(0, len(rest), 3)]
    words = [" ".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces]
    return f"M{x:.1f} {y:.1f}" + "".join("C" + word for word in words)
