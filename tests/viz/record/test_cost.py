"""What a record says a variant costs: a function of the kernel and the speeds of a machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.viz.record.support import plain
from tests.viz.support import matmul
from workbench.backends.native import machine
from workbench.kernel.performance import cost_of
from workbench.measure import speeds
from workbench.measure.bandwidth import working_sets
from workbench.measure.speeds import Rate, Speeds
from workbench.measure.timing import Samples
from workbench.viz.record.record import Recorder, build
from workbench.viz.schema.variant import ShareRow
from workbench.viz.session.opt_text import timing_row

LEVELS = [name for name, _ in working_sets(machine.known_caches())]
RATES = {name: Rate(200e9 / 2**place, 300e9 / 2**place) for place, name in enumerate(LEVELS)}
SPEEDS = Speeds(
    {"f32": Rate(128e9, 256e9), "f64": Rate(64e9, 128e9)},
    RATES, RATES, 1e-9, 0.125e-9, 1e-6, 5e-6,
)  # fmt: skip


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that has been told its speeds asks nobody for them."""

    def asked() -> Speeds:
        raise AssertionError("speeds are handed in")

    for name in ("speeds", "_measure"):
        monkeypatch.setattr(speeds, name, asked)
    monkeypatch.setattr("workbench.viz.record.about.speeds", asked)


def test_the_cost_of_a_variant_is_its_kernels() -> None:
    ex = matmul()
    record = plain(build(ex, "full", SPEEDS))
    row = record["variants"][0]
    cost, counts = cost_of(ex.kernels[0], "LLVM", SPEEDS), row["counts"]
    assert row["cost"]["roofs"] == cost.roofs()
    assert row["cost"]["predicted_s"] == cost.predicted_s
    assert row["cost"]["seconds"] == cost.seconds
    assert row["cost"]["limit"] == cost.limit
    assert row["cost"]["flops"] == record["kernels"][0]["flops"]
    assert row["cost"]["bytes"]["L1"] == counts["bytes_loaded"] + counts["bytes_stored"]
    # a roof is bandwidth times operations per byte: no figure of a record contradicts another
    one = record["machine"]["one_thread"]
    rates = dict(one["bandwidth"])
    assert row["cost"]["threads"] == 1
    for level, roof in row["cost"]["roofs"].items():
        moved = row["cost"]["bytes"].get(level)
        most = (
            one["peak"]["f32"] if level == "peak" else cost.estimates.flops / moved * rates[level]
        )
        assert roof == pytest.approx(most)
    assert plain(build(ex, "full", SPEEDS))["variants"][0]["cost"] == row["cost"]


def timed(recorder: Recorder, variant: int, gflops: float, threads: int = 1) -> None:
    work = recorder.kernels[variant].estimates
    median_s = work.flops / gflops / 1e9
    row = timing_row(Samples((median_s,) * 3), work, "LLVM", "f32", threads)
    recorder.put(("variants", variant, "timing"), row)
    recorder.machine.fit_timings()


def peaks(record: dict[str, Any]) -> tuple[float, float]:
    machine_row = record["machine"]
    return machine_row["one_thread"]["peak"]["f32"] / 1e9, machine_row["peak"]["f32"] / 1e9


def test_what_beats_the_peak_raises_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one peak, and no time above it: the roofline and all shares are of the same."""
    again: list[int] = []

    def flops(dtype: object, threads: int) -> float:
        again.append(threads)
        return 1e9

    monkeypatch.setattr(speeds, "_flops", flops)
    monkeypatch.setattr(speeds, "_by_place", {})
    recorder = Recorder(matmul(), SPEEDS)
    recorder.first()
    timed(recorder, 0, 100)
    assert peaks(plain(recorder.record)) == (128, 256) and not again
    recorder.patch()
    timing = recorder.record.variants[0].timing
    assert timing and timing.share == ShareRow(100 / 128, "one thread's peak")
    machine = replace(SPEEDS, peak={**SPEEDS.peak, "f32": Rate(2e11, 2e11)})
    recorder.machine.speeds = machine  # as if another variant had raised it
    change = [["variants", 0, "timing", "share"], {"fraction": 0.5, "of": "peak"}]
    assert change in plain(recorder.patch())["set"] and not plain(recorder.patch())["set"]
    recorder.machine.speeds = SPEEDS
    timed(recorder, 0, 140)
    assert peaks(plain(recorder.record)) == pytest.approx((140, 256)) and again == [1]
    timed(recorder, 0, 290, threads=2)
    assert peaks(plain(recorder.record)) == pytest.approx((145, 290))
    timed(recorder, 0, 5000)  # nobody does that: less was done than is counted
    assert peaks(plain(recorder.record)) == pytest.approx((145, 290)) and again == [1, 2, 1]


def test_no_launch_takes_longer_than_a_kernel_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch of 6 µs was told of a kernel measured at 4.1 µs."""
    monkeypatch.setattr(speeds, "_by_place", {})
    recorder = Recorder(matmul(), replace(SPEEDS, launch_s=6e-6))
    recorder.first()
    recorder.add_cost(0)
    assert "takes 6 µs" in str(plain(recorder.record)["variants"][0]["bound"])
    work = recorder.kernels[0].estimates
    row = timing_row(Samples((4.1e-6,) * 3), work, "LLVM", "f32", 1)
    recorder.put(("variants", 0, "timing"), row)
    recorder.machine.fit_timings(0)
    recorder.add_cost(0)
    shown = plain(recorder.record)["variants"][0]
    assert shown["cost"]["launch_s"] == pytest.approx(4.1e-6)
    assert "takes 4.1 µs" in shown["bound"] and "takes 6 µs" not in shown["bound"]


def test_what_was_edited_raises_no_peak() -> None:
    recorder = Recorder(matmul(), SPEEDS)
    recorder.first()
    recorder.put(("variants", 0, "edited"), True)
    timed(recorder, 0, 140)
    assert peaks(plain(recorder.record)) == (128, 256)
