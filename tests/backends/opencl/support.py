"""The OpenCL driver that tests need: without one they are skipped, and fail in CI, which installs
PoCL."""

from __future__ import annotations

import os

import pytest

from workbench.backends.device import Device


def need_driver() -> None:
    """Skip, or fail in CI, where no driver is found."""
    if not Device["OPENCL"].is_available:
        reason = f"no OpenCL driver: {Device['OPENCL'].how_to_get}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
