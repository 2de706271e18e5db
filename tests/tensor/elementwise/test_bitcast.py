"""bitcast: the bytes of the last axis, read as another dtype."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support import LONG
from workbench.base.context import Context
from workbench.base.errors import DTypeError, ShapeError
from workbench.tensor import Tensor

DTYPES = "uint8 int16 uint16 float16 int32 float32 float64 int64".split()


@pytest.mark.parametrize("name", ["LLVM", "C", "PYTHON"])
def test_as_numpy_views_it(name: str) -> None:
    rng = np.random.default_rng(0)
    pairs = list(itertools.product(DTYPES, repeat=2))
    with Context(DEV=name):
        for own, other in pairs if LONG else pairs[:: 1 if name == "LLVM" else 7]:
            size = 16 * np.dtype(own).itemsize
            values = rng.integers(0, 256, (3, size), dtype=np.uint8).view(own)
            result = Tensor(values).bitcast(other).numpy()
            want = values.view(other)
            assert (result.shape, result.dtype) == (want.shape, want.dtype)
            assert result.tobytes() == want.tobytes(), (own, other)


def test_of_a_computed_value_and_back() -> None:
    values = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)
    t = Tensor(values) * 2
    assert t.bitcast("uint8").shape == (2, 16)
    np.testing.assert_array_equal(t.bitcast("uint8").bitcast("float32").numpy(), values * 2)
    few = Tensor([1, 258]).bitcast("uint8")
    assert few.tolist() == [1, 0, 0, 0, 2, 1, 0, 0]
    assert Tensor.zeros(3, 0, dtype="uint8").bitcast("int64").shape == (3, 0)


def test_refusals() -> None:
    for shape, text in (((3,), "has 3 bytes"), ((2, 6), "has 6 bytes"), ((), "scalar")):
        with pytest.raises(ShapeError, match=text):
            Tensor.zeros(*shape, dtype="uint8").bitcast("int32")
    for own, other in (("bool", "uint8"), ("uint8", "bool")):
        with pytest.raises(DTypeError, match="have no meaning"):
            Tensor.zeros(4, dtype=own).bitcast(other)
