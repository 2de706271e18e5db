"""The row of a timing: what the page and text print of it."""

from __future__ import annotations

import pytest

from tests.kernel.support import SPEEDS
from workbench.ir.nest.estimates import Estimates
from workbench.measure.kernel_time import doubts
from workbench.measure.timing import Samples
from workbench.viz.session.opt_text import timing_row, timing_text


def row_of(samples: list[float], busy: float | None) -> list[str]:
    row = timing_row(Samples(tuple(samples)), Estimates(0, 0), "LLVM", busy=busy)
    text = timing_text(row, None)
    assert all(words in text for words in row.doubts)
    return row.doubts


def test_a_disturbed_time_is_not_exact() -> None:
    """Its figure is for how long the kernel had its cores, and nothing is derived from it."""
    samples = Samples((0.3, 0.25), shares=(0.05, 0.1))
    row = timing_row(samples, Estimates(1000, 0), "LLVM", "f32", busy=42.0)
    assert (row.median_s, row.had, row.samples) == (
        pytest.approx(0.02), pytest.approx(0.075), [pytest.approx(0.02)],
    )  # fmt: skip
    text = timing_text(row, SPEEDS)
    assert text.startswith("20 ms busy") and "of peak" not in text
    assert text.endswith("the machine is busy: the kernel had 7.5% of a core")


def test_a_row_has_the_sentences_that_the_page_prints() -> None:
    assert row_of([1e-3] * 3, 2.1) == doubts(2.1, [1e-3]) != []
    assert row_of([71e-6, 80e-6, 296e-6], 1.1) == doubts(None, [71e-6, 296e-6]) != []
    assert row_of([1e-3] * 3, None) == []
    late = [1e-3] * 60 + [5e-3]
    assert row_of(late, None) == doubts(None, late) != [], "also of samples left out"
