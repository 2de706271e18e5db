"""The worker process, which times and checks kernels and runs edited ones.

    python -m workbench.worker.process NICE      started by `client.Worker`, never by hand

It never imports the user's program. It ends when its parent does, even in the middle of a task.
"""

from __future__ import annotations

import os
import queue
import sys
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any

from workbench.backends.device import Device
from workbench.base.child_process import Blob, Parent
from workbench.worker import sandbox
from workbench.worker.rows import error_row
from workbench.worker.server import StopRequest, WorkerServer

REPORT_EVERY_S = 0.05


class Connection:
    """The connection to the parent; a thread of its own reads the messages."""

    def __init__(self) -> None:
        self._parent = Parent()
        self._messages: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._stopped, self._task, self._reported, self._text = -1, -1, 0.0, ""
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            for head, blobs in self._parent:
                if head["do"] == "stop":
                    self._stopped = head["task"]
                else:
                    self._messages.put((head, blobs))
        finally:  # the parent has ended, or its message is not valid
            os._exit(0)

    def next(self) -> tuple[Any, Any]:
        """Return the next message, waiting for it."""
        head, blobs = self._messages.get()
        self._task, self._reported = head.get("task", -1), 0.0
        return head, blobs

    def is_stopped(self) -> bool:
        """Whether the current task was stopped."""
        return self._stopped >= self._task

    def report(self, progress: dict[str, Any]) -> None:
        """Send progress; if only its numbers have changed, at most every REPORT_EVERY_S."""
        is_due = time.monotonic() - self._reported > REPORT_EVERY_S
        if is_due or progress["text"] != self._text:
            self._reported, self._text = time.monotonic(), progress["text"]
            self.answer("progress", progress)

    def answer(self, kind: str, value: Any, blobs: Sequence[Blob] = ()) -> None:
        """Send a message about the current task."""
        head = {"task": self._task, "kind": kind, "value": value}
        self._parent.send(head, blobs)


def main(nice: int) -> None:
    """Do tasks until the input ends, at the niceness `nice`."""
    connection = Connection()
    if hasattr(os, "nice"):
        os.nice(nice)
    sandbox.enter()
    server = WorkerServer(connection.report, connection.is_stopped)
    while True:
        head, blobs = connection.next()
        if head["do"] == "hold":
            server.hold(head["key"], head["slots"], blobs)
        elif head["do"] == "drop":
            server.drop(head["key"])
        else:
            _do(server, connection, head)
            if any(device.is_lost for device in Device):
                os._exit(0)  # a new process, which can use the device, does the next task


def _do(server: WorkerServer, connection: Connection, head: dict[str, Any]) -> None:
    try:
        value = server.do(head)
        connection.answer("done", value, value.pop("blobs", ()))
    except StopRequest:
        connection.answer("stopped", None)
    except Exception as error:
        connection.answer("error", error_row(error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
