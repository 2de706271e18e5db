"""conv2d against loops in float64."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import numbers
from tests.tensor.oracles import conv
from workbench.base.errors import ShapeError
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

# fmt: off
CASES: list[Case] = [
    ((1, 1, 3, 3), (1, 1, 1, 1), {}),
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((2, 3, 7, 5), (4, 3, 3, 3), {}),
    ((2, 3, 7, 5), (4, 3, 7, 5), {}),
    ((1, 2, 9, 8), (3, 2, 2, 3), {"stride": 2}),
    ((1, 2, 9, 8), (3, 2, 2, 3), {"stride": (3, 1)}),
    ((1, 2, 9, 8), (3, 2, 3, 2), {"dilation": 2}),
    ((1, 2, 9, 8), (3, 2, 3, 2), {"dilation": (1, 3), "stride": (2, 3)}),
    ((2, 2, 5, 5), (2, 2, 3, 3), {"padding": 1}),
    ((2, 2, 5, 5), (2, 2, 3, 3), {"padding": (0, 2)}),
    ((2, 2, 5, 5), (2, 2, 3, 3), {"padding": (1, 0, 2, 3)}),
    ((1, 1, 2, 2), (1, 1, 3, 3), {"padding": 2, "stride": 2}),
    ((1, 2, 6, 6), (2, 2, 1, 1), {"stride": 4}),
    ((1, 1, 2, 3), (1, 1, 1, 1), {"stride": 7}),
    ((2, 4, 6, 5), (6, 2, 3, 3), {"groups": 2}),
    ((2, 4, 6, 5), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 6, 5, 5), (3, 2, 2, 2), {"groups": 3, "stride": 2, "dilation": 2, "padding": 1}),
    ((2, 3, 9), (4, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 2, 4, 5, 3), (3, 2, 2, 3, 2), {"padding": (1, 0, 1)}),
    ((0, 2, 5, 5), (3, 2, 3, 3), {}),
    ((2, 0, 5, 5), (3, 0, 3, 3), {}),
    ((2, 2, 5, 5), (0, 2, 3, 3), {}),
]
# fmt: on


def _check(x: Any, w: Any, b: Any, stride: Any, dilation: Any, padding: Any, groups: int) -> None:
    axes = w.ndim - 2
    each = [(n,) * axes if isinstance(n, int) else n for n in (stride, dilation)]
    if isinstance(padding, int):
        pads = [(padding, padding)] * axes
    elif len(padding) == axes:
        pads = [(p, p) for p in padding]
    else:
        pads = [(padding[i], padding[i + 1]) for i in range(0, 2 * axes, 2)][::-1]
    want = conv(x, w, each[0], each[1], pads, groups)
    options = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
    actual = Tensor(x).conv2d(Tensor(w), **options)
    assert actual.shape == want.shape
    np.testing.assert_allclose(actual.numpy(), want, rtol=1e-5, atol=1e-5)
    want = want + b.reshape(-1, *(1,) * axes)
    actual = Tensor(x).conv2d(Tensor(w), Tensor(b), **options).relu()
    np.testing.assert_allclose(actual.numpy(), np.maximum(want, 0), rtol=1e-5, atol=1e-5)


@by_rows(("shape", "weight", "options"), CASES, ids=str)
def test_conv2d(shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    x, w, b = (numbers(s, seed=i) for i, s in enumerate([shape, weight, weight[:1]]))
    full = {"stride": 1, "dilation": 1, "padding": 0, "groups": 1} | options
    _check(x, w, b, **full)


def test_random_convolutions() -> None:
    rng = random.Random(11)
    for seed in range(count(150)):
        groups, axes = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 2))
        depth, per_group, batch = (rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2))
        kernel = tuple(rng.randint(1, 3) for _ in range(axes))
        dilation = tuple(rng.randint(1, 3) for _ in range(axes))
        padding = tuple(rng.randint(0, 3) for _ in range(2 * axes))
        least = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        size = tuple(n + rng.randint(0, 6) for n in least)
        x = numbers((batch, groups * depth, *size), seed=seed)
        w = numbers((groups * per_group, depth, *kernel), seed=seed + 1)
        b = numbers((groups * per_group,), seed=seed + 2)
        stride = tuple(rng.randint(1, 4) for _ in range(axes))
        _check(x, w, b, stride, dilation, padding, groups)


def test_dtypes() -> None:
    x, w = numbers((1, 2, 5, 5), "int8"), numbers((2, 2, 3, 3), "int8", 1)
    want = conv(x, w, (1, 1), (1, 1), ((0, 0), (0, 0)), 1)
    actual = Tensor(x).conv2d(Tensor(w))
    assert actual.dtype.name == "int8"
    np.testing.assert_array_equal(actual.numpy(), want.astype(np.int64).astype(np.int8))
    actual = Tensor(x).conv2d(Tensor(w), dtype="float64")
    assert actual.dtype.name == "float64"
    np.testing.assert_array_equal(actual.numpy(), want)


def test_padding_never_meets_the_function_before_it() -> None:
    x, w = np.abs(numbers((1, 1, 4, 4))) + 1, numbers((1, 1, 3, 3), seed=1)
    want = conv(np.log(x.astype("f8")), w, (1, 1), (1, 1), ((1, 1), (1, 1)), 1)
    actual = Tensor(x).log().conv2d(Tensor(w), padding=1)
    np.testing.assert_allclose(actual.numpy(), want, rtol=1e-4, atol=1e-5)


def test_nan_and_infinity_reach_only_what_sees_them() -> None:
    x = np.ones((1, 1, 5, 5), np.float32)
    x[0, 0, 0, 0], x[0, 0, 4, 4] = np.nan, np.inf
    actual = Tensor(x).conv2d(Tensor(np.ones((1, 1, 2, 2), np.float32))).numpy()[0, 0]
    want = np.full((4, 4), 4, np.float32)
    want[0, 0], want[3, 3] = np.nan, np.inf
    np.testing.assert_array_equal(actual, want)


def test_conv_and_relu_are_one_kernel() -> None:
    x, w = Tensor.empty(2, 3, 8, 8), Tensor.empty(4, 3, 3, 3)
    assert len(x.conv2d(w, padding=1).relu().schedule()) == 1


# fmt: off
REFUSALS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], str]] = [
    ((1, 3, 5, 5), (2, 4, 3, 3), {}, "the input has 3 channels, and the kernel 4"),
    ((1, 4, 5, 5), (2, 2, 3, 3), {}, "groups=2"),
    ((1, 4, 5, 5), (3, 2, 3, 3), {"groups": 2}, "2 groups do not divide the 3 output channels"),
    ((3, 5, 5), (2, 3, 3, 3), {}, "unsqueeze(0) for a batch of one"),
    ((1, 3), (2, 3), {}, "they have 2 and 2 axes"),
    ((1, 3, 2, 5), (2, 3, 3, 3), {}, "no window fits axis 2"),
    ((1, 3, 5, 5), (2, 3, 3, 3), {"stride": 0}, "stride = 0 is too small"),
    ((1, 3, 5, 5), (2, 3, 3, 3), {"dilation": (1, 2, 3)}, "there are 2 axes to slide along"),
    ((1, 3, 5, 5), (2, 3, 3, 3), {"padding": -1}, "padding = -1 is too small"),
    ((1, 3, 5, 5), (2, 3, 3, 3), {"bias": Tensor([1.0])}, "there are 2 output channels"),
    ((1, 3, 5, 5), (2, 3, 0, 3), {}, "kernel size = 0 is too small"),
]
# fmt: on


@pytest.mark.parametrize(("shape", "weight", "options", "words"), REFUSALS)
def test_refusals(
    shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        Tensor.zeros(*shape).conv2d(Tensor.zeros(*weight), **options)
    assert words in str(caught.value)
    assert "test_convolution.py, line" in caught.value.where
