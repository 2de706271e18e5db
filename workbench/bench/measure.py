"""What is wrong with an answer."""

from __future__ import annotations

import numpy as np

from workbench.bench.suite import Array

CLOSE = 1e-4
"""How far an element may be off, as a share of the greatest element of the answer."""


def fault(answer: Array, expected: Array) -> str | None:
    """Return what is wrong with an answer, None if it is right.

    Whole numbers must be equal; floats may be off by rounding.
    """
    if answer.shape != expected.shape:
        return f"shape {answer.shape}, not {expected.shape}"
    if expected.dtype.kind != "f":
        wrong = answer != expected
    else:
        limit = CLOSE * max(float(np.abs(expected).max()), 1e-30)
        wrong = ~(np.abs(answer - expected) <= limit)  # NaN is wrong too
    if not wrong.any():
        return None
    place = np.unravel_index(int(np.argmax(wrong)), expected.shape)
    at = ", ".join(map(str, place))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at [{at}]:"
        f" {answer[place]:g}, not {expected[place]:g}"
    )
