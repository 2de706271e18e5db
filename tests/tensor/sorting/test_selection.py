"""Masks that are one Python scalar."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import Tensor

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_])
def test_a_scalar_is_a_mask_of_bools(flag: bool) -> None:
    assert Tensor(X).masked_select(flag).tolist() == (
        X.ravel().tolist() if flag else []
    )
    filled = Tensor(X).masked_fill(flag, 7.0).numpy()
    np.testing.assert_array_equal(filled, np.full_like(X, 7) if flag else X)
