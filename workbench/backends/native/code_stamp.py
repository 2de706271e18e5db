"""The stamp of this package's code, for the keys of what is kept on disk of its results.

The code stands in it by the names, sizes and times of its files: after any change of a file there
are other keys.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
CODE = ("base", "ir", "backends", "execution", "cost", "pickles.py", "pipeline.py")
"""The parts of the package that schedules, default opts and sources depend on."""


@cache
def code_stamp() -> str:
    """Return a hash of the code; "" if its files cannot be read."""
    try:
        rows = sorted(row for part in CODE for row in _files(PACKAGE / part))
    except OSError:
        return ""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _files(path: Path) -> Iterator[str]:
    """Yield the name, size and time of each Python file at or below `path`."""
    if path.suffix == ".py":
        status = path.stat()
        yield f"{path} {status.st_size} {status.st_mtime_ns}"
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(Path(entry.path))
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
