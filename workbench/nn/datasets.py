"""Data sets without a download: handwritten digits, and synthetic points.

Each gives the same data at every call: numpy's generator draws them from a seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.course import course_folder
from workbench.tensor.operands.arguments import finite, shape_error, short, whole
from workbench.tensor.tensor import Tensor

_MOST_SIZE = 1 << 24
"""The maximal number of points of a data set, and of numbers in it."""
_TEST_SHARE = 5
"""One of five digits is in the test part."""


def digits(device: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return 1,797 handwritten digits: images and labels to train with, then those to test with.

    Shapes: images (1437, 1, 8, 8) and (360, 1, 8, 8), labels (1437,) and (360,).
    Dtypes: uint8; a pixel is from 0 to 16, a label from 0 to 9. The test digits are drawn at
    random, the same ones at each call.
    Errors: WorkbenchError where the course, which has the file, is missing.
    Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository, CC BY 4.0; `notebooks/data/README.md` has the details.
    """
    with np.load(course_folder() / "data" / "digits.npz") as file:
        images, labels = file["images"][:, None], file["labels"]
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = np.split(order, [-(-len(order) // _TEST_SHARE)])
    parts = (images[train], labels[train], images[test], labels[test])
    x, y, x_test, y_test = (Tensor(part, device=device) for part in parts)
    return x, y, x_test, y_test


def spirals(
    count: int = 300,
    classes: int = 3,
    noise: float = 0.05,
    seed: int = 0,
    device: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return points in a plane on `classes` arms of a spiral, and the number of the arm of each.

    Shapes: (count, 2), within about 1 of the centre, and (count,). Dtypes: float32, int32.
    Errors: ShapeError for a `count` or `classes` below 1 or above 2**24.
    """
    size = _size(count, "spirals: count")
    arms = _size(classes, "spirals: classes")
    rng = np.random.default_rng(whole(seed, "spirals: seed", 0))
    label = np.arange(size) % arms
    radius = np.sqrt(rng.uniform(0.01, 1.0, size))
    angle = 2 * np.pi * (label / arms + radius)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    points += finite(noise, "spirals: noise", 0) * rng.normal(size=points.shape)
    return _pair(points, label, device)


def blobs(
    count: int = 300,
    classes: int = 3,
    features: int = 2,
    noise: float = 0.3,
    seed: int = 0,
    device: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return points normally distributed around `classes` centres, and the number of each centre.

    Shapes: (count, features) and (count,). Dtypes: float32, int32.
    Errors: ShapeError for a size below 1, or more than 2**24 numbers.
    """
    size = _size(count, "blobs: count")
    axes = _size(features, "blobs: features")
    centre_count = _size(classes, "blobs: classes")
    _size(max(size, centre_count) * axes, "blobs: features of all points")
    rng = np.random.default_rng(whole(seed, "blobs: seed", 0))
    centres = rng.uniform(-2, 2, (centre_count, axes))
    label = np.arange(size) % len(centres)
    spread = finite(noise, "blobs: noise", 0) * rng.normal(size=(size, axes))
    return _pair(centres[label] + spread, label, device)


def _size(value: object, name: str) -> int:
    """Return a number of points, classes or features. Errors: ShapeError beyond _MOST_SIZE."""
    size = whole(value, name, 1)
    if size > _MOST_SIZE:
        because = f"a data set has {_MOST_SIZE:,} of them at most"
        raise shape_error(f"{name} = {short(size)} is too large", because, f"at most {_MOST_SIZE}")
    return size


def _pair(
    points: NDArray[np.float64], label: NDArray[np.int64], device: str | None
) -> tuple[Tensor, Tensor]:
    x = Tensor(points.astype(np.float32), device=device)
    return x, Tensor(label.astype(np.int32), device=device)
