"""The dtype of a result where a tensor is a Python scalar; promotion as in torch."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench.base.context import Context
from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError
from workbench.tensor import Tensor

DTYPES = "bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64".split()


def _torch(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def test_arrays_promote_as_in_torch() -> None:
    for a, b in itertools.product(DTYPES, repeat=2):
        t, u = (Tensor([1], dtype=d) for d in (a, b))
        x, y = (torch.ones(1, dtype=getattr(torch, d)) for d in (a, b))
        for ours, theirs in (
            (t + u, x + y), (t * u, x * y), (t / u, x / y), (t == u, x == y),
            (t.maximum(u), torch.maximum(x, y)),
            (Tensor([True]).where(t, u), torch.where(torch.tensor([True]), x, y)),
            (t.cat(u), torch.cat([x, y])),
        ):  # fmt: skip
            assert ours.dtype.name == _torch(theirs.dtype), (a, b)


@pytest.mark.parametrize("value", [2.5, 2, True])
def test_scalar_tensors_are_weak_as_in_torch(value: float) -> None:
    for dtype in DTYPES:
        t, x = Tensor([1], dtype=dtype), torch.ones(1, dtype=getattr(torch, dtype))
        scalar, other = Tensor(value), torch.tensor(value)
        want = _torch((x * other).dtype)
        if type(value) is int and dtype == "bool":
            want = "int32"  # the default integer of torch has 64 bits
        for result in (
            t * scalar, scalar * t, scalar + t, t.maximum(scalar),
            Tensor([True]).where(scalar, t), Tensor([True]).where(t, scalar),
            t * scalar.reshape(1), t * (scalar * scalar), t * copy.copy(scalar),
            t * pickle.loads(pickle.dumps(scalar)), t * Tensor(scalar),
        ):  # fmt: skip
            assert result.dtype.name == want, dtype


def test_a_scalar_with_a_dtype_is_a_tensor_like_others() -> None:
    half = Tensor([1, 2], dtype="half")
    for scalar in (
        Tensor(2.0, dtype="float32"), Tensor(2.0).float(), Tensor([2.0]),
        Tensor(np.float32(2.0)), Tensor(2.0) * Tensor.ones(()),
    ):  # fmt: skip
        assert (half * scalar).dtype is dtypes.float32
    assert (half * Tensor(2.0).exp()).dtype is dtypes.float16
    assert Tensor(2.0).dtype is dtypes.float32
    assert (Tensor(2) + 0.5).dtype is dtypes.float32
    assert (Tensor([1], dtype="int8") + Tensor(100)).tolist() == [101]
    with pytest.raises(DTypeError, match="int8 does not hold the number 300"):
        Tensor([1], dtype="int8") + Tensor(300)


def test_default_dtypes_are_those_of_new_tensors() -> None:
    with Context(DEFAULT_FLOAT="half", DEFAULT_INT="int64"):
        floats = [
            Tensor([1.0]), Tensor.ones(2), Tensor.arange(3.0), Tensor.eye(2),
            Tensor.linspace(0, 1, 3), Tensor.rand(2), Tensor.randn(2),
            Tensor([1]).exp(), Tensor([1]) / 2, Tensor([1]) + 2.5, Tensor(1.5),
        ]  # fmt: skip
        ints = [Tensor([1]), Tensor.arange(3), Tensor.full((2,), 3), Tensor(1)]
    assert {t.dtype.name for t in floats} == {"float16"}
    assert {t.dtype.name for t in ints} == {"int64"}
    with Context(DEFAULT_INT="int8"):
        assert Tensor([1]).dtype is dtypes.int8
        assert Tensor([300]).dtype is dtypes.int32
    np.testing.assert_allclose(floats[4].numpy(), [0, 0.5, 1])
