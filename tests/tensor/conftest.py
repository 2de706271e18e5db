"""Value tests of the front end run once per device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workbench.base.context import Context


@pytest.fixture(params=["LLVM", "PYTHON"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make each executing device the default one in turn."""
    with Context(DEV=request.param):
        yield request.param
