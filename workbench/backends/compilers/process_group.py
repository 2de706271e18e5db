"""A program in a process group of its own, of which nothing outlives its use.

A compiler's driver starts further programs, which no signal to the driver ends. So all are of one
group, which a guard leads: a shell that reads a pipe, whose other end is here. The pipe ends
with this process, however that ends, and then the guard ends the group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence

MEMORY_GIB = 4
"""Memory that each process of a group may fill. Address space that is only reserved is free."""
IS_POSIX = os.name == "posix"
"""Whether there are groups and limits; elsewhere a program is ended alone."""
_GUARD = ("/bin/sh", "-c", "read _; kill -KILL 0")
# where a lower limit stands already, that stays
_LIMITED = f'ulimit -d {MEMORY_GIB << 20} 2>/dev/null; exec "$@"'


@contextlib.contextmanager
def program(
    command: Sequence[str], environment: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[str]]:
    """Yield a program with three pipes; the end of the block ends it and all that it started.

    On POSIX one that is missing ends with status 126 or 127. Errors: OSError.
    """
    with _group() as group:
        limited = ("/bin/sh", "-c", _LIMITED, "sh", *command)
        with subprocess.Popen(
            limited if IS_POSIX else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=environment,
            process_group=group,
        ) as process:
            try:
                yield process
            finally:
                if group is None:
                    process.kill()
                else:
                    _kill(group)


@contextlib.contextmanager
def _group() -> Iterator[int | None]:
    """Yield the number of a group with a guard; None where there are no groups."""
    if not IS_POSIX:
        yield None
        return
    with subprocess.Popen(
        _GUARD,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as guard:
        try:
            yield guard.pid
        finally:
            _kill(guard.pid)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):  # all have ended
        os.killpg(group, signal.SIGKILL)
