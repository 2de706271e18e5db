"""The reference interpreter of the tensor level against numpy written by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.ir import samples
from tests.ir.samples import F, at, axis, buffer, floats, kernel, param, reduced, tensor
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import VerifyError
from workbench.ir.meaning.interpret import interpret_kernel, interpret_tensor, interpret_tensors
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def test_movement_means_what_numpy_does() -> None:
    b = buffer(1, 3, 4)
    x = floats(3, 4)
    want = np.flip(np.pad(x.T, ((1, 0), (0, 2))), 1).reshape(25)[1:25].reshape(6, 4)
    want = np.broadcast_to(want.max(1, keepdims=True) * 2, (2, 6, 3))
    actual = interpret_tensor(samples.pooled(), {b: x})
    assert actual.dtype == np.float32 and actual.flags.writeable
    np.testing.assert_array_equal(actual, want)


def test_roots_share_what_they_compute() -> None:
    b = buffer(1, 5)
    square = b * b
    actual = interpret_tensors([square, square + 1.0, b], {b: floats(5)})
    np.testing.assert_array_equal(actual[0] + 1, actual[1])
    actual[2][0] = 9  # results are copies


def test_iota_and_constants() -> None:
    iota = UOp(Ops.IOTA, dtypes.int32, (), 4)
    np.testing.assert_array_equal(interpret_tensor(iota * 3 + 1, {}), [1, 4, 7, 10])
    spread = tensor(Ops.EXPAND, UOp.const(F, 0.1), (2, 2))
    np.testing.assert_array_equal(interpret_tensor(spread, {}), np.full((2, 2), np.float32(0.1)))


IDENTITY = {
    (Ops.ADD, F): 0, (Ops.MUL, F): 1, (Ops.MAX, F): -math.inf, (Ops.MIN, F): math.inf,
    (Ops.MAX, dtypes.int8): -128, (Ops.MIN, dtypes.uint64): 2**64 - 1,
    (Ops.ADD, dtypes.bool): False, (Ops.MUL, dtypes.bool): True, (Ops.MAX, dtypes.bool): False,
}  # fmt: skip


@pytest.mark.parametrize("op, dtype", IDENTITY, ids=str)
def test_an_empty_reduction_gives_the_identity(op: Ops, dtype: DType) -> None:
    want = IDENTITY[op, dtype]
    b = buffer(1, 0, 2, dtype=dtype)
    actual = interpret_tensor(
        tensor(Ops.REDUCE_AXIS, b, (op, (0,))), {b: np.empty((0, 2), dtype.numpy)}
    )
    assert actual.tolist() == [[want, want]]
    r0 = axis("r0", 0)
    k = kernel(
        "r0", (at(param(0, 1, dtype), UOp.index(0)), reduced(op, UOp.const(dtype, 1), r0), "")
    )
    assert interpret_kernel(k, [np.zeros(1, dtype.numpy)])[0].tolist() == [want]


def test_reductions_wrap_or_are_logical() -> None:
    small, truth = buffer(1, 3, dtype=dtypes.uint8), buffer(2, 3, dtype=dtypes.bool)
    values = {small: np.array([200, 100, 3], np.uint8), truth: np.array([True, True, False])}
    for op, b, want in (
        (Ops.ADD, small, 47), (Ops.MUL, small, 96), (Ops.ADD, truth, True), (Ops.MUL, truth, False),
    ):  # fmt: skip
        assert interpret_tensor(tensor(Ops.REDUCE_AXIS, b, (op, (0,))), values).tolist() == [want]


def test_max_keeps_nan() -> None:
    b = buffer(1, 2)
    values = {b: np.array([math.nan, 1.0], np.float32)}
    assert math.isnan(interpret_tensor(tensor(Ops.REDUCE_AXIS, b, (Ops.MAX, (0,))), values)[0])
    assert math.isnan(interpret_tensor(b.alu(Ops.MAX, b.like(9)), values)[0])


def test_float32_is_rounded_at_each_step_and_widened_on_request() -> None:
    b = buffer(1, 1)
    values = {b: np.array([1.0], np.float32)}
    node = (b + 1e-8) + -1.0
    assert interpret_tensor(node, values)[0] == 0
    wide = interpret_tensor(node, values, widen=True)
    assert wide.dtype == np.float64 and wide[0] == pytest.approx(np.float32(1e-8))
    bits = b.cast(dtypes.float64).cast(F).bitcast(dtypes.int32)
    assert interpret_tensor(bits, values, widen=True)[0] == 0x3F800000
    assert interpret_tensor(bits.bitcast(F) * 0.5, values, widen=True)[0] == 0.5


def test_an_array_that_does_not_fit_is_named() -> None:
    b = buffer(1, 2)
    for values in ({}, {b: floats(3)}, {b: np.zeros(2)}):
        with pytest.raises(VerifyError, match="given for"):
            interpret_tensor(b, values)
    with pytest.raises(VerifyError, match="parameter 0"):
        interpret_kernel(samples.matmul(2, 2, 2), [np.zeros(3, np.float32)])
    with pytest.raises(VerifyError, match="parameter 3"):
        interpret_kernel(samples.matmul(2, 2, 2), [floats(4)] * 3)
