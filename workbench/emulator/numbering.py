"""Numbers of groups and work-items: one among all, or those along x, y and z."""

from __future__ import annotations

from collections.abc import Sequence


def along(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return a number as numbers along x, y and z; the last of `sizes` is that of x."""
    parts = []
    for size in reversed(sizes):
        parts.append(number % size)
        number //= size
    x, y, z = (*parts, 0, 0, 0)[:3]
    return x, y, z


def among_all(x_y_z: Sequence[int], sizes: Sequence[int]) -> int:
    """Return numbers along x, y and z as one: what `along` is given."""
    number = 0
    for size, place in zip(sizes, reversed([*x_y_z][: len(sizes)]), strict=True):
        number = number * size + place
    return number
