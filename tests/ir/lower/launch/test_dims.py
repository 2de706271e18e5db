"""Axes of a launch get dimensions: neighbours fold, and axes that never meet share one."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from workbench.ir.lower.launch.dims import Dims, grid_dims, item_dims

MANY = 1 << 16


@pytest.mark.parametrize(
    "extents, limits, dims",
    [
        ((), (MANY,), []),
        ((5,), (MANY,) * 3, [[0]]),
        ((5, 6), (MANY,) * 3, [[1], [0]]),
        ((5, 6, 7), (MANY,) * 3, [[2], [1], [0]]),
        ((5, 6, 7, 8), (MANY,) * 3, [[3], [2], [0, 1]]),
        ((5, 6, 7, 8, 9), (MANY, MANY), [[4], [0, 1, 2, 3]]),
        ((100, 3, 8), (1000, 10), None),
        ((10, 3, 8), (1000, 10), [[1, 2], [0]]),
        ((70_000, 8), (1 << 31, 65_535), [[0, 1]]),
        ((70_000,), (65_535, 65_535), None),
        ((5,), (), None),
    ],
)
def test_loops_of_a_grid(
    extents: tuple[int, ...], limits: tuple[int, ...], dims: Dims | None
) -> None:
    assert grid_dims(extents, limits) == dims


def test_axes_that_meet_are_apart() -> None:
    rng = random.Random(0)
    for _ in range(200):
        nests = [rng.sample(range(6), rng.randint(1, 4)) for _ in range(4)]
        chosen = item_dims(nests)
        for nest in nests:
            for a, b in combinations(nest, 2):
                assert chosen[a] != chosen[b], (nests, chosen)
        longest = max(nests, key=len)
        assert max(chosen.values()) + 1 >= len(longest)
        assert sorted(set(chosen.values())) == [*range(max(chosen.values()) + 1)]


def test_the_innermost_axis_is_dimension_0() -> None:
    assert item_dims([[0, 1], [2]]) == {0: 1, 1: 0, 2: 0}
