"""A disk that is full, for tests of what is written."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest


def fill_disk(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """From now on there is no space left where a file is opened, written or replaced."""

    def full(path: Any, flags: Any, mode: int = 0o600) -> int:
        if failing != "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.close(real_open(path, flags, mode))
        return real_open("/dev/full", os.O_WRONLY)

    real_open = os.open
    monkeypatch.setattr(os, "replace" if failing == "replace" else "open", full)
