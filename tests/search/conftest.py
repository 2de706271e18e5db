"""A kernel to search, and no process that stays behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.processes import children
from tests.search.support import numbers
from workbench import Kernel, explore


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return explore(numbers(96, 64) @ numbers(64, 80)).kernels[0]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = children(os.getpid())
    yield
    assert children(os.getpid()) <= before, "a process stayed behind"
