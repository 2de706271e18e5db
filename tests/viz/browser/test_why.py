"""What the page says of a variant in figures: why it has its opts, what it should cost beside what
it took, and what the machine can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import shown
from tests.viz.browser.page.support import MACHINE
from tests.viz.record.support import exported, plain
from tests.viz.support import matmul
from workbench.viz.record.record import build

Record = dict[str, Any]
COST = {
    "kind": "f32", "threads": 2, "flops": 2_000_000, "limit": "L2", "predicted_s": 2.15e-4, "launch_s": 0.0,
    "of": "thread", "notes": [],
    "bytes": {"L1": 2048, "L2": 3 << 20, "memory": 0},
    "seconds": {"core": 1e-4, "L2": 2e-4, "memory": 0.0}, "roofs": {"peak": 2e11},
}  # fmt: skip


@pytest.fixture(scope="module")
def record() -> Record:
    """A record of one kernel; it took twice as long as predicted, and auto ran emulated."""
    page_record: Record = plain(build(matmul()))
    page_record["machine"] |= MACHINE
    page_record["kernels"][0] |= {"flops": 2_000_000, "bytes": 1 << 20}
    for row, emulator in zip(page_record["variants"], (False, True), strict=True):
        row["cost"] = COST
        row["timing"] = {
            "median_s": 4.3e-4, "min_s": 4.3e-4, "spread": 0.01, "samples": [4.3e-4] * 3,
            "cold_s": None, "gflops": 1.0, "gbytes": 1.0, "kind": "f32", "threads": 1,
            "device": "PYTHON" if emulator else "LLVM", "emulator": emulator,
            "run": "a", "earlier": False,
        }  # fmt: skip
    return page_record


@pytest.fixture(params=[1400, 800])
def page(browser: Any, record: Record, tmp_path: Path, request: Any) -> Iterator[Any]:
    html = exported(record)
    yield from shown(browser, tmp_path, html, width=request.param)


def rows(page: Any, caption: str) -> list[list[str]]:
    """Return the cells of the table with a caption, a row each."""
    table = page.locator(f"table:has(caption:text('{caption}'))")
    table.wait_for()
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()]


def test_the_default_opts_say_why(page: Any, record: Record) -> None:
    auto = record["variants"][1]
    page.click("[data-key=variant-1]")
    page.click("[data-key=fold-opts]")
    items = page.locator(".wb-opts li")
    items.first.wait_for()
    texts = items.all_inner_texts()
    assert len(texts) == len(auto["steps"]) > 0
    for step, text in zip(auto["steps"], texts, strict=True):
        plain = [step["name"], step["why"], step["counts"], *step["opts"]]
        assert all(part in text for part in plain)
    assert page.locator(".wb-about").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_an_estimate_stands_beside_what_was_measured(page: Any) -> None:
    text = page.inner_text(".wb-estimate")
    assert text.startswith(
        "ESTIMATE plain: predicted 215 µs, limited by L2; measured 430 µs ± 1.0%,"
    )
    assert "2.00 times the prediction" in text
    page.click("[data-key=fold-estimate]")
    page.wait_for_selector("text=2.00 M operations on 1 MiB: 1.91 per byte")
    assert rows(page, "each part alone, on 2 threads")[1:] == [
        ["core", "", "100 µs"], ["L1", "2 KiB", "in core"],
        ["L2", "3 MiB", "200 µs"], ["memory", "0 B", ""],
    ]  # fmt: skip
    page.click("[data-key=variant-1]")  # an emulator's time says nothing of the machine
    text = page.inner_text(".wb-estimate")
    assert text.startswith("ESTIMATE auto: ") and text.endswith("not measured")


def test_roofs_of_reading_and_copying_with_all_threads_and_one(page: Any) -> None:
    page.click("[data-key=fold-roofline]")
    assert rows(page, "the best speeds of this machine") == [
        ["GB/s", "read", "copy", "read, one", "copy, one"],
        ["L1", "400", "300", "200", "160"],
        ["memory", "20.0", "15.0", "12.0", "9.00"],
    ]
    assert page.locator(".wb-about").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_the_name_of_a_kernel_is_decoded_on_hover(page: Any) -> None:
    hint = page.get_attribute("[data-key=kernel-0]", "title")
    assert hint.split("\n")[:2] == [
        "r_6_4_8: 2.00 M operations, 1 MiB", "r: it reduces; 6 g0, 4 g1, 8 r0",
    ]  # fmt: skip
