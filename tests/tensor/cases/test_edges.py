"""Gradients of every method at edges against torch's: the rows of tests/tensor/cases/tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import LONG, try_all
from tests.tensor.cases.different_gradients import assert_as_recorded, recorded
from tests.tensor.cases.edges import (
    DIFFERENT,
    EDGES,
    SHAPES,
    compare_at_edge,
    different_gradients,
    edge_comparisons,
)
from tests.tensor.cases.table import by_table, cases
from workbench import Tensor

TABLES = by_table(edge_comparisons(LONG))


@pytest.mark.parametrize("table", TABLES)
def test_gradients_at_edges_are_torchs(table: str) -> None:
    try_all(compare_at_edge, TABLES[table], lambda comparison: str(comparison.name))


def test_every_method_with_a_gradient_is_at_every_edge() -> None:
    """Each method has a row or a reason (test_every_method.py); rows say which have a gradient."""
    edges = {(c.case.name, c.edge) for c in edge_comparisons(True)}
    names = {row.name for _, row in cases() if row.has_gradient and "float32" in row.dtypes}
    assert edges == {(name, edge) for name in names for edge in (*EDGES, *SHAPES)}
    assert DIFFERENT.keys() <= edges


def test_a_gradient_that_is_recorded_is_compared() -> None:
    """Another value than the recorded one is found, and a NaN elsewhere."""
    by_name = {c.name: c for c in edge_comparisons(True)}
    assert recorded().keys() <= by_name.keys()
    for name in ("layers-max_pool2d-1 at equal values", "basics-max-1 at NaN"):
        gradients = different_gradients(by_name[name])
        assert isinstance(gradients, list)
        assert_as_recorded(name, gradients)
        others = (gradients[0] * 1.001, np.flip(gradients[0], -1) + 0.1, gradients[0] * np.nan)
        for other in others:
            with pytest.raises(AssertionError):
                assert_as_recorded(name, [other, *gradients[1:]])


BY_HAND: dict[str, tuple[Callable[[Tensor], Tensor], list[float], list[float]]] = {
    "equal values of a window share": (
        lambda x: x.reshape(1, 1, 2, 2).max_pool2d(2), [3, 3, 1, 3], [1 / 3, 1 / 3, 0, 1 / 3],
    ),
    "the first of equal values": (lambda x: x.topk(2)[0], [2, 5, 2, 2], [1, 1, 0, 0]),
    "NaNs share": (lambda x: x.max(), [np.nan, 1, np.nan, 0], [0.5, 0, 0.5, 0]),
    "a NaN is inside of limits": (lambda x: x.relu6(), [np.nan, 7, -1, 2], [1, 0, 0, 1]),
    "the sign of an infinity": (
        lambda x: x.copysign(-1.0), [np.inf, -np.inf, 2, -2], [-1, 1, -1, 1],
    ),
    "the limit at an infinity": (lambda x: x.softsign(), [np.inf, -np.inf, 0, 1], [0, 0, 1, 0.25]),
    "the product of the others": (lambda x: x.prod(), [np.inf, 2, 3], [6, np.inf, np.inf]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_where_they_are_not_torchs_they_are_what_a_person_derives(name: str) -> None:
    function, values, expected = BY_HAND[name]
    x = Tensor(np.array(values, np.float64), requires_grad=True)
    (gradient,) = function(x).sum().gradient(x)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12)
