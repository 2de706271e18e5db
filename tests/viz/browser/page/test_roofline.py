"""The roofline: dots where the figures say, beside the bound, and names that can be read."""

from __future__ import annotations

import json
import math
import re
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import shown
from tests.viz.browser.page.support import Record, selected, timing
from tests.viz.record.support import exported


def test_a_roofline_stands_beside_the_bound(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = measured(record)
    plain, fast, _ = page_record["variants"]
    for page in shown(browser, tmp_path, exported(page_record)):
        assert plain["bound"] in page.inner_text(".wb-about")
        dots = ".wb-roof-dot"
        assert page.locator(dots).count() == 2  # an emulator's time says nothing
        for i, (variant, dot) in enumerate(
            zip((plain, fast), page.locator(dots).all(), strict=True)
        ):
            counts = variant["counts"]
            moved = counts["bytes_loaded"] + counts["bytes_stored"]
            flops = page_record["kernels"][0]["flops"]
            x, y = place_of(dot.get_attribute("transform"))
            scale = page.evaluate(SCALES)
            assert x == pytest.approx(along(scale["x"], flops / moved), abs=0.6), i
            rate = flops / variant["timing"]["median_s"] / 1e9
            assert y == pytest.approx(along(scale["y"], rate), abs=0.6), i
        label = page.get_attribute(".wb-roof", "aria-label")
        assert "peak 200 GFLOP/s" in label and "fast: " in label and "slow" not in label
        assert {"L1", "L2", "memory"} <= set(
            page.locator(".wb-roof-name").all_text_contents()
        )
        page.locator(dots).nth(1).click()
        assert selected(page, "variants")[0].startswith("fast")
        page.click("[data-key=fold-roofline]")
        figures = page.inner_text(".wb-roofline")
        assert all(name in figures for name in fast["cost"]["roofs"] if name != "peak")


def test_names_of_dots_stand_apart(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = measured(record)
    plain, fast, _ = page_record["variants"]
    fast["counts"] = plain["counts"]
    fast["timing"] = timing(2.02e-3, spread=0.01)
    for page in shown(browser, tmp_path, exported(page_record)):
        names = page.locator(".wb-roof-dot .wb-roof-name")
        assert sorted(names.all_text_contents()) == ["fast", "plain"]
        left, right = sorted(
            (n.bounding_box() for n in names.all()), key=itemgetter("x")
        )
        upper, lower = sorted((left, right), key=itemgetter("y"))
        aside = left["x"] + left["width"] <= right["x"]
        assert aside or upper["y"] + upper["height"] <= lower["y"] + 3  # below letters


def measured(record: Record) -> Record:
    """Return a record in which the first kernel has two times and an emulated one."""
    page_record: Record = json.loads(json.dumps(record))
    peak = {"f32": 2e11, "f64": 1e11}
    bandwidth = [["L1", 4e11], ["L2", 2e11], ["memory", 2e10]]
    page_record["machine"] |= {"peak": peak, "bandwidth": bandwidth, "one_thread": None}
    page_record["variants"] = [v for v in page_record["variants"] if v["kernel"] == 0][
        :1
    ]
    page_record["kernels"] = page_record["kernels"][:1]
    [plain] = page_record["variants"]
    for name, seconds, emulator in (("fast", 1e-4, False), ("slow", 9.0, True)):
        counts = plain["counts"] | {"bytes_loaded": 1000, "bytes_stored": 24}
        child = plain | {"name": name, "parent": 0, "counts": counts}
        child["timing"] = timing(seconds, spread=0.01, emulator=emulator)
        page_record["variants"].append(child)
    return page_record


SCALES = r"""() => {
  const scale = { x: [], y: [] };
  for (const line of document.querySelectorAll(".wb-roof-grid")) {
    const [, x, y, way] = line.getAttribute("d").match(/^M([\d.]+) ([\d.]+)([VH])/);
    const said = Number(line.nextElementSibling.textContent);
    (way === "V" ? scale.x : scale.y).push([said, Number(way === "V" ? x : y)]);
  }
  return scale;
}"""
"""Returns the grid lines of the roofline: [what they say, where they stand]."""


def place_of(transform: str) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"-?[\d.]+", transform)))


def along(lines: list[tuple[float, float]], value: float) -> float:
    """Return where a value stands on a logarithmic scale, by two of its lines."""
    (a, at_a), (b, at_b) = lines[0], lines[-1]
    return at_a + (at_b - at_a) * math.log(value / a) / math.log(b / a)
