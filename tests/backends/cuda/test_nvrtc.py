"""NVRTC is loaded from where pip installs it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from workbench.backends.cuda import nvrtc


def test_its_builtins_are_loaded_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of CUDA 13.0 name no folder: without this it opens them by their name alone."""
    builtins, library = "libnvrtc-builtins.so.13.0", "libnvrtc.so.13"
    for name in (builtins, "libnvrtc-builtins.alt.so.13.0", library):
        (tmp_path / name).touch()
    tools, loaded = nvrtc.Toolkit(str(tmp_path / library), "", ""), []
    monkeypatch.setattr(nvrtc, "toolkit", lambda: tools)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: loaded.append(Path(path).name))
    nvrtc._library.cache_clear()
    try:
        nvrtc._library()
    finally:
        nvrtc._library.cache_clear()
    assert loaded == [builtins, library]
