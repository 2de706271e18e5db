"""The dtype of a result: arrays promote, Python scalars are weak."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from workbench import Context, nn
from workbench.base.dtypes import dtypes
from workbench.tensor import Tensor

ORDER = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
# Row and column in ORDER; b bool, i and u integers by bytes, f floats by bytes.
# fmt: off
TABLE = """
 b   i1  i2  i4  i8  u1  u2  u4  u8  f4  f8
 i1  i1  i2  i4  i8  i2  i4  i8  f4  f4  f8
 i2  i2  i2  i4  i8  i2  i4  i8  f4  f4  f8
 i4  i4  i4  i4  i8  i4  i4  i8  f4  f4  f8
 i8  i8  i8  i8  i8  i8  i8  i8  f4  f4  f8
 u1  i2  i2  i4  i8  u1  u2  u4  u8  f4  f8
 u2  i4  i4  i4  i8  u2  u2  u4  u8  f4  f8
 u4  i8  i8  i8  i8  u4  u4  u4  u8  f4  f8
 u8  f4  f4  f4  f4  u8  u8  u8  u8  f4  f8
 f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8
 f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8
"""
# fmt: on
SHORT = dict(zip("b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split(), ORDER, strict=True))
ROWS = [line.split() for line in TABLE.strip().splitlines()]


PAIRS = list(itertools.product(range(len(ORDER)), repeat=2))


@by_rows(("i", "j"), PAIRS)
def test_two_tensors(i: int, j: int) -> None:
    a, b = Tensor([0], dtype=ORDER[i]), Tensor([1], dtype=ORDER[j])
    want = SHORT[ROWS[i][j]]
    assert str((a + b).dtype) == want
    assert str((a * b).dtype) == want
    assert str(a.maximum(b).dtype) == want
    assert str(Tensor([True]).where(a, b).dtype) == want
    assert (a < b).dtype is dtypes.bool
    assert str((a / b).dtype) == (want if want.startswith("float") else "float32")


# fmt: off
@pytest.mark.parametrize(("dtype", "scalar", "want"), [
    ("bool", True, "bool"), ("bool", 1, "int32"), ("bool", 1.5, "float32"),
    ("int8", True, "int8"), ("int8", 1, "int8"), ("int8", 1.5, "float32"),
    ("int64", 1, "int64"), ("int64", 1.5, "float32"),
    ("float32", 1, "float32"), ("float32", 1.5, "float32"), ("float64", 1.5, "float64"),
    ("float64", True, "float64"), ("bool", 2**40, "int64"),
])  # fmt: on
def test_scalars_are_weak(dtype: str, scalar: Any, want: str) -> None:
    t = Tensor([1], dtype=dtype)
    assert str((t + scalar).dtype) == want
    assert str((scalar + t).dtype) == want
    assert str(Tensor([True]).where(t, scalar).dtype) == want
    assert str(Tensor([True]).where(scalar, t).dtype) == want


@pytest.mark.usefixtures("device")
def test_scalars_that_do_not_fit_compare_as_they_are() -> None:
    t = Tensor([1, 2], dtype="int8")
    assert (t < 300).tolist() == [True, True]
    assert (t == 257).tolist() == [False, False]
    assert (t != 257).tolist() == [True, True]
    assert (Tensor([5], dtype="uint8") > -1).tolist() == [True]
    assert (300 >= t).tolist() == [True, True]
    assert (t < np.int64(300)).tolist() == [True, True]
    assert (Tensor([5], dtype="uint8") - 1).tolist() == [4]  # adds no -1
    assert (t << np.int64(300)).tolist() == [0, 0]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("by", [0, 5, 31, 32, 300, -1])
def test_a_bool_is_shifted_as_the_integer_it_becomes(by: int) -> None:
    t, one = Tensor([True, False]), np.int32([1, 0])
    want = one << by if 0 <= by < 32 else one * 0
    numbers = (by, np.int32(by)) if by >= 0 else ()  # others are refused
    for amount in (*numbers, Tensor(by), Tensor([by, by])):
        np.testing.assert_array_equal((t << amount).numpy(), want)
    np.testing.assert_array_equal((by << t).numpy(), by << one)
    np.testing.assert_array_equal((t >> Tensor(by)).numpy(), one * (by == 0))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sigmoid", "tanh", "reciprocal"])
def test_functions_make_floats(name: str) -> None:
    for dtype in ORDER:
        want = dtype if dtype.startswith("float") else "float32"
        assert str(getattr(Tensor([1], dtype=dtype), name)().dtype) == want


@pytest.mark.parametrize("name", ["neg", "abs", "sign", "relu", "floor", "round", "square"])
def test_functions_that_keep_the_dtype(name: str) -> None:
    for dtype in ORDER:
        assert str(getattr(Tensor([1], dtype=dtype), name)().dtype) == dtype


def test_constants_keep_the_type_they_are_cast_to() -> None:
    assert Tensor.full((2,), -1).cast("uint16").tolist() == [65535] * 2
    assert Tensor([-0.9, -0.3, 1.2]).cast("uint8").tolist() == [0, 0, 1]
    for dtype, value, want in (("uint8", -1, 255), ("int8", 200.0, 127), ("bool", 2, True)):
        constant = getattr(dtypes, dtype).const(value)
        assert constant == want and type(constant) is type(want)


def test_training_with_a_default_of_half_precision() -> None:
    with Context(DEFAULT_FLOAT="half"):
        layer, x = nn.Linear(4, 3), Tensor.randn(5, 4)
        optimizer = nn.optim.SGD([layer.weight, layer.bias], lr=0.1)
        before = layer.weight.numpy()
        with Tensor.train():
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
        assert x.dtype is loss.dtype is layer.weight.dtype is dtypes.half
        assert (layer.weight.numpy() != before).any() and layer.weight.numpy().dtype == np.float16
