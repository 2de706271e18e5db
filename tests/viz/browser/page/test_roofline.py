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
from tests.viz.record.support import exported, plain
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.viz.record.record import Recorder


def test_a_roofline_stands_beside_the_bound(browser: Any, record: Record, tmp_path: Path) -> None:
    page_record = measured(record)
    usual, fast, _ = page_record["variants"]
    for page in shown(browser, tmp_path, exported(page_record)):
        assert usual["bound"] in page.inner_text(".wb-about")
        dots = ".wb-roof-dot"
        assert page.locator(dots).count() == 2  # an emulator's time says nothing
        for i, (variant, dot) in enumerate(
            zip((usual, fast), page.locator(dots).all(), strict=True)
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
        assert {"L1", "L2", "memory"} <= set(page.locator(".wb-roof-name").all_text_contents())
        page.locator(dots).nth(1).click()
        assert selected(page, "variants")[0].startswith("fast")
        page.click("[data-key=fold-roofline]")
        figures = page.inner_text(".wb-roofline")
        assert all(name in figures for name in fast["cost"]["roofs"] if name != "peak")


@pytest.mark.parametrize("width", [800, 953, 1400])
def test_words_can_be_read_and_no_line_is_over_a_name(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    page_record = measured(record)
    for page in shown(browser, tmp_path, exported(page_record), width=width):
        assert page.evaluate(SMALLEST) >= 8.99
        order = page.evaluate(
            "[...document.querySelectorAll('.wb-roof path, .wb-roof-name')]"
            ".filter((e) => !e.closest('.wb-roof-dot')).map((e) => e.textContent)"
        )
        levels = ["L1", "L2", "memory"]
        assert [text for text in order if text][-3:] == levels
        assert order[-3:] == levels, "drawn after all lines"


def test_tensor_cores_have_a_roof_of_their_own(browser: Any, tmp_path: Path) -> None:
    """On a machine that is not here: with its peak, beside that of other arithmetic."""
    a, b = (Tensor.empty(256, 256, dtype=dtypes.float16) for _ in range(2))
    product = explore(a.float() @ b.float(), device="CUDA", target="H100")
    recorder = Recorder(product)
    recorder.first()
    recorder.add_compiled(0)
    kernel = product.kernels[0].apply(Opt(OptOps.TC, "g0 g1 r0", "16x8x16"))
    tile = recorder.add_variant(0, kernel, "tile", 0)
    recorder.add_compiled(tile)
    for page in shown(browser, tmp_path, exported(plain(recorder.record))):
        page.click(f'[data-key="variant-{tile}"]')
        names = page.locator(".wb-roof > .wb-roof-name").all_text_contents()
        assert names[:2] == ["float16 tensor cores 989,430 GFLOP/s", "peak 66,908 GFLOP/s"]
        page.click("[data-key=fold-roofline]")
        figures = page.inner_text(".wb-roofline").splitlines()
        assert any("float16 tensor cores" in line for line in figures)
        assert page.evaluate(CROSSED) == []


SMALLEST = """() => Math.min(...[...document.querySelectorAll(".wb-roof text")]
  .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))"""
"""Returns the size, on the screen, of the smallest text of the roofline."""


def test_names_of_dots_stand_apart(browser: Any, record: Record, tmp_path: Path) -> None:
    page_record = measured(record)
    usual, fast, _ = page_record["variants"]
    fast["counts"] = usual["counts"]
    fast["timing"] = timing(2.02e-3, spread=0.01)
    for page in shown(browser, tmp_path, exported(page_record)):
        names = page.locator(".wb-roof-dot .wb-roof-name")
        assert sorted(names.all_text_contents()) == ["fast", "plain"]
        left, right = sorted((n.bounding_box() for n in names.all()), key=itemgetter("x"))
        upper, lower = sorted((left, right), key=itemgetter("y"))
        aside = left["x"] + left["width"] <= right["x"]
        assert aside or upper["y"] + upper["height"] <= lower["y"] + 3  # below letters


def test_letters_are_large_enough_and_names_on_no_line(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """Where the pane is narrowest, too; points of another device stay, and say their spread."""
    page_record = measured(record)
    other = timing(1e-3, spread=0.02) | {"device": "OTHER", "moved_bytes": 4096.0}
    page_record["variants"][1]["elsewhere"] = [other]
    for page in shown(browser, tmp_path, exported(page_record), width=800):
        sizes = page.evaluate(LETTERS)
        assert min(sizes) >= 9, sizes
        titles = page.locator(".wb-roof-dot title").all_text_contents()
        assert [t.split(":")[0] for t in titles] == ["plain", "fast", "fast on OTHER"]
        assert all("±" in title for title in titles)
        assert page.evaluate(CROSSED) == []


LETTERS = """() => {
  const roof = document.querySelector(".wb-roof");
  const scale = roof.getBoundingClientRect().width / roof.viewBox.baseVal.width;
  return [...roof.querySelectorAll("text")].map((text) =>
    scale * parseFloat(getComputedStyle(text).fontSize));
}"""
"""Returns the sizes of the letters of the roofline as they are seen, in pixels."""
CROSSED = """() => {
  const crossed = [];
  for (const name of document.querySelectorAll(".wb-roof .wb-roof-name")) {
    const box = name.getBoundingClientRect();
    for (const line of document.querySelectorAll(".wb-roof > .wb-roof-line")) {
      const at = line.getScreenCTM(), length = line.getTotalLength();
      for (let i = 0; i <= length; i += 2) {
        const { x, y } = line.getPointAtLength(i).matrixTransform(at);
        const inside = x > box.left && x < box.right && y > box.top + 2 && y < box.bottom - 2;
        if (inside) { crossed.push(name.textContent); break; }
      }
    }
  }
  return crossed;
}"""
"""Returns the names that stand on a line."""


def measured(record: Record) -> Record:
    """Return a record in which the first kernel has two times and an emulated one."""
    page_record: Record = json.loads(json.dumps(record))
    peak = {"f32": 2e11, "f64": 1e11}
    bandwidth = [["L1", 4e11], ["L2", 2e11], ["memory", 2e10]]
    page_record["machine"] |= {"peak": peak, "bandwidth": bandwidth, "one_thread": None}
    page_record["variants"] = [v for v in page_record["variants"] if v["kernel"] == 0][:1]
    page_record["kernels"] = page_record["kernels"][:1]
    [usual] = page_record["variants"]
    for name, seconds, emulator in (("fast", 1e-4, False), ("slow", 9.0, True)):
        counts = usual["counts"] | {"bytes_loaded": 1000, "bytes_stored": 24}
        child = usual | {"name": name, "parent": 0, "counts": counts}
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
