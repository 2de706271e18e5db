"""Gradients and second gradients of every row of tests/tensor/cases/tables against torch's."""

from __future__ import annotations

import pytest

from tests.support import LONG, try_all
from tests.tensor.cases.gradients import DIFFERENT, compare_gradients, gradient_comparisons
from tests.tensor.cases.table import Comparison, by_table, cases

TABLES = by_table(gradient_comparisons(LONG))


@pytest.mark.parametrize("table", TABLES)
def test_gradients_are_torchs(table: str) -> None:
    def compare(comparison: Comparison) -> None:
        assert compare_gradients(comparison, 2 if LONG else 1)

    try_all(compare, TABLES[table], lambda comparison: str(comparison.key))


def test_each_row_that_differs_is_there() -> None:
    assert DIFFERENT.keys() <= {key for key, _ in cases()}
