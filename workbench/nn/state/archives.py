"""Archives: each file in a zip or a tar as a tensor of its bytes, without a copy where possible."""

from __future__ import annotations

import tarfile

from workbench.backends.memory import Bytes
from workbench.base.dtypes import dtypes
from workbench.base.errors import FileError
from workbench.nn.state.adopted_tensor import tensor_over
from workbench.nn.state.byte_reader import ByteReader, Source, source_bytes
from workbench.nn.state.zip_file import zip_members
from workbench.tensor.tensor import Tensor


def zip_extract(fn: Source) -> dict[str, Tensor]:
    """Return the files in a zip archive by name, as uint8; nothing is written to the disk.

    Errors: FileError for a damaged archive, and for files that are compressed or encrypted.
    """
    members = zip_members(source_bytes(fn))
    return {name: _tensor(data) for name, data in members.items() if name[-1:] != "/"}


def tar_extract(fn: Source) -> dict[str, Tensor]:
    """Return the files in a tar archive by name, as uint8; nothing is written to the disk.

    Links and folders are left out. The archive itself must not be compressed.
    Errors: FileError for a damaged archive.
    """
    data = source_bytes(fn)
    files: dict[str, Tensor] = {}
    try:
        with tarfile.open(fileobj=ByteReader(data), mode="r:") as archive:  # type: ignore[call-overload] # it reads only
            for member in archive:
                _check(member, data.size)
                if member.isreg():
                    start = member.offset_data
                    files[member.name] = _tensor(data[start : start + member.size])
    except (tarfile.TarError, OSError, EOFError) as error:
        raise FileError("cannot read the archive", str(error)[:200]) from error
    return files


def _check(member: tarfile.TarInfo, nbytes: int) -> None:
    """Raise for a member that is not inside of its archive: its end is where the next one is
    looked for."""
    left = nbytes - member.offset_data
    if not 0 <= member.size <= left or member.issparse():
        raise FileError(
            f"file {member.name:.60} is cut off",
            f"it has {member.size:,} bytes, and {left:,} are left",
        )


def _tensor(data: Bytes) -> Tensor:
    return tensor_over(data, dtypes.uint8, data.shape)
