"""Padding beside products of matrices: zeros are stored where tests would cost more."""

from __future__ import annotations

import numpy as np

from workbench import Tensor
from workbench.ir.schedule.plan import Decision

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def numbers(*shape: int, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    return generator.integers(-4, 5, shape).astype(np.float32)


def decisions(tensor: Tensor) -> list[Decision]:
    return [why for item in tensor.schedule() for why in item.decisions]


def convolved(x: Array, w: Array) -> Array:
    """The windows of `x` and zeros around it times `w`, of which there are as many as pixels."""
    _, _, height, width = x.shape
    rows, columns = w.shape[2] // 2, w.shape[3] // 2
    zeros = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    result = np.zeros((len(x), len(w), height, width), np.float32)
    for i, j in np.ndindex(w.shape[2:]):
        pixels = zeros[:, :, i : i + height, j : j + width]
        result += np.einsum("nchw,oc->nohw", pixels, w[:, :, i, j])
    return result


def test_a_window_is_tested_once_for_all_channels() -> None:
    """A wide window of few channels reads a copy with its zeros, as each test serves few sums."""
    x = numbers(1, 8, 20, 20, seed=1)
    w, wide = numbers(32, 8, 3, 3, seed=2), numbers(32, 3, 7, 7, seed=2)
    for data, filters in ((x, w), (numbers(1, 3, 40, 40, seed=4), wide)):
        image, weight = Tensor(data).realize(), Tensor(filters).realize()
        result = image.conv2d(weight, padding=filters.shape[-1] // 2)
        names = [d.name for d in decisions(result)]
        assert names == ["store-padded"] * (filters is wide) + ["store-asked"]
        np.testing.assert_array_equal(result.numpy(), convolved(data, filters))


def test_a_residual_block_is_two_kernels() -> None:
    x, first, second = (
        numbers(1, 16, 9, 11, seed=3),
        *(numbers(16, 16, 3, 3, seed=n) for n in (4, 5)),
    )
    scale, shift = (numbers(16, 1, 1, seed=n) for n in (6, 7))
    image, *weights = (Tensor(v).realize() for v in (x, first, second, scale, shift))
    a, b, m, s = weights
    inner = (image.conv2d(a, padding=1) * m + s).relu()
    result = (inner.conv2d(b, padding=1) * m + s + image).relu()
    assert [d.name for d in decisions(result)] == ["store-for-tile", "store-asked"]
    want = np.maximum(convolved(x, first) * scale + shift, 0)
    want = np.maximum(convolved(want, second) * scale + shift + x, 0)
    np.testing.assert_array_equal(result.numpy(), want)


def test_gradients_of_weights_read_a_copy_with_its_zeros() -> None:
    """They are sums over whole images: each step moves the tests."""
    x, w = numbers(2, 16, 32, 32, seed=8), numbers(16, 16, 3, 3, seed=9)
    image, weight = (Tensor(v).realize().requires_grad_(True) for v in (x, w))
    (by_weight,) = (image.conv2d(weight, padding=1) * image).sum().gradient(weight)
    assert "store-padded" in [d.name for d in decisions(by_weight)]
    zeros = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for i, j in np.ndindex(3, 3):
        want = np.einsum("nohw,nchw->oc", x, zeros[:, :, i : i + 32, j : j + 32])
        np.testing.assert_array_equal(by_weight.numpy()[:, :, i, j], want)


def test_a_product_is_not_computed_for_what_is_padded() -> None:
    a, b = numbers(64, 64, seed=4), numbers(64, 64, seed=5)
    result = (Tensor(a).realize() @ Tensor(b).realize()).pad((1, 1))
    assert [d.name for d in decisions(result)] == ["store-for-tile", "store-asked"]
    np.testing.assert_array_equal(result.numpy(), np.pad(a @ b, ((0, 0), (1, 1))))


def test_windows_of_one_channel_share_few_masks() -> None:
    """In a depthwise convolution no loop over outputs reads the same element again, as the loop
    over output channels of a full one does: a wide window reads a copy with its zeros."""
    x = numbers(1, 16, 56, 56, seed=6)
    for side, names in ((7, ["store-padded", "store-asked"]), (3, ["store-asked"])):
        w = numbers(16, 1, side, side, seed=7)
        image, weight = Tensor(x).realize(), Tensor(w).realize()
        result = image.conv2d(weight, padding=side // 2, groups=16)
        assert [d.name for d in decisions(result)] == names
        edge = side // 2
        zeros = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
        want = sum(
            zeros[:, :, i : i + 56, j : j + 56] * w[:, 0, i, j, None, None]
            for i in range(side)
            for j in range(side)
        )
        np.testing.assert_array_equal(result.numpy(), want)
