"""NVRTC is loaded from where pip installs it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from workbench.backends.cuda import nvrtc, sass
from workbench.base.errors import DeviceError


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


def test_machine_code_without_nvdisasm_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvrtc, "toolkit", lambda: nvrtc.Toolkit("libnvrtc.so.13", "", ""))
    with pytest.raises(DeviceError, match="SASS cannot be shown") as caught:
        sass.read_cubin(b"", "sm_90", "NVRTC 13.0", "")
    assert "nvdisasm" in caught.value.because and "nvidia-cuda-nvdisasm" in caught.value.hint
