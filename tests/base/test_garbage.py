"""The threshold of Python's garbage collector in and after a block."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from workbench.base.garbage import OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


def test_blocks_nest_and_give_the_threshold_back(usual: tuple[int, int, int]) -> None:
    with fewer_collections():
        with fewer_collections():
            assert gc.get_threshold()[0] == OBJECTS
        assert gc.get_threshold()[0] == OBJECTS
    assert gc.get_threshold() == usual


def test_an_error_gives_the_threshold_back(usual: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="stop"), fewer_collections():
        raise ValueError("stop")
    assert gc.get_threshold() == usual


def test_the_users_own_threshold_stays() -> None:
    with fewer_collections():
        gc.set_threshold(5, 5, 5)
    assert gc.get_threshold() == (5, 5, 5)
    gc.set_threshold(0)
    with fewer_collections():
        assert gc.get_threshold()[0] == 0
