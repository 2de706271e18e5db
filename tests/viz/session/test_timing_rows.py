"""The row of a timing: what the page and text print of it."""

from __future__ import annotations

from workbench.ir.nest.estimates import Estimates
from workbench.measure.kernel_time import doubts
from workbench.viz.session.opt_text import timing_row, timing_text


def row_of(samples: list[float], busy: float | None) -> list[str]:
    row = timing_row(samples, Estimates(0, 0), "LLVM", busy=busy)
    text = timing_text(row, None)
    assert all(words in text for words in row.doubts)
    return row.doubts


def test_a_row_has_the_sentences_that_the_page_prints() -> None:
    assert row_of([1e-3] * 3, 2.1) == doubts(2.1, [1e-3]) != []
    assert row_of([71e-6, 80e-6, 296e-6], 1.1) == doubts(None, [71e-6, 296e-6]) != []
    assert row_of([1e-3] * 3, None) == []
    late = [1e-3] * 60 + [5e-3]
    assert row_of(late, None) == doubts(None, late) != [], "also of samples left out"
