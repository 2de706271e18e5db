"""Measuring in turn, checking answers first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from workbench.bench.suite import Array

T = TypeVar("T")

# A library's threads go on spinning for a few milliseconds after its work; the next one should
# not have to share the cores with them.
SETTLE_S = 0.005
CLOSE = 1e-4
"""How far an element may be off, as a share of the greatest element of the answer."""


def in_turn(
    samplers: Mapping[str, Callable[[], T]],
    budget_s: float,
    least: int = 3,
    most: int = 25,
    settle_s: float = SETTLE_S,
) -> dict[str, tuple[T, ...]]:
    """Return samples of each, taken round by round, every other round backwards.

    All get as many: at least `least`, then until `budget_s` is over or `most` are taken. So the
    n-th samples of two are neighbours in time, and their ratio is free of the machine's drift.
    """
    samples_by_name: dict[str, list[T]] = {name: [] for name in samplers}
    stop = time.perf_counter() + budget_s
    for number in range(most):
        if number >= least and time.perf_counter() > stop:
            break
        for name in list(samplers) if number % 2 == 0 else reversed(list(samplers)):
            time.sleep(settle_s)
            samples_by_name[name].append(samplers[name]())
    return {name: tuple(samples) for name, samples in samples_by_name.items()}


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
