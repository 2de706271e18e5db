"""Sequences compared element by element."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.sequences import Repeat, common_prefix, repeats


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        (["abc"], "abc"),
        (["abc", "abd"], "ab"),
        (["abc", "ab", "abx"], "ab"),
        (["abc", "xbc"], ""),
        (["", "abc"], ""),
    ],
)
def test_common_prefix(rows: list[str], want: str) -> None:
    assert common_prefix(*map(tuple, rows)) == tuple(want)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("", []),
        ("A", []),
        ("ABC", []),
        ("AA", [(0, 1, 2)]),
        ("AAAA", [(0, 1, 4)]),
        ("XABABABY", [(1, 2, 3)]),
        ("ABABA", [(0, 2, 2)]),
        # the last of a block equals the first of the next one
        ("ABAABAABA", [(0, 3, 3)]),
        # nested: each time has its own
        ("ABBABB", [(0, 3, 2), (1, 1, 2), (4, 1, 2)]),
        ("ABABCABABC", [(0, 5, 2), (0, 2, 2), (5, 2, 2)]),
        # two that are apart
        ("AABBB", [(0, 1, 2), (2, 1, 3)]),
    ],
)
def test_repeats(items: str, expected: list[tuple[int, int, int]]) -> None:
    assert repeats(items) == [Repeat(*row) for row in expected]


@given(st.lists(st.integers(0, 2), max_size=24))
def test_each_repeat_is_there_and_in_one_time_of_those_around(items: list[int]) -> None:
    listed = repeats(items)
    assert listed == sorted(listed, key=lambda r: (r.first, -r.end))
    for first, size, times in listed:
        once = items[first : first + size]
        assert times >= 2 and items[first : first + size * times] == once * times
    for place, inner in enumerate(listed):
        for outer in listed[:place]:
            steps = range(outer.first, outer.end, outer.size)
            is_in_one = any(s <= inner.first and inner.end <= s + outer.size for s in steps)
            assert inner.first >= outer.end or is_in_one
    if any(a == b for a, b in pairwise(items)):
        assert listed
