"""Integers of 64 bits on WEBGPU, which are two words in WGSL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.edge_cases import Case, bitcasts, casts, computed, integers, same
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.webgpu import wgsl_integers as long_integers
from workbench.backends.webgpu.wgsl import Wgsl
from workbench.base.dtypes import DType
from workbench.base.errors import LanguageError
from workbench.kernel.runnable import RunnableKernel

NAME = "WEBGPU"
WIDE = (dtypes.int64, dtypes.uint64)
Array = np.ndarray[Any, Any]


@pytest.fixture
def driver() -> None:
    if not Device[NAME].is_available:
        pytest.skip(f"no GPU for WebGPU: {Device[NAME].how_to_get}")


def draws(dtype: DType, seed: int, size: int = 4000) -> Array:
    """Return integers of all sizes, with the low and the high word of some all zeros or ones."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 64, size, np.uint64) >> rng.integers(0, 64, size, np.uint64)
    low = np.uint64(0xFFFFFFFF)
    bits[::7] &= low
    bits[1::7] |= low
    bits[2::7] &= ~low
    bits[3::7] |= ~low
    bits[4::14] = ~bits[4::14]
    return bits.view(dtype.numpy)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("cases", [casts, bitcasts, integers], ids=lambda f: f.__name__)
def test_edge_cases(cases: Callable[[], Iterator[Case]]) -> None:
    wide = [np.dtype(d.numpy) for d in WIDE]
    listed = [
        case
        for case in cases()
        if any(a.dtype in wide for a in (*case.inputs, case.want))
        and not any(a.dtype == np.float64 for a in (*case.inputs, case.want))
    ]
    for case in listed:  # together they would have too many buffers
        (actual,) = computed([case], NAME)
        right = same(actual, case.want)
        wrong = [a[~right][:4] for a in (*case.inputs, actual, case.want)]
        assert right.all(), f"{case.name}: {wrong}"


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_random_operands(dtype: DType) -> None:
    a, b = draws(dtype, 1), draws(dtype, 2)
    b[b == 0] = 7
    x, y = (Tensor(values, device=NAME).realize() for values in (a, b))
    amounts = np.arange(a.size).astype(dtype.numpy) % 64
    n = Tensor(amounts, device=NAME).realize()
    with np.errstate(all="ignore"):
        for got, want in (
            (x + y, a + b), (x - y, a - b), (x * y, a * b), (x // y, a // b), (x % y, a % b),
            (x & y, a & b), (x ^ y, a ^ b), (x < y, a < b), (x <= y, a <= b), (x.eq(y), a == b),
            (x.maximum(y), np.maximum(a, b)), (x.minimum(y), np.minimum(a, b)),
            (x << n, a << amounts), (x >> n, a >> amounts), (-x, -a), (x.ne(0), a != 0),
            (x.float(), a.astype(np.float32)),
        ):  # fmt: skip
            np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.usefixtures("driver")
def test_floats_are_truncated() -> None:
    values = (2.0 ** np.random.default_rng(3).uniform(-4, 63, 2000)).astype(np.float32)
    values[::2] *= -1
    got = Tensor(values, device=NAME).realize().cast(dtypes.int64).numpy()
    np.testing.assert_array_equal(got, np.trunc(values).astype(np.int64))


@pytest.mark.usefixtures("driver")
def test_registers_and_arrays_of_any_opts() -> None:
    a = draws(dtypes.int64, 4, 1024).reshape(16, 64)
    x = Tensor(a, device=NAME).realize()
    results = (x.sum(1), a.sum(1)), (x.max(1), a.max(1)), (x.T.contiguous(), a.T)
    plans: list[tuple[Opt, ...]] = [
        (),
        *((Opt(OptOps.UPCAST, "g0", n),) for n in (2, 4, 16)),
        (Opt(OptOps.LOCAL, "g0", 8), Opt(OptOps.STAGE, "g0", 1)),
        (Opt(OptOps.UNROLL, "r0", 4), Opt(OptOps.GROUP, "r0", 8)),
    ]
    for tensor, want in results:
        kernel: RunnableKernel = explore(tensor).kernels[-1]
        is_sum = any(axis.name == "r0" for axis in kernel.axes)
        for opts in plans if is_sum else plans[:-1]:
            (got,) = kernel.apply(*opts).run()
            np.testing.assert_array_equal(np.reshape(got, want.shape), want)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint32, np.int64])
@pytest.mark.parametrize("size", [1, 17, 100, 300])
def test_sorted(dtype: Any, size: int) -> None:
    values = np.random.default_rng(size).integers(0, 50, (2, size)).astype(dtype)
    if values.dtype.kind == "f":
        values[:, ::5] = [[np.nan], [-0.0]]
        values[:, 1::5] = [[np.inf], [0.0]]
    order = np.argsort(values, axis=1, kind="stable")
    got, positions = Tensor(values, device=NAME).realize().sort()
    np.testing.assert_array_equal(positions.numpy(), order)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(values, order, 1))


def test_a_text_has_the_functions_that_it_calls() -> None:
    texts = long_integers.functions(["mod_int64"])
    names = [text[3 : text.index("(")] for text in texts]
    assert "divide_64" in names and "mul_64" not in names
    assert {*names} <= long_integers.NAMES <= Wgsl.reserved
    assert long_integers.functions([]) == []
    assert long_integers.calls("add_64(a, words_of_int32(b))") == {"add_64", "words_of_int32"}


@pytest.mark.parametrize("name", sorted(long_integers.NAMES))
def test_each_function_is_called_by_a_kernel(name: str) -> None:
    """None is dead text."""
    i = Tensor(np.arange(4)).realize()
    u = i.cast(dtypes.uint64).contiguous().realize()
    f = Tensor(np.ones(4, np.float32)).realize()
    results = [
        op
        for x in (i, u)
        for op in (
            x + x, x * x, -x, x // (x + 1), x % (x + 1), x << x, x >> x, x < x + 1,
            x.maximum(x + 1), x.minimum(x + 1), x.float(), f.cast(x.dtype), f.int().cast(x.dtype),
        )
    ]  # fmt: skip
    codes = [k.code_for("WEBGPU:BROWSER") for k in explore(*results).kernels]
    assert any(f"fn {name}(" in str(code) for code in codes)


@pytest.mark.parametrize("is_repeated", [True, False])
def test_draws_of_many_classes_are_refused(is_repeated: bool) -> None:
    """Above 2**18 classes they are made in float64, which WGSL has not."""
    for classes, fits in ((1 << 18, True), ((1 << 18) + 1, False)):
        weights = Tensor(np.ones(classes, np.float32), device="WEBGPU:BROWSER")
        drawn = weights.multinomial(1 + is_repeated, replacement=is_repeated)
        kernels = explore(drawn).kernels
        if fits:
            assert all(kernel.code_for("WEBGPU:BROWSER") for kernel in kernels)
            continue
        with pytest.raises(LanguageError, match="WGSL has no float64") as refusal:
            for kernel in kernels:
                kernel.code_for("WEBGPU:BROWSER")
        assert "another device" in str(refusal.value)
