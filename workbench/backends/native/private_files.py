"""JSON files in the user's cache folder: the user's alone, written whole, never believed.

A file that is damaged or too large is deleted, with a warning; a folder that others may write
to is not used. What a file says is plain data, and whoever asks for it checks it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import warnings
from pathlib import Path
from typing import Any

from workbench.backends.native.object_cache import cache_folder, write_private

MOST_BYTES = 4 << 20
"""A larger file is not ours."""


def read_json(folder: str, name: str) -> Any:
    """Return what the file `name` of a cache folder says; None where there is none."""
    path = _folder(folder)
    if path is None:
        return None
    try:
        if (path / name).stat().st_size > MOST_BYTES:
            raise ValueError("it is too large")
        return json.loads((path / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        warn(f"{path / name} cannot be read ({error}); going on without")
        with contextlib.suppress(OSError):
            (path / name).unlink()
        return None


def write_json(folder: str, name: str, data: Any, most_files: int = 400) -> None:
    """Keep `data`; the oldest of more than `most_files` files go. Without a cache folder it
    does nothing."""
    path = _folder(folder)
    if path is None:
        return
    try:
        write_private(path / name, json.dumps(data).encode())
        _keep_newest(path, most_files)
    except OSError as error:
        warn(f"{path / name} cannot be written ({error.strerror}); going on without")


def _keep_newest(folder: Path, most_files: int) -> None:
    aged: list[tuple[float, Path]] = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            aged.append((path.stat().st_mtime, path))
    for _, old in sorted(aged)[: max(0, len(aged) - most_files)]:
        old.unlink(missing_ok=True)


def warn(message: str) -> None:
    """Tell the user of a cache that something is wrong with it."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def _folder(name: str) -> Path | None:
    folder = cache_folder() / name
    if not folder.is_absolute():  # a relative $HOME
        return None
    try:
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError:
        return None
    shared = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if hasattr(os, "geteuid") and (about.st_uid != os.geteuid() or shared):
        warn(f"the folder {folder} is not yours alone; not using it")
        return None
    return folder
