"""Runs: what is recorded is what ran, gaps and kernels fill the time, and nothing seen is lost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import workbench
from tests.support import count
from workbench import GlobalCounters, Tensor, TinyJit, explore
from workbench.backends.native.program import NativeProgram
from workbench.backends.native.stamps import can_stamp
from workbench.base import recording
from workbench.base.errors import WorkbenchError
from workbench.base.recording import LaunchedKernel, RunRecording, stamp_rows
from workbench.measure.speeds import earlier_speeds
from workbench.viz.run import facts
from workbench.viz.run.build import run_record
from workbench.viz.run.facts import facts_of
from workbench.viz.run.help import help_rows
from workbench.viz.run.run import Run
from workbench.viz.schema.run import RunRecord


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict by speeds that were measured before: measuring them takes seconds."""
    monkeypatch.setattr(facts, "speeds", earlier_speeds)


A = np.random.default_rng(0).random((24, 32), np.float32)


def step(x: Tensor) -> Tensor:
    """Return a value of several kernels."""
    return ((x @ x.transpose(0, 1)).relu().contiguous() + 1).sum(1)


def profiled() -> Run:
    """Return a profile of realized tensors, a capture and replays."""
    jit = TinyJit(step)
    x = Tensor(A).realize()
    with workbench.profile() as run:
        for _ in range(4):
            jit(x).realize()
        (x * 2).realize()
    return run


def test_a_profile_has_every_kernel_that_is_counted() -> None:
    GlobalCounters.reset()
    run = profiled()
    assert len(run.kernels) == GlobalCounters.kernel_count == 9
    kinds = Counter(run.record.kinds[kind] for kind in run.record.spans.kind)
    assert kinds["replay"] == 2 and kinds["capture"] == 1 and kinds["schedule"] >= 3
    assert sum(kernel.launches for kernel in run.record.kernels) == 9
    assert "launches" in str(run) and "matmul" in str(run)


def test_kernels_and_gaps_fill_each_lane() -> None:
    record = profiled().record
    for place, lane in enumerate(record.lanes):
        if lane.kind != "device":
            continue
        pieces = sorted([*_pieces(record.spans, place), *_pieces(record.gaps, place)])
        assert pieces[0][0] == 0 and pieces[-1][1] == record.length_ns
        assert all(before[1] == after[0] for before, after in pairwise(pieces))
    gaps = zip(record.gaps.length_ns, record.gaps.cause, strict=True)
    recording = sum(length for length, cause in gaps if record.causes[cause] == "recording")
    assert sum(row.ns for row in record.phases) + recording == record.length_ns
    assert [words for words in record.notices if "the recording itself" not in words] == []


def _pieces(rows: Any, lane: int) -> list[tuple[int, int]]:
    columns = zip(rows.start_ns, rows.length_ns, rows.lane, strict=True)
    return [(start, start + length) for start, length, own in columns if own == lane]


def test_kernels_of_a_replay_have_times_of_their_own() -> None:
    """They run in one native call, and are stamped there: between them no gap is Python's."""

    @TinyJit
    def many(x: Tensor) -> Tensor:
        for _ in range(8):
            x = (x * 1.5 + 0.5).contiguous()
        return x

    x = Tensor(A).realize()
    for _ in range(4):
        wanted = many(x)
    with workbench.profile() as run:
        result = many(x)
    np.testing.assert_array_equal(result.numpy(), wanted.numpy())
    starts = [row.start_s for row in run.kernels]
    assert len(starts) == 8 and starts == sorted(starts)
    first, last = run.kernels[0], run.kernels[-1]
    inner = [gap for gap in run.gaps if first.start_s < gap.start_s < last.start_s]
    if can_stamp():
        assert {gap.cause for gap in inner} <= {"launch"}


def test_parts_of_threads_are_on_lanes_of_their_own() -> None:
    subject = kernel_row(0, 0)[4]
    here = get_ident()
    rows = list(stamp_rows({0: subject}, [(0, 1100, 1200, here), (0, 1150, 1500, 8)]))
    assert [row.kind for row in rows] == ["kernel", "part", "wait"]
    record = record_of(*rows)
    assert [lane.kind for lane in record.lanes] == ["device", "worker", "python"]
    assert record.kernels[0].launches == 1 and record.kernels[0].total_ns == 400
    wait = record.kinds.index("wait")
    assert record.spans.length_ns[record.spans.kind.index(wait)] == 300


def test_nothing_is_recorded_outside_of_profiles() -> None:
    assert recording.active == ()
    with workbench.profile() as outer:
        Tensor(A).sum().realize()
        with workbench.profile() as inner:
            Tensor(A).exp().realize()
    assert recording.active == ()
    assert (len(outer.kernels), len(inner.kernels)) == (2, 1)


def test_a_run_has_no_rows_before_it_ends() -> None:
    with workbench.profile() as run:
        assert str(run) == "a run that has not ended"
        with pytest.raises(WorkbenchError, match="has not ended"):
            _ = run.kernels


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_profile_keeps_what_was_seen(error: type[BaseException]) -> None:
    with pytest.raises(error), workbench.profile() as run:
        Tensor(A).sum().realize()
        raise error()
    assert len(run.kernels) == 1
    assert run.record.error.startswith(error.__name__) and error.__name__ in str(run)
    assert recording.active == ()


def test_a_kernel_that_fails_ends_its_lane_with_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(NativeProgram, "bind", fail)
    with workbench.profile() as run, pytest.raises(MemoryError):
        (Tensor(A).exp().contiguous() * 2).sum().realize()
    assert [error.text for error in run.record.errors if "no more" in error.text]
    assert "failed  kernel" in str(run)


def test_a_run_of_an_exploration_repeats_its_kernels_and_writes_nothing() -> None:
    x = Tensor(A)
    state = Tensor(np.zeros(24, np.float32)).realize()
    ex = explore(state.assign(step(x)))
    run = ex.run(repeat=3)
    assert len(run.record.rounds) == 3
    assert len(run.kernels) == 3 * len(ex.kernels)
    assert [kernel.place for kernel in run.record.kernels] == [*range(len(ex.kernels))]
    assert run.record.memory.is_planned and run.record.memory.peak_bytes > 0
    assert all(row.kernel == ex.kernels[0].title for row in run.kernels[:1])
    assert not np.any(ex.tensors[0].numpy()[:0])


def test_a_variant_that_was_measured_to_be_faster_would_help() -> None:
    ex = explore(step(Tensor(A)))
    run = ex.run(repeat=3)
    launches = {
        k.place: LaunchedKernel(p.ast, p.ast, "LLVM")
        for k, p in zip(run.record.kernels, ex.kernels, strict=True)
    }
    slow = [replace(k, median_ns=1e6, total_ns=3_000_000) for k in run.record.kernels]
    rows = help_rows(slow, launches, {0: [("UPCAST g0 4", 1e-4), ("no", 2e-3)]})
    row = next(row for row in rows if row.kernel == 0 and row.is_measured)
    assert (row.opts, round(row.to_ns), round(row.saves_ns)) == ("UPCAST g0 4", 100_000, 2_700_000)
    assert len(rows) <= 3 and rows == sorted(rows, key=lambda each: -each.saves_ns)


@pytest.mark.parametrize("repeat", [0, -1, True, 2.0, "3", 10**9])
def test_other_numbers_of_rounds_are_refused(repeat: Any) -> None:
    with pytest.raises(WorkbenchError, match="repeat"):
        explore(Tensor(A).sum()).run(repeat=repeat)


# Rows that no clock should give.


def record_of(*rows: tuple[Any, ...], dropped: int = 0) -> RunRecord:
    """Return the record of rows from 1000 to 2000 ns."""
    made = RunRecording()
    made.start_ns, made.end_ns, made.dropped = 1000, 2000, dropped
    made.rows += rows
    return run_record(made, facts_of(False), "of rows", "a machine")


def kernel_row(start: int, end: int) -> tuple[Any, ...]:
    """Return the row of a kernel that ran from `start` to `end`."""
    (item,) = [i for i in explore(Tensor(A).sum(1)).items if i.kernel is not None]
    return (start, end, 7, "kernel", LaunchedKernel(item.kernel, item.kernel, "PYTHON"), "")


def test_clocks_that_jump_are_noticed() -> None:
    record = record_of(kernel_row(1500, 1400), kernel_row(10, 1100), kernel_row(1600, 1700))
    assert "the clock jumped: 2 rows" in record.notices[0]
    assert min(record.spans.length_ns) == 0 and min(record.gaps.length_ns) > 0


def test_negative_gaps_are_noticed() -> None:
    record = record_of(kernel_row(1100, 1300), kernel_row(1200, 1400))
    assert record.notices == ["negative gaps: 1 kernel began before the one before it had ended"]
    assert _pieces(record.gaps, 0) == [(0, 100), (400, 1000)]


def test_rows_beyond_the_most_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_ROWS", 2)
    made = RunRecording()
    for _ in range(5):
        made.add(kernel_row(1100, 1200))
    assert (len(made.rows), made.dropped) == (2, 3)
    assert "cut: 3 further rows" in record_of(dropped=3).notices[0]


def test_many_launches_make_a_record_in_time() -> None:
    row = kernel_row(0, 0)
    many = count(100_000)
    rows = [(1000 + 2 * n, 1001 + 2 * n, *row[2:]) for n in range(many)]
    made = RunRecording()
    made.rows, made.start_ns, made.end_ns = rows, 1000, 1000 + 2 * many
    record = run_record(made, facts_of(False), "of rows", "a machine")
    assert record.kernels[0].launches == many == len(record.gaps.start_ns)
