"""Gradients and second gradients of every row of tests/tensor/cases/tables against torch's.

The loss is a sum of all float results, each element with a weight of its own; the second one is
such a sum of the gradients. Where torch has no second derivative, ours is computed all the same.
Rows with infinite operands or NaN are about values.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG
from tests.tensor.agree import Array
from tests.tensor.cases.case import Case
from tests.tensor.cases.table import cases
from workbench.base.context import Context
from workbench.tensor import Tensor


def is_finite(row: Case) -> bool:
    inputs = row.inputs("float64")
    return all(np.isfinite(a).all() for a in inputs if a.dtype == np.float64)


ROWS = [
    (key, row)
    for key, row in cases()
    if row.has_gradient
    and not {"float32", "float64"}.isdisjoint(row.dtypes)
    and is_finite(row)
]
DTYPES = ("float64", "float32") if LONG else ("float64",)
TOLERANCE = {"float64": 1e-7, "float32": 2e-4}


def weights(key: str, number: int, shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(zlib.crc32(f"{key} {number}".encode()))
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


def total(key: str, results: Sequence[Any], tensor: Any, dtype: str) -> Any:
    """Return the loss: None where no result has a gradient."""
    terms = [
        (r * tensor(weights(key, n, tuple(r.shape), dtype))).sum()
        for n, r in enumerate(results)
        if r is not None and r.is_floating_point() and r.requires_grad
    ]
    return sum(terms[1:], terms[0]) if terms else None


def assert_close(
    ours: Sequence[Tensor], theirs: Sequence[Any], inputs: Sequence[Array]
) -> None:
    """Check shape, dtype and values of the gradients of `inputs`; None is torch's zeros."""
    for mine, other, array in zip(ours, theirs, inputs, strict=True):
        want = (
            np.zeros(mine.shape) if other is None else other.detach().numpy(force=True)
        )
        have = mine.numpy()
        assert have.shape == want.shape and have.dtype == array.dtype
        tolerance = TOLERANCE[str(array.dtype)]
        scale = float(np.max(np.abs(want), initial=1e-3))
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance * scale)


def our_gradients(loss: Tensor | None, inputs: list[Tensor]) -> list[Tensor]:
    if loss is None:
        return [Tensor.zeros(*x.shape, dtype=x.dtype) for x in inputs]
    return loss.gradient(*inputs, materialize_grads=True)


def torchs_gradients(loss: Any, inputs: list[Any]) -> list[Any]:
    if loss is None:
        return [None] * len(inputs)
    try:
        return list(
            torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
        )
    except RuntimeError as error:
        assert "is not implemented" in str(error)
        return []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("key", "row"), ROWS, ids=[key for key, _ in ROWS])
def test_gradients_are_torchs(key: str, row: Case, dtype: str) -> None:
    arrays = row.inputs(dtype)
    ours, theirs = row.our_tensors(arrays), row.torch_tensors(arrays)
    places = [i for i, a in enumerate(arrays) if str(a.dtype) == dtype]
    inputs = [arrays[i] for i in places]
    mine = [ours[i].requires_grad_() for i in places]
    others = [theirs[i].requires_grad_() for i in places]
    with Context(DEV="LLVM"):
        first = our_gradients(total(key, row.ours(ours), Tensor, dtype), mine)
        expected = torchs_gradients(
            total(key, row.theirs(theirs), torch.tensor, dtype), others
        )
        assert_close(first, expected, inputs)
        second = our_gradients(total(key, first, Tensor, dtype), mine)
        their_second = torchs_gradients(
            total(key, expected, torch.tensor, dtype), others
        )
        if their_second:
            assert_close(second, their_second, inputs)
