"""Gradients where functions have corners, where half precision would lose them, and of values that
are written to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import by_rows
from workbench import Tensor, dtypes
from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops

CORNERS = [-1.0, 0.0, 1.0]
# Name -> the function, its values at CORNERS, and its gradients there.
AT_CORNERS: dict[str, tuple[Callable[[Tensor], Tensor], list[float], list[float]]] = {
    "sign": (lambda x: x.sign(), [-1, 0, 1], [0, 0, 0]),
    "abs": (lambda x: x.abs(), [1, 0, 1], [-1, 0, 1]),
    "softsign": (lambda x: x.softsign(), [-0.5, 0, 0.5], [0.25, 1, 0.25]),
    "relu": (lambda x: x.relu(), [0, 0, 1], [0, 0, 1]),
    "where": (lambda x: (x > 0).where(x * 3, x * 2), [-2, 0, 3], [2, 2, 3]),
    "compared": (lambda x: x * (x >= 0), [0, 0, 1], [0, 1, 1]),
    "maximum of itself": (lambda x: x.maximum(x), CORNERS, [1, 1, 1]),
    "maximum of its mirror": (lambda x: x.maximum(-x), [1, 0, 1], [-1, 0, 1]),
    "minimum of zero": (lambda x: x.minimum(Tensor([0.0] * 3)), [-1, 0, 0], [1, 0.5, 0]),
    "clip to itself": (lambda x: x.clip(-1, 1), CORNERS, [1, 1, 1]),
    "rounded": (lambda x: x.round() + x.floor() * x, [0, 0, 2], [-1, 0, 1]),
}  # fmt: skip


@by_rows("name", AT_CORNERS)
@by_rows("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_at_corners_they_are_exact(name: str, dtype: DType) -> None:
    function, values, gradients = AT_CORNERS[name]
    x = Tensor(CORNERS, dtype=dtype, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert y.tolist() == values
    assert x.grad is not None and x.grad.dtype is dtype and x.grad.tolist() == gradients


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32", "bool"])
def test_the_absolute_value_of_a_difference(dtype: str) -> None:
    two, one = Tensor([2], dtype=dtype), Tensor([1], dtype=dtype)
    assert (two ^ one if dtype == "bool" else (two - one)).abs().tolist() == [dtype != "bool"]


def summed_in(gradient: Tensor) -> set[DType]:
    """Return the dtypes of the sums in the kernels of a gradient."""
    kernels = [item.kernel for item in gradient.schedule() if item.kernel is not None]
    return {n.dtype for k in kernels for n in k.toposort() if n.op is Ops.REDUCE}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_gradients_of_half_precision_are_summed_in_float32(dtype: DType) -> None:
    x = Tensor([1.0], dtype=dtype, requires_grad=True)
    w = Tensor(np.full(5000, 0.5), dtype=dtype).realize()
    (gradient,) = (x.expand(5000) * w).sum(dtype="float32").gradient(x)
    assert summed_in(gradient) == {dtypes.float32}
    assert gradient.dtype is dtype  # in half precision the sum stops at 2048, or 256
    assert gradient.tolist() == Tensor([2500.0], dtype=dtype).tolist()
    same = Tensor(np.ones(4096), dtype=dtype, requires_grad=True)
    same.max().backward()
    assert same.grad is not None and set(same.grad.tolist()) == {1 / 4096}


def test_the_mean_of_large_half_precision_numbers_has_a_gradient() -> None:
    x = Tensor(np.full((256, 256), 60000), dtype="float16", requires_grad=True)
    assert x.mean().item() == 60000
    x.square().mean().backward()  # infinite, and its gradient is not
    assert x.grad is not None and x.grad.dtype is dtypes.float16
    assert set(x.grad.flatten().tolist()) == {60000 * 2 / 65536}


def written(x: Any, v: Any, index: Any) -> Any:
    y = x * 2
    y[index] = v * v
    y[0] *= 3
    return (y * y).sum()


@pytest.mark.parametrize("index", [1, slice(1, 3), slice(None, None, 2), [2, 0]], ids=str)
def test_what_is_written_to_a_value_has_its_gradient(index: Any) -> None:
    shape = np.zeros(4)[index].shape
    arrays = np.arange(1.0, 5), np.full(shape, 3.0)
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    written(*ours, index).backward()
    written(*theirs, index).backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy())


def test_a_gradient_is_that_of_the_value_that_was_used() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    x += 10
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 4.0]
    assert x.tolist() == [11.0, 12.0] and x.is_leaf
    assert (x * x).sum().gradient(x)[0].tolist() == [22.0, 24.0]


# edges beside torch

NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan, 0.5, 1e-310]
EXPONENTS = [*(half / 2 for half in range(-7, 8) if half != 1), 16.5, -16.5, 0.25, 2.7]


def gradients_of(call: Callable[..., Any], arrays: list[Any], make: Any) -> list[Any]:
    """Return first gradients, and those of the first one's sum."""
    first = [make(a) for a in arrays]
    if make is Tensor:
        total = call(*first).sum()
        firsts = total.gradient(*first)
        return [
            g.numpy() for g in (*firsts, *firsts[0].sum().gradient(*first, materialize_grads=True))
        ]
    targets = [x.requires_grad_() for x in first]
    grads = torch.autograd.grad(
        call(*targets).sum(), targets, create_graph=True, materialize_grads=True
    )
    more = (
        torch.autograd.grad(grads[0].sum(), targets, materialize_grads=True, allow_unused=True)
        if grads[0].requires_grad
        else [torch.zeros_like(x) for x in targets]
    )
    return [g.numpy(force=True) for g in (*grads, *more)]


@by_rows("exponent", EXPONENTS)
def test_powers_have_torchs_gradients_everywhere(exponent: float) -> None:
    arrays = [np.array(NUMBERS)]
    ours = gradients_of(lambda x: x**exponent, arrays, Tensor)
    theirs = gradients_of(lambda x: x**exponent, arrays, torch.tensor)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)
    x = Tensor([4.0], dtype="float16")
    assert (x**exponent).gradient(x)[0].dtype is dtypes.float16


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = {
    "std of equal values": (
        lambda x: x.std(1), lambda x: x.std(1), [[[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]]],
    ),
    "std_mean of equal values": (
        lambda x: sum(x.std_mean(1)), lambda x: sum(torch.std_mean(x, 1)), [[[0.0] * 3]],
    ),
    "var of as many as the correction": (
        lambda x: x.var(correction=2), lambda x: x.var(correction=2), [[1.0, 2.0]],
    ),
    "var of fewer than the correction, along an axis": (
        lambda x: x.var(1, correction=3), lambda x: x.var(1, correction=3),
        [[[1.0, 2.0], [3.0, 3.0], [5.0, -1.0]]],
    ),
    "var of as many as the correction, along all axes": (
        lambda x: x.var((0, 1), correction=4), lambda x: x.var((0, 1), correction=4),
        [[[1.0, 2.0], [3.0, 0.0]]],
    ),
    "std of as few as the correction, along an axis": (
        lambda x: x.std(1, correction=2) + x.std(0, correction=4),
        lambda x: x.std(1, correction=2) + x.std(0, correction=4),
        [[[1.0, 2.0], [3.0, 3.0]]],
    ),
    "var": (lambda x: x.var(0) * x, lambda x: x.var(0) * x, [[1.0, 2.0, 5.0]]),
    "cummax": (
        lambda x: x.cummax()[0] ** 2, lambda x: x.cummax(0)[0] ** 2,
        [[1.0, 1.0, 0.0, 1.0, 2.0, 2.0]],
    ),
    "cummin of a long axis": (
        lambda x: x.cummin(1)[0] ** 2, lambda x: x.cummin(1)[0] ** 2,
        [np.random.default_rng(0).integers(0, 5, (2, 70)).astype(float)],
    ),
    "a power 0": (lambda x: x**0, lambda x: x**0, [[1.0, 0.0]]),
    "no elements": (lambda x: x[:0] * 2, lambda x: x[:0] * 2, [[1.0, 2.0]]),
    "the sum of no elements": (
        lambda x: x[:0].sum() + 1, lambda x: x[:0].sum() + 1, [[1.0, 2.0]],
    ),
    "the product of no elements": (
        lambda x: x[:, :0].prod(1), lambda x: x[:, :0].prod(1), [[[1.0, 2.0]]],
    ),
    "copysign": (
        lambda x, y: x.copysign(y), lambda x, y: x.copysign(y),
        [[1.0, -2.0, 3.0], [1.0, 0.0, -0.0]],
    ),
    "floored division": (
        lambda x, y: x // y + x, lambda x, y: torch.floor_divide(x, y).detach() + x + 0 * y,
        [[1.0, -3.0], [2.0, 2.0]],
    ),
    "division by 0, truncated": (
        lambda x, y: x.div(y, rounding_mode="trunc"),
        lambda x, y: x.div(y, rounding_mode="trunc"), [[1.0, 0.0], [0.0, 0.0]],
    ),
    "clamp": (
        lambda x, y: x.clamp(0.0, y), lambda x, y: x.clamp(torch.zeros_like(x), y),
        [[-1.0, 0.0, 0.5, 1.0, 2.0, math.nan], [1.0] * 6],
    ),
    "abs": (lambda x: x.abs(), lambda x: x.abs(), [NUMBERS]),
    "relu": (lambda x: x.relu(), lambda x: x.relu(), [NUMBERS]),
    "clip": (lambda x: x.clip(0, 1), lambda x: x.clip(0, 1), [NUMBERS]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@by_rows("name", FUNCTIONS)
def test_edges_are_torchs(name: str) -> None:
    ours, theirs, lists = FUNCTIONS[name]
    arrays = [np.array(a, np.float64) for a in lists]
    mine = gradients_of(ours, arrays, Tensor)
    other = gradients_of(theirs, arrays, torch.tensor)
    for have, want in zip(mine, other, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-15)
    leaf, *rest = (Tensor(a, requires_grad=True) for a in arrays)
    ours(leaf, *rest).sum().backward()
    for tensor, want in zip((leaf, *rest), other, strict=False):
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), want, rtol=1e-9)
