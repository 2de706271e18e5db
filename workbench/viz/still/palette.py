"""Colours of kernels in pictures: light, different from those of axis kinds, and always with a
number.

Source: Paul Tol's "light" scheme, for colour-blind readers and dark text.
"""

from __future__ import annotations

_KERNELS = (
    "#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00",
)  # fmt: skip


def kernel_colour(number: int) -> str:
    """Return the colour of a kernel by its number; they repeat after eight."""
    return _KERNELS[number % len(_KERNELS)]
