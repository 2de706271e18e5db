"""Edited text that writes outside of its memory, crashes, or does not end costs the kernel: it runs
in a worker process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.backends.opencl.support import need_driver
from workbench import Kernel, Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.worker.client import Worker, WorkerEnded

NAME = "OPENCL"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    need_driver()
    with Worker() as instance:
        yield instance


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    x = Tensor(np.arange(24, dtype=np.float32), device=NAME)
    return explore(x * 3 + 1).kernels[-1]


def with_statement(kernel: Kernel, statement: str) -> dict[str, Any]:
    """Return a kernel with one more statement at its end, as the worker takes it."""
    text = kernel.compile(NAME).source
    end = text.rindex("}")
    return {
        "ast": kernel.to_text(), "device": NAME, "rules_off": [],
        "source": f"{text[:end]}  {statement}\n{text[end:]}",
    }  # fmt: skip


def check(worker: Worker, kernel: Kernel, statement: str, limit_s: float | None = None) -> Any:
    """Return what the check of a kernel with one more statement says."""
    buffers = kernel.data.buffers(kernel.original, NAME)
    outputs = kernel.original.outputs
    worker.hold("data", lambda: [(b, s in outputs) for s, b in enumerate(buffers)])
    row = with_statement(kernel, statement)
    task = {
        "do": "check", "data": "data", "kernel": row, "original": kernel.to_text(),
        "silent_s": limit_s,
    }  # fmt: skip
    return worker.ask(task, quiet_s=250.0)


def test_what_it_writes_elsewhere_is_seen(worker: Worker, kernel: Kernel) -> None:
    assert check(worker, kernel, "")["ok"]
    for statement, says in (
        ("p0[-1] = 1;", "writes outside of buffer p0"),
        ("p0[24] = 1;", "writes outside of buffer p0"),
        ("((__global float *)p1)[0] = 99;", "changes buffer p1, an input"),
    ):
        answer = check(worker, kernel, statement)
        assert not answer["ok"] and says in answer["text"]


def test_a_crash_and_a_loop_without_end_cost_the_kernel(worker: Worker, kernel: Kernel) -> None:
    with pytest.raises(WorkerEnded, match="crashed") as error:
        check(worker, kernel, "*(volatile __global int *)8 = 1;")
    assert "SIGSEGV" in error.value.because
    with pytest.raises(WorkerEnded, match="did not end"):
        check(worker, kernel, "for (volatile int i = 0;; i++) {}", limit_s=1.0)
    assert check(worker, kernel, "")["ok"]


def test_what_is_typed_is_compiled_and_does_not_run(worker: Worker, kernel: Kernel) -> None:
    task = {"do": "compile", "kernel": with_statement(kernel, "p0[-1 << 28] = 1;")}
    assert worker.ask(task) == {"assembly": [], "code": None, "source": None}
    row = with_statement(kernel, "int x = ;")
    before = row["source"][: row["source"].index("int x")]
    says = f"expected expression; line {before.count(chr(10)) + 1} is int x"
    with pytest.raises(WorkbenchError, match=says):
        worker.ask({"do": "compile", "kernel": row})
