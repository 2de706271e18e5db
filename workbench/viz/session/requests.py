"""Requests of a page: their validation, and the queue of jobs for those that take long.

Sections: Validation of a page's requests; Jobs.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import queue
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event, Thread
from typing import Any, get_args

from msgspec import inspect as types
from msgspec.structs import FieldInfo, fields

from workbench.base.errors import WorkbenchError, cut
from workbench.base.interrupts import free_lock
from workbench.base.typed import typed
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.requests import AnyRequest, Request
from workbench.worker.client import NICE, Worker
from workbench.worker.workers import worker_for

# --------------------------------------------------------------------------------------------------
# Validation of a page's requests.

KINDS: Mapping[str, type[Request]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyRequest)
}
"""The type of each request, by its "do"."""
OF_EVERY = Request.__struct_fields__
"""The fields of every request: they are for the session, not for the handler."""
_NAMES: Mapping[type, str] = {
    types.IntType: "number",
    types.BoolType: "flag",
    types.NoneType: "null",
}


def checked(request: object, record: PageRecord) -> Request:
    """Return a request as its type; every position in it is one of `record`.

    Errors: WorkbenchError for a message that is not a request, and for a position that the record
    does not have.
    """
    try:
        message: Request = typed(request, AnyRequest)  # type: ignore[arg-type]  # a union
    except ValueError as error:
        raise _refusal(request, str(error)) from None
    for name, table in _TABLES[type(message)].items():
        value = getattr(message, name)
        places = value if isinstance(value, list) else [value]
        if any(isinstance(p, int) and p >= _size(record, table) for p in places):
            raise _misfit(type(message), _field(type(message), name), value)
    return message


def arguments(message: Request) -> Mapping[str, Any]:
    """Return the arguments of a request by name: all fields but those of every request."""
    return {f: getattr(message, f) for f in message.__struct_fields__ if f not in OF_EVERY}


def _table(info: types.Type) -> tuple[str, ...] | None:
    """Return the path of the record's table in which values of a type are positions; None for other
    types."""
    match info:
        case types.Metadata(extra={"table": way}):
            return tuple(way)
        case types.Metadata(type=inner) | types.ListType(item_type=inner):
            return _table(inner)
        case types.UnionType(types=parts):
            return next(filter(None, map(_table, parts)), None)
    return None


_TABLES = {
    kind: {f.name: way for f in fields(kind) if (way := _table(types.type_info(f.type)))}
    for kind in KINDS.values()
}


def _size(record: PageRecord, table: tuple[str, ...]) -> int:
    rows: Any = record
    for name in table:
        rows = getattr(rows, name)
    return len(rows)


# texts of refusals


def _refusal(request: object, because: str) -> WorkbenchError:
    do = request.get("do") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(do, str):
        return WorkbenchError("this is not a request", 'it has no "do"', '{"do": "ping"}')
    if do not in KINDS:
        return WorkbenchError(f"cannot do {do[:40]!r}", f"the requests are {', '.join(KINDS)}")
    kind = KINDS[do]
    fields_by_name = {row.encode_name: row for row in fields(kind)}
    unknown = sorted(str(name) for name in request if name not in {"do", *fields_by_name})
    if unknown:
        what = f"{do} does not take {', '.join(unknown)[:80]}"
        names = ", ".join(name for name in fields_by_name if name not in OF_EVERY)
        return WorkbenchError(what, f"it takes {names or 'nothing'}", _example(kind))
    for name, row in fields_by_name.items():
        if name not in request and row.required:
            what = f"{do} needs {name}"
            return WorkbenchError(what, "the request has none", _example(kind))
        try:
            typed(request.get(name), row.type)
        except ValueError:
            return _misfit(kind, row, request.get(name))
    return WorkbenchError(f"{do} cannot be read", because, _example(kind))


def _misfit(kind: type[Request], field: FieldInfo, value: Any) -> WorkbenchError:
    what = f"{kind.__struct_config__.tag} cannot take this {field.encode_name}"
    because = f"{_short(value)} is not a {_title(types.type_info(field.type))} here"
    return WorkbenchError(what, because, _example(kind))


def _example(kind: type[Request]) -> str:
    words = {f.encode_name: _title(types.type_info(f.type)) for f in fields(kind)}
    parts = [f'"{name}": <{title}>' for name, title in words.items() if name not in OF_EVERY]
    return "{" + ", ".join([f'"do": "{kind.__struct_config__.tag}"', *parts]) + "}"


def _field(kind: type[Request], name: str) -> FieldInfo:
    return next(field for field in fields(kind) if field.name == name)


def _title(info: types.Type) -> str:
    if isinstance(info, types.UnionType):
        return " or ".join(map(_title, info.types))
    if isinstance(info, types.LiteralType):
        return " or ".join(map(str, info.values))
    if isinstance(info, types.Metadata):
        return str((info.extra_json_schema or {})["title"])
    if isinstance(info, types.LiteralType):
        return " or ".join(map(str, info.values))
    return _NAMES[type(info)]


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} of very many levels"
    return cut(text, 60)


# --------------------------------------------------------------------------------------------------
# Jobs: long work, one at a time for the whole Python session, so that timings are not disturbed.
#
# A thread takes jobs from a queue: requests come before prefetched work, which is interrupted after
# each of its steps. One worker process serves all jobs but those that need one of their own.

# priorities, first to last
REQUESTED = 0
CHOICE = 1
"""Jobs for the reader's selection, such as another device. Requests interrupt them, as they
interrupt prefetched work.
"""
PREFETCH = 2
IDLE_S = 300.0
"""Seconds after which a worker process without work is ended."""
_LOG = logging.getLogger("workbench")


@dataclass(order=True)
class _Job:
    """Steps of work for an owner. Ordered by priority, then by age."""

    priority: int
    number: int
    owner: object = field(compare=False)
    steps: Iterator[object] = field(compare=False)
    is_dropped: bool = field(default=False, compare=False)
    finished: Event = field(default_factory=Event, compare=False)

    def close(self) -> None:
        """Close the steps, and set `finished`."""
        try:
            if isinstance(self.steps, Generator):
                self.steps.close()
        except Exception:
            _LOG.exception("a job of the workbench failed")
        self.finished.set()


class Jobs:
    """The queue, its thread, and the worker process, which start when they are first needed."""

    def __init__(self) -> None:
        self._queue: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock, self._turn = free_lock(), free_lock()
        self._thread: Thread | None = None
        self._pending: dict[int, _Job] = {}
        self._running: _Job | None = None
        self._busy: Worker | None = None
        self.worker = Worker()

    def submit(self, owner: object, steps: Iterator[object], priority: int) -> Event:
        """Queue the steps of a job; return an Event that is set when they are done or dropped."""
        job = _Job(priority, next(self._numbers), owner, steps)
        with self._lock:
            self._pending[job.number] = job
            self._queue.put(job)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._work, daemon=True)
                self._thread.start()
        return job.finished

    def stop(self, owner: object) -> int:
        """Drop the jobs of an owner, and stop the one that runs; return how many there were."""
        return self._drop(lambda job: job.owner is owner)

    def stop_background(self, owners: Collection[object]) -> int:
        """Drop the jobs of some owners that answer no request; return how many there were."""
        return self._drop(
            lambda job: job.priority is not REQUESTED and any(job.owner is each for each in owners)
        )

    def has_requests(self, owner: object) -> bool:
        """Whether a job that answers a request of an owner runs or waits."""
        with self._lock:
            jobs = [job for job in self._pending.values() if job.owner is owner]
        return any(job.priority is REQUESTED and not job.is_dropped for job in jobs)

    def is_stopped(self) -> bool:
        """Whether the job that calls this was stopped."""
        running = self._running
        return running is not None and running.is_dropped

    @contextmanager
    def use_worker(self, device: str, exclusive: bool = False) -> Iterator[Worker]:
        """Yield a worker for a device: the shared process; or a new one, which is ended afterwards,
        if `exclusive` (for programs that may damage it) or if the shared one does not serve the
        device. Other jobs wait for their worker meanwhile, and a stop stops this one.
        """
        with self._turn:
            worker = self.worker
            if exclusive or not worker.serves(device):
                exclusive, worker = True, worker_for(device, NICE)
            self._busy = worker
            try:
                yield worker
            finally:
                self._busy = None
                if exclusive:
                    worker.close()

    def close(self) -> None:
        """Drop all jobs, and end the worker process."""
        self._drop(lambda job: True)
        self.worker.close()

    def _drop(self, is_target: Callable[[_Job], bool]) -> int:
        """Close the jobs that wait, and stop the one that runs; return how many there were."""
        with self._lock:
            targets = list(filter(is_target, self._pending.values()))
            waiting = [job for job in targets if job is not self._running]
            for job in targets:
                job.is_dropped = True
            for job in waiting:
                del self._pending[job.number]
            # No job begins while the lock is held: the task that is stopped is the dropped job's.
            if len(waiting) < len(targets) and self._busy is not None:
                self._busy.stop()
        for job in waiting:
            job.close()
        return len(targets)

    def _work(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=IDLE_S)
            except queue.Empty:
                self.worker.close()
                job = self._queue.get()
            with self._lock:
                if job.is_dropped:  # it is closed already
                    continue
                self._running = job
            is_over = self._is_over(job)
            with self._lock:
                self._running = None
                is_over = is_over or job.is_dropped
                if is_over:
                    del self._pending[job.number]
                else:
                    self._queue.put(job)
            if is_over:
                job.close()
            del job

    def _is_over(self, job: _Job) -> bool:
        """Run a job's next step, or all steps of a request; return whether the job is over."""
        try:
            for _ in job.steps:
                if job.priority is not REQUESTED:
                    return False
        except Exception:  # a job reports its own errors; the queue must go on
            _LOG.exception("a job of the workbench failed")
        return True


@lru_cache(maxsize=1)
def jobs() -> Jobs:
    """Return the queue of this Python session; a forked child has one of its own."""
    job_queue = Jobs()
    atexit.register(job_queue.close)
    return job_queue


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=jobs.cache_clear)
