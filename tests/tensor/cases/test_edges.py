"""Gradients of every method at edges against torch's: the rows of tests/tensor/cases/tables."""

from __future__ import annotations

import pytest

from tests.support import LONG
from tests.tensor.cases.edges import (
    DIFFERENT,
    EDGES,
    SHAPES,
    EdgeComparison,
    compare_at_edge,
    edge_comparisons,
)
from tests.tensor.cases.table import cases


@pytest.mark.parametrize(
    "comparison", list(edge_comparisons(LONG)), ids=lambda c: c.name
)
def test_gradients_at_edges_are_torchs(comparison: EdgeComparison) -> None:
    compare_at_edge(comparison)


def test_every_method_with_a_gradient_is_at_every_edge() -> None:
    """Each method has a row or a reason (test_every_method.py); rows say which have a gradient."""
    edges = {(c.case.name, c.edge) for c in edge_comparisons(True)}
    names = {
        row.name for _, row in cases() if row.has_gradient and "float32" in row.dtypes
    }
    assert edges == {(name, edge) for name in names for edge in (*EDGES, *SHAPES)}
    assert DIFFERENT.keys() <= edges
