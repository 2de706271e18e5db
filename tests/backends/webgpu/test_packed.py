"""Elements below 32 bits on WEBGPU: every code of 8 and 16 bits, words that work-items share, and
arrays of a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement.edge_cases import same
from tests.support import by_rows
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.webgpu.wgsl_integers import PackedMemory, word_count
from workbench.base.dtypes import DType
from workbench.ir.meaning.values import cast_array
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import stages

NAME = "WEBGPU"
Array = np.ndarray[Any, Any]
SMALL = (
    dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, *dtypes.fp8s,
    dtypes.float16, dtypes.bfloat16,
)  # fmt: skip
WHOLE = SMALL[1:5]
SIZES = (2, 3, 5, 8, 37, 130)


@pytest.fixture
def driver() -> None:
    if not Device[NAME].is_available:
        pytest.skip(f"no GPU for WebGPU: {Device[NAME].how_to_get}")


def codes(dtype: DType) -> Array:
    """Return every value of a dtype."""
    if dtype.is_bool:
        return np.array([False, True] * 3)
    return np.arange(1 << dtype.bits, dtype=f"u{dtype.itemsize}").view(dtype.numpy)


def on_device(values: Array) -> Tensor:
    return Tensor(values, device=NAME).realize()


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("source", SMALL, ids=str)
def test_every_code_is_cast(source: DType) -> None:
    values = codes(source)
    x = on_device(values)
    for result in (*SMALL, dtypes.int32, dtypes.uint32, dtypes.float32):
        got = x.cast(result).numpy()
        want = cast_array(values, source, result).astype(got.dtype)
        assert same(got, want).all(), f"{source} as {result}"


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_arithmetic_wraps(dtype: DType) -> None:
    values = codes(dtype)[:: 1 if dtype.bits == 8 else 97]
    others = np.roll(values, 5)
    a, b = on_device(values), on_device(others)
    with np.errstate(all="ignore"):
        for got, want in (
            (a + b, values + others), (a * b, values * others), (-a, -values), (~a, ~values),
            (a.maximum(b), np.maximum(values, others)), (a ^ b, values ^ others),
            (a < b, values < others),
        ):  # fmt: skip
            np.testing.assert_array_equal(got.numpy(), want)
    safe = np.where(others == 0, dtype.numpy.type(3), others)
    c = on_device(safe)
    np.testing.assert_array_equal((a // c).numpy(), values // safe)
    np.testing.assert_array_equal((a % c).numpy(), values % safe)


@pytest.mark.usefixtures("driver")
@by_rows("size", SIZES)
@by_rows("dtype", SMALL, ids=str)
def test_work_items_share_words(dtype: DType, size: int) -> None:
    """Elements that are each another work-item's, in groups of several, and vectors."""
    values = np.resize(codes(dtype)[1:], size)
    kernel: RunnableKernel = explore(on_device(values).flip(0)).kernels[-1]
    plans: list[list[Opt]] = [[]]
    plans += [[Opt(OptOps.LOCAL, "g0", n)] for n in (2, 5) if size % n == 0 and size > n]
    plans += [[Opt(OptOps.UPCAST, "g0", n)] for n in (2, 4) if size % n == 0 and size > n]
    for opts in plans:
        (got,) = kernel.apply(*opts).run()
        np.testing.assert_array_equal(
            np.asarray(got).view(np.uint8), np.ascontiguousarray(values[::-1]).view(np.uint8)
        )


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("dtype", [*WHOLE, dtypes.float16, dtypes.bfloat16], ids=str)
def test_arrays_of_a_group(dtype: DType) -> None:
    """A transposed copy by way of shared memory, whose words work-items share."""
    values = np.arange(32 * 16).astype(dtype.numpy).reshape(32, 16)
    kernel: RunnableKernel = explore(on_device(values).T.contiguous()).kernels[-1]
    for axis in ("g0", "g1"):
        kernel = kernel.apply(Opt(OptOps.LOCAL, axis, 8))
    kernel = kernel.apply(Opt(OptOps.STAGE, "g1", 1))
    text = stages(kernel.ast, NAME, "source").source.text
    assert "var<workgroup> As: array<atomic<u32>" in text, text
    (got,) = kernel.run()
    np.testing.assert_array_equal(
        np.asarray(got, np.float32).reshape(16, 32), values.T.astype(np.float32)
    )


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_what_models_compute(dtype: DType) -> None:
    draws = np.random.default_rng(4).normal(size=(13, 37)).astype(dtype.numpy)
    x, wide = on_device(draws), draws.astype(np.float32)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    for got, want in (
        (x.sum(1), wide.sum(1)),
        (x.softmax(1), powers / powers.sum(1, keepdims=True)),
        (x @ x.T, wide @ wide.T),
        ((x * 3).relu(), np.maximum(wide * 3, 0)),
    ):
        near = float(np.abs(want).max()) * 2.0**-dtype.fraction_bits
        np.testing.assert_allclose(got.float().numpy(), want, atol=near)


def test_a_word_that_is_filled_is_stored_at_once() -> None:
    memory = PackedMemory()
    assert memory.load("p1", "g0", dtypes.int8, "i32") == "load_p1(g0)"
    four = dtypes.uint8.vec(4)
    assert memory.store("p0", "g0*4", four, "vec4<u32>", "v") == "store4_p0(g0*4, v);"
    load, store = memory.functions({"p0"})
    assert "extractBits(bitcast<i32>(p1[i >> 2u]), u32(i & 3) << 3u, 8u)" in load
    assert store.count("atomicStore(") == 1 and "atomicAnd" not in store
    assert [word_count(dtypes.uint8, n) for n in (1, 4, 5)] == [1, 1, 2]
    assert word_count(dtypes.float16, 3) == 2
