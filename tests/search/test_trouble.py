"""Forms that crash, hang or take long, and workers that are killed, are notes and no end."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.search.support import ENDLESS, numbers, quick
from workbench import Kernel, Opt, OptOps, explore
from workbench.search import evaluation
from workbench.search.moves import Candidate
from workbench.search.search import run
from workbench.worker.client import Worker


def test_killed_workers_are_a_note_and_no_end(kernel: Kernel) -> None:
    with Worker() as worker:

        def kill(trial: Candidate) -> None:
            if trial.number in (3, 6) and worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)

        result = quick(kernel, worker=worker, report=kill)
    assert len(result.tried) > 8
    assert result.kernel.check().ok and result.speedup is not None


@pytest.mark.parametrize("shows_progress", [False, True])
def test_a_search_whose_workers_are_all_killed_says_so(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, shows_progress: bool
) -> None:
    with Worker() as worker:
        ask = worker.ask

        def kill(task: Any, progress: Any, quiet_s: float) -> Any:
            def heard(row: Any) -> None:
                if worker.pid is not None:
                    os.kill(worker.pid, signal.SIGKILL)
                progress(row)

            return ask(task, heard, quiet_s)

        monkeypatch.setattr(worker, "ask", kill)
        result = run(
            kernel, budget_s=300.0, cached=False, shows_progress=shows_progress,
            worker=worker,
        )  # fmt: skip
    assert not result.ranked() and result.kernel.ast is kernel.ast
    assert "no candidate could be timed: the program was killed" in str(result)


CRASH = "\n  store volatile i32 1, ptr inttoptr (i64 8 to ptr)\n"


HANG = "\n  br label %wb_a\nwb_a:\n  br label %wb_a\nwb_b:\n"


def swap(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, inserted: dict[int, str]) -> None:
    """Put instructions at the beginning of the programs with these numbers, in the order in
    which they are handed to the worker (each candidate hands it two)."""
    row, handed = evaluation.OnWorker.row, itertools.count(1)
    text = kernel.compile("LLVM").source
    body = text.index("{", text.index("define ")) + 1
    start = text[body:].lstrip().partition("\n")
    label = start[0] + "\n" if start[0].endswith(":") else ""
    rest = start[2] if label else text[body:]

    def swapped(self: Any, ast: Any) -> Any:
        program, inner = row(self, ast), inserted.get(next(handed))
        if inner is None:
            return program
        return program | {"source": f"{text[:body]}\n{label}{inner}{rest}"}

    monkeypatch.setattr(evaluation.OnWorker, "row", swapped)


def test_a_given_form_that_hangs_leaves_time_for_the_default(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a form may take to compile, here far too long, is not what it may run."""
    monkeypatch.setattr(evaluation, "COMPILE_S", 1e6)
    swap(kernel, monkeypatch, {1: HANG})
    result = quick(kernel, budget_s=2.0)
    assert "did not end" in result.tried[0].note
    assert result.tried[1].seconds is not None and result.best != 0
    assert result.speedup is None and result.kernel.check().ok


def test_a_program_that_crashes_or_hangs_is_a_note(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms are swapped for programs that end their process, or do not end. Not only two of
    them: one may be found wrong before, and is never run."""
    crashes = dict.fromkeys(range(9, 10_000, 20), CRASH)
    swap(kernel, monkeypatch, crashes | dict.fromkeys(range(13, 10_000, 20), HANG))
    reports: list[Candidate] = []

    def is_enough() -> bool:
        notes = " ".join(t.note for t in reports)
        return "crashed" in notes and "did not end" in notes and len(reports) > 10

    # one that hangs when it is measured thoroughly has what is left of the budget
    result = quick(kernel, ENDLESS, budget_s=8.0, report=reports.append, stop=is_enough)
    assert is_enough() and result.kernel.check().ok


def test_a_kernel_that_takes_long_does_not_take_the_search(kernel: Kernel) -> None:
    """The plain form takes far more than the budget; others are searched all the same."""
    big = explore(numbers(640, 640) @ numbers(640, 640))
    slow = big.kernels[0].apply(Opt(OptOps.ORDER, "r0", "g0"))
    result = quick(slow, trials=4, budget_s=2.0)
    assert len(result.tried) > 1
    assert result.best != 0 or result.tried[0].seconds is not None
    assert result.kernel.check().ok


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
    process = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True,
        timeout=250,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) >= 2 and (tmp_path / "ran.txt").read_text() == "once "
