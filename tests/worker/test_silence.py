"""How long a worker is waited for, by a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.worker import client
from workbench.worker.client import STOPS_WITHIN_S, TaskStopped, Worker, WorkerEnded


class Scripted:
    """Stands for a process and for the clock: each message comes after so many seconds."""

    is_ended = False

    def __init__(self, *messages: tuple[float, str]) -> None:
        self.now, self.waits_s = 0.0, list[float]()
        self._script = list(messages)

    def monotonic(self) -> float:
        return self.now

    def receive(self, timeout: float) -> Any:
        self.waits_s.append(timeout)
        after_s, kind = self._script[0]
        self.now += min(after_s, timeout)
        if after_s > timeout:
            self._script[0] = (after_s - timeout, kind)
            raise TimeoutError
        del self._script[0]
        return {"task": 1, "kind": kind, "value": {}}, []

    def send(self, head: Any) -> None:
        pass


def waited(
    process: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    progress: client.Progress | None = None,
    quiet_s: float = 60.0,
) -> Any:
    clock = SimpleNamespace(monotonic=process.monotonic)
    monkeypatch.setattr(client, "time", clock)
    return Worker()._wait(process, 1, progress, quiet_s)  # type: ignore[arg-type]


def test_who_asks_to_stop_again_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = Scripted(*[(STOPS_WITHIN_S / 10, "stop")] * 100)
    with pytest.raises(TaskStopped):
        waited(pressed, monkeypatch)
    assert pressed.now == pytest.approx(1.1 * STOPS_WITHIN_S), "since the first time"


def test_who_hears_of_progress_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no silence of the process."""
    process = Scripted((1.0, "progress"), (0.4, "done"))

    def heard(report: Any) -> None:
        process.now += 100.0

    assert waited(process, monkeypatch, heard, quiet_s=5.0) == {}
    assert process.now == pytest.approx(101.4)
    assert process.waits_s == [5.0, 5.0]


def test_a_process_that_is_silent_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Scripted((4.0, "progress"), (5.1, "done"))
    with pytest.raises(WorkerEnded, match="nothing was heard of it for 5 s"):
        waited(process, monkeypatch, quiet_s=5.0)
    assert process.now == pytest.approx(9.0)
