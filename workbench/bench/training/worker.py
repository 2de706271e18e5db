"""What a process that trains a model in one library is asked: each function runs there."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from workbench.bench.training.memory import memory_of
from workbench.bench.training.models import MODELS, WIDE_MODELS
from workbench.bench.training.steps import step_of

WARM = 3
"""Steps before any is timed, beside the first: a TinyJit captures its function in the second."""


def first_steps(library: str, model: str) -> dict[str, Any]:
    """Return the seconds of the first step, the loss of a later one, and the number of kernels."""
    return _trained(library, model)[1]


def step_seconds(library: str, model: str) -> float:
    """Return how long a step takes, after the first ones."""
    step, _ = _trained(library, model)
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def training_memory(library: str, model: str) -> dict[str, int]:
    """Return what `memory_of` says of a model."""
    return memory_of(library, (MODELS | WIDE_MODELS)[model])


@lru_cache(maxsize=1)
def _trained(library: str, model: str) -> tuple[Callable[[], float], dict[str, Any]]:
    step, kernels = step_of(library, (MODELS | WIDE_MODELS)[model])
    start = time.perf_counter()
    step()
    first_s = time.perf_counter() - start
    losses = [step() for _ in range(WARM)]
    return step, {"first_s": first_s, "loss": losses[1], "kernels": kernels()}
