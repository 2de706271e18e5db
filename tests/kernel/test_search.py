"""Kernel.search with its process: nothing gets worse, nothing stays behind, nothing is lost."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.processes import children
from workbench import Context, Kernel, Opt, OptOps, SearchResult, Tensor, explore
from workbench.backends.runtime.cache import cache_folder
from workbench.errors import ParseError, WorkbenchError
from workbench.ir.opt.trial import Measured, Stopped, Trial
from workbench.kernel import measuring, searching
from workbench.kernel.searching import run
from workbench.worker import client, wire
from workbench.worker.client import Worker
from workbench.worker.race import Rules

BUDGET_S = 1.5
ELSEWHERE_S = 6.0
"""The time of a search whose processes have to start first."""


def numbers(*shape: int) -> Tensor:
    values = np.random.default_rng(0).standard_normal(shape)
    return Tensor(values.astype(np.float32)).realize()


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return explore(numbers(96, 64) @ numbers(64, 80)).kernels[0]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = children(os.getpid())
    yield
    assert children(os.getpid()) <= before, "a process stayed behind"


def quick(kernel: Kernel, **options: Any) -> SearchResult:
    return run(kernel, budget_s=BUDGET_S, cached=False, shown=False, **options)


def test_it_finds_something_faster_that_is_right(kernel: Kernel) -> None:
    plain = kernel.original
    result = quick(kernel)
    assert result.speedup is not None and result.speedup > 1.5, "plain is far from best"
    assert result.kernel.check().ok and result.kernel.original is plain
    assert result.kernel.ast is result.form(result.best).ast
    assert result.seconds < BUDGET_S + 3
    ways = {t.how for t in result.tried}
    assert {"start: as given", "start: the default opts"} <= ways
    assert kernel.applied_opts == (), "the kernel itself is unchanged"


def test_it_goes_on_from_the_kernel_that_it_is_given(kernel: Kernel) -> None:
    given = kernel.apply(Opt(OptOps.UPCAST, "g1", 8))
    result = quick(given)
    assert result.tried[0].opts == given.applied_opts
    assert result.given is given and result.kernel.check().ok
    hows = [t.how for t in result.tried if t.parent is None]
    assert hows == ["start: as given", "start: the default opts", "start: plain"]


def test_it_prints_and_is_plain_data(kernel: Kernel, tmp_path: Path) -> None:
    result = quick(kernel)
    text = str(result)
    assert f"best: number {result.best}" in text and "start: as given" in text
    assert len(text.splitlines()) <= len(result.tried) + 3
    rows = result.tree().splitlines()[2:]
    shown = [int(row.lstrip("*").split()[0]) for row in rows]
    assert sorted(shown) == list(range(len(result.tried))), "the tree has all"
    path = tmp_path / "search.json"
    result.save(path)
    again = SearchResult.load(path, kernel)
    assert again.to_dict() == result.to_dict() == json.loads(path.read_text())
    assert again.kernel.ast is result.kernel.ast
    for number in range(len(again.tried)):
        assert again.form(number).ast is result.form(number).ast
    other = explore(numbers(4, 4) + 1).kernels[0]
    with pytest.raises(ParseError, match="another kernel"):
        SearchResult.load(path, other)


def test_a_form_is_asked_for_by_a_number_that_there_is(kernel: Kernel) -> None:
    trials = tuple(
        Trial(number, None, opts, "start: as given", 1.0)
        for number, opts in enumerate([(), (Opt(OptOps.UPCAST, "g1", 4),)])
    )
    found = SearchResult(kernel, kernel, trials, 1, 1.0, "ended", 1.0, "LLVM")
    for number in (1, np.int64(1)):
        assert found.form(number).applied_opts == trials[1].opts  # type: ignore[arg-type]
    wrong: list[Any] = [2, 99, -1, 2**70, True, 1.0, None, "1", [0], np.ones(2)]
    for number in wrong:
        with pytest.raises(WorkbenchError, match="there is no form") as caught:
            found.form(number)
        assert caught.value.because == "2 were tried, numbered from 0"
        assert caught.value.hint == "0 to 1; the best is 1"


def test_a_result_that_cannot_be_saved_says_so(kernel: Kernel, tmp_path: Path) -> None:
    trial = Trial(0, None, (), "start: as given", 1.0)
    found = SearchResult(kernel, kernel, (trial,), 0, 1.0, "ended", 1.0, "LLVM")
    for path in (tmp_path, tmp_path / "missing" / "search.json"):
        with pytest.raises(WorkbenchError, match="cannot write"):
            found.save(path)
        with pytest.raises(WorkbenchError, match="cannot read"):
            SearchResult.load(path, kernel)


BROKEN: list[Any] = [
    ("best", -1), ("best", 10**9), ("best", True), ("tried", [1]), ("tried", [{}]), ("v", 7),
    ("speedup", "fast"), ("speedup", float("nan")), ("seconds", -1.0), ("tried", None),
    ("tried", [{"parent": 5, "opts": [], "how": "", "seconds": 1, "note": ""}]),
    ("tried", [{"parent": None, "opts": [["NONE", 1, 2]], "how": "", "seconds": 1, "note": ""}]),
    ("tried", [{"parent": None, "opts": [["UPCAST", {}, 2]], "how": "", "seconds": 1, "note": ""}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BROKEN, ids=str)
def test_data_that_is_damaged_is_refused(kernel: Kernel, name: str, value: Any) -> None:
    trial = Trial(0, None, (), "start: as given", 1.0)
    good = SearchResult(
        kernel, kernel, (trial,), 0, 1.0, "ended", 1.0, "LLVM"
    ).to_dict()
    assert SearchResult.from_dict(good, kernel).kernel.ast is kernel.ast
    with pytest.raises(WorkbenchError, match="no saved search"):
        SearchResult.from_dict(good | {name: value}, kernel)


def test_it_is_kept_and_found_again(kernel: Kernel) -> None:
    own = kernel.apply(Opt(OptOps.UNROLL, "r0", 2))
    first = own.search(budget_s=1.0, progress=False)
    assert not first.is_kept
    again = own.search(budget_s=1.0, progress=False)
    assert again.is_kept and again.to_dict() == first.to_dict()
    assert again.kernel.ast is first.kernel.ast and "found in the cache" in str(again)
    assert not own.search(budget_s=1.2, progress=False).is_kept, "that had less time"
    assert not run(own, budget_s=0.5, cached=False, shown=False).is_kept
    for path in (cache_folder() / "searches").glob("*.json"):
        assert path.stat().st_mode & 0o077 == 0
    (cache_folder() / "searches" / searching._name(own, 2)).write_text("{ damaged")
    with pytest.warns(RuntimeWarning, match="going on without"):
        assert not own.search(budget_s=0.5, progress=False).is_kept


def test_ctrl_c_returns_the_best_so_far(kernel: Kernel) -> None:
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        own = kernel.apply(Opt(OptOps.UNROLL, "r0", 4))
        result = run(own, budget_s=60.0, shown=False)
    finally:
        timer.cancel()
    assert time.monotonic() - began < 8
    assert result.ended == "interrupted" and result.speedup is None
    assert result.kernel.check().ok
    assert searching._kept(own, 2, 0.1) is None, "half a search is not kept"


def test_ctrl_c_while_the_process_starts_leaves_none(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def pressed(*args: Any, **options: Any) -> Any:
        process = start(*args, **options)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # here it would be raised, and nobody would know of the process
        return process

    monkeypatch.setattr(client.subprocess, "Popen", pressed)
    result = run(kernel, budget_s=60.0, cached=False, shown=False)
    assert result.ended == "interrupted" and result.best == 0


def test_ctrl_c_while_data_is_sent_ends_a_worker_that_was_lent(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = wire.send

    def half(stream: Any, head: Any, blobs: Any = ()) -> None:
        if head["do"] == "hold":
            stream.write(b"half of a message")
            raise KeyboardInterrupt
        send(stream, head, blobs)

    with Worker() as worker:
        monkeypatch.setattr(wire, "send", half)
        assert quick(kernel, worker=worker).ended == "interrupted"
        monkeypatch.setattr(wire, "send", send)
        assert quick(kernel, worker=worker).best != 0, "another one was started"


def test_stop_ends_it_and_leaves_a_worker_that_was_lent(kernel: Kernel) -> None:
    with Worker() as worker:
        seen: list[Trial] = []
        result = quick(
            kernel, worker=worker, report=seen.append, stop=lambda: len(seen) > 3
        )
        assert result.ended == "stopped" and tuple(seen) == result.tried
        assert worker.pid is not None
        over = threading.Event()

        def press() -> None:
            # Again and again: one stop ends the task at hand, if there is one.
            while not over.wait(0.05):
                if time.monotonic() > start + 1.0:
                    worker.stop()

        start = time.monotonic()
        presser = threading.Thread(target=press)
        presser.start()
        stopped = run(kernel, budget_s=60.0, cached=False, shown=False, worker=worker)
        over.set()
        presser.join()
        assert stopped.ended == "stopped" and stopped.seconds < 10


def test_a_search_that_is_stopped_at_once_prints(
    kernel: Kernel, tmp_path: Path
) -> None:
    result = quick(kernel, stop=lambda: True)
    assert result.ended == "stopped" and result.kernel.ast is kernel.ast
    assert [t.note for t in result.tried] == ["not measured"]
    assert "not measured" in str(result)
    result.save(tmp_path / "search.json")
    again = SearchResult.load(tmp_path / "search.json", kernel)
    assert again.to_dict() == result.to_dict()


def test_a_stop_between_two_tasks_is_heard_by_the_next(kernel: Kernel) -> None:
    """The worker itself can stop only the task that it has."""
    pressed: list[bool] = []

    class Late(Worker):
        pid = 1

        def hold(self, key: str, make: Any) -> None:
            pressed.append(False)

        def ask(self, task: Any, progress: Any = None, quiet_s: float = 0.0) -> Any:
            progress({"text": "racing"})
            raise client.TaskStopped("stopped", "somebody asked for it")

        def stop(self) -> None:
            pressed.append(True)

    ends_at = time.monotonic() + 60.0
    measure = measuring.OnWorker(
        kernel.original, "LLVM", ends_at, 1.0, worker=Late(), stop=lambda: bool(pressed)
    )
    for _ in range(2):
        with pytest.raises(Stopped):
            list(measure(kernel.ast, [kernel.ast], None, False))
    assert pressed == [False, True], "stopped while it ran, then before it began"


def test_a_search_that_timed_nothing_is_not_kept(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another time the machine may have more memory, or less to do."""
    failed = Measured(error="the program was killed")
    monkeypatch.setattr(measuring.OnWorker, "_one", lambda *_: failed)
    own = kernel.apply(Opt(OptOps.UNROLL, "r0", 8))
    result = run(own, budget_s=0.5, shown=False)
    assert result.ended == "nothing left to try" and not result.ranked()
    assert searching._kept(own, 2, 0.1) is None


def test_killed_workers_are_a_note_and_no_end(kernel: Kernel) -> None:
    with Worker() as worker:

        def kill(trial: Trial) -> None:
            if trial.number in (3, 6) and worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)

        result = run(
            kernel, budget_s=8.0, cached=False, shown=False, worker=worker, report=kill
        )
    assert len(result.tried) > 8
    assert result.kernel.check().ok and result.speedup is not None


CRASH = "\n  store volatile i32 1, ptr inttoptr (i64 8 to ptr)\n"
HANG = "\n  br label %wb_a\nwb_a:\n  br label %wb_a\nwb_b:\n"


def swap(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, inserted: dict[int, str]
) -> None:
    """Put instructions at the beginning of the programs with these numbers, in the order in
    which they are handed to the worker (each trial hands it two)."""
    form, handed = measuring.OnWorker.form, itertools.count(1)
    text = kernel.compile("LLVM").source
    body = text.index("{", text.index("define ")) + 1
    start = text[body:].lstrip().partition("\n")
    label = start[0] + "\n" if start[0].endswith(":") else ""
    rest = start[2] if label else text[body:]

    def swapped(self: Any, ast: Any) -> Any:
        made, inner = form(self, ast), inserted.get(next(handed))
        if inner is None:
            return made
        return made | {"source": f"{text[:body]}\n{label}{inner}{rest}"}

    monkeypatch.setattr(measuring.OnWorker, "form", swapped)


def test_a_given_form_that_hangs_leaves_time_for_the_default(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(kernel, monkeypatch, {1: HANG})
    result = run(kernel, budget_s=2.0, cached=False, shown=False)
    assert "did not end" in result.tried[0].note
    assert result.tried[1].seconds is not None and result.best != 0
    assert result.speedup is None and result.kernel.check().ok
    assert result.seconds < 10, "what a form may take to compile is not what it may run"


def test_a_program_that_crashes_or_hangs_is_a_note(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms are swapped for programs that end their process, or do not end."""
    swap(kernel, monkeypatch, {9: CRASH, 13: HANG})
    monkeypatch.setattr(measuring, "COMPILE_S", 0.5)
    seen: list[Trial] = []

    def is_enough() -> bool:
        notes = " ".join(t.note for t in seen)
        return "crashed" in notes and "did not end" in notes and len(seen) > 10

    result = run(
        kernel, budget_s=60.0, cached=False, shown=False,
        report=seen.append, stop=is_enough,
    )  # fmt: skip
    assert is_enough() and result.kernel.check().ok


def test_a_kernel_that_takes_long_does_not_take_the_search(kernel: Kernel) -> None:
    """The plain form takes far more than the budget; others are searched all the same."""
    big = explore(numbers(640, 640) @ numbers(640, 640))
    slow = big.kernels[0].apply(Opt(OptOps.ORDER, "r0", "g0"))
    began = time.monotonic()
    result = run(slow, budget_s=2.0, cached=False, shown=False)
    assert time.monotonic() - began < 9
    assert result.best != 0 or result.tried[0].seconds is not None
    assert result.kernel.check().ok


@pytest.fixture(scope="module")
def spawning() -> BaseContext:
    """Processes that begin with nothing; the one that Python keeps beside them is there before
    a test counts what stays."""
    resource_tracker.ensure_running()
    return multiprocessing.get_context("spawn")


def test_an_executor_measures_too(kernel: Kernel, spawning: BaseContext) -> None:
    with ProcessPoolExecutor(1, spawning) as executor:
        result = run(
            kernel, budget_s=ELSEWHERE_S, cached=False, shown=False, executor=executor
        )
    assert_it_searched(result)


def test_a_dask_cluster_measures_too(kernel: Kernel, spawning: BaseContext) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask's distributed is not installed"
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        result = run(
            kernel, budget_s=ELSEWHERE_S, cached=False, shown=False, executor=executor
        )
    assert_it_searched(result)


def assert_it_searched(result: SearchResult) -> None:
    """Forms were sent, came back with times, and the best is right."""
    assert len(result.ranked()) > 2, [t.note for t in result.tried]
    assert result.speedup is not None and result.speedup > 1.2
    assert result.kernel.check().ok


def test_an_executor_that_is_shut_down_is_a_note(kernel: Kernel) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    result = quick(kernel, executor=executor)
    assert result.best == 0 and all("executor" in t.note for t in result.tried)


def test_the_emulator_is_searched_too() -> None:
    with Context(DEV="PYTHON"):
        small = explore(Tensor(np.ones((6, 8), np.float32)).sum(1)).kernels[0]
        result = run(small, budget_s=1.0, cached=False, shown=False)
    assert result.device == "PYTHON" and len(result.ranked()) >= 2


@pytest.mark.parametrize("given", [0, -1, 1.5, None, "2"])
def test_a_width_is_a_number(kernel: Kernel, given: Any) -> None:
    with pytest.raises(WorkbenchError, match="is no width"):
        kernel.search(width=given)
    with pytest.raises(WorkbenchError, match="is no time"):
        kernel.search(budget_s="long")  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="is no executor"):
        kernel.search(executor="here")  # type: ignore[arg-type]


def test_the_users_program_is_not_run_again(tmp_path: Path) -> None:
    """A script without a main guard: its process must not import it."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import numpy as np
            from workbench import Tensor, explore
            open("ran.txt", "a").write("once ")
            k = explore(Tensor(np.ones((32, 32), np.float32)).sum(1)).kernels[0]
            print(len(k.search(budget_s=1.0, cached=False).tried))
        """)
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2 and (tmp_path / "ran.txt").read_text() == "once "


def test_rules_of_a_race_travel_as_data() -> None:
    from dataclasses import asdict

    rules = Rules(0.1, 3, 1.0, 1.5, ("a",), True)
    data = json.loads(json.dumps(asdict(rules)))
    assert Rules(**data | {"known": tuple(data["known"])}) == rules
