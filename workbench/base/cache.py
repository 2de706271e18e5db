"""The user's cache folder, which must be private, and JSON files in it.

Sections: The user's cache folder, which must be private; JSON files in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from workbench.base.files import replace_file
from workbench.base.source import warn_user
from workbench.base.typed import to_json, typed_json

# --------------------------------------------------------------------------------------------------
# The user's cache folder, which must be private: machine code in it is run unchecked.


def cache_folder() -> Path:
    """Return the folder of all caches: $XDG_CACHE_HOME/workbench or the platform's equivalent.

    A relative $XDG_CACHE_HOME is ignored, as its specification says: code would be read from the
    current folder.
    """
    xdg_cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if xdg_cache.is_absolute():
        return xdg_cache / "workbench"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "workbench"
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "workbench"
    return home / ".cache" / "workbench"


def key_of(*parts: str) -> str:
    """Return a hash of `parts` as the name of a file: equal only for the same parts in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(b"%d " % len(data))
        digest.update(data)
    return digest.hexdigest()


def private_folder(name: str) -> Path | None:
    """Return the folder `name` of the cache, created if necessary. None if it cannot be created;
    and, with a warning, if it is another user's or others may write to it."""
    folder = cache_folder() / name
    if not folder.is_absolute():  # a relative $HOME
        return None
    try:
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(path.stat()):
                text = f"the cache folder {path} is not yours alone; not using it"
                warn_user(text)
                return None
    except OSError:
        return None
    return folder


def is_private(status: os.stat_result) -> bool:
    """Whether this user owns a file and no other user may write to it."""
    if not hasattr(os, "geteuid"):  # Windows keeps a user's folders by access lists
        return True
    shared = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.geteuid() and not status.st_mode & shared


# --------------------------------------------------------------------------------------------------
# JSON files in the user's cache folder: private, written atomically, validated when read.
#
# A caller that reads a file names its type. A file that is damaged, too large, or of another type
# causes a warning; reading deletes nothing. A folder that others may write to is not used.

MOST_BYTES = 4 << 20
"""A file of more bytes is not read."""
T = TypeVar("T")


def read_json(folder: str, name: str, kind: type[T]) -> T | None:
    """Return the content of the file `name` in a cache folder as a value of type `kind`. None if
    there is no file; and, with a warning, if it cannot be read."""
    path = private_folder(folder)
    if path is None:
        return None
    try:
        return _read(path / name, kind)
    except (OSError, ValueError) as error:
        warn_user(f"{path / name} cannot be read ({error}); going on without")
        return None


def update_json(folder: str, name: str, kind: type[T], change: Callable[[T | None], T]) -> None:
    """Replace the content of a file by `change(content)`; the content is None if there is no file,
    or if it is damaged. A file that cannot be read at present is left as it is, with a warning."""
    path = private_folder(folder)
    if path is None:
        return
    current = None
    try:
        current = _read(path / name, kind)
    except ValueError:
        pass  # a damaged file may be overwritten
    except OSError as error:
        warn_user(f"{path / name} cannot be read ({error}); it stays as it is")
        return
    write_json(folder, name, change(current))


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("it is too large")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return typed_json(text, kind)


def write_json(folder: str, name: str, data: Any, most_files: int = 400) -> None:
    """Write `data`, and delete the oldest files if the folder has more than `most_files`. Without a
    cache folder it does nothing; a failed write is a warning."""
    path = private_folder(folder)
    if path is None:
        return
    try:
        replace_file(path / name, to_json(data).encode())
        _keep_newest(path, most_files)
    except OSError as error:
        warn_user(f"{path / name} cannot be written ({error.strerror}); going on without")


def _keep_newest(folder: Path, most_files: int) -> None:
    aged: list[tuple[float, Path]] = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process deleted it
            aged.append((path.stat().st_mtime, path))
    for _, old in sorted(aged)[: max(0, len(aged) - most_files)]:
        old.unlink(missing_ok=True)
