"""Pooling against loops over windows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import Array, assert_agrees, numbers
from tests.tensor.oracles import pool
from workbench.base.errors import ShapeError
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")

# fmt: off
CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 8, 6), {}), ((1, 1, 2, 2), {}), ((2, 2), {}), ((1, 1, 7, 9), {"kernel_size": 3}),
    ((1, 1, 7, 9), {"kernel_size": (3, 2), "stride": 1}),
    ((2, 7, 9), {"kernel_size": (2, 3), "stride": (3, 2)}),
    ((2, 7, 9), {"kernel_size": (2, 3), "stride": (5, 4), "dilation": (3, 2)}),
    ((2, 11, 8), {"kernel_size": (5, 5), "stride": 1}),
    ((2, 6, 6), {"kernel_size": 3, "padding": 1}),
    ((2, 6, 6), {"kernel_size": 3, "padding": (1, 0), "stride": 2}),
    ((2, 6, 6), {"kernel_size": 3, "padding": (1, 0, 0, 1), "stride": 2}),
    ((2, 5, 7), {"kernel_size": 1, "stride": 2}), ((9,), {"kernel_size": (3,)}),
    ((2, 9), {"kernel_size": (4,), "stride": 2, "padding": 2}),
    ((2, 5, 4, 6), {"kernel_size": (2, 2, 3), "stride": (1, 2, 2)}),
    ((1, 5, 5), {"kernel_size": 2, "ceil_mode": True}),
    ((1, 6, 7), {"kernel_size": 3, "stride": 2, "ceil_mode": True, "padding": 1}),
    ((1, 4, 4), {"kernel_size": 1, "stride": 3, "ceil_mode": True}),
    ((0, 3, 4, 4), {}),
]
# fmt: on


def _window(
    kernel_size: Any = 2,
    stride: Any = None,
    dilation: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
) -> dict[str, Any]:
    """Return the arguments as the oracle takes them."""
    kernel = (kernel_size,) * 2 if isinstance(kernel_size, int) else kernel_size
    axes = len(kernel)

    def each(n: Any) -> Any:
        return (n,) * axes if isinstance(n, int) else n

    if not isinstance(padding, int) and len(padding) == 2 * axes:
        pads = [(padding[i], padding[i + 1]) for i in range(0, 2 * axes, 2)][::-1]
    else:
        pads = [(p, p) for p in each(padding)]
    return {
        "kernel": kernel,
        "stride": each(kernel if stride is None else stride),
        "dilation": each(dilation),
        "pads": pads,
        "ceil": ceil_mode,
    }


def _check(x: Array, options: dict[str, Any]) -> None:
    window = _window(**options)
    want = pool(x, lambda seen: seen.max(-1), fill=-INF, **window)
    assert_agrees(Tensor(x).max_pool2d(**options), want)
    total = pool(x.astype("f8"), lambda seen: seen.sum(-1), fill=0, **window)
    for with_padding in (True, False):
        ones = np.ones(x.shape)
        counted = dict(window)
        if with_padding:  # what sticks out beyond the padding never counts
            around = [(0, 0)] * (x.ndim - len(window["pads"])) + window["pads"]
            ones = np.pad(ones, around, constant_values=1)
            counted["pads"] = [(0, 0)] * len(window["pads"])
            counted["ceil"] = False
            ones = _longer(ones, total.shape, window)
        counts = pool(ones, lambda seen: seen.sum(-1), fill=0, **counted)
        actual = Tensor(x).avg_pool2d(**options, count_include_pad=with_padding)
        assert actual.shape == total.shape
        np.testing.assert_allclose(actual.numpy(), total / counts, rtol=1e-5, atol=1e-6)


def _longer(ones: Array, outs: tuple[int, ...], window: dict[str, Any]) -> Array:
    """Return `ones` with zeros at the end of each axis, so that the last window fits."""
    axes, more = len(window["kernel"]), [(0, 0)] * ones.ndim
    for i in range(axes):
        at = ones.ndim - axes + i
        extent = window["dilation"][i] * (window["kernel"][i] - 1) + 1
        need = (outs[at] - 1) * window["stride"][i] + extent
        more[at] = (0, max(0, need - ones.shape[at]))
    return np.pad(ones, more)


@by_rows(("shape", "options"), CASES, ids=str)
def test_pooling(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    _check(numbers(shape), options)


def test_random_pooling() -> None:
    rng = random.Random(3)
    for seed in range(count(200)):
        axes = rng.choice((1, 2, 2, 3))
        kernel = tuple(rng.randint(1, 4) for _ in range(axes))
        dilation = tuple(rng.randint(1, 2) for _ in range(axes))
        size = [d * (k - 1) + 1 + rng.randint(0, 5) for k, d in zip(kernel, dilation, strict=True)]
        options = {
            "kernel_size": kernel,
            "stride": tuple(rng.randint(1, 4) for _ in range(axes)),
            "dilation": dilation,
            "padding": tuple(rng.randint(0, k // 2) for k in kernel),
            "ceil_mode": rng.random() < 0.4,
        }
        _check(numbers((*[2] * rng.randint(0, 2), *size), seed=seed), options)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float64"])
def test_dtypes(dtype: str) -> None:
    x = numbers((2, 5, 5), dtype)
    low = {"b": False, "i": -100, "u": 0, "f": -INF}[x.dtype.kind]
    window = _window(3, 1, padding=1)
    want = pool(x, lambda seen: seen.max(-1), fill=low, **window)
    assert_agrees(Tensor(x).max_pool2d(3, 1, padding=1), want)
    mean = pool(x.astype("f8"), lambda seen: seen.mean(-1), fill=0, **window)
    actual = Tensor(x).avg_pool2d(3, 1, padding=1)
    assert actual.dtype.name == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose(actual.numpy(), mean, rtol=1e-5, atol=1e-6)


def test_special_values() -> None:
    x = np.float32([[-INF, -INF, 1], [NAN, 2, INF], [-3, -4, -5]])
    assert_agrees(Tensor(x).max_pool2d(2, 1), np.float32([[NAN, INF], [NAN, INF]]))
    low = np.full((2, 2), -INF, np.float32)
    assert_agrees(Tensor(low).max_pool2d(2, padding=1), low)
    assert_agrees(Tensor(x).log().max_pool2d(1), np.log(np.float32(
        [[NAN, NAN, 1], [NAN, 2, INF], [NAN, NAN, NAN]])), 2)  # fmt: skip


def test_refusals() -> None:
    t = Tensor.zeros(2, 3, 3)
    for options, words in (
        ({"kernel_size": 4}, "it sees 4 elements, and there are 3"),
        ({"kernel_size": 2, "dilation": 3}, "it sees 4 elements"),
        ({"kernel_size": (1, 1, 1, 1)}, "slides over 4 axes, and there are 3"),
        ({"kernel_size": 0}, "kernel size"),
        ({"stride": 0}, "stride = 0 is too small"),
        ({"padding": (1, 2, 3)}, "padding (1, 2, 3) does not fit"),
        ({"padding": 2}, "a window of 2 elements may have 1 of padding on a side, and this is 2"),
        ({"kernel_size": 3, "padding": 2}, "may have 1 of padding"),
        ({"kernel_size": 3, "padding": (0, 2)}, "padding (0, 2) does not fit"),
        ({"kernel_size": 3, "padding": (0, 0, 3, 0)}, "may have 2 of padding"),
        ({"kernel_size": 1, "padding": 1}, "may have 0 of padding"),
    ):
        for pool_of in (t.max_pool2d, t.avg_pool2d):
            with pytest.raises(ShapeError) as caught:
                pool_of(**options)  # type: ignore[arg-type]
            assert words in str(caught.value)


def test_padding_of_most_of_a_window() -> None:
    """Half of a window that is dilated, as in PyTorch, and sides of their own, as in ONNX."""
    for options in (
        {"kernel_size": 2, "dilation": 3, "padding": 2},
        {"kernel_size": 3, "padding": (2, 2, 2, 0)},
    ):
        _check(numbers((1, 5, 5)), options)
