"""Memory-mapped files: pages are read when they are first touched."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path

import numpy as np

from workbench.backends.memory import Bytes
from workbench.base.errors import file_error


def file_bytes(path: str | os.PathLike[str], is_shared: bool = False) -> Bytes:
    """Return the bytes of a file, mapped into memory. As long as the array lives, the file must
    not become shorter; replacing it by another file does no harm.

    What is written to the array stays in this process; with `is_shared` it changes the file.
    Errors: FileError for a path that is not a file, or may not be read (shared: or written).
    """
    try:
        check_regular(Path(path))
        with open(path, "r+b" if is_shared else "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return np.empty(0, np.uint8)
            access = mmap.ACCESS_WRITE if is_shared else mmap.ACCESS_COPY
            pages = mmap.mmap(file.fileno(), 0, access=access)
    except (OSError, ValueError, TypeError) as error:
        raise file_error(path, error) from error
    return np.frombuffer(pages, np.uint8)


def check_regular(path: Path) -> None:
    """Raise for what is not a file with an end: opening a pipe would wait, and a device has none.

    Errors: OSError; FileNotFoundError where there is nothing.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, and not a file")
