"""A still picture of a sweep: time by size, beside the roofline with a dot for each size.

It is an SVG inside of an <img>, as the graph is (see svg.py). Lines differ in dashes and have their
names, so that the colours are not needed.

Sections: The content of a picture; Axes; The two plots.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import count_text
from workbench.viz.still.cards import page, source, tag
from workbench.viz.still.svg import DARK, LIGHT, SANS

# --------------------------------------------------------------------------------------------------
# The content of a picture.

Seconds = Sequence[float | None]


class SweepPicture(NamedTuple):
    """The content of a picture: the sizes' `name` and `labels`, and for each size its place on the
    axis, the seconds that were measured and predicted and those at the peak and at the speed of
    memory, its operations and its bytes. `ceilings` are the machine's operations and bytes per
    second (None: not known); `text` says the same as the picture."""

    name: str
    labels: Sequence[str]
    places: Sequence[float]
    measured: Seconds
    predicted: Seconds
    peak: Seconds
    memory: Seconds
    flops: Sequence[float]
    bytes: Sequence[float]
    ceilings: tuple[float, float] | None
    text: str


def sweep_html(picture: SweepPicture) -> str:
    """Return the picture, over the same as text, as a fragment of a page."""
    data = b64encode(sweep_svg(picture).encode()).decode()
    image = (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.text)}" '
        f'width="{WIDTH}" height="{HEIGHT}">'
    )
    return page(tag("div", image, "scroll"), source(picture.text))


# --------------------------------------------------------------------------------------------------
# Axes.

WIDTH, HEIGHT = 960, 360
PLOT = 350, 240
"""Width and height of the area of a plot."""
_TOP = 54
"""Room for the title of a plot, and for the names of its lines."""
_ROOM = 1.5
"""Factor between the outermost values and the border of a plot."""


class _Axis(NamedTuple):
    """A logarithmic axis: values from `low` to `high` are pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def decades(self) -> list[float]:
        """Return the values of the axis' marks: powers of ten, or 1, 2 and 5 times these."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1,) if last - first > 3 else (1, 2, 5)
        values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [value for value in values if self.low <= value <= self.high]


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    return _Axis(min(values) / _ROOM, max(values) * _ROOM, start, end)


# --------------------------------------------------------------------------------------------------
# The two plots.


class _Series(NamedTuple):
    """A line of the left plot: its name, its class in the style sheet, and its seconds."""

    name: str
    kind: str
    seconds: Seconds


def _theme(colours: dict[str, str], inks: Sequence[str]) -> str:
    measured, predicted, peak, memory = inks
    return (
        f".ground{{fill:{colours['bg']}}}text{{fill:{colours['fg']}}}"
        f".grid{{stroke:{colours['line']}}}.frame{{stroke:{colours['edge']};fill:none}}"
        f".measured{{stroke:{measured};fill:{measured}}}.predicted{{stroke:{predicted};"
        f"fill:{predicted}}}.peak{{stroke:{peak};fill:{peak}}}.memory{{stroke:{memory};"
        f"fill:{memory}}}"
    )


STYLE = (
    f"text{{font-family:{SANS};font-size:11px}}.head{{font-size:13px;font-weight:600}}"
    "polyline{fill:none!important;stroke-width:2}.predicted{stroke-dasharray:2 4}"
    ".peak{stroke-dasharray:9 4}.memory{stroke-dasharray:9 4 2 4}circle{stroke:none}"
    f"{_theme(LIGHT, ('#0550ae', '#57606a', '#b3261e', '#1a7f37'))}"
    f"@media(prefers-color-scheme:dark)"
    f"{{{_theme(DARK, ('#79b8ff', '#a9b4c0', '#ff9a92', '#5fd37c'))}}}"
)
"""The picture's own style sheet: the page's does not apply inside an <img>."""


def sweep_svg(picture: SweepPicture) -> str:
    """Return the SVG: time by size on the left, the roofline on the right."""
    parts = [f"<style>{STYLE}</style>", '<rect class="ground" width="100%" height="100%"/>']
    parts += _times(picture)
    parts += _roofline(picture)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )


def _times(picture: SweepPicture) -> Iterator[str]:
    series = [
        _Series("measured", "measured", picture.measured),
        _Series("predicted", "predicted", picture.predicted),
        _Series("at the peak", "peak", picture.peak),
        _Series("at memory's speed", "memory", picture.memory),
    ]
    known = [s for one in series for s in one.seconds if s]
    left, bottom = 70.0, _TOP + PLOT[1]
    yield _text(left, _TOP - 34, f"time by {picture.name}, both logarithmic", "head")
    if not known:
        yield _text(left + 20, _TOP + 40, "no size has a time")
        return
    across = _axis(picture.places, left, left + PLOT[0])
    up = _axis(known, bottom, _TOP)
    yield from _grid(across, up, [seconds_text(value) for value in up.decades()])
    for label, place in zip(picture.labels, picture.places, strict=True):
        yield _text(across.at(place), bottom + 16, label, anchor="middle")
    yield _text(left + PLOT[0] / 2, bottom + 34, picture.name, anchor="middle")
    keys = left
    for one in series:
        pairs = [(p, s) for p, s in zip(picture.places, one.seconds, strict=True) if s]
        points = [(across.at(place), up.at(seconds)) for place, seconds in pairs]
        if points:
            yield from _line(points, one.kind, has_dots=one.kind == "measured")
            yield from _key(keys, one.kind, one.name)
            keys += 42 + 6.2 * len(one.name)


def _roofline(picture: SweepPicture) -> Iterator[str]:
    left, bottom = 560.0, _TOP + PLOT[1]
    yield _text(left, _TOP - 34, "roofline: a dot for each size", "head")
    columns = (picture.labels, picture.measured, picture.predicted, picture.flops, picture.bytes)
    dots = [
        (label, flops / moved, flops / (was or will or 1.0), was is not None)
        for label, was, will, flops, moved in zip(*columns, strict=True)
        if flops and moved and (was or will)
    ]
    if picture.ceilings is None or not dots:
        yield _text(left + 20, _TOP + 40, "the machine's speeds, or the operations, are not known")
        return
    peak, speed = picture.ceilings
    ridge = peak / speed
    across = _axis([ridge / 4, ridge * 4, *(x for _, x, _, _ in dots)], left, left + PLOT[0])
    up = _axis([peak, across.low * speed, *(y for _, _, y, _ in dots)], bottom, _TOP)
    yield from _grid(across, up, [f"{count_text(v)}FLOP/s" for v in up.decades()])
    for value in across.decades():
        yield _text(across.at(value), bottom + 16, f"{value:g}", anchor="middle")
    yield _text(left + PLOT[0] / 2, bottom + 34, "operations per byte", anchor="middle")
    top = (across.at(ridge), up.at(peak))
    yield from _line([(across.start, up.at(across.low * speed)), top], "memory")
    yield from _line([top, (across.end, up.at(peak))], "peak")
    yield from _key(left, "peak", f"peak {count_text(peak)}FLOP/s")
    yield from _key(left + 180, "memory", f"memory {count_text(speed)}B/s")
    for label, x, y, was_measured in dots:
        kind = "measured" if was_measured else "predicted"
        yield f'<circle class="{kind}" cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="4"/>'
        is_last = across.at(x) + 7 * len(label) > across.end
        beside, anchor = (-7, "end") if is_last else (7, "start")
        yield _text(across.at(x) + beside, up.at(y) + 4, label, anchor=anchor)


def _grid(across: _Axis, up: _Axis, labels: Sequence[str]) -> Iterator[str]:
    """Yield the frame of a plot, and a line with its label for each mark of the axis upwards."""
    for value, label in zip(up.decades(), labels, strict=True):
        y = up.at(value)
        yield (
            f'<line class="grid" x1="{across.start}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        yield _text(across.start - 6, y + 4, label, anchor="end")
    yield (
        f'<rect class="frame" x="{across.start}" y="{up.end}" width="{PLOT[0]}"'
        f' height="{PLOT[1]}"/>'
    )


def _line(
    points: Sequence[tuple[float, float]], kind: str, has_dots: bool = False
) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline class="{kind}" points="{path}"/>'
    if has_dots:
        yield from (f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)


def _key(x: float, kind: str, name: str) -> Iterator[str]:
    yield from _line([(x, _TOP - 14), (x + 24, _TOP - 14)], kind)
    yield _text(x + 29, _TOP - 10, name)


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
