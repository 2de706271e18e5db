"""Every method of Tensor against torch: the rows of tests/tensor/cases/tables."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import LONG
from tests.tensor.cases.case import compare_values
from tests.tensor.cases.gradients import gradient_comparisons
from tests.tensor.cases.table import Comparison, comparisons


@pytest.mark.parametrize("comparison", list(comparisons(LONG)), ids=lambda c: c.key)
def test_values_are_torchs(comparison: Comparison) -> None:
    compare_values(comparison.case, comparison.dtype, comparison.device)


def test_the_long_profile_compares_enough() -> None:
    """2,500 values and gradients on LLVM, a tenth of them on C and on PYTHON; second gradients of
    the same rows are more."""
    numbers = Counter(c.device for c in comparisons(True))
    numbers.update(c.device for c in gradient_comparisons(True))
    assert numbers["LLVM"] >= 2500
    assert numbers["C"] == numbers["PYTHON"] >= numbers["LLVM"] // 10
