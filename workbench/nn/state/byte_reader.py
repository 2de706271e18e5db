"""Bytes in memory as a binary file, without a copy, for readers of the standard library."""

from __future__ import annotations

import io
import os

import numpy as np

from workbench.backends.mapped_file import file_bytes
from workbench.backends.memory import Bytes
from workbench.base.errors import FileError
from workbench.tensor.operands.arguments import short, where
from workbench.tensor.tensor import Tensor

Source = Tensor | str | os.PathLike[str]
"""A file: its path, or its content as a tensor of uint8."""


def source_bytes(source: Source) -> Bytes:
    """Return the bytes of a file or of a tensor; the parts of a file are read when they are needed.

    Errors: FileError for a path that cannot be opened, a tensor of another dtype, other values.
    """
    if isinstance(source, str | os.PathLike):
        return file_bytes(source)
    if isinstance(source, Tensor) and source.dtype.numpy == np.uint8:
        return np.ascontiguousarray(source.numpy()).reshape(-1)
    raise FileError(
        f"cannot read a file from {short(source)}",
        "it is a path, or a tensor of uint8 with what is in the file",
        'pathlib.Path("weights.safetensors")',
        where(),
    )


class ByteReader:
    """A binary file over bytes in memory. A read returns no more than there is, whatever length is
    requested."""

    def __init__(self, data: Bytes):
        self.data, self.position = data.data, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer at the end; all that are left for a negative size."""
        stop = len(self.data) if size < 0 else min(self.position + size, len(self.data))
        piece = bytes(self.data[self.position : stop])
        self.position += len(piece)
        return piece

    def readline(self) -> bytes:
        """Return the next line, cut at _LONGEST_LINE_BYTES."""
        piece = bytes(self.data[self.position : self.position + _LONGEST_LINE_BYTES])
        line = piece[: piece.find(b"\n") + 1] or piece
        self.position += len(line)
        return line

    def seekable(self) -> bool:
        """Whether `seek` works."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it. Errors: OSError before the beginning."""
        from_end = len(self.data) if whence == io.SEEK_END else 0
        start = self.position if whence == io.SEEK_CUR else from_end
        if start + offset < 0:
            raise OSError("a position before the beginning")
        self.position = start + offset
        return self.position

    def tell(self) -> int:
        """Return the position."""
        return self.position


_LONGEST_LINE_BYTES = 1 << 16
"""A line is cut after this number of bytes; no name or number in a file is longer."""
