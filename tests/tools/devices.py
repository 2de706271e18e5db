"""Devices that a test is tried on; those that need not be here are skipped there."""

from __future__ import annotations

import pytest

from workbench.backends.device import Device

ALWAYS = ("LLVM", "PYTHON")


def device_params(*names: str) -> list[object]:
    """Return parameters for `pytest.mark.parametrize`."""
    return [
        name
        if name in ALWAYS
        else pytest.param(
            name,
            marks=pytest.mark.skipif(
                not Device[name].is_available, reason=f"no {name} here: {Device[name].how_to_get}"
            ),
        )
        for name in names
    ]
