"""A kernel to search, and no process that stays behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.search.support import made_up_times, numbers
from tests.tools.processes import children
from workbench import Kernel, explore
from workbench.search import evaluation
from workbench.search import search as searching

__all__ = ["made_up_times"]


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return explore(numbers(96, 64) @ numbers(64, 80)).kernels[0]


@pytest.fixture(autouse=True)
def a_busy_machine_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """To start a process, to compile, to answer, and to measure the best once more."""
    for name in ("START_S", "COMPILE_S", "MARGIN_S"):
        monkeypatch.setattr(evaluation, name, 100.0)
    monkeypatch.setattr(searching, "CONFIRM_S", 100.0)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = children(os.getpid())
    yield
    assert children(os.getpid()) <= before, "a process stayed behind"
