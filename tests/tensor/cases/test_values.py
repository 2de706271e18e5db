"""Every method of Tensor against torch: the rows of tests/tensor/cases/tables."""

from __future__ import annotations

import pytest

from tests.tensor.cases.case import assert_same
from tests.tensor.cases.table import Comparison, comparisons
from workbench.base.context import Context

COMPARISONS = list(comparisons())


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: c.key)
def test_values_are_torchs(comparison: Comparison) -> None:
    case = comparison.case
    inputs = case.inputs(comparison.dtype)
    expected = case.theirs(case.torch_tensors(inputs))
    with Context(DEV=comparison.device):
        actual = case.ours(case.our_tensors(inputs))
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            assert_same(case, ours, theirs)
