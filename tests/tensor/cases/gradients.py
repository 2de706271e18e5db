"""Gradients and second gradients of a row of the tables, compared with torch's.

The loss is a sum of all float results, each element with a weight of its own; the second one is
such a sum of the gradients; torch computes both in float64.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.peers import torch
from tests.tensor.agree import Array
from tests.tensor.cases.case import Case
from tests.tensor.cases.table import Comparison, cases, devices
from workbench.base.context import Context
from workbench.tensor import Tensor

DIFFERENT = {
    "layers-max_pool2d-6": "equal values of a window share the gradient; torch's first has it",
    "layers-max_unpool2d-2": "of several values at a place the last has the gradient",
    "layers-max_unpool2d-3": "of several values at a place the last has the gradient",
    "linalg-newton_schulz-10": "the limit of the steps is compared with, whose gradient is 0",
    "losses-binary_crossentropy-4": "logarithms of 0, which are limited otherwise",
}
"""Rows that are not compared, with the reason."""

TOLERANCE = {"float64": 1e-7, "float32": 2e-4}
CONDITION = {"statistics-logcumsumexp-8-float32": 40}
"""Rows whose gradient depends on a rounded value by so many times TOLERANCE: exp(x - y) of x and y
near -90,000, which float32 rounds to 1/128; torch's is off by as much."""

_NONE = "is not (implemented|differentiable)|returned an invalid gradient"
"""What torch says where it has no gradient."""


def without_gradient(key: str, row: Case) -> str:
    """Return why the gradients of a row are not compared; "" if they are."""
    if not row.has_gradient:
        return "its result has no gradient"
    if {"float32", "float64"}.isdisjoint(row.dtypes):
        return "it has no row in float32 or float64"
    inputs = row.inputs("float64")
    if not all(np.isfinite(a).all() for a in inputs if a.dtype == np.float64):
        return "it is about infinite operands or NaN"
    return DIFFERENT.get(key, "")


def gradient_comparisons(is_long: bool) -> Iterator[Comparison]:
    """Yield what a run compares: in float64, on LLVM, a row of each method; in the long profile all
    rows, in float32 too. A tenth of that is compared on C and PYTHON, too."""
    methods: set[str] = set()
    number = 0
    for key, row in cases():
        if without_gradient(key, row) or (row.name in methods and not is_long):
            continue
        methods.add(row.name)
        for dtype in ("float64", "float32") if is_long else ("float64",):
            for device in devices(number, is_long):
                yield Comparison(f"{key}-{dtype}-{device}", row, dtype, device)
            number += 1


def compare_gradients(comparison: Comparison, orders: int) -> int:
    """Compare gradients up to an order, and return how many were: torch may lack the second."""
    with Context(DEV=comparison.device):
        return _compare(comparison, orders)


def _compare(comparison: Comparison, orders: int) -> int:
    key, row, dtype, _ = comparison
    arrays = row.inputs(dtype)
    ours, theirs = row.our_tensors(arrays), row.torch_tensors(arrays)
    floats = [i for i, a in enumerate(arrays) if str(a.dtype) == dtype]
    places = differentiated(row, theirs, floats)
    exact = [a.astype("float64") if i in floats else a for i, a in enumerate(arrays)]
    theirs = row.torch_tensors(exact)
    inputs = [arrays[i] for i in places]
    mine = [ours[i].requires_grad_() for i in places]
    others = [theirs[i].requires_grad_() for i in places]
    results, expected = row.ours(ours), row.theirs(theirs)
    condition = CONDITION.get(key.rpartition("-")[0], 1)
    for order in range(orders):
        results = our_gradients(total(key, results, Tensor, dtype), mine)
        loss = total(key, expected, torch.tensor, dtype)
        expected = torchs_gradients(loss, others)
        if not expected:
            return order
        _assert_close(results, expected, inputs, condition)
    return orders


def _weights(key: str, number: int, shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(zlib.crc32(f"{key} {number}".encode()))
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


def total(key: str, results: Sequence[Any], tensor: Any, dtype: str) -> Any:
    """Return the loss: None where no result has a gradient."""
    terms = [
        (r * tensor(_weights(key, n, tuple(r.shape), dtype))).sum()
        for n, r in enumerate(results)
        if r is not None and r.is_floating_point() and r.requires_grad
    ]
    return sum(terms[1:], terms[0]) if terms else None


def _assert_close(
    ours: Sequence[Tensor], theirs: Sequence[Any], inputs: Sequence[Array], condition: float
) -> None:
    """Check shape, dtype and values of the gradients of `inputs`, to `condition` times TOLERANCE.
    None is torch's zeros; where its gradient is infinite or NaN, ours may be anything."""
    for mine, other, array in zip(ours, theirs, inputs, strict=True):
        want = np.zeros(mine.shape) if other is None else other.detach().numpy(force=True)
        have = mine.numpy()
        assert have.shape == want.shape and have.dtype == array.dtype
        tolerance = condition * TOLERANCE[str(array.dtype)]
        at = np.isfinite(want)
        scale = float(np.max(np.abs(want[at]), initial=1e-3))
        np.testing.assert_allclose(have[at], want[at], rtol=tolerance, atol=tolerance * scale)


def our_gradients(loss: Tensor | None, inputs: list[Tensor]) -> list[Tensor]:
    if loss is None:
        return [Tensor.zeros(*x.shape, dtype=x.dtype) for x in inputs]
    return loss.gradient(*inputs, materialize_grads=True)


def torchs_gradients(loss: Any, inputs: list[Any]) -> list[Any]:
    """Return torch's gradients; none where it has no such derivative, or one of another shape (of
    a scatter whose index is smaller than its source)."""
    if loss is None:
        return [None] * len(inputs)
    try:
        return list(torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True))
    except RuntimeError as error:
        assert re.search(_NONE, str(error)), error
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
