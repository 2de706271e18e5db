"""What random expressions broke once, each as small as it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fn

from tests.agreement.intervals import known
from tests.agreement.meanings import divide, floor_divide
from tests.tools.compiler import NONE_HERE
from workbench import Context, Opt, OptOps, Tensor, dtypes, explore

DEVICES = ("LLVM", "PYTHON") if NONE_HERE else ("LLVM", "C", "PYTHON")
ENDS = np.array([2**63 - 1, -(2**63), 2**62, 3, -1, 5, 0], np.int64)[:, None]
STEPS = np.arange(5)[None]


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_read_backwards_is_clamped_where_it_is_padded(device: str) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((13, 4)).astype(np.float32))
    (kernel,) = explore(x.softmax(1).flip(1)).kernels
    assert kernel.apply(Opt(OptOps.PADTO, "i0", 8)).check(device).ok


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_of_a_turned_block_may_lie_beyond_a_gate(device: str) -> None:
    a = np.arange(13 * 13, dtype=np.int32).reshape(13, 13)
    with Context(DEV=device):
        actual = Tensor(a).pad(((2, 1), (2, 1))).permute(1, 0).contiguous().numpy()
    np.testing.assert_array_equal(actual, np.pad(a, ((2, 1), (2, 1))).T)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": lambda a, b: a <= b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "not <=": lambda a, b: ~(a <= b), "not <": lambda a, b: ~(a < b), "==": lambda a, b: a == b,
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sign", COMPARISONS)
def test_a_mask_is_counted_at_the_ends_of_int64(sign: str, device: str) -> None:
    compare = COMPARISONS[sign]
    with Context(DEV=device):
        steps, ends = Tensor.arange(5, dtype=dtypes.int64).reshape(1, 5), Tensor(ENDS)
        for actual, want in (
            (compare(steps, ends), compare(STEPS, ENDS)),
            (compare(ends, steps), compare(ENDS, STEPS)),
        ):
            np.testing.assert_array_equal(actual.int().sum(1).numpy(), want.sum(1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_the_least_number_of_a_type_is_added(name: str, device: str) -> None:
    least = int(np.iinfo(name).min)
    a = np.arange(64).astype(name)
    with Context(DEV=device):
        np.testing.assert_array_equal((Tensor(a) + least).numpy(), a + np.dtype(name).type(least))
        np.testing.assert_array_equal(
            (Tensor(a) * 3 + least).numpy(), a * np.dtype(name).type(3) + np.dtype(name).type(least)
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_what_follows_a_shift_by_the_width_knows_that_it_gives_0(name: str, device: str) -> None:
    a = np.arange(-64, 0).astype(name)
    with Context(DEV=device):
        for by in (1, a.itemsize * 8 - 1, a.itemsize * 8):
            shifted = Tensor(a).clip(-100, -1) >> by
            want = a >> by if by < a.itemsize * 8 else a * 0
            np.testing.assert_array_equal((shifted + 1).numpy(), want + 1)
            np.testing.assert_array_equal((shifted < 0).numpy(), want < 0)


@pytest.mark.parametrize("device", (*DEVICES, "CUDA:H100"))
def test_an_infinite_quotient_of_fp8e4m3_is_its_greatest_number(device: str) -> None:
    x = np.array([1, -2, 0, 448], float8_e4m3fn)
    zero = np.array([0], float8_e4m3fn)
    expected = np.array([448, -448, np.nan, 448], np.float32)
    a, b = Tensor(x, device=device), Tensor(zero, device=device)
    for actual, meaning in ((a / b, divide), (a // b, floor_divide)):
        assert actual.dtype is dtypes.fp8e4m3
        np.testing.assert_array_equal(actual.numpy(), expected)
        oracle = meaning(known(x), known(zero))
        assert oracle.exact
        np.testing.assert_array_equal(oracle.low, expected)


BETWEEN = Opt(OptOps.SPLIT, "r0", 2), Opt(OptOps.ORDER, "r0", "g1")
"""A loop over outputs stands between two loops of a sum."""
IN_THE_SUM = Opt(OptOps.LOCAL, "g0", 4), *BETWEEN, Opt(OptOps.ORDER, "r1", "l0")
IN_THE_CORE = Opt(OptOps.TC, "g0 g1 r0", "16x8x16"), *BETWEEN


@pytest.mark.parametrize("dtype, opts", [(np.float32, IN_THE_SUM), (np.float16, IN_THE_CORE)])
def test_a_total_in_memory_is_read_in_each_step_outside_of_work_items(
    dtype: type[Any], opts: tuple[Opt, ...]
) -> None:
    a, b = (
        Tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype))
        for shape in ((16, 64), (64, 24))
    )
    product = a.matmul(b, dtype=dtypes.float32)
    (kernel,) = explore(product, device="CUDA:H100").kernels
    assert kernel.apply(*opts).check().ok


@pytest.mark.parametrize("device", DEVICES)
def test_a_vector_of_bytes_that_is_shifted_by_0(device: str) -> None:
    """LLVM sees late that nothing is less than itself; with GFNI, -9 >> 0 was -120 then."""
    x = np.array([-9, -128, -4, 6], np.int8)
    with Context(DEV=device):
        a, zero = Tensor(x).realize(), Tensor(np.zeros(1, np.float32)).realize()
        half = zero.cast("float16").reshape(())
        shifted = a >> (half < half.expand(3, 4)).cast("int8")
        np.testing.assert_array_equal(shifted.numpy(), np.broadcast_to(x, (3, 4)))
