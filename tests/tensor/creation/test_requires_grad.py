"""`requires_grad=` of all constructors; those that there are, reflection says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from workbench.base.errors import DTypeError
from workbench.tensor import Tensor

_PATTERN = Tensor(np.zeros((2, 3), np.float32))
_ARRAY = np.ones((2, 3), np.float32)
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "arange": (6.0,), "const": (2.0,), "const_like": (2.0,), "eye": (2, 3),
    "from_blob": (_ARRAY.ctypes.data, (2, 3)), "from_dlpack": (_ARRAY,),
    "from_numpy": (_ARRAY, True), "full": ((2, 3), 2.0), "full_like": (2.0,),
    "linspace": (0, 1, 6), "randint": (2, 3), "randperm": (6,),
}  # fmt: skip
"""The arguments of those that do not take a shape."""
_OTHERS = {"einsum"}
"""Class methods that compute of tensors."""
_INTEGERS = ("randint", "randperm")


def _constructors() -> dict[str, Callable[..., Tensor]]:
    """Return the class methods that return a tensor, and the methods of a tensor's shape."""
    names = [name for name in dir(Tensor) if not name.startswith("_")]
    makers = {
        name: getattr(Tensor, name)
        for name in names
        if isinstance(inspect.getattr_static(Tensor, name), classmethod)
        and inspect.signature(getattr(Tensor, name)).return_annotation == "Self"
    }
    likes = {n: getattr(_PATTERN, n) for n in names if n.endswith("_like")}
    return {n: f for n, f in (makers | likes).items() if n not in _OTHERS}


@by_rows("name", _constructors())
def test_every_constructor_takes_requires_grad(name: str) -> None:
    make = _constructors()[name]
    arguments = _ARGUMENTS.get(name, () if name.endswith("_like") else (2, 3))
    assert make(*arguments).requires_grad is None
    assert make(*arguments, requires_grad=False).requires_grad is False
    with pytest.raises(DTypeError, match="requires_grad"):
        make(*arguments, requires_grad="yes")
    if name in _INTEGERS:
        with pytest.raises(DTypeError, match="only floats have gradients"):
            make(*arguments, requires_grad=True)
        return
    # A constant's equal is no leaf, and gets no gradient.
    leaf, equal = make(*arguments, requires_grad=True), make(*arguments)
    weights = np.arange(1.0, 1.0 + leaf.numel(), dtype=np.float32).reshape(leaf.shape)
    (leaf * Tensor(weights) + equal).sum().backward()
    assert leaf.is_leaf and leaf.grad is not None and equal.grad is None
    np.testing.assert_array_equal(leaf.grad.numpy(), weights)


def test_no_constructor_is_missed() -> None:
    """Those that torch has, too, are among those that reflection finds."""
    names = "arange empty eye full linspace ones rand randint randn randperm zeros from_numpy"
    likes = "empty_like full_like ones_like rand_like randn_like zeros_like"
    assert set(names.split()) | set(likes.split()) <= set(_constructors())
