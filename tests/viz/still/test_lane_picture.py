"""The picture of the lanes of a tile says what the map says."""

from __future__ import annotations

import colorsys
import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

from tests.tools.tensor_cores import CORES, core_named
from tests.viz.still.test_html import contrast
from tests.viz.support import softmax
from workbench.base.tensor_cores import TensorCore
from workbench.ir.meaning.tiles import LaneMap, lane_map
from workbench.viz.still.lane_picture import lane_colour

LANES = 64
AMPERE = core_named("sm_80", "16x8x16 float16 -> float32")


@pytest.fixture(scope="module", autouse=True)
def exploration() -> None:
    """The first one registers what has a picture."""
    softmax()


def html(lanes: LaneMap) -> str:
    shown = lanes._repr_mimebundle_()
    assert shown is not None and shown["text/plain"] == str(lanes)
    markup: str = shown["text/html"]
    return markup


def drawn(lanes: LaneMap) -> ElementTree.Element:
    (data,) = re.findall(r"base64,([^\"]+)", html(lanes))
    return ElementTree.fromstring(b64decode(data).decode())


@pytest.mark.parametrize("tile", ["a", "b", "c"])
@pytest.mark.parametrize("core", CORES, ids=str)
def test_each_element_has_its_lane_where_it_is_in_the_tile(core: TensorCore, tile: str) -> None:
    lanes = lane_map(core, tile)
    root = drawn(lanes)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    rects = [n for n in root if n.tag.endswith("rect")][1:]
    texts = [n for n in root if n.tag.endswith("text")]
    rows, columns = lanes.holders.shape[:2]
    cells = texts[rows + columns :]
    assert len(rects) == len(cells) == rows * columns
    places = []
    for number, (rect, text) in enumerate(zip(rects, cells, strict=True)):
        lane, element = lanes.holders[divmod(number, columns)]
        assert "".join(text.itertext()) == f"{lane}.{element}"
        assert rect.get("fill") == lane_colour(int(lane))
        x, y, w, h = (float(rect.get(k, 0)) for k in ("x", "y", "width", "height"))
        assert 0 < x < x + w <= width and 0 < y < y + h <= height
        assert x < float(text.get("x", 0)) < x + w
        places.append((x, y))
    ordered = sorted({x for x, _ in places}), sorted({y for _, y in places})
    assert [len(axis) for axis in ordered] == [columns, rows]
    for number, (x, y) in enumerate(places):
        assert (ordered[1].index(y), ordered[0].index(x)) == divmod(number, columns)


def test_the_words_are_enough_without_the_picture() -> None:
    markup = html(lane_map(AMPERE, "a"))
    assert "A of 16x8x16 float16 -&gt; float32: 16 x 16 elements in 32 lanes" in markup
    assert "The first row: 0.0, 0.1, 1.0" in markup and "<svg" not in markup
    copies = core_named("gfx1100", "16x16x16 float16 -> float32")
    assert "Each is in 2 lanes" in html(lane_map(copies, "a"))
    assert "Each is in" not in markup


def test_lanes_have_colours_under_dark_letters() -> None:
    colours = [lane_colour(lane) for lane in range(LANES)]
    assert len(set(colours)) == LANES
    for colour in colours:
        hue, share, light = map(int, re.findall(r"\d+", colour))
        assert contrast("#111111", rgb(hue, share / 100, light / 100)) >= 4.5


def rgb(hue: float, share: float, light: float) -> str:
    """Return a colour of CSS's hsl() as #rrggbb."""
    red_green_blue = colorsys.hls_to_rgb(hue / 360, light, share)
    return "#" + "".join(f"{round(255 * part):02x}" for part in red_green_blue)
