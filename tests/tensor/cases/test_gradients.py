"""Gradients and second gradients of every row of tests/tensor/cases/tables against torch's."""

from __future__ import annotations

import pytest

from tests.support import LONG
from tests.tensor.cases.gradients import DIFFERENT, compare_gradients, gradient_comparisons
from tests.tensor.cases.table import Comparison, cases


@pytest.mark.parametrize("comparison", list(gradient_comparisons(LONG)), ids=lambda c: c.key)
def test_gradients_are_torchs(comparison: Comparison) -> None:
    assert compare_gradients(comparison, 2 if LONG else 1)


def test_each_row_that_differs_is_there() -> None:
    assert DIFFERENT.keys() <= {key for key, _ in cases()}
