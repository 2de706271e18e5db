"""What tests of searches share: a kernel's data, and a search that is soon over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workbench import Kernel, SearchResult, Tensor
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import axes
from workbench.search import search as searching
from workbench.search.evaluation import OnWorker
from workbench.search.moves import Candidate, Measured
from workbench.search.search import run
from workbench.worker.benchmark import BenchmarkSettings

BUDGET_S = 300.0
TRIALS = 10


def numbers(*shape: int) -> Tensor:
    values = np.random.default_rng(0).standard_normal(shape)
    return Tensor(values.astype(np.float32)).realize()


def quick(
    kernel: Kernel,
    trials: float = TRIALS,
    budget_s: float = BUDGET_S,
    cached: bool = False,
    report: Callable[[Candidate], None] = lambda trial: None,
    **options: Any,
) -> SearchResult:
    """Return a search whose time is over after so many trials, however long they took: its clock
    stands, and then little but what is held back for the last measurement is left."""
    now = 0.0

    def reported(trial: Candidate) -> None:
        nonlocal now
        if trial.number + 1 >= trials:
            now = budget_s * (1 - searching.CONFIRM_SHARE) + 1e-6
        report(trial)

    return run(
        kernel, budget_s=budget_s, cached=cached, shows_progress=False, report=reported,
        clock=lambda: now, **options,
    )  # fmt: skip


ENDLESS = math.inf
"""The trials of a search that something else ends."""


def seconds(ast: UOp) -> float:
    """Return what a form takes on a made-up machine: lanes and threads are good, 8 of them best."""
    sizes = (a.size for a in axes(ast) if a.kind.name in ("UPCAST", "THREAD"))
    total = math.prod(sizes)
    return 1.0 / min(total, 8) * (1 + max(0, total - 8) / 8)


@pytest.fixture
def made_up_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms run in the worker as always, but what they take is by the formula."""
    measured = OnWorker._one

    def one(self: OnWorker, against: UOp, ast: UOp, rules: BenchmarkSettings) -> Measured:
        candidate = measured(self, against, ast, rules)
        if candidate.seconds is None:
            return candidate
        return replace(candidate, seconds=seconds(ast), ratio=seconds(ast) / seconds(against))

    monkeypatch.setattr(OnWorker, "_one", one)
