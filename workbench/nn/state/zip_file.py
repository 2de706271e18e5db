"""Zip archives of uncompressed members: each member is a part of the archive's bytes."""

from __future__ import annotations

import struct
import zipfile

from workbench.backends.memory import Bytes
from workbench.base.errors import FileError
from workbench.nn.state.byte_reader import ByteReader

_HEADER = struct.Struct("<4s22x2H")
"""Before a member: its signature, .., the lengths of its name and of its extra field."""


def zip_members(data: Bytes) -> dict[str, Bytes]:
    """Return the bytes of each member by its name; nothing is copied.

    Errors: FileError for a damaged archive, and for members that are compressed or encrypted.
    """
    try:
        with zipfile.ZipFile(ByteReader(data)) as archive:
            entries = archive.infolist()
    # zipfile meets damage with any of these.
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OSError,
        struct.error,
        EOFError,
    ) as error:
        raise FileError(
            "cannot read the archive",
            f"it is damaged, or its end is missing: {error}"[:200],
            "the file from where it came",
        ) from error
    return {entry.filename: _member(data, entry) for entry in entries}


def _member(data: Bytes, entry: zipfile.ZipInfo) -> Bytes:
    name = f"member {entry.filename:.60}"
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise FileError(
            f"cannot read {name}",
            "it is compressed or encrypted, and its bytes are used in place",
            "torch.save, which stores tensors as they are",
        )
    start = entry.header_offset
    header = bytes(data[start : start + _HEADER.size]) if start >= 0 else b""
    if len(header) < _HEADER.size or header[:4] != b"PK\x03\x04":
        raise FileError(f"cannot find {name}", f"at byte {start} is something else")
    _, name_bytes, extra_bytes = _HEADER.unpack(header)
    start += _HEADER.size + name_bytes + extra_bytes
    if start + entry.file_size > data.size:
        raise FileError(
            f"{name} is cut off",
            f"it has {entry.file_size:,} bytes, and {data.size - start:,} are left",
        )
    return data[start : start + entry.file_size]
