"""A still picture of a tensor core's tile: the lane that holds each element.

It is an SVG inside of an <img>, as the graph is (see svg.py). Each lane has a colour and its number
in each of its elements, so that the colours are not needed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from workbench.viz.still.cards import page, tag
from workbench.viz.still.svg import DARK, LIGHT, SANS

CELL = 36, 24
"""Width and height of an element, in pixels."""
HEAD = 34, 30
"""Width of the row numbers, height of the column numbers, in pixels."""
TURN = 137.5
"""Degrees of hue from one lane to the next: neighbouring lanes differ clearly."""
_INK = "#111"


def _theme(colours: dict[str, str]) -> str:
    return f".ground{{fill:{colours['bg']}}}.head{{fill:{colours['muted']}}}"


STYLE = (
    f"text{{font-family:{SANS};font-size:12px;text-anchor:middle;fill:{_INK}}}.place{{font-size:9.5px}}"
    f".head{{font-size:10.5px}}{_theme(LIGHT)}"
    f"@media(prefers-color-scheme:dark){{{_theme(DARK)}}}"
)
"""The picture's own style sheet: the page's does not apply inside an <img>."""


class TileLanes(NamedTuple):
    """The content of a picture: the `title` of a tile, the number of `lanes` that hold it, the
    number of elements in `each`, and for each row and column the (lane, element) that holds it."""

    title: str
    lanes: int
    each: int
    holders: Sequence[Sequence[tuple[int, int]]]

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        return len(self.holders), len(self.holders[0])


def lane_map_html(tile: TileLanes) -> str:
    """Return the picture with its caption as a fragment of a page."""
    width, height = _size(tile)
    data = b64encode(lane_map_svg(tile).encode()).decode()
    image = (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(_alt(tile))}" '
        f'width="{width}" height="{height}">'
    )
    return page(tag("div", escape(_caption(tile)), "capt"), image)


def lane_map_svg(tile: TileLanes) -> str:
    """Return the SVG: a cell for each element, with its lane and its number in that lane."""
    width, height = _size(tile)
    rows, columns = tile.shape
    parts = [f"<style>{STYLE}</style>"]
    parts.append('<rect class="ground" width="100%" height="100%"/>')
    parts += [_head(*_corner(-1, c), str(c)) for c in range(columns)]
    parts += [_head(*_corner(r, -1), str(r)) for r in range(rows)]
    for row in range(rows):
        for column in range(columns):
            parts.append(_cell(*_corner(row, column), *tile.holders[row][column]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )


def lane_colour(lane: int) -> str:
    """Return the colour of a lane: light, under dark text."""
    return f"hsl({lane * TURN % 360:.0f},70%,{82 if lane % 2 else 74}%)"


def _size(tile: TileLanes) -> tuple[int, int]:
    rows, columns = tile.shape
    return HEAD[0] + columns * CELL[0] + 2, HEAD[1] + rows * CELL[1] + 2


def _corner(row: int, column: int) -> tuple[int, int]:
    """Return the upper left corner of a cell; row and column -1 have the numbers."""
    x = HEAD[0] + column * CELL[0] if column >= 0 else 0
    y = HEAD[1] + row * CELL[1] if row >= 0 else 0
    return x, y


def _head(x: int, y: int, words: str) -> str:
    across = x + (CELL[0] if x else HEAD[0]) / 2
    down = y + (CELL[1] if y else HEAD[1]) / 2 + 4
    return f'<text class="head" x="{across:g}" y="{down:g}">{words}</text>'


def _cell(x: int, y: int, lane: int, element: int) -> str:
    w, h = CELL
    return (
        f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{w - 1}" height="{h - 1}" '
        f'fill="{lane_colour(lane)}"/><text x="{x + w / 2:g}" y="{y + h / 2 + 4:g}">{lane}'
        f'<tspan class="place">.{element}</tspan></text>'
    )


def _caption(tile: TileLanes) -> str:
    rows, columns = tile.shape
    copies = tile.lanes * tile.each // (rows * columns)
    words = (
        f"{tile.title}: {rows} x {columns} elements in {tile.lanes} lanes, {tile.each} in each."
        " 5.2 is the third element of lane 5 (both count from 0)."
    )
    if copies > 1:
        words += f" Each is in {copies} lanes; the first is shown."
    return words


def _alt(tile: TileLanes) -> str:
    first = ", ".join(f"{lane}.{element}" for lane, element in tile.holders[0])
    return f"{_caption(tile)} The first row: {first}"
