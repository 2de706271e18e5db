"""Edited text that writes outside of its memory, crashes, or does not end costs the kernel: it runs
in a worker process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.backends.opencl.support import need_driver
from workbench import Kernel, Tensor, explore
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


def check(
    worker: Worker, kernel: Kernel, statement: str, limit_s: float | None = None
) -> Any:
    """Return what the check of a kernel with one more statement says."""
    buffers = kernel.data.buffers(kernel.original, NAME)
    outputs = kernel.original.outputs
    worker.hold("data", lambda: [(b, s in outputs) for s, b in enumerate(buffers)])
    text = kernel.compile(NAME).source
    end = text.rindex("}")
    row = {
        "ast": kernel.to_text(), "device": NAME, "rules_off": [],
        "source": f"{text[:end]}  {statement}\n{text[end:]}",
    }  # fmt: skip
    task = {
        "do": "check", "data": "data", "kernel": row, "original": kernel.to_text(),
        "silent_s": limit_s,
    }  # fmt: skip
    return worker.ask(task, quiet_s=250.0)


def test_what_it_writes_elsewhere_is_seen(worker: Worker, kernel: Kernel) -> None:
    assert check(worker, kernel, "")["ok"]
    for statement, says in (
        ("p0[-1] = 1;", "writes outside of buffer 0"),
        ("p0[24] = 1;", "writes outside of buffer 0"),
        ("((__global float *)p1)[0] = 99;", "changes buffer 1, an input"),
    ):
        answer = check(worker, kernel, statement)
        assert not answer["ok"] and says in answer["text"]


def test_a_crash_and_a_loop_without_end_cost_the_kernel(
    worker: Worker, kernel: Kernel
) -> None:
    with pytest.raises(WorkerEnded, match="crashed") as error:
        check(worker, kernel, "*(volatile __global int *)8 = 1;")
    assert "SIGSEGV" in error.value.because
    with pytest.raises(WorkerEnded, match="did not end"):
        check(worker, kernel, "for (volatile int i = 0;; i++) {}", limit_s=1.0)
    assert check(worker, kernel, "")["ok"]
