"""What tests of the emulator start with: a device that it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.device import Emulated, registered


@pytest.fixture(scope="module")
def device() -> Iterator[Emulated]:
    with registered() as emulator:
        yield emulator
