"""Elements that a mask selects, where mask or tensor is a constant that is repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench import Tensor

OPERANDS: dict[str, tuple[Any, Any]] = {
    "True": (np.arange(6).reshape(2, 3), True),
    "False": (np.arange(6).reshape(2, 3), False),
    "True of one axis": (np.arange(6).reshape(2, 3), [True]),
    "a column": (np.arange(6).reshape(2, 3), [[True], [False]]),
    "a number": (3, [True, False, True]),
    "both": (3, True),
    "none": (np.zeros((0, 3)), True),
}


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("is_computed", [True, False])
def test_mask_and_tensor_broadcast(name: str, is_computed: bool) -> None:
    values, flags = OPERANDS[name]
    x, mask = Tensor(values), Tensor(flags)
    if is_computed:
        x, mask = x.contiguous().realize(), mask.contiguous().realize()
    both, where = np.broadcast_arrays(values, flags)
    want = both[where]
    assert x.masked_select(mask).tolist() == want.tolist()
    sized = x.masked_select(mask, size=7, fill_value=9).tolist()
    assert sized == want.tolist() + [9] * (7 - want.size)
    filled = x.masked_fill(mask, 7)
    np.testing.assert_array_equal(filled.numpy(), np.where(flags, 7, values))


@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_])
def test_a_scalar_is_a_mask_of_bools(flag: bool) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert Tensor(x).masked_select(flag).tolist() == (x.ravel().tolist() if flag else [])
    filled = Tensor(x).masked_fill(flag, 7.0).numpy()
    np.testing.assert_array_equal(filled, np.full_like(x, 7) if flag else x)
