"""Memory-mapped files: pages are read when they are first touched.

Sections: Memory-mapped files; Files as memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import numpy as np

from workbench.backends.memory import Buffer, Bytes, Loan, Memory
from workbench.base.dtypes import DType
from workbench.base.errors import FileError, file_error
from workbench.base.interrupts import raised_after

# --------------------------------------------------------------------------------------------------
# Memory-mapped files.


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
    """Refuse a path that is not a regular file: opening a pipe would wait, a device has no end.

    Errors: OSError; FileNotFoundError for a missing path, IsADirectoryError for a directory.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, and not a file")


# --------------------------------------------------------------------------------------------------
# Files as memory: a Buffer reads and writes bytes of a file.

DISK = "DISK:"
"""The prefix of a file's name as a device."""


class OpenFile:
    """A file that is open as long as a Buffer uses it."""

    def __init__(self, path: Path, file: BinaryIO):
        self.path, self.file, self.lock = path, file, Lock()
        self.size_bytes = os.fstat(file.fileno()).st_size

    def __del__(self) -> None:
        try:
            self.file.close()
        except KeyboardInterrupt:
            _ = [*raised_after()]


class FileMemory(Memory):
    """The memory of all files; a handle is an OpenFile."""

    def allocate(self, size_bytes: int, alignment_bytes: int) -> OpenFile:
        """Refuse: a file has a name, and `file_buffer` opens it."""
        raise MemoryError

    def free(self, handle: OpenFile) -> None:
        """Do nothing: an OpenFile is closed with its last Buffer."""

    def copy_in(self, handle: OpenFile, offset: int, data: Bytes) -> None:
        """Write bytes. Errors: FileError where the file may not be written, or the disk is full."""
        try:
            with handle.lock:
                handle.file.seek(offset)
                rest = data.data
                while rest.nbytes:
                    rest = rest[handle.file.write(rest) :]
        except OSError as error:
            because = error.strerror or "it is open for reading only: it may not be written"
            raise FileError(f"cannot write {handle.path}", because) from error

    def copy_out(self, handle: OpenFile, offset: int, data: Bytes) -> None:
        """Read bytes. Errors: FileError where the file has become shorter."""
        with handle.lock:
            handle.file.seek(offset)
            rest = data.data
            while rest.nbytes:
                count = handle.file.readinto(rest)  # type: ignore[attr-defined] # a raw file has it
                if not count:
                    raise FileError(
                        f"cannot read {handle.path}",
                        f"it had {handle.size_bytes:,} bytes when it was opened, and ends at"
                        f" {offset + data.size - rest.nbytes:,} now",
                    )
                rest = rest[count:]

    def copy(
        self, target: OpenFile, target_offset: int, source: OpenFile, source_offset: int,
        size_bytes: int,
    ) -> None:  # fmt: skip
        data = np.empty(size_bytes, np.uint8)
        self.copy_out(source, source_offset, data)
        self.copy_in(target, target_offset, data)


file_memory = FileMemory()
"""The memory of all files."""


def file_buffer(path: Path, dtype: DType, size_bytes: int | None = None) -> Buffer:
    """Return a file as a Buffer of `dtype`, without bytes after the last whole element. With
    `size_bytes` the Buffer has that many; a missing file is created, a shorter one made longer.

    Errors: FileError for a path that cannot be opened.
    """
    try:
        file = _open(path, size_bytes)
    except OSError as error:
        raise file_error(path, error) from error
    handle = OpenFile(path, file)
    usable = handle.size_bytes if size_bytes is None else size_bytes
    count = usable // dtype.itemsize
    loan = Loan(file_memory.pool, handle, count * dtype.itemsize)
    return Buffer.on(loan, f"{DISK}{path}", dtype, count)


def _open(path: Path, size_bytes: int | None) -> BinaryIO:
    """Return a file open for reading; for writing, too, if that is allowed or a size is given."""
    if size_bytes is None:
        check_regular(path)
        can_write = os.access(path, os.W_OK)
        return open(path, "r+b" if can_write else "rb", buffering=0)
    path.touch()
    check_regular(path)
    file = open(path, "r+b", buffering=0)
    if os.fstat(file.fileno()).st_size < size_bytes:
        file.truncate(size_bytes)
    return file
