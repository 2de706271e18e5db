"""The OpenCL driver that tests need: without one they are skipped."""

from __future__ import annotations

import pytest

from workbench.backends.device import Device


def need_driver() -> None:
    """Skip where no driver is found."""
    if not Device["OPENCL"].is_available:
        reason = f"no OpenCL driver: {Device['OPENCL'].how_to_get}"
        pytest.skip(reason)
