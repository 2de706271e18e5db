"""The table of ATen's operators: each name with its function over Tensors, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

ROWS: dict[str, Callable[..., Any]] = {}
"""By name and overload, "add.Tensor" or "relu" (the overload "default" is left out), a function
with the operator's arguments. It returns a Tensor, or a tuple of them."""

REFUSED: dict[str, str] = {
    "_fft_c2r": "there are no complex numbers here",
    "_fft_r2c": "there are no complex numbers here",
    "_local_scalar_dense": "it needs the value of a tensor while the model is read (x.item())",
    "_unique2": "the shape of its result depends on values",
    "atan2.out": "it writes to an argument: exported programs have none of its kind",
    "complex": "there are no complex numbers here",
    "masked_select": "the shape of its result depends on values",
    "nonzero": "the shape of its result depends on values",
    "polar": "there are no complex numbers here",
    "resize_": "it writes to an argument: exported programs have none of its kind",
    "sym_is_contiguous": "tensors have no strides here",
    "sym_numel": "shapes are numbers here: export the module without dynamic shapes",
    "sym_size.int": "shapes are numbers here: export the module without dynamic shapes",
    "sym_storage_offset": "tensors have no strides here",
    "sym_stride.int": "tensors have no strides here",
    "unique_consecutive": "the shape of its result depends on values",
    "unique_dim": "the shape of its result depends on values",
    "view_as_complex": "there are no complex numbers here",
}
"""Operators that cannot be computed here, each with the reason."""


WHOLE: set[str] = set()
"""The names of operators that are left whole, although PyTorch has a decomposition of them."""


def row(*names: str) -> Callable[[Function], Function]:
    """Enter a function in the table under the names of operators."""

    def entered(function: Function) -> Function:
        for name in names:
            assert name not in ROWS, f"two rows of {name}"
            ROWS[name] = function
        return function

    return entered


def whole_row(*names: str) -> Callable[[Function], Function]:
    """Enter a function in the table under the names of operators that are left whole."""
    WHOLE.update(names)
    return row(*names)
