"""Small pictures as SVG text: bars, a roofline, a curve. They are cards with a ground of their
own, because an SVG in a notebook does not know the colours of the page. A notebook shows them as
an <img>, which can say in words what is on it: JupyterLab and nbconvert show a bare SVG without."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

GROUND, INK, SOFT, LINE = "#fcfcfa", "#222222", "#6b6b6b", "#d5d5d0"
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
WIDTH = 720
RATIO = "multiply-adds per load (the workbench's own roofline: operations per byte)"
Point = tuple[float, float]
FONT = "font-family='system-ui, sans-serif' font-size='13'"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG of a size in pixels, and in words what is on it."""

    svg: str
    words: str
    size: tuple[int, int]

    def _repr_html_(self) -> str:
        data = b64encode(self.svg.encode()).decode()
        width, height = self.size
        return (
            f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(self.words)}" '
            f'width="{width}" height="{height}">'
        )

    def __repr__(self) -> str:
        return self.words


def bars(
    rows: Sequence[tuple[str, float, str]], title: str, full: float | None = None, mark: str = ""
) -> Picture:
    """Return a bar per (name, value, label). `full`: what a bar is compared with; where one is
    longer, a line stands there, and `mark` says below it what it is."""
    left, top, step = 230, 44, 30
    room = WIDTH - left - 210
    longest = max((value for _, value, _ in rows), default=1) or 1
    full = full or longest
    most = max(full, longest)
    parts = [_text(16, 24, title, SOFT)]
    for place, (name, value, label) in enumerate(rows):
        y = top + place * step
        length = max(1.0, room * value / most)
        parts.append(_text(left - 10, y + 14, name, INK, "end"))
        parts.append(_box(left, y, room, 20, "#ecece8"))
        parts.append(_box(left, y, length, 20, BLUE))
        parts.append(_text(left + room + 10, y + 14, label, INK))
    if longest > full:
        x, end = left + room * full / most, top + len(rows) * step - 6
        parts.append(_line([(x, top - 4), (x, end)], ORANGE, 2))
        parts.append(_text(x, end + 16, mark, ORANGE, "middle"))
    labels = [f"{name} {' '.join(label.split())}".strip() for name, _, label in rows]
    if longest > full and mark:
        labels.append(f"the line is {mark}")
    return _card(top + len(rows) * step + 20, parts, title, labels)


def roofline(points: Sequence[tuple[str, float, float]], title: str) -> Picture:
    """Return (name, multiply-adds per load, share of peak) under two roofs.

    A core starts as many vector loads in a cycle as vector multiply-adds: with fewer multiply-adds
    than loads, loading is the roof (the slope), else the multiply-adds are (the level). Both axes
    are logarithmic. A dot is where its point is; its number stands beside it.
    """
    left, right, top, bottom = 70, WIDTH - 30, 50, 330
    lows, highs = (0.25, 0.005), (4.0, 1.0)

    def x(value: float) -> float:
        return left + (right - left) * _along(value, lows[0], highs[0])

    def y(value: float) -> float:
        return bottom - (bottom - top) * _along(value, lows[1], highs[1])

    parts = [_text(16, 24, title, SOFT)]
    for share in (0.01, 0.03, 0.1, 0.3, 1.0):
        parts.append(_line([(left, y(share)), (right, y(share))], LINE, 1))
        parts.append(_text(left - 8, y(share) + 4, f"{share:.0%}", SOFT, "end"))
    for ratio in (0.25, 0.5, 1, 2, 4):
        parts.append(_text(x(ratio), bottom + 20, f"{ratio:g}", SOFT, "middle"))
    parts.append(_text((left + right) / 2, bottom + 40, RATIO, SOFT, "middle"))
    parts.append(_line([(x(0.25), y(0.25)), (x(1), y(1)), (x(4), y(1))], ORANGE, 2.5))
    dots = [(x(ratio), y(max(share, lows[1]))) for _, ratio, share in points]
    for number, ((name, _, _), dot, beside) in enumerate(
        zip(points, dots, _beside(dots), strict=True), 1
    ):
        parts.append(_line([dot, beside], BLUE, 1))
        parts.append(_circle(dot, 4, BLUE))
        parts.append(_circle(beside, 9, GROUND))
        parts.append(_text(beside[0], beside[1] + 4, str(number), BLUE, "middle"))
        parts.append(_text(510, 190 + 20 * number, f"{number}  {name}", INK))
    labels = [
        f"{name} {share:.0%} at {ratio:.3g} multiply-adds per load" for name, ratio, share in points
    ]
    return _card(bottom + 56, parts, title, labels)


def curve(xs: Sequence[float], lines: Sequence[tuple[str, Sequence[float]]], title: str) -> Picture:
    """Return lines over `xs`, each with its name and a colour."""
    left, right, top, bottom = 90, WIDTH - 150, 44, 260
    values = [v for _, ys in lines for v in ys]
    low, high = min(values), max(values)
    span, wide = (high - low) or 1.0, (xs[-1] - xs[0]) or 1.0
    parts = [_text(16, 24, title, SOFT)]
    for value in (low, high):
        at = bottom - (bottom - top) * (value - low) / span
        parts.append(_line([(left, at), (right, at)], LINE, 1))
        parts.append(_text(left - 8, at + 4, f"{value:.2g}", SOFT, "end"))
    for value in (xs[0], xs[-1]):
        at = left + (right - left) * (value - xs[0]) / wide
        parts.append(_text(at, bottom + 20, f"{value:.3g}", SOFT, "middle"))
    for place, (name, ys) in enumerate(lines):
        colour = (BLUE, ORANGE, GREEN)[place % 3]
        points = [
            (left + (right - left) * (a - xs[0]) / wide, bottom - (bottom - top) * (b - low) / span)
            for a, b in zip(xs, ys, strict=True)
        ]
        parts.append(_line(points, colour, 1.6))
        parts.append(_text(right + 12, top + 20 + 22 * place, name, colour))
    labels = [f"{name} from {min(ys):.3g} to {max(ys):.3g}" for name, ys in lines]
    return _card(bottom + 34, parts, title, labels)


def _beside(points: Sequence[Point]) -> list[Point]:
    """Return a place for each point's number: beside it, and below those of higher points."""
    placed: dict[int, Point] = {}
    for number in sorted(range(len(points)), key=lambda n: points[n][1]):
        x, y = points[number]
        x += 26 if x + 40 < WIDTH else -26
        while any(abs(x - a) < 20 and abs(y - b) < 20 for a, b in placed.values()):
            y += 1
        placed[number] = (x, y)
    return [placed[number] for number in range(len(points))]


def _circle(at: Point, radius: int, colour: str) -> str:
    place = f"cx='{at[0]:.1f}' cy='{at[1]:.1f}' r='{radius}'"
    return f"<circle {place} fill='{colour}' stroke='{BLUE}'/>"


def _along(value: float, low: float, high: float) -> float:
    """Return where `value` lies between low (0) and high (1), on a logarithmic scale."""
    return math.log(min(max(value, low), high) / low) / math.log(high / low)


def _text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}'"
    return f"<text {place} xml:space='preserve'>{escape(words)}</text>"


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    size = f"width='{width:.1f}' height='{height:.1f}'"
    return f"<rect x='{x:.1f}' y='{y:.1f}' {size} rx='2' fill='{colour}'/>"


def _line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f"<polyline points='{path}' fill='none' stroke='{colour}' "
        f"stroke-width='{width}' stroke-linejoin='round'/>"
    )


def _card(height: float, parts: Sequence[str], title: str, told: Sequence[str]) -> Picture:
    """Return a picture; `told` says in words what it shows beside its title."""
    words = f"{title}: {', '.join(told)}"
    size = f"width='{WIDTH}' height='{height:.0f}' viewBox='0 0 {WIDTH} {height:.0f}'"
    ground = (
        f"<rect x='0.5' y='0.5' width='{WIDTH - 1}' height='{height - 1:.0f}' rx='6' "
        f"fill='{GROUND}' stroke='{LINE}'/>"
    )
    body = "\n".join([f"<title>{escape(words)}</title>", ground, *parts])
    head = f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {size} {FONT}>"
    return Picture(f"{head}\n{body}\n</svg>", words, (WIDTH, round(height)))
