"""A disk that is full, for tests of what is written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest


def fill_disk(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """From now on there is no space left where a file is opened, written or replaced."""

    def full(*args: Any, **options: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(self: Path, data: bytes) -> NoReturn:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        full()

    if failing == "write":
        monkeypatch.setattr(Path, "write_bytes", half)
    else:
        monkeypatch.setattr(os, failing, full)
