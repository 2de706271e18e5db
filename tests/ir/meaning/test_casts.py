"""Casts against a table of Python."""

from __future__ import annotations

import math

import numpy as np

from tests.ir.samples import F, buffer
from tests.support import by_rows
from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.interpret import interpret_tensor

CASTS = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 127.9, 128.0, -128.9, 255.5,
    256.0, 2.0**31, -(2.0**31), 2.0**32,
    2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30,
]  # fmt: skip
INTEGERS = [
    dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
    dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64,
]  # fmt: skip


def truncated(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return int(dtype.max if value > 0 else dtype.min)
    return min(max(math.trunc(value), int(dtype.min)), int(dtype.max))


@by_rows("dtype", INTEGERS, ids=str)
@by_rows("source", [F, dtypes.float64], ids=str)
@by_rows("widen", [False, True])
def test_float_to_int_saturates(source: DType, dtype: DType, widen: bool) -> None:
    b = buffer(1, len(CASTS), dtype=source)
    array = np.array(CASTS, source.numpy)
    actual = interpret_tensor(b.cast(dtype), {b: array}, widen)
    assert actual.dtype == dtype.numpy
    assert actual.tolist() == [truncated(v, dtype) for v in array.tolist()]


def test_other_casts() -> None:
    b = buffer(1, 3, dtype=dtypes.int32)
    values = {b: np.array([-1, 0, 300], np.int32)}
    assert interpret_tensor(b.cast(dtypes.uint8), values).tolist() == [255, 0, 44]
    assert interpret_tensor(b.cast(dtypes.uint64), values).tolist() == [2**64 - 1, 0, 300]
    assert interpret_tensor(b.cast(dtypes.bool), values).tolist() == [True, False, True]
    assert interpret_tensor(b.cast(dtypes.bool).cast(F), values).tolist() == [1.0, 0.0, 1.0]
    floats_ = b.cast(F) * math.nan
    assert interpret_tensor(floats_.cast(dtypes.bool), values).tolist() == [True] * 3
    assert interpret_tensor(b.bitcast(dtypes.uint32), values).tolist() == [2**32 - 1, 0, 300]
