"""The search of all kernels of a model, with times by a formula."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.search.support import numbers, quick
from workbench import Context, Exploration, Kernel, Opt, OptOps, SearchResult, explore
from workbench.base.errors import DeviceError, DTypeError, WorkbenchError
from workbench.base.typed import to_json, typed_json
from workbench.ir.text.printer import to_text
from workbench.measure.side_by_side import Ratio
from workbench.search import kernel_task, model_search
from workbench.search.kernel_task import KernelOutcome, KernelTask
from workbench.search.moves import Candidate
from workbench.search.realization import tuned
from workbench.search.tuning_file import TuningFile, machine_of, opts_of

BUDGET_S = 1000.0
"""Seconds that are never used: searches end after some candidates."""


def layers(count: int) -> Exploration:
    """Return products of one size, one after the other, and one of another size."""
    x = numbers(96, 64)
    for _ in range(count):
        x = (x @ numbers(64, 64)).contiguous()
    return explore(x @ numbers(64, 80))


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[KernelTask]:
    """Searches find the opts of a start, or else a vector, at once; return the tasks."""
    done: list[KernelTask] = []
    whole = kernel_task._searched

    def searched(plain: Kernel, task: KernelTask, *others: Any) -> Any:
        done.append(task)
        return whole(plain, task, *others)

    def run(
        kernel: Kernel, width: int, budget_s: float, others: dict[str, Any], **options: Any
    ) -> SearchResult:
        opts = next(iter(others.values()), (Opt(OptOps.UPCAST, "g1", 16),))
        tried = (Candidate(0, None, (), "start", 1.0), Candidate(1, 0, opts, "+", 0.5))
        return SearchResult(
            kernel.apply(*opts), kernel, tried, 1, 2.0, "complete", 1.0, kernel.device
        )

    monkeypatch.setattr(kernel_task, "_searched", searched)
    monkeypatch.setattr(kernel_task, "run", run)
    monkeypatch.setattr(kernel_task, "_compared", lambda *kernels: (1.0, Ratio(2, 1.9, 2.1, 20)))
    monkeypatch.setattr(model_search, "_default_seconds", lambda each, is_measured: 1.0)
    return done


def poor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels have no default opts, so that all are faster with some."""
    monkeypatch.setattr(Kernel, "optimized", lambda self: self)


def test_equal_kernels_are_searched_once_and_help_those_of_other_sizes(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    path = tmp_path / "net.jsonl"
    ex = layers(3)
    found = ex.search(BUDGET_S, path=path, progress=False)
    assert [result.kernel.runs for result in found.kernels] == [3, 1]
    first, second = tasks
    assert not first.starts and [*second.starts] == ["the opts of r_96_64_64"]
    assert first.seconds == 0.25 * BUDGET_S
    file = TuningFile.read(path)
    assert file.rows == found.file.rows and len(file.rows) == 2
    assert all(row.speedup == 2 for row in file.rows.values())
    with Context(TUNING=str(path)):
        for kernel in ex.kernels:
            row = file.row_for(kernel.original, "LLVM")
            assert row is not None
            assert tuned(kernel.original, "LLVM") is kernel.apply(*opts_of(row.opts)).ast
        value = ex.tensors[0].numpy()
    with Context(TUNING="none"):
        np.testing.assert_allclose(value, layers(3).tensors[0].numpy(), rtol=1e-4)


def test_a_second_search_begins_with_what_the_file_has(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    path = tmp_path / "net.jsonl"
    ex = layers(0)
    ex.search(BUDGET_S, path=path, progress=False)
    (row,) = TuningFile.read(path).rows.values()
    ex.search(BUDGET_S, path=path, progress=False)
    assert tasks[-1].starts == {"the opts of r_96_80_64": row.opts}
    (again,) = TuningFile.read(path).rows.values()
    assert again.speedup >= row.speedup


def test_what_is_not_faster_beyond_the_noise_is_not_written(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    for ratio in (Ratio(1.2, 0.99, 1.4, 20), Ratio(1.02, 1.01, 1.03, 20), Ratio(1, 1, 1, 0)):
        monkeypatch.setattr(kernel_task, "_compared", lambda *kernels, r=ratio: (1.0, r))
        found = layers(0).search(BUDGET_S, path=tmp_path / "net.jsonl", progress=False)
        assert "compared once more: " in found.kernels[0].note
        assert not (tmp_path / "net.jsonl").exists()


def test_little_that_can_be_saved_is_not_searched(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    times = {"r_96_64_64": 1e-6}
    monkeypatch.setattr(
        model_search, "_default_seconds", lambda each, _: times.get(each.kernel.arg.name, 1.0)
    )
    found = layers(1).search(BUDGET_S, path=tmp_path / "net.jsonl", progress=False)
    assert [task.seconds for task in tasks] == [0.25 * BUDGET_S]
    assert "not searched" in str(found.kernels[1])


def test_ctrl_c_keeps_what_was_found(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    whole = kernel_task._searched

    def interrupted(plain: Kernel, task: KernelTask, *others: Any) -> Any:
        if tasks:
            raise KeyboardInterrupt
        return whole(plain, task, *others)

    monkeypatch.setattr(kernel_task, "_searched", interrupted)
    found = layers(2).search(BUDGET_S, path=tmp_path / "net.jsonl", progress=False)
    assert found.ended == "interrupted" and len(found.kernels) == 1
    assert len(TuningFile.read(tmp_path / "net.jsonl").rows) == 1


class Failing(Executor):
    """Loses the process of a task a few times, before each that it does."""

    def __init__(self, failures: int):
        self._failures, self._done = failures, 0

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._done += 1
        if self._done % (self._failures + 1):
            future.set_exception(RuntimeError("the process is gone"))
        else:
            future.set_result(function(*args))
        return future


def test_a_task_that_an_executor_lost_is_given_again(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    path = tmp_path / "net.jsonl"
    found = layers(1).search(BUDGET_S, path=path, executor=Failing(2), progress=False)
    assert len(TuningFile.read(path).rows) == 2 and all(r.row for r in found.kernels)
    path.unlink()
    found = layers(1).search(BUDGET_S, path=path, executor=Failing(9), progress=False)
    assert "the process is gone" in str(found) and not path.exists()


def test_an_executor_that_is_shut_down_is_noted(tasks: list[KernelTask], tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    found = layers(0).search(
        BUDGET_S, path=tmp_path / "net.jsonl", executor=executor, progress=False
    )
    assert "the executor failed: RuntimeError" in found.kernels[0].note


class Client:
    """What a search needs of Dask's client, with two machines, whose outcomes say which."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def submit(self) -> None: ...

    def run(self, function: Any, device: str) -> dict[str, str]:
        return {"tcp://10.0.0.1:1": "one", "tcp://10.0.0.2:1": "two", "tcp://10.0.0.2:2": "two"}

    def get_executor(self, workers: Sequence[str], pure: bool) -> Executor:
        self.asked.append(workers)
        return On("one" if workers == ["10.0.0.1"] else "two")


class On(Executor):
    """Does tasks as if on a machine."""

    def __init__(self, machine: str):
        self._machine = machine

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        outcome = json.loads(function(*args))
        outcome["machine"] = self._machine
        if outcome["row"]:
            outcome["row"]["machine"] = self._machine
        future.set_result(json.dumps(outcome))
        return future


def test_each_kind_of_machine_gets_rows_of_its_own(
    tasks: list[KernelTask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor(monkeypatch)
    client = Client()
    layers(1).search(BUDGET_S, path=tmp_path / "net.jsonl", executor=client, progress=False)
    assert client.asked == [["10.0.0.1"], ["10.0.0.2"]]
    file = TuningFile.read(tmp_path / "net.jsonl")
    assert sorted(row.machine for row in file.rows.values()) == ["one", "one", "two", "two"]


def test_what_cannot_be_searched_is_refused_before_it_begins(
    tasks: list[KernelTask], tmp_path: Path
) -> None:
    ex = layers(0)
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    with pytest.raises(WorkbenchError, match=r"cannot write .*notes.txt"):
        ex.search(path=notes)
    assert notes.read_text() == "mine\n"
    with pytest.raises(DTypeError):
        ex.search(budget_s="long")  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="not an executor"):
        ex.search(executor="here")
    x = numbers(4, 4)
    for device in ("PYTHON", "CUDA:H100"):
        with pytest.raises(DeviceError, match="cannot search this model"):
            explore(x + 1, device=device).search()
    with pytest.raises(WorkbenchError, match="has rules off"):
        explore(x + 1, without=("add-zero",)).search()
    with pytest.raises(WorkbenchError, match="has no kernels"):
        explore(x).search()
    assert not tasks


def test_opts_in_the_code_are_left_alone(tasks: list[KernelTask], tmp_path: Path) -> None:
    asked = (numbers(8, 8) @ numbers(8, 8)).contiguous(arg=(Opt(OptOps.UPCAST, 1, 4),))
    found = explore(asked).search(BUDGET_S, path=tmp_path / "net.jsonl", progress=False)
    assert found.kernels[0].note == "its opts are in the code" and not tasks


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"kernel": 1}'])
def test_a_task_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        typed_json(text, KernelTask)


def test_a_task_searches_and_compares_what_it_found(
    made_up_times: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor(monkeypatch)
    monkeypatch.setattr(
        kernel_task, "run", lambda kernel, width, seconds, shows_progress, **o: quick(kernel, **o)
    )
    monkeypatch.setattr(kernel_task, "CONFIRM_MOST_S", 0.0)
    kernel = layers(0).kernels[0]
    task = KernelTask(to_text(kernel.original), "LLVM", 1.0, 2, {"mine": 'UPCAST("g1", 8)'})
    outcome = typed_json(kernel_task.task_text(to_json(task)), KernelOutcome)
    assert outcome.tried >= 10 and outcome.default_us and outcome.machine == machine_of("LLVM")
    assert outcome.note.startswith("compared once more: ") or outcome.row


def test_a_kernel_that_cannot_be_read_is_a_note() -> None:
    outcome = kernel_task.done(KernelTask("SINK", "LLVM", 1.0, 2))
    assert outcome.row is None and outcome.note


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is written beside what runs the tests."""
    with Context(TUNING="none"):
        yield
