"""Zig, a Python package that brings clang."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from workbench.base.cache.folder import cache_folder


def zig_command() -> tuple[str, ...]:
    """Return what starts zig; empty where the package is not installed. Nothing is run."""
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        return ()
    zig = Path(package.origin).with_name("zig")  # saves the start of another Python
    return (str(zig),) if zig.exists() else (sys.executable, "-m", "ziglang")


def zig_environment() -> dict[str, str]:
    """Return the environment of a call: zig's default cache folders may be missing or
    read-only."""
    folder = str(cache_folder() / "zig")
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, **os.environ}
