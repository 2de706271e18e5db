"""Zip and tar archives as tensors, and archives that lie."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from workbench.base.errors import FileError
from workbench.nn.state import tar_extract, zip_extract

FILES = {"a.bin": bytes(range(256)), "folder/b.txt": b"text", "empty": b""}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return file.getvalue()


def test_files_in_archives_are_tensors_of_their_bytes(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("folder")
        for name, data in FILES.items():
            archive.writestr(name, data)
    assert {name: bytes(t.tolist()) for name, t in zip_extract(path).items()} == FILES
    path.write_bytes(tar())
    assert {name: bytes(t.tolist()) for name, t in tar_extract(path).items()} == FILES


def test_archives_that_are_none_or_cut_off_are_refused(path: Path) -> None:
    for content in (b"", b"text", bytes(100), tar()[:700], b"\xff" * 2000):
        path.write_bytes(content)
        with pytest.raises(FileError):
            zip_extract(path)
        if content != b"":
            with pytest.raises(FileError):
                tar_extract(path)


@pytest.mark.parametrize("size", [b"\xff" * 10 + b"\xfe\x00", b"77777777777\0"])
def test_a_file_of_no_size_or_too_large_a_one_is_refused(path: Path, size: bytes) -> None:
    """Before the beginning of a file the same file would come next, again and again."""
    content = bytearray(tar())
    content[124:136] = size
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    path.write_bytes(content)
    with pytest.raises(FileError, match="is cut off"):
        tar_extract(path)


def test_compressed_archives_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1000))
    with pytest.raises(FileError, match="compressed"):
        zip_extract(path)
    with tarfile.open(path, "w:gz") as packed:
        packed.add(__file__)
    with pytest.raises(FileError, match="cannot read the archive"):
        tar_extract(path)
