"""Files that a user asks for: whole, or as they were, and what stands in the way is said."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

import pytest

from workbench.base.errors import WorkbenchError
from workbench.base.files import PAGE, FileKind, write_whole

KIND = FileKind("page of a test", "line|before|after|page")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that nothing else writes to: the cache of a test is beside it."""
    own = tmp_path / "own"
    own.mkdir()
    return own


def never() -> NoReturn:
    raise AssertionError("nothing is made for a path that cannot be written")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    text = "line\nα\U0001f600\n" * 1000
    assert write_whole(str(path), KIND, lambda: text) == path
    assert path.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["page.html"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode, "readable by whom others are"


def test_a_link_stays_one_and_a_file_stays_as_private_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "page.html", tmp_path / "link.html"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    write_whole(link, KIND, lambda: "after")
    assert link.is_symlink() and target.read_text() == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_name_may_be_as_long_as_the_system_lets_it(tmp_path: Path) -> None:
    path = tmp_path / ("\U0001f600" * 63)  # 252 bytes
    assert write_whole(path, KIND, lambda: "page").read_text() == "page"


def test_what_is_private_is_never_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, modes, write = tmp_path / "page.html", [], Path.write_bytes

    def watched(part: Path, data: bytes) -> int:
        modes.append(stat.S_IMODE(part.stat().st_mode))
        return write(part, data)

    path.write_text("before")
    path.chmod(0o600)
    monkeypatch.setattr(Path, "write_bytes", watched)
    write_whole(path, KIND, lambda: "after")
    assert modes == [0o600] and path.read_bytes() == b"after"


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="the system has no /dev/fd")
def test_what_another_program_reads_is_written_to() -> None:
    """/dev/stdout leads to a pipe that has no name of its own."""
    reader, writer = os.pipe()
    write_whole(f"/dev/fd/{writer}", KIND, lambda: "page")
    os.close(writer)
    with open(reader) as heard:
        assert heard.read() == "page"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, KIND, lambda: "page")
    assert os.read(reader, 100) == b"page" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


# fmt: off
REFUSED: list[tuple[Any, str, str]] = [
    ("missing/page.html", "there is no folder", "mkdir(parents=True)"),
    ("file/page.html", "there is no folder", "mkdir(parents=True)"),
    ("", "it is a folder", "a file in it"),
    ("page\0.html", "null", "another folder"),
    ("x" * 300, "too long", "another folder"),
    (None, "NoneType is not a path", "the path of a page"),
    (3, "int is not a path", "the path of a page"),
]
# fmt: on


@pytest.mark.parametrize(("name", "because", "hint"), REFUSED)
def test_a_path_that_is_none_is_refused_in_words(
    tmp_path: Path, name: Any, because: str, hint: str
) -> None:
    (tmp_path / "file").write_text("kept")
    path = tmp_path / name if isinstance(name, str) else name
    with pytest.raises(WorkbenchError, match="cannot write") as caught:
        write_whole(path, KIND, never)
    assert because in caught.value.because and hint in caught.value.hint
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_what_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    path.chmod(0o400)
    if os.access(path, os.W_OK):  # the superuser may write everything
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(WorkbenchError, match="cannot write") as caught:
        write_whole(path, KIND, never)
    assert "may not be written" in caught.value.because
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    "content", ["import numpy\n", '{"cells": []}', "<svg></svg>", "\x00\x01", "print('<html>')"]
)
def test_a_file_of_another_kind_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(content)
    with pytest.raises(WorkbenchError, match="cannot write") as caught:
        write_whole(path, PAGE, never)
    assert "no page, and would be lost" in caught.value.because
    assert path.read_text() == content


@pytest.mark.parametrize(
    "content", ["", " \n", "<!DOCTYPE html>\n", "\ufeff<html>", "\n<HTML lang>"]
)
def test_a_file_of_the_kind_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(content, encoding="utf-8")
    assert write_whole(path, PAGE, lambda: "<html>new").read_text() == "<html>new"


@pytest.mark.parametrize("failing", ["write", "replace", "make"])
def test_what_was_there_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")

    def full(*args: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(self: Path, data: bytes) -> NoReturn:
        with self.open("wb") as file:
            file.write(data[:10])
        full()

    def make() -> str:
        if failing == "make":
            raise KeyboardInterrupt
        return "after" * 1000

    if failing == "write":
        monkeypatch.setattr(Path, "write_bytes", half)
    if failing == "replace":
        monkeypatch.setattr(os, "replace", full)
    expected = KeyboardInterrupt if failing == "make" else WorkbenchError
    with pytest.raises(expected) as caught:
        write_whole(path, KIND, make)
    if failing != "make":
        assert "No space left" in str(caught.value)
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["page.html"]
