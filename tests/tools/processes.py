"""Processes of tests: those that stay behind, from /proc, and work in a fork."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

HANGS_S = 120


def children(pid: int) -> set[int]:
    """Return the living processes whose parent is `pid`."""
    pids = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            pids.add(int(folder.name))
    return pids


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def in_fork(work: Callable[[], bool]) -> None:
    """Fork, and see that `work` in the child returns True before it counts as hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(HANGS_S)
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
