"""What a timing says: the page's words, and those of a printed exploration."""

from __future__ import annotations

import pytest

from tests.viz.browser.page.support import SPEEDS, timing, with_share
from tests.viz.layouts import Functions
from workbench.base.typed import typed
from workbench.measure.kernel_time import doubts
from workbench.viz.schema.variant import TimingRow
from workbench.viz.session.opt_text import timing_text

SAYS = {
    "13.5 ms ± 12%, cold 14.5 ms ± 3.0%, 10% of peak, 40.5 GFLOP/s, 2.25 GB/s": {
        "spread": 0.12, "cold_s": 14.5e-3, "cold_spread": 0.03, "gflops": 40.5, "threads": 2,
    },
    "13.5 ms ± 1.2%, 9.1% of one thread's peak, 18.2 GFLOP/s, 2.25 GB/s": {
        "gflops": 18.2,
    },
    "13.5 ms ± <0.1%, 25.5 GFLOP/s, 2.25 GB/s": {
        "spread": 0.0, "gflops": 25.5, "kind": None,
    },
    "13.5 ms ± >100%, 900 GFLOP/s, 2.25 GB/s": {"spread": 1.5, "gflops": 900.0},
    "13.5 ms 1 run, EMULATOR (PYTHON)": {
        "samples": [13.5e-3], "emulator": True, "device": "PYTHON",
    },
    "13.5 ms ± 1.2%, 50% of one thread's peak, 100 GFLOP/s, 2.25 GB/s, measured earlier": {
        "gflops": 100.0, "earlier": True,
    },
    "13.5 ms ± 1.2%, 25.5 GFLOP/s, 2.25 GB/s, the machine is busy: 2.1 times slower than at rest": {
        "gflops": 25.5, "kind": None, "busy": 2.1,
    },
    "13.5 ms ± 1.2%, 25.5 GFLOP/s, 2.25 GB/s, the slowest sample took 4.2 times the fastest": {
        "gflops": 25.5, "kind": None, "busy": 1.29, "samples": [71e-6, 80e-6, 296e-6],
    },
    "13.5 ms ± 1.2%, <0.1% of peak, 0.19 GFLOP/s, 2.25 GB/s": {
        "gflops": 0.19, "threads": 2,
    },
    "13.5 ms ± 44%, 25.5 GFLOP/s, 2.25 GB/s, 3 calls gave 13.5 ms to 25.5 ms": {
        "gflops": 25.5, "kind": None, "medians": [14e-3, 25.5e-3],
    },
}  # fmt: skip
"""By what it says: a timing on a machine of two cores, as far as it is not ordinary. Among them a
kernel without floats, and one whose compiler saw through it: neither has a share."""


TEXT = "(row) => timingText(row)"


@pytest.fixture(scope="module")
def functions() -> Functions:
    return Functions()


@pytest.mark.parametrize("words", SAYS)
def test_a_timing_says_the_same_in_the_page_and_in_text(functions: Functions, words: str) -> None:
    row = timing(13.5e-3, spread=0.012) | {"gbytes": 2.25} | SAYS[words]
    row["doubts"] = doubts(row.get("busy"), row["samples"])
    text = functions.evaluate(TEXT, with_share(row))
    assert text == timing_text(typed(row, TimingRow), SPEEDS) == words


def test_without_a_peak_no_share_is_told(functions: Functions) -> None:
    row = timing(13.5e-3, spread=0.012) | {"gbytes": 2.25, "gflops": 18.2}
    text = functions.evaluate(TEXT, with_share(row, None))
    assert (
        text
        == timing_text(typed(row, TimingRow), None)
        == "13.5 ms ± 1.2%, 18.2 GFLOP/s, 2.25 GB/s"
    )
