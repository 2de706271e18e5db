"""Speeds of the machine: plausible against each other, kept on disk, never believed blindly."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from workbench.backends.device import Device
from workbench.backends.native import jit
from workbench.base.dtypes import dtypes
from workbench.measure import speeds
from workbench.measure.bandwidth import bandwidth, measure_cold, walk, working_sets
from workbench.measure.far_lines import far_walk
from workbench.measure.peak import Peak, _fma_source, run_peak
from workbench.measure.speeds import Rate, Speeds, with_launch_time, with_peak

RATES = {"L1": Rate(8.0, 16.0), "L2": Rate(4.0, 8.0), "memory": Rate(1.0, 1.5)}
PEAK = {"f32": Rate(100.0, 200.0), "f64": Rate(50.0, 100.0)}
CACHES = (("L1", 32 << 10), ("L2", 1 << 20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a machine that is measured at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speeds.machine, "caches", lambda: CACHES)
    monkeypatch.setattr(speeds, "_by_place", {})
    return tmp_path


def measuring(monkeypatch: pytest.MonkeyPatch, figures: Speeds) -> list[int]:
    """Let measuring find `found`; return a list that grows with every measurement."""
    times: list[int] = []

    def measure() -> Speeds:
        times.append(1)
        return figures

    monkeypatch.setattr(speeds, "_measure", measure)
    return times


def test_a_machine_is_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = Speeds(PEAK, RATES, RATES, 1e-9, 1e-10, 1e-6, 5e-6)
    times = measuring(monkeypatch, figures)
    assert speeds.earlier_speeds() is None
    assert speeds.speeds() == figures == speeds.speeds()
    speeds._by_place.clear()  # another process
    assert speeds.speeds() == figures and len(times) == 1


def test_the_better_of_two_measurements_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, Speeds(PEAK, RATES, RATES, 1e-9, 3e-10, 1e-6, 5e-6))
    speeds.measured()
    slower = {name: Rate(r.one / 2, 2 * r.all) for name, r in RATES.items()}
    measuring(monkeypatch, Speeds(PEAK, slower, slower, 2e-9, 2e-10, 1e-6, 5e-6))
    best = speeds.measured()
    assert best.read["L1"] == Rate(8.0, 32.0)
    assert (best.fma_s, best.scalar_s) == (1e-9, 2e-10)


def test_two_threads_that_ask_at_once_get_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them was told stays true when the other one has measured as well."""
    begun, answers = Event(), list[Speeds]()
    measurements = iter([Speeds(PEAK, RATES, RATES, s, 1e-10, 1e-6, 5e-6) for s in (2e-9, 1e-9)])

    def measure() -> Speeds:
        measurement = next(measurements)
        if threading.current_thread() is first:
            begun.wait()
            second.join(0.2)  # it waits for this one, where it does as it should
        return measurement

    monkeypatch.setattr(speeds, "_measure", measure)
    ask = lambda: answers.append(speeds.speeds())  # noqa: E731
    first, second = Thread(target=ask), Thread(target=ask)
    first.start()
    second.start()
    begun.set()
    first.join()
    second.join()
    assert answers[0] == answers[1] == speeds.speeds()


def test_a_kernel_that_is_quicker_than_a_launch_shortens_it(folder: Path) -> None:
    figures = Speeds(PEAK, RATES, RATES, 1e-9, 1e-10, 1e-6, 5e-6)
    assert with_launch_time(figures, 1, 2e-6) == with_launch_time(figures, 2, 7e-6) == figures
    both = with_launch_time(figures, 2, 4e-6)
    assert (both.launch(1), both.launch(2)) == (1e-6, 4e-6)
    alone = with_launch_time(figures, 1, 0.5e-6)
    launches = alone.launch(1), alone.launch(2)
    assert launches == pytest.approx((0.5e-6, 5.5e-6))
    assert with_launch_time(figures, 2, 0.8e-6).launch(2) == pytest.approx(0.8e-6)
    assert speeds.earlier_speeds().launch_s == 0.5e-6, "this process remembers it"


def test_a_peak_that_is_beaten_is_raised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = Speeds(PEAK, RATES, RATES, 1e-9, 1e-10, 1e-6, 5e-6)
    measuring(monkeypatch, figures)
    again: list[float] = []
    now = [80.0]

    def flops(*asked: object) -> float:
        again.append(now[0])
        return now[0]

    monkeypatch.setattr(speeds, "_flops", flops)
    assert figures.share("f32", 1, 50) == 0.5 and figures.share("f32", 2, 50) == 0.25
    assert figures.share(None, 1, 50) is None, "a kernel without floats has no peak"
    assert figures.share("f32", 1, 120) is None, "less was done than is counted"
    assert speeds.speeds() == figures
    assert (
        with_peak(figures, "f32", 1, 90) == with_peak(figures, None, 1, 1e9) == figures
        and not again
    )
    assert with_peak(figures, "f32", 1, 1000) == figures, "nobody believes that"
    raised = with_peak(figures, "f32", 1, 120)
    assert raised.peak["f32"] == Rate(120, 200) and raised.share("f32", 1, 120) == 1
    raised = with_peak(raised, "f32", 2, 270)
    assert raised.peak["f32"] == Rate(135, 270) and len(again) == 3
    now[0] = 500.0  # it was measured while others had the machine
    raised = with_peak(raised, "f32", 2, 450)
    assert raised.peak["f32"].of(2) == 500 and raised.share("f32", 2, 450) == 0.9
    assert speeds.speeds() == raised, "this process remembers it"
    speeds._by_place.clear()  # another one does not
    assert speeds.speeds() == figures


@pytest.mark.parametrize(
    ("spoil", "because"),
    [
        (lambda held: held | {"fma_s": -1.0}, "> 0.0"),
        (lambda held: held | {"fma_s": float("nan")}, "> 0.0"),
        (lambda held: held | {"launch_s": 1e999}, "<= "),
        (lambda held: held | {"peak": {}}, ""),
        (lambda held: held | {"read": {"L1": {"one": "fast", "all": 1}}}, "float"),
        (lambda held: {}, "missing"),
        (lambda held: [1, 2], "object"),
    ],
)
def test_a_file_that_makes_no_sense_is_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: object, because: str
) -> None:
    measuring(monkeypatch, Speeds(PEAK, RATES, RATES, 1e-9, 1e-10, 1e-6, 5e-6))
    speeds.measured()
    (file,) = (folder / "workbench" / "machine").glob("*.json")
    file.write_text(json.dumps(spoil(json.loads(file.read_text()))))  # type: ignore[operator]
    speeds._by_place.clear()
    warnings = pytest.warns(RuntimeWarning, match=because) if because else nullcontext()
    with warnings:
        assert speeds.earlier_speeds() is None
    assert file.is_file(), "looking deletes nothing"


def test_threads_share_what_all_have() -> None:
    assert [Rate(10.0, 15.0).of(n) for n in (1, 2, 8)] == [10.0, 15.0, 15.0]
    assert Rate(10.0, 9.0).of(2) == 10.0, "measured while others were busy"


def test_each_level_is_walked_where_it_lies() -> None:
    sets = dict(working_sets(CACHES))
    assert sets["L1"] < CACHES[0][1] < sets["L2"] < CACHES[1][1] < sets["memory"]
    shared = dict(working_sets((*CACHES, ("L3", 8 << 20)), threads=4))
    assert shared["L2"] == sets["L2"], "every core has its own"
    assert 4 * shared["L3"] == (8 << 20) // 2


def test_copying_moves_what_it_says() -> None:
    moved = walk(1 << 16, 1, copies=True)
    assert moved.bytes % (1 << 16) == 0 and moved.bytes >= 1 << 20
    assert bandwidth(1 << 14) > 0


def test_sums_in_flight_and_lanes_are_worth_what_they_are() -> None:
    """One chain waits for itself; and a vector is many numbers."""
    full, chain, single = (
        run_peak(dtypes.float32, **about) for about in ({}, {"sums": 1}, {"lanes": 1})
    )
    lanes = jit.host().vector_bytes // 4
    assert full.flops == 12 * chain.flops == lanes * single.flops
    for sums, width in ((12, lanes), (1, lanes), (12, 1)):
        text = _fma_source(dtypes.float32, width, 1, sums).text
        assert text.count("call ") == sums and f"<{width} x float>" in text


def test_caches_are_emptied_before_each_run() -> None:
    small = walk(1 << 18, 1, copies=False)
    cold = measure_cold({"walk": small.run}, 3)["walk"]
    assert len(cold.samples_s) == 3 and cold.batch == 1, "never two runs in a row"


def test_figures_of_a_busy_machine_are_mended_and_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = RATES | {"L2": Rate(0.5, 0.3)}  # memory has 1.0 and 1.5
    measuring(monkeypatch, Speeds(PEAK, busy, RATES, 1e-9, 1e-10, 1e-6, 5e-6))
    rates = speeds.speeds().read
    assert rates["L2"] == RATES["memory"], "no slower than what lies behind it"
    assert rates["L1"] == RATES["L1"]
    speeds._by_place.clear()  # another process
    assert speeds.earlier_speeds() is None
    times = measuring(monkeypatch, Speeds(PEAK, RATES, RATES, 1e-9, 1e-10, 1e-6, 5e-6))
    assert speeds.speeds().read == RATES and times == [1]
    speeds._by_place.clear()
    assert speeds.earlier_speeds() is not None


def test_a_level_that_was_disturbed_is_measured_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {size: name for name, size in working_sets(CACHES)}
    names: list[str] = []

    def bandwidth(size_bytes: int, threads: int, copies: bool) -> float:
        name = sizes[size_bytes] if size_bytes in sizes else "memory"
        names.append(name)
        busy = name == "L2" and names.count("L2") <= 2 * speeds._ROUNDS
        return 0.1 if busy else RATES[name].one

    monkeypatch.setattr(speeds, "bandwidth", bandwidth)
    monkeypatch.setattr(speeds, "_PAUSE_S", 0.0)
    rates = speeds._walks(2, copies=False)
    assert {name: rate.one for name, rate in rates.items()} == {
        name: rate.one for name, rate in RATES.items()
    }
    assert names.count("L2") == names.count("L1") + 2, "that level alone"


FIGURES = Speeds(
    PEAK, RATES, RATES, 4e-9, 0.5e-9, 1e-6, 5e-6, cycle_s=1e-9, add_s=3e-9,
    each_s={"4": 0.5e-9, "16": 0.5e-9, "32": 0.5e-9, "64": 1e-9},
    far={"L2": 2.0, "memory": 0.25, "walks": 0.5}, in_sets={"1": 0.1, "2": 0.2, "4": 0.4},
)  # fmt: skip
"""A core that begins two multiply-adds of up to 32 bytes in a cycle, or one of 64."""


def test_multiply_adds_under_way_by_their_width() -> None:
    """Scalars and short vectors: two a cycle, of four cycles each. Whole ones: one a cycle."""
    widths = (4, 8, 16, 32, 64)
    assert [FIGURES.fmas_in_flight(n, 64) for n in widths] == [8, 8, 8, 8, 4]
    assert FIGURES.fma_each_s(128, 64) == 2e-9, "two instructions"
    plain = Speeds(
        {"f32": Rate(32e9, 64e9), "f64": PEAK["f64"]}, RATES, RATES, 4e-9, 0.5e-9, 1e-6, 0.0
    )
    assert [plain.fmas_in_flight(n, 64) for n in (4, 32, 64)] == [8, 8, 4], "two known"


def test_lines_far_apart_come_slower_and_slowest_from_a_few_sets() -> None:
    rate = FIGURES.far_rate
    assert rate("L2", 1, 4096, 0, 1) == RATES["L2"].one, "a page at a time"
    assert rate("L2", 1, 64, 0, 1) == pytest.approx(2.0 + 2.0 / 64)
    assert rate("L2", 1, 64, 0, 1 << 20) == pytest.approx(0.5 + 3.5 / 64), "page walks"
    assert [rate("L2", 1, 64, n, 1) for n in (1, 2, 4)] == [0.1, 0.2, 0.4]
    assert rate("L2", 2, 64, 1, 1) == 0.2, "each thread has a first cache of its own"
    assert rate("L1", 1, 64, 0, 1) == RATES["L1"].one, "nothing is known of that"


def test_figures_come_of_the_loops_that_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a made machine, on which each loop takes a second and each bandwidth is its rows' size."""
    machine = Device["LLVM:Raspberry Pi 5"]
    levels = [("L1", 64 << 10), ("L2", 512 << 10), ("L3", 64 << 20)]
    walked: list[tuple[int, int]] = []

    def far(size_bytes: int, row_bytes: int) -> float:
        walked.append((size_bytes, row_bytes))
        return float(len(walked))  # each round is better than the one before

    monkeypatch.setattr(speeds, "Device", SimpleNamespace(processor=machine))
    monkeypatch.setattr(speeds.machine, "known_caches", lambda: levels)
    monkeypatch.setattr(speeds, "far_bandwidth", far)
    monkeypatch.setattr(speeds, "_least_s", lambda run: 1.0)
    for name in ("run_peak", "run_cycles"):
        monkeypatch.setattr(
            speeds, name, lambda *_, lanes=1, **_how: Peak(lambda: None, 64 * lanes)
        )
    assert speeds._waiting_s(dtypes.int64) == 1 / 64 and speeds._adds(2) == 128
    assert speeds._each_s(32) == {"4": 2 / 64, "16": 2 / 64, "32": 2 / 64}
    assert list(speeds._each_s(64)) == ["4", "16", "32", "64"]
    lines, sets = speeds._strided_bandwidths()
    row, known = 4096 + 64, 1024 * 4096
    sizes = {"memory": 192 << 20, "L2": 256 << 10, "L3": known, "walks": 32 << 20}
    ways = {"1": 16384, "2": 8192, "4": 4096}
    rows = [(size, row) for size in sizes.values()]
    rows += [(256 << 10, way) for way in ways.values()]
    assert walked == rows * 3, "in turns"
    assert lines == dict(zip(sizes, (15.0, 16.0, 17.0, 18.0), strict=True))
    assert sets == dict(zip(ways, (19.0, 20.0, 21.0), strict=True))


def test_a_walk_over_lines_far_apart_reads_what_it_says() -> None:
    row_bytes = 4096 + 64
    for size_bytes in (1 << 16, 1 << 12):
        walked = far_walk(size_bytes, row_bytes)
        line = Device.processor.target.line_bytes
        lines = max(1, size_bytes // row_bytes // 4) * 4 * (row_bytes // line)
        once = lines * line
        assert walked.bytes == once * max(1, (1 << 20) // once)
        walked.run()


def test_a_processor_without_a_feature_is_another_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without AVX-512 a register holds half as much, and its speeds are others."""
    measuring(monkeypatch, FIGURES)
    assert speeds.measured() == FIGURES
    monkeypatch.setenv(speeds.machine.CPU_WITHOUT, "avx512")
    assert speeds.earlier_speeds() is None


def test_better_figures_are_kept_and_a_file_has_all_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(FIGURES, each_s={"4": 2e-9}, far={"L2": 9.0}, in_sets={"1": 0.05}, add_s=0.0)
    measuring(monkeypatch, slow)
    speeds.measured()
    measuring(monkeypatch, FIGURES)
    best = speeds.measured()
    assert best.far == {**FIGURES.far, "L2": 9.0} and best.in_sets == FIGURES.in_sets
    assert best.each_s == FIGURES.each_s and best.add_s == 3e-9
    speeds._by_place.clear()  # another process
    assert speeds.earlier_speeds() == best
