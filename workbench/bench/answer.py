"""Checks of a library's answer."""

from __future__ import annotations

import numpy as np

from workbench.bench.suite import Array
from workbench.ir.meaning.closeness import STEPS, errors, limit_of


def fault(answer: Array, expected: Array, steps: int = STEPS) -> str | None:
    """Return what is wrong with an answer, None if it is right but for rounding."""
    if answer.shape != expected.shape:
        return f"shape {answer.shape}, not {expected.shape}"
    wrong = errors(answer, expected) > limit_of(answer, expected, steps)
    if not wrong.any():
        return None
    place = np.unravel_index(int(np.argmax(wrong)), expected.shape)
    at = ", ".join(map(str, place))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at [{at}]:"
        f" {answer[place]:g}, not {expected[place]:g}"
    )
