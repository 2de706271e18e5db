"""Gradients and second gradients of every row of tests/tensor/cases/tables against torch's.

The loss is a sum of all float results, each element with a weight of its own; the second one is
such a sum of the gradients. Where torch has no second derivative, ours is computed all the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG
from tests.tensor.cases.case import Case, as_array
from tests.tensor.cases.table import cases
from workbench.base.context import Context
from workbench.tensor import Tensor

ROWS = [(key, row) for key, row in cases() if row.has_gradient]
DTYPES = ("float64", "float32") if LONG else ("float64",)
TOLERANCE = {"float64": 1e-9, "float32": 2e-4}


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


def assert_close(ours: Sequence[Tensor], theirs: Sequence[Any], dtype: str) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        want = as_array(torch.zeros(mine.shape) if other is None else other)
        have = mine.numpy()
        assert have.shape == want.shape and str(have.dtype) == dtype
        scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))
        np.testing.assert_allclose(
            have, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * (scale + 1e-3)
        )


def our_gradients(loss: Tensor | None, inputs: list[Tensor]) -> list[Tensor]:
    if loss is None:
        return [Tensor.zeros(*x.shape, dtype=x.dtype) for x in inputs]
    return loss.gradient(*inputs, materialize_grads=True)


def torchs_gradients(loss: Any, inputs: list[Any]) -> list[Any]:
    if loss is None:
        return [None] * len(inputs)
    gradients = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
    return list(gradients)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("key", "row"), ROWS, ids=[key for key, _ in ROWS])
def test_gradients_are_torchs(key: str, row: Case, dtype: str) -> None:
    arrays = row.inputs(dtype)
    ours, theirs = row.our_tensors(arrays), row.torch_tensors(arrays)
    places = [i for i, a in enumerate(arrays) if str(a.dtype) == dtype]
    mine = [ours[i].requires_grad_() for i in places]
    others = [theirs[i].requires_grad_() for i in places]
    with Context(DEV="LLVM"):
        first = our_gradients(total(key, row.ours(ours), Tensor, dtype), mine)
        expected = torchs_gradients(
            total(key, row.theirs(theirs), torch.tensor, dtype), others
        )
        assert_close(first, expected, dtype)
        second = our_gradients(total(key, first, Tensor, dtype), mine)
        assert_close(
            second,
            torchs_gradients(total(key, expected, torch.tensor, dtype), others),
            dtype,
        )
