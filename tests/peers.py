"""Libraries that tests compare with: torch, an independent oracle of the Tensor API, onnx with ONNX
Runtime, of models from files, and tinygrad; and packages of networks.

Where one is missing, what needs it is skipped; in CI, which installs them, that fails.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import pytest


def peer(name: str, version: str = "") -> Any:
    """Return a library, or skip the file of tests that asks for it."""
    try:
        return import_module(name)
    except ImportError:
        if os.environ.get("CI"):
            raise
        hint = f"{name} is not installed: pip install {name}{version}"
        pytest.skip(hint, allow_module_level=True)


def _torch() -> Any:
    module = peer("torch", "==2.13.0")
    module.set_num_threads(1)  # test processes share the cores
    return module


def _torchvision() -> Any:
    """Return torchvision. Its wheel's operators need PyTorch's build for GPUs, and beside another
    build the package cannot be imported without their names; its networks use none of them."""
    try:
        return peer("torchvision", "==0.28.*")
    except RuntimeError:
        library = import_module("torch").library
        for name in ("nms", "qnms"):
            signature = "(Tensor boxes, Tensor scores, float threshold) -> Tensor"
            library.define(f"torchvision::{name}", signature)
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        return import_module("torchvision")


def _tinygrad() -> Any:
    """Return tinygrad on its device PYTHON, which needs no compiler."""
    module = peer("tinygrad", "==0.14.*")
    import_module("tinygrad.helpers").DEV.value = "PYTHON"
    return module


def __getattr__(name: str) -> Any:
    if name == "torch":
        return _torch()
    if name == "torchvision":
        return _torchvision()
    if name == "tinygrad":
        return _tinygrad()
    raise AttributeError(name)
