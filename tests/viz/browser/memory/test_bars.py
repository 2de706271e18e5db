"""The memory of a schedule in the page: a bar for each kernel, in Plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import shown
from tests.viz.record.support import exported, plain
from tests.viz.support import matmul
from tests.viz.test_memory_chart import chart_of, layers
from workbench.measure.timing import bytes_text
from workbench.viz.record.record import build


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return plain(build(layers(), "full"))


@pytest.fixture
def page(browser: Any, tmp_path: Path, record: dict[str, Any]) -> Iterator[Any]:
    yield from shown(browser, tmp_path, exported(record), mode="3")


def test_plan_has_a_bar_for_each_kernel(page: Any, record: dict[str, Any]) -> None:
    chart = chart_of(record)
    bars = page.locator(".wb-held-bar")
    assert bars.count() == len(chart.steps)
    heights = [bar.bounding_box()["height"] for bar in page.locator(".wb-held-bar i").all()]
    assert heights.index(max(heights)) == chart.peak
    assert page.get_attribute(".wb-held-peak", "aria-label").startswith("kernel 5: 61.5 KiB live")
    lines = page.get_attribute(".wb-held-peak", "title").splitlines()
    assert len(lines) == 3 and "48x200: 37.5 KiB" in lines[1]
    bars.nth(2).click()
    assert page.get_attribute("[data-key=memory-2]", "aria-selected") == "true"
    page.locator(".wb").press("1")
    assert not page.locator(".wb-held").is_visible(), "it is a part of Plan"


def test_enlarged_it_lists_what_lives_when(page: Any, record: dict[str, Any]) -> None:
    chart = chart_of(record)
    height = page.locator(".wb-held-peak").bounding_box()["height"]
    page.click("[data-key=memory-size]")
    assert page.locator(".wb-held-peak").bounding_box()["height"] > 3 * height
    said = page.locator(".wb-held-words")
    assert said.evaluate("e => e.scrollHeight <= e.clientHeight")
    lives = page.locator(".wb-held-lives [data-item]")
    assert lives.count() == len({n for step in chart.steps for n in step.values})
    number = chart.steps[chart.peak].values[0]
    at = [place for place, step in enumerate(chart.steps) if number in step.values]
    kernels = [chart.steps[place].kernel + 1 for place in (at[0], at[-1])]
    row = page.locator(f"[data-key=life-{number}]")
    assert f"{kernels[0]} to {kernels[1]}" in row.inner_text()
    bar, span = (row.locator(part).bounding_box() for part in (".wb-held-span i", ".wb-held-span"))
    share = (at[-1] + 1 - at[0]) / len(chart.steps)
    assert bar["width"] / span["width"] == pytest.approx(share, abs=0.05)
    page.click("[data-key=memory-size]")
    assert page.locator(".wb-held-lives").count() == 0


def test_of_one_kernel_it_says_what_lives_and_when_it_has_bars(
    browser: Any, tmp_path: Path
) -> None:
    record = plain(build(matmul(), "full"))
    for page in shown(browser, tmp_path, exported(record), mode="3"):
        words = page.inner_text(".wb-held")
        assert page.locator(".wb-held-bar").count() == 0
        (kernel,) = (step for step in chart_of(record).steps if step.kernel is not None)
        assert "From two kernels on, each has a bar here" in words
        assert words.startswith(f"{bytes_text(kernel.bytes)} live while the only kernel runs.")
