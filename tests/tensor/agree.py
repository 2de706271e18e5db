"""Compare a tensor with the numpy array it should equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.tensor import Tensor

Array = np.ndarray[Any, Any]


def assert_agrees(actual: Tensor, want: Any, ulps: float = 0) -> None:
    """Check shape, dtype and every value; floats to within `ulps` units in the last place.

    NaN equals NaN. The dtype is part of `want`: a numpy array or scalar.
    """
    want = np.asarray(want)
    values = actual.numpy()
    assert actual.shape == values.shape == want.shape
    assert actual.dtype.numpy == values.dtype == want.dtype
    if want.dtype.kind != "f" or not ulps:
        np.testing.assert_array_equal(values, want)
        return
    step = np.finfo(want.dtype).eps * ulps
    tiny = np.finfo(want.dtype).tiny * ulps
    np.testing.assert_allclose(values, want, rtol=step, atol=tiny)


def quiet(formula: Callable[..., Any], *args: Any) -> Any:
    """Return numpy's answer without its warnings: here overflow and 0 / 0 have answers."""
    with np.errstate(all="ignore"):
        return formula(*args)


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    """Return seeded values of either sign (integers from -9 to 9, or 0 to 18 unsigned)."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 19 if kind == "u" else 10, shape).astype(
            dtype
        )
    return rng.normal(size=shape).astype(dtype)
