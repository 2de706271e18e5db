"""Long work, one piece at a time for the whole Python session: timings must not disturb others.

A thread takes jobs from a queue: what somebody asked for comes before what is done ahead, and
a job done ahead gives way after each of its steps. One worker process serves them all.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import queue
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event, Lock, Thread

from workbench.worker.client import Worker

ASKED, AHEAD = 0, 1
IDLE_S = 300.0
"""A worker process without work is ended after so many seconds."""
_LOG = logging.getLogger("workbench")


@dataclass(order=True)
class _Job:
    """Steps of work for an owner. Ordered by priority, then by age."""

    priority: int
    number: int
    owner: object = field(compare=False)
    steps: Iterator[object] = field(compare=False)
    finished: Event = field(compare=False)


class Jobs:
    """The queue, its thread, and the worker process; each begins when it is first needed."""

    def __init__(self) -> None:
        self._queue: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock, self._turn = Lock(), Lock()
        self._thread: Thread | None = None
        self._dropped: set[int] = set()
        self._pending: dict[int, _Job] = {}
        self._running: _Job | None = None
        self._busy: Worker | None = None
        self.worker = Worker()

    def submit(self, owner: object, steps: Iterator[object], priority: int) -> Event:
        """Do the steps of a job when it is their turn; the Event is set when they are done or
        dropped."""
        job = _Job(priority, next(self._numbers), owner, steps, Event())
        with self._lock:
            self._pending[job.number] = job
            self._queue.put(job)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._work, daemon=True)
                self._thread.start()
        return job.finished

    def stop(self, owner: object) -> int:
        """Drop the jobs of an owner, and abandon the one at work; return how many there were."""
        with self._lock:
            own = [job for job in self._pending.values() if job.owner is owner]
            self._dropped |= {job.number for job in own}
            is_running = self._running is not None and self._running.owner is owner
            worker = self._busy if is_running else None
        if worker is not None:
            worker.stop()
        return len(own)

    def is_stopped(self) -> bool:
        """Whether the job that calls this is no longer wanted."""
        running = self._running
        return running is not None and running.number in self._dropped

    @contextmanager
    def lend(self, alone: bool = False) -> Iterator[Worker]:
        """Hand out the worker, or one that is thrown away afterwards, for what may spoil it.
        Nobody else measures meanwhile, and a stop reaches it."""
        with self._turn:
            worker = Worker() if alone else self.worker
            self._busy = worker
            try:
                yield worker
            finally:
                self._busy = None
                if alone:
                    worker.close()

    def close(self) -> None:
        """End the worker process."""
        self.worker.close()

    def _work(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=IDLE_S)
            except queue.Empty:
                self.worker.close()
                job = self._queue.get()
            self._running = job
            is_over = self._is_over(job)
            self._running = None
            with self._lock:
                if is_over or job.number in self._dropped:
                    self._pending.pop(job.number, None)
                    self._dropped.discard(job.number)
                    job.finished.set()
                else:
                    self._queue.put(job)
            del job

    def _is_over(self, job: _Job) -> bool:
        """Do a job's next step, or all of them where somebody asked for it. A job that was
        dropped is told so."""
        try:
            if job.number in self._dropped:
                if isinstance(job.steps, Generator):
                    job.steps.close()
                return True
            for _ in job.steps:
                if job.priority is not ASKED:
                    return False
        except Exception:  # a job reports its own errors; the queue must go on
            _LOG.exception("a job of the workbench failed")
        return True


@lru_cache(maxsize=1)
def jobs() -> Jobs:
    """Return the queue of this Python session."""
    made = Jobs()
    atexit.register(made.close)
    return made
