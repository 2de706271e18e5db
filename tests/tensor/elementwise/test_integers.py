"""Bits, shifts and division of integers, in every spelling: method, operator, from the right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees
from workbench.base.errors import ShapeError
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

HIGH = np.array([[0, 1, 2], [2**8, 2**16, 2**30], [2**31, 2**31 + 5, 2**32 - 1]], np.uint32)
WHOLE = np.array([[-9, 0, 3], [2**31 - 1, -(2**31), 0x1337]], np.int32)
SHIFTS: dict[str, Callable[[Any, int], Any]] = {
    "<<": lambda t, n: t << n,
    ">>": lambda t, n: t >> n,
    "lshift": lambda t, n: t.lshift(n),
    "rshift": lambda t, n: t.rshift(n),
}  # fmt: skip


@pytest.mark.parametrize("places", [0, 2, 31])
def test_shifts_of_high_bits(places: int) -> None:
    left, right = HIGH << np.uint32(places), HIGH >> np.uint32(places)
    t = Tensor(HIGH)
    for shifted in (t << places, t.lshift(places), t << Tensor(places), t * 2**places):
        assert_agrees(shifted, left)
    for shifted in (t >> places, t.rshift(places), t >> Tensor(places), t // 2**places):
        assert_agrees(shifted, right)
    t <<= places
    assert_agrees(t, left)
    t >>= places
    assert_agrees(t, left >> np.uint32(places))
    assert_agrees(Tensor(WHOLE) >> places, WHOLE >> np.int32(places))
    assert_agrees(places << Tensor(HIGH[:1]), np.uint32(places) << HIGH[:1])


@pytest.mark.parametrize("name", SHIFTS)
def test_a_negative_number_of_places_is_refused(name: str) -> None:
    for t in (Tensor(HIGH), Tensor(WHOLE), Tensor([True])):
        for places in (-1, np.int64(-3)):
            with pytest.raises(ShapeError, match="a number of places is 0 or more"):
                SHIFTS[name](t, places)  # type: ignore[arg-type]


# fmt: off
EITHER_SIDE: list[tuple[str, Callable[[Any], Any]]] = [
    ("t ^ t", lambda t: t ^ t), ("t ^ n", lambda t: t ^ 0x1337), ("n ^ t", lambda t: 0x1337 ^ t),
    ("t & n", lambda t: t & 0xFF), ("n & t", lambda t: 0xFF & t),
    ("t | n", lambda t: t | 0x10), ("n | t", lambda t: 0x10 | t),
    ("n // t", lambda t: 100 // (t | 1)), ("n % t", lambda t: 100 % (t | 1)),
    ("t // n", lambda t: t // 7), ("t % n", lambda t: t % 7),
    ("n - t", lambda t: 5 - t), ("n * t", lambda t: 3 * t), ("~t", lambda t: ~t),
]
# fmt: on


@by_rows(("name", "formula"), EITHER_SIDE, ids=[row[0] for row in EITHER_SIDE])
@by_rows("values", [HIGH, WHOLE], ids=["uint32", "int32"])
def test_a_number_on_either_side(name: str, formula: Any, values: Any) -> None:
    with np.errstate(over="ignore"):
        assert_agrees(formula(Tensor(values)), formula(values))


def test_true_division_of_integers_is_of_floats() -> None:
    a, b = WHOLE, np.array([[2, 5, -7], [3, 2, 10]], np.int32)
    quotient = (a.astype(np.float32) / b.astype(np.float32)).astype(np.float32)
    assert_agrees(Tensor(a) / Tensor(b), quotient, 1)
    assert_agrees(Tensor(a) / 4, (a.astype(np.float32) / 4), 1)
    assert_agrees(9 / Tensor(b), (np.float32(9) / b).astype(np.float32), 1)
    assert_agrees(Tensor([True, False]) / 2, np.float32([0.5, 0]))
