"""The user's cache folder, which must be private: machine code in it is run unchecked."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path


def cache_folder() -> Path:
    """Return where caches live: $XDG_CACHE_HOME/workbench or the platform's equivalent.

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
    """Return the key of a file that `parts` determine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(b"%d " % len(data))
        digest.update(data)
    return digest.hexdigest()


def private_folder(name: str) -> Path | None:
    """Return the folder `name` of the cache, created if necessary; None where it cannot be, and,
    with a warning, where another user may write to it."""
    folder = cache_folder() / name
    if not folder.is_absolute():  # a relative $HOME
        return None
    try:
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(path.stat()):
                text = f"the cache folder {path} is not yours alone; not using it"
                warnings.warn(text, RuntimeWarning, stacklevel=4)
                return None
    except OSError:
        return None
    return folder


def is_private(about: os.stat_result) -> bool:
    """Whether this user owns a file and no other user may write to it."""
    if not hasattr(os, "geteuid"):  # Windows keeps a user's folders by access lists
        return True
    shared = stat.S_IWGRP | stat.S_IWOTH
    return about.st_uid == os.geteuid() and not about.st_mode & shared
