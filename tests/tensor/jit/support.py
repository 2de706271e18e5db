"""Inputs of captured functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import Tensor

Array = np.ndarray[Any, Any]


def numbers(shape: Any, seed: int, dtype: Any = np.float32) -> Array:
    values = np.random.default_rng(seed).standard_normal(shape) * 4
    return values.astype(dtype)


def held(array: Array, device: str | None = None) -> Tensor:
    return Tensor(array, device=device).realize()
