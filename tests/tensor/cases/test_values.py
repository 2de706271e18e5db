"""Every method of Tensor against torch: the rows of tests/tensor/cases/tables."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import LONG, try_all
from tests.tensor.cases.case import compare_values
from tests.tensor.cases.gradients import gradient_comparisons
from tests.tensor.cases.table import Comparison, by_table, comparisons

TABLES = by_table(comparisons(LONG))


@pytest.mark.parametrize("table", TABLES)
def test_values_are_torchs(table: str) -> None:
    def compare(comparison: Comparison) -> None:
        compare_values(comparison.case, comparison.dtype, comparison.device)

    try_all(compare, TABLES[table], lambda comparison: str(comparison.key))


def test_the_long_profile_compares_enough() -> None:
    """2,500 values and gradients on LLVM, a tenth of them on C and on PYTHON; second gradients of
    the same rows are more."""
    numbers = Counter(c.device for c in comparisons(True))
    numbers.update(c.device for c in gradient_comparisons(True))
    assert numbers["LLVM"] >= 2500
    assert numbers["C"] == numbers["PYTHON"] >= numbers["LLVM"] // 10
