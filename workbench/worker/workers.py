"""Other workers than a child process: this process, and the processes or threads of a user's
executor.

Sections: A worker in this process, for devices that were registered in it alone; Measuring a
candidate by a user's executor.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.base.trace import unobserved
from workbench.kernel.inputs import Seeded
from workbench.worker.benchmark import BenchmarkSettings, run_benchmark
from workbench.worker.candidate import KernelData
from workbench.worker.client import (
    QUIET_S,
    Progress,
    Row,
    TaskStopped,
    Worker,
    evicted,
    slots_and_bytes,
)
from workbench.worker.rows import error_row, parsed
from workbench.worker.server import StopRequest, WorkerServer

# --------------------------------------------------------------------------------------------------
# A worker in this process, for devices that were registered in it alone.


class LocalWorker(Worker):
    """Does the tasks of a Worker in the calling thread. A program that crashes ends this process,
    and one that hangs is not ended: the device is the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self._data_bytes: OrderedDict[str, int] = OrderedDict()
        self._is_stopped = False
        self._progress: Progress | None = None
        self._server = WorkerServer(self._report, lambda: self._is_stopped)

    @property
    def pid(self) -> int:
        """The process id."""
        return os.getpid()

    def serves(self, device: str) -> bool:
        """Whether it has a device, which is always true."""
        return True

    def start(self) -> None:
        """Do nothing: this process runs."""

    def hold(self, key: str, make: Callable[[], Sequence[tuple[Buffer, bool]]]) -> None:
        """Store the data `key` unless they are there (see `Worker.hold`)."""
        if key in self._data_bytes:
            self._data_bytes.move_to_end(key)
            return
        buffers = make()
        self._server.hold(key, *slots_and_bytes(buffers))
        self._data_bytes[key] = sum(b.nbytes for b, _ in buffers)
        for oldest in evicted(self._data_bytes):
            self._server.drop(oldest)

    def drop(self, key: str) -> None:
        """Drop the data `key`, if they are there."""
        if self._data_bytes.pop(key, None) is not None:
            self._server.drop(key)

    def ask(self, task: Row, progress: Progress | None = None, quiet_s: float = QUIET_S) -> Row:
        """Return the result of a task. Errors: TaskStopped; any error of the task."""
        self._is_stopped, self._progress = False, progress
        try:
            return self._server.do(task)
        except StopRequest:
            raise TaskStopped() from None

    def stop(self) -> None:
        """Stop the current task at its next report."""
        self._is_stopped = True

    def close(self) -> None:
        """Stop; there is no process to end."""
        self.stop()

    def _report(self, progress: Row) -> None:
        if self._progress is not None:
            self._progress(progress)


def worker_for(device: str, nice: int) -> Worker:
    """Return a worker for a device: a child process if it is the package's, else this process."""
    return Worker(nice) if Device.is_own(device) else LocalWorker()


# --------------------------------------------------------------------------------------------------
# Measuring a candidate by a user's executor: text in, text out.
#
# An executor (of processes, of threads, or Dask's) calls `benchmark_text` with a JSON text.


def benchmark_text(task: str) -> str:
    """Return the result of a benchmark on seeded data (see `run_benchmark`).

    The task has the un-optimised "kernel" as text, the "candidate", the other candidate that it
    runs "against", and the "rules".
    """
    request = json.loads(task)
    rules = BenchmarkSettings(**request["rules"] | {"digests": tuple(request["rules"]["digests"])})
    try:
        data = _data(request["kernel"])
        with unobserved():
            row = run_benchmark(request["candidate"], request["against"], data, rules)
    except Exception as error:  # every error must be returned as text
        row = {"error": error_row(error)}
    return json.dumps(row)


@lru_cache(maxsize=2)
def _data(kernel: str) -> KernelData:
    return KernelData(Seeded(0).buffers(parsed(kernel), HOST))
