"""torch, which tests compare with: an independent oracle of the Tensor API.

Where it is missing, what needs it is skipped; in CI, which installs it, that fails.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def _torch() -> Any:
    try:
        module = import_module("torch")
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("torch is not installed: pip install torch==2.13.0", allow_module_level=True)
    module.set_num_threads(1)  # test processes share the cores
    return module


torch: Any = _torch()
