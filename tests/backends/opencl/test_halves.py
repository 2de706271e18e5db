"""float16 on OPENCL, by the driver's conversions: every code, and every place where rounding
changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement.edge_cases import ALL, same
from tests.backends.opencl.support import need_driver
from workbench import Tensor, dtypes
from workbench.base.dtypes import DType
from workbench.ir.meaning.values import cast_array

NAME = "OPENCL"
Array = np.ndarray[Any, Any]
HALVES = (dtypes.float16, dtypes.bfloat16)
CODES = np.arange(1 << 16, dtype=np.uint16)
pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(scope="module")
def driver() -> None:
    need_driver()


def on_device(values: Array) -> Tensor:
    return Tensor(values, device=NAME).realize()


@pytest.mark.parametrize("result", ALL, ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_code_is_cast(dtype: DType, result: DType) -> None:
    values = CODES.view(dtype.numpy)
    got = on_device(values).cast(result).numpy()
    want = cast_array(values, dtype, result)
    assert same(got, want.astype(got.dtype)).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_float32_is_rounded_to_nearest_even(dtype: DType) -> None:
    """Codes, the middle between neighbours, and the float32 before and after each."""
    codes = CODES.view(dtype.numpy).astype(np.float32)
    codes = np.sort(codes[np.isfinite(codes)])
    middles = (codes[1:].astype(np.float64) + codes[:-1]) / 2
    places = np.concatenate([codes, middles.astype(np.float32)])
    above, below = (np.nextafter(places, np.float32(way)) for way in (np.inf, -np.inf))
    edges = np.array([np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45], np.float32)
    values = np.concatenate([places, above, below, edges])
    got = on_device(values).cast(dtype).numpy()
    want = cast_array(values, dtypes.float32, dtype)
    assert same(got, want.astype(got.dtype)).all()


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_what_a_kernel_computes_is_cast(dtype: DType, source: DType) -> None:
    """The value is no load, so a store has no type but the expression's own."""
    x = on_device(np.arange(7, dtype=np.float32)).cast(source).realize()
    want = np.arange(7, dtype=np.float32).astype(source.numpy)
    for got, value in ((x * x, want * want), (x == x.flip(0), want == want[::-1])):
        result = got.cast(dtype).numpy()
        np.testing.assert_array_equal(result, value.astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_bits_and_intermediate_results(dtype: DType) -> None:
    values = CODES.view(dtype.numpy)
    x = on_device(values)
    np.testing.assert_array_equal(x.bitcast(dtypes.uint16).numpy(), CODES)
    copy = x.flip(0).contiguous().realize()
    np.testing.assert_array_equal(copy.bitcast(dtypes.uint16).numpy(), CODES[::-1])
    got = on_device(CODES).bitcast(dtype).numpy()
    assert same(got, values.astype(got.dtype)).all()
    wide = values.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        square = (wide * wide).astype(dtype.numpy).astype(np.float32)
        want = (square + wide).astype(dtype.numpy)
    got = (x * x + x).numpy()
    assert same(got, want.astype(got.dtype)).all()
