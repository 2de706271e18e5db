"""Gradients and second gradients of every row of tests/tensor/cases/tables against torch's.

The loss is a sum of all float results, each element with a weight of its own; the second one is
such a sum of the gradients; torch computes both in float64. Rows with infinite operands or NaN are
about values.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
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


DIFFERENT = {
    "layers-max_pool2d-6": "equal values of a window share the gradient; torch's first has it",
    "layers-max_unpool2d-2": "of several values at a place the last has the gradient",
    "layers-max_unpool2d-3": "of several values at a place the last has the gradient",
    "linalg-newton_schulz-10": "the limit of the steps is compared with, whose gradient is 0",
    "losses-binary_crossentropy-4": "logarithms of 0, which are limited otherwise",
}
"""Rows that are not compared, with the reason."""


def rows() -> Iterator[tuple[str, Case]]:
    """Yield the rows that have gradients; in a short run one for each method."""
    methods: set[str] = set()
    for key, row in cases():
        if not row.has_gradient or {"float32", "float64"}.isdisjoint(row.dtypes):
            continue
        if (
            key not in DIFFERENT
            and is_finite(row)
            and (LONG or row.name not in methods)
        ):
            methods.add(row.name)
            yield key, row


ROWS = list(rows())
ORDERS = (1, 2) if LONG else (1,)
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
    """Check shape, dtype and values of the gradients of `inputs`. None is torch's zeros; where its
    gradient is infinite or NaN, ours may be anything."""
    for mine, other, array in zip(ours, theirs, inputs, strict=True):
        want = (
            np.zeros(mine.shape) if other is None else other.detach().numpy(force=True)
        )
        have = mine.numpy()
        assert have.shape == want.shape and have.dtype == array.dtype
        tolerance = TOLERANCE[str(array.dtype)]
        at = np.isfinite(want)
        scale = float(np.max(np.abs(want[at]), initial=1e-3))
        np.testing.assert_allclose(
            have[at], want[at], rtol=tolerance, atol=tolerance * scale
        )


def our_gradients(loss: Tensor | None, inputs: list[Tensor]) -> list[Tensor]:
    if loss is None:
        return [Tensor.zeros(*x.shape, dtype=x.dtype) for x in inputs]
    return loss.gradient(*inputs, materialize_grads=True)


def torchs_gradients(loss: Any, inputs: list[Any]) -> list[Any]:
    """Return torch's gradients; none where it has no such derivative."""
    if loss is None:
        return [None] * len(inputs)
    try:
        return list(
            torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
        )
    except RuntimeError as error:
        assert re.search("is not (implemented|differentiable)", str(error)), error
        return []


def differentiated(row: Case, tensors: list[Any], places: list[int]) -> list[int]:
    """Return the operands that torch has a gradient for: not the weights of classes, nor means that
    are given."""
    try:
        row.theirs([t.requires_grad_(i in places) for i, t in enumerate(tensors)])
    except RuntimeError as error:
        assert "not differentiable with respect to argument" in str(error), error
        return places[:1]
    return places


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("key", "row"), ROWS, ids=[key for key, _ in ROWS])
def test_gradients_are_torchs(key: str, row: Case, dtype: str) -> None:
    arrays = row.inputs(dtype)
    ours, theirs = row.our_tensors(arrays), row.torch_tensors(arrays)
    floats = [i for i, a in enumerate(arrays) if str(a.dtype) == dtype]
    places = differentiated(row, theirs, floats)
    exact = [a.astype("float64") if i in floats else a for i, a in enumerate(arrays)]
    theirs = row.torch_tensors(exact)
    inputs = [arrays[i] for i in places]
    mine = [ours[i].requires_grad_() for i in places]
    others = [theirs[i].requires_grad_() for i in places]
    with Context(DEV="LLVM"):
        results, expected = row.ours(ours), row.theirs(theirs)
        for _ in ORDERS:
            results = our_gradients(total(key, results, Tensor, dtype), mine)
            loss = total(key, expected, torch.tensor, dtype)
            expected = torchs_gradients(loss, others)
            if not expected:
                break
            assert_close(results, expected, inputs)
