"""Files that a user requests, written atomically: whole or not at all.

Sections: Files that a user requests, written atomically; Values that cannot be pickled.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, NoReturn

from workbench.base.errors import DeviceError, WorkbenchError, cut

MOST_HEAD_BYTES = 2000
"""Bytes that are read of a file to know its kind."""

# --------------------------------------------------------------------------------------------------
# Files that a user requests, written atomically.


class FileKind(NamedTuple):
    """A kind of files that this package writes: its name in a sentence, such as "page", and a
    regular expression for how they begin, without regard to case."""

    name: str
    begin: str


PAGE = FileKind("page", "<!doctype html|<html")


def write_whole(path: str | os.PathLike[str], kind: FileKind, make: Callable[[], str]) -> Path:
    """Write the text that `make` returns as UTF-8, and return the path. If anything fails, the file
    that was at `path` stays as it was. A pipe or a terminal is written to directly.

    Errors: as `writable_path`.
    """
    target = writable_path(path, kind)
    text = make()
    try:
        _write(target, text.encode())
    except (OSError, ValueError) as error:
        raise _write_error(target, error) from error
    return target


def writable_path(path: str | os.PathLike[str], kind: FileKind) -> Path:
    """Return the absolute path of a file of a kind that can be written: there is no file, an empty
    one, or one of that kind. What is named by mistake, such as a script, is not lost.

    Errors: WorkbenchError where nothing can be written at `path`, and for a file of another kind.
    """
    try:
        target = Path(path)
    except TypeError:
        because = f"{type(path).__name__} is not a path"
        raise WorkbenchError("cannot write a file", because, f"the path of a {kind.name}") from None
    if not os.fspath(path):
        because = "its path has no letters"
        raise WorkbenchError("cannot write a file", because, f"the path of a {kind.name}")
    _require_writable(target)
    _require_kind(target, kind)
    return Path(os.path.abspath(target))


@contextlib.contextmanager
def part_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the block a path to write to. When the block has ended, that file replaces `path`; if
    the block raises, the file that was there stays.

    Errors: WorkbenchError where nothing can be written at `path`.
    """
    try:
        target = Path(path).resolve()  # a link's target
    except TypeError:
        because = f"{type(path).__name__} is not a path"
        raise WorkbenchError("cannot write a file", because, '"file"') from None
    except ValueError as error:  # a path that is not a valid name
        raise _write_error(Path(path), error) from error
    _require_writable(target)
    is_there = target.exists()
    part = target.with_name(f".new-{token_hex(8)}")
    try:
        part.touch(0o600 if is_there else 0o666, exist_ok=False)
        yield part
        if is_there:
            shutil.copymode(target, part)
        os.replace(part, target)
    except OSError as error:
        raise _write_error(target, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def replace_file(path: Path, data: bytes, keeps_mode: bool = False, mode: int = 0o600) -> None:
    """Write a file whole or not at all: readers see it under its name when it is complete.

    Its mode is `mode` less the umask, by default for the user alone, or, with `keeps_mode`, the
    mode of the file that it replaces. Errors: OSError.
    """
    part = path.with_name(f".new-{token_hex(8)}")
    try:  # from here on Ctrl-C must not leave a part file behind
        part.touch(mode, exist_ok=False)
        part.write_bytes(data)
        if keeps_mode:
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _require_writable(path: Path) -> None:
    """Raise for a path that cannot be written; called before the content is computed."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {path.parent}")
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # raises for a path that is not a valid name
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, "it may not be written")
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error


def _require_kind(path: Path, kind: FileKind) -> None:
    """Raise for a file of another kind, which would be lost."""
    if not path.is_file():  # a new one, a pipe or a terminal
        return
    try:
        with path.open("rb") as file:
            begin = file.read(MOST_HEAD_BYTES)
    except OSError as error:
        raise _write_error(path, error) from error
    head = begin.decode("utf-8-sig", errors="replace").lstrip()
    if head and not re.match(kind.begin, head, re.IGNORECASE | re.DOTALL):
        because = f"the file that is there is no {kind.name}, and would be lost"
        raise WorkbenchError(f"cannot write {cut(str(path), 300)}", because, "another path")


def _write(path: Path, data: bytes) -> None:
    is_there = path.exists()
    if is_there and not path.is_file():  # a pipe or a terminal
        path.write_bytes(data)
        return
    path = path.resolve()  # a link's target
    replace_file(path, data, keeps_mode=is_there, mode=0o600 if is_there else 0o666)


def _write_error(path: Path, error: OSError | ValueError) -> WorkbenchError:
    """Return the WorkbenchError for a path that cannot be written."""
    because = getattr(error, "strerror", None) or str(error)
    hint = "another folder"
    if isinstance(error, IsADirectoryError):
        hint = "the path of a file in it"
    elif isinstance(error, FileNotFoundError):
        hint = f"Path({str(path.parent)!r}).mkdir(parents=True)"
    return WorkbenchError(f"cannot write {cut(str(path), 300)}", because, cut(hint, 300))


# --------------------------------------------------------------------------------------------------
# Values that cannot be pickled: they refer to memory or code of one process.


class Unpicklable:
    """A value that cannot be pickled or copied. `instead` says what to pickle in its place."""

    __slots__ = ()
    instead = "pass on the Kernel or the Tensor, and make this from it in the other process"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise DeviceError(
            f"cannot pickle or copy {type(self).__name__}",
            "it holds memory or machine code of this process",
            self.instead,
        )
