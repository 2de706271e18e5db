"""The simulator that tests need: without one they are skipped."""

from __future__ import annotations

import pytest

from workbench.backends.device import Device


def need_simulator() -> None:
    """Skip where Oclgrind is not installed."""
    device = Device["OCLGRIND"]
    if not device.is_available:
        pytest.skip(f"no Oclgrind: {device.how_to_get}")
