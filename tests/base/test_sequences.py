"""Sequences compared element by element."""

from __future__ import annotations

import pytest

from workbench.base.sequences import common_prefix


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
