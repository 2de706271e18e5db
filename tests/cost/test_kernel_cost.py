"""Costs on a machine that is the same everywhere: the numbers are those of pencil and paper."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.kernel.support import SPEEDS, TARGET, applied, array, cost_of, kernel_of, upcast
from workbench.cost.core_time import work
from workbench.cost.kernel_cost import cost
from workbench.cost.predicted_cost import change, predicted_speedups
from workbench.ir.lower.lower import lower
from workbench.ir.opt.apply import legal_opts
from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.speeds import Rate


def test_a_chain_of_sums_takes_its_latency() -> None:
    plain = cost_of(kernel_of(array(64, 64) @ array(64, 64)))
    assert plain.limit == "core" and plain.work.find(None) is plain.work
    loop, seconds = plain.work.hottest()
    assert loop.axis is not None and loop.axis.axis_name == "r0"
    # a step is 4 instructions, of 256 in flight: 64 steps of this sum, or of the next one
    assert seconds == pytest.approx(64**3 * SPEEDS.fma_s / 2)
    assert (loop.fmas, loop.loads, loop.sums, loop.vectors) == (1, 2, 1, 0)


def test_a_core_begins_the_next_sum_before_the_last_one_is_added() -> None:
    """On a core whose multiply-add takes 4 cycles a step was measured to take 1.2 cycles in sums of
    8, 2.3 in sums of 64, 3.3 in sums of 256, and 3.9 in sums of 1,024."""
    cycles = []
    for length in (8, 64, 256, 1024):
        loops = cost_of(kernel_of(array(16, length) @ array(length, 16))).work
        cycles.append(4 * loops.total_s / (256 * length * SPEEDS.fma_s))
    assert cycles == pytest.approx([1.2, 2.3, 3.3, 3.9], rel=0.2)


def test_one_sum_after_another_has_none_to_overlap_with() -> None:
    """Of one sum of all, in one loop or in two, each step waits for the one before."""
    for opts in ((), (Opt(OptOps.SPLIT, "r0", 16),)):
        whole = cost_of(kernel_of(array(1 << 12).sum()), *opts)
        assert whole.work.total_s >= (1 << 12) * SPEEDS.fma_s


def test_a_full_tile_runs_at_the_peak() -> None:
    tile = cost_of(kernel_of(array(96, 96) @ array(96, 96)), upcast("g1", 16), upcast("g0", 6))
    least = 2 * 96**3 / SPEEDS.peak["f32"].one
    assert least < tile.predicted_s < 1.3 * least
    assert tile.work.hottest()[0].live == 15  # 12 sums, 2 chunks of a row, 1 of a column


def test_threads_halve_it() -> None:
    kernel = kernel_of(array(96, 96) @ array(96, 96))
    one, two = cost_of(kernel), cost_of(kernel, Opt(OptOps.THREAD, "g0", 2))
    assert two.threads == 2
    assert two.seconds["core"] == pytest.approx(one.seconds["core"] / 2, rel=0.01)


def test_threads_that_slow_each_other_down_stay_below_their_peak() -> None:
    """Where all threads reach less than so many times one, the core's part knows it too: no kernel
    is predicted to be faster than the peak that is drawn beside it."""
    kernel = kernel_of(array(96, 96) @ array(96, 96))
    tile = applied(kernel, upcast("g1", 16), upcast("g0", 6), Opt(OptOps.THREAD, "g0", 2))
    shared = replace(SPEEDS, peak={"f32": Rate(128e9, 160e9), "f64": Rate(64e9, 80e9)})
    slow, fast = (cost(tile, TARGET, s, kernel) for s in (shared, SPEEDS))
    assert slow.seconds["core"] == pytest.approx(1.6 * fast.seconds["core"])
    assert 2 * 96**3 / slow.seconds["core"] <= slow.roofs()["peak"]


def test_every_step_of_the_classic_list_is_predicted_to_help() -> None:
    kernel = kernel_of(array(512, 512) @ array(512, 512))
    steps = [upcast("g1", 16), upcast("g0", 4), Opt(OptOps.THREAD, "g0", 2)]
    times = [cost_of(kernel, *steps[:n]).predicted_s for n in range(len(steps) + 1)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 20 * times[-1]


def test_bytes_of_a_stream() -> None:
    stream_cost = cost_of(kernel_of(array(1 << 22) + array(1 << 22)))
    size = 4 << 22
    assert stream_cost.bytes_from["L1"] == 3 * size
    assert {stream_cost.bytes_from[n] for n in ("L2", "L3", "memory")} == {4 * size}
    assert stream_cost.estimates.bytes == 3 * size
    roofs = stream_cost.roofs()
    assert roofs["memory"] == pytest.approx((1 << 22) / (4 * size) * 12e9)
    assert stream_cost.roofs(2)["memory"] == pytest.approx((1 << 22) / (4 * size) * 16e9)
    assert min(roofs, key=lambda name: roofs[name]) == "memory"
    assert "memory" in str(stream_cost) and "roof of peak" in str(stream_cost)


def test_a_long_body_cannot_hide_its_own_latency() -> None:
    """All of a sum in one step: 32 vectors are added one after the other, and what could go on
    meanwhile is too far away."""
    kernel = kernel_of(array(8, 256) @ array(256, 8))
    unrolled = applied(kernel, Opt(OptOps.UNROLL, "r0", 256))
    loops = work(lower(unrolled, TARGET)[1], TARGET, SPEEDS).hottest()[0]
    assert loops.seconds["chain"] == 0 < 30 * SPEEDS.fma_s < loops.seconds["path"]


def test_what_an_opt_is_predicted_to_bring() -> None:
    kernel = kernel_of(array(96, 96) @ array(96, 96))
    opts = [
        upcast("g1", 8), upcast("g0", 4), Opt(OptOps.THREAD, "g0", 2),
        Opt(OptOps.LOCAL, "g0", 8), upcast("g0", 5),
    ]  # fmt: skip
    wide, tall, threads, local, illegal = predicted_speedups(
        kernel, [(opt,) for opt in opts], TARGET, SPEEDS
    )
    assert wide.ratio is not None and wide.ratio > 5
    assert wide.why == "elements per instruction: 1 -> 8"
    assert tall.ratio is not None and 2 < tall.ratio <= 4.2
    assert tall.why == "independent accumulators: 1 -> 4, needs 8"
    assert threads.why == "threads: 1 -> 2"
    assert local.ratio == pytest.approx(1, abs=0.1) and local.why == ""
    assert illegal.ratio is None


def test_every_offer_can_be_predicted() -> None:
    kernel = kernel_of(array(16, 24).softmax())
    predictions = list(
        predicted_speedups(kernel, [(o,) for o in legal_opts(kernel, TARGET)], TARGET, SPEEDS)
    )
    assert predictions
    assert all(o.ratio and math.isfinite(o.ratio) and o.ratio > 0 for o in predictions)


def test_a_reason_with_equal_bytes_names_their_rate() -> None:
    now = cost_of(kernel_of(array(64, 64) @ array(64, 64)))
    slow, fast = (
        replace(now, bytes_from={**now.bytes_from, "L2": 1 << 20}, seconds={"core": 0.0, "L2": s})
        for s in (2.0**-10, 2.0**-11)
    )
    assert change(slow, fast, TARGET) == "from L2: 1 MiB at 1.07 -> 2.15 GB/s"


def test_a_tile_that_is_read_again_moves_all_that_is_read() -> None:
    """A tile in scratch is written once, and read for each block of rows."""
    small = replace(TARGET, caches=(("L1", 4096), *TARGET.caches[1:]))
    opts = (
        upcast("g1", 16),
        upcast("g0", 4),
        Opt(OptOps.ORDER, "g1", "g0"),
        Opt(OptOps.STAGE, "g1", 2),
    )
    kernel = applied(kernel_of(array(128, 128) @ array(128, 128)), *opts)
    tile = max(cost(kernel, small, SPEEDS).transfers["L2"], key=lambda each: each.bytes)
    assert tile.bytes > 32 * 128 * 128 * 4, "128 rows, 4 at a time"
    assert tile.seconds == pytest.approx(tile.bytes / SPEEDS.read["L2"].one, rel=0.1)


def test_the_greater_of_two_that_may_be_nan_takes_three_instructions() -> None:
    """The greater of a number and a constant takes one."""
    x, y = array(4096), array(4096)
    both, relu, added = (
        cost_of(kernel_of(value), upcast("g0", 8)).work.hottest()[0].seconds["arithmetic"]
        for value in (x.maximum(y), x.relu(), x + y)
    )
    assert (both, relu) == pytest.approx((3 * added, added))


def test_the_greatest_waits_for_its_test_too() -> None:
    largest, total = (
        cost_of(kernel_of(value)).work.total_s for value in (array(4096).max(), array(4096).sum())
    )
    assert 1.2 * total < largest < 2 * total


def test_a_divider_takes_half_of_a_wide_vector_at_once() -> None:
    """So wide vectors divide no faster than those of half the width; single numbers are slower."""
    wide, seconds = replace(TARGET, vector_bytes=64), []
    speeds = replace(SPEEDS, each_s={"4": SPEEDS.scalar_s, "64": SPEEDS.scalar_s})
    for opts in ((), (upcast("g0", 8),), (upcast("g0", 16),)):
        kernel = applied(kernel_of(array(4096) / array(4096)), *opts)
        seconds.append(cost(kernel, wide, speeds).work.total_s)
    one, half, whole = seconds
    assert whole == pytest.approx(half, rel=0.05)
    assert 3 * half < one < 8 * half
