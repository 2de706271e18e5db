"""Padding beside products of matrices: zeros are stored where masks would cost more."""

from __future__ import annotations

import numpy as np

from workbench import Tensor
from workbench.ir.schedule.item import Decision


def numbers(
    *shape: int, seed: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    generator = np.random.default_rng(seed)
    return generator.integers(-4, 5, shape).astype(np.float32)


def decisions(tensor: Tensor) -> list[Decision]:
    return [why for item in tensor.schedule() for why in item.decisions]


def test_a_padded_image_is_stored_where_products_read_it_often() -> None:
    x, w = numbers(1, 8, 20, 20, seed=1), numbers(32, 8, 3, 3, seed=2)
    image, weight = Tensor(x).realize(), Tensor(w).realize()
    result = image.conv2d(weight, padding=1)
    padded, product = decisions(result)
    assert padded.name == "store-padded"
    assert padded.estimates["cost_of_masks"] > padded.estimates["cost_to_store"]
    zeros = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(
        np.einsum("nchw,oc->nohw", zeros[:, :, i : i + 20, j : j + 20], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    np.testing.assert_array_equal(result.numpy(), want)
    few = Tensor(numbers(4, 8, 3, 3, seed=3)).realize()
    assert len(decisions(image.conv2d(few, padding=1))) == 1


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
