"""Object files on disk: a kernel is compiled once, not once a session.

Machine code from a file is run unchecked. So the folder is the user's alone (mode 0700), a file is
read only if the user owns it and no other user may write to it, and its content must match the key
and the digest at its head. Any other file is ignored, and a damaged one is deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.base.cache import is_private, key_of, private_folder
from workbench.base.files import replace_file
from workbench.base.source import warn_user

_MAGIC = b"workbench object 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_LIMIT_BYTES = 256 << 20
_WRITES_BETWEEN_TRIMS = 256
"""On average: most processes write fewer files, and a look at all of them takes long."""
_draws = random.Random()  # the program's own numbers stay as they are


def object_of(
    text: str, compiler: Sequence[str], machine: Sequence[str], compile_text: Callable[[str], bytes]
) -> bytes:
    """Return the object file of `text`: the one in the cache, or what `compile_text` returns.

    The key is made of the text, the version and the flags of the `compiler`, and the `machine`: the
    triple, the processor and its features.
    """
    key = key_of(text, *compiler, *machine)
    image = get(key)
    if image is None:
        image = compile_text(text)
        store_object(key, image)
    return image


def get(key: str) -> bytes | None:
    """Return the object file stored under `key`, or None. A damaged file is deleted, with a
    warning."""
    folder = private_folder("objects")
    if folder is None:
        return None
    data = _read(folder / key)
    if data is None:
        return None
    content = _unwrap(key, data)
    if content is None:
        warn_user(f"the cache file {folder / key} is damaged; compiling again")
        with contextlib.suppress(OSError):
            os.unlink(folder / key)
    return content


def store_object(key: str, content: bytes) -> None:
    """Store `content` under `key`. Without a cache folder it does nothing; if the file cannot be
    written, as on a full disk, it warns, and the kernel is compiled in each session."""
    folder = private_folder("objects")
    if folder is None:
        return
    try:
        replace_file(folder / key, _wrap(key, content))
    except OSError as error:
        warn_user(f"the cache {folder} cannot be written ({error.strerror}); going on without")
    if _draws.randrange(_WRITES_BETWEEN_TRIMS) == 0:
        trim(_LIMIT_BYTES)


def trim(limit_bytes: int) -> None:
    """If files take more than `limit_bytes`, delete the oldest until they take half of it."""
    folder = private_folder("objects")
    if folder is None:
        return
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat()
            files.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    if total <= limit_bytes:
        return
    for _, size, path in sorted(files):
        if total <= limit_bytes // 2:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _wrap(key: str, content: bytes) -> bytes:
    named = key.encode() + b"\n" + content
    return _MAGIC + hashlib.sha256(named).digest() + named


def _unwrap(key: str, data: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    digest, named = data[len(_MAGIC) : start], data[start:]
    head = key.encode() + b"\n"
    if not data.startswith(_MAGIC) or hashlib.sha256(named).digest() != digest:
        return None
    return named[len(head) :] if named.startswith(head) else None


# follow no link, and wait for no pipe
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    except OSError:
        return None
    status = os.fstat(handle)
    if stat.S_ISDIR(status.st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(status.st_mode) or not is_private(status):
            warn_user(f"the cache file {path} is not yours alone; not using it")
            return None
        try:
            return file.read()
        except OSError:
            return b""  # treated as damaged
