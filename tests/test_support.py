"""What tests share, where it could hide a failure."""

from __future__ import annotations

import pytest

from tests.support import by_rows


def test_every_row_is_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @by_rows("number", [1, 2, 3, 4])
    @by_rows(("name", "other"), [("a", [1]), ("b", [2])], ids=["first", "second"])
    def rows(number: int, name: str, other: list[int], fixture: str) -> None:
        tried.append((number, name, other[0]))
        assert fixture == "fixture" and number % 2, "it is even"

    with pytest.raises(AssertionError, match="it is even") as error:
        rows(fixture="fixture")
    assert tried == [(n, *pair) for n in (1, 2, 3, 4) for pair in (("a", 1), ("b", 2))]
    inner, outer = error.value.__notes__
    assert inner == "2 of 2 rows failed:\n  first\n  second"
    assert outer == "2 of 4 rows failed:\n  2\n  4"


def test_a_row_that_is_skipped_is_told_after_the_others() -> None:
    tried = []

    @by_rows("number", [1, 2])
    def rows(number: int) -> None:
        tried.append(number)
        if number == 1:
            pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception, match="not here"):
        rows()
    assert tried == [1, 2]
