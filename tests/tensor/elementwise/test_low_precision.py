"""float16 and bfloat16 tensors: their dtypes, what is computed in float32, and reading back."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support import LONG, by_rows, count
from workbench import Device, Kernel, explore
from workbench.base.dtypes import DType, dtypes, promote
from workbench.ir.node.ops import Ops
from workbench.ir.verify.verify import verify
from workbench.tensor import Tensor

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
SMALL = (F16, BF16)
each_dtype = pytest.mark.parametrize("dtype", SMALL, ids=str)


def values(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Any:
    """Return seeded values that `dtype` holds, as float64."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(dtype.numpy).astype(np.float64)


def rounded(want: Any, dtype: DType) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(want).astype(np.float32).astype(dtype.numpy).astype(np.float64)


def assert_close(tensor: Tensor, want: Any, dtype: DType, ulps: float = 1) -> None:
    """Check a result of `dtype` against the exact one: `ulps` units in the last place."""
    assert tensor.dtype is dtype
    eps = 2.0**-dtype.fraction_bits
    least = 2.0**-24 if dtype is F16 else 1e-38
    actual = tensor.numpy().astype(np.float64)
    np.testing.assert_allclose(actual, rounded(want, dtype), rtol=ulps * eps, atol=least)


def test_promotion() -> None:
    for small in SMALL:
        for other in (dtypes.bool, dtypes.int8, dtypes.int64, dtypes.uint64, small):
            assert promote(small, other) is promote(other, small) is small
        assert promote(small, F32) is F32 and promote(F64, small) is F64
        t = Tensor([1], dtype=small)
        for scalar in (True, 2, 2.5):
            assert (t + scalar).dtype is (scalar * t).dtype is small
    assert promote(F16, BF16) is promote(BF16, F16) is F32
    assert dtypes.half is F16 and str(BF16) == "bfloat16"


@pytest.mark.usefixtures("device")
@each_dtype
def test_made_and_read_back(dtype: DType) -> None:
    value = float(dtype.const(1.1))
    assert Tensor([1.1, -2], dtype=dtype).tolist() == [value, -2.0]
    assert Tensor(1.1, dtype=dtype).item() == value
    array = np.array([[0.5, np.inf, np.nan]]).astype(np.float32).astype(dtype.numpy)
    for tensor in (Tensor(array), Tensor(array.astype(np.float32), dtype=str(dtype))):
        assert tensor.dtype is dtype and tensor.element_size() == 2
        back = tensor.numpy()
        assert back.dtype == (np.float16 if dtype is F16 else np.float32)
        np.testing.assert_array_equal(back, array.astype(back.dtype))
    assert (Tensor(array) + array).dtype is dtype
    assert Tensor(array[0, 0]).item() == 0.5
    assert Tensor.full((2, 2), 1.1, dtype=dtype).contiguous().tolist() == [[value] * 2] * 2
    assert Tensor.ones(3, dtype=dtype).pad(((1, 0),)).tolist() == [0, 1, 1, 1]
    assert Tensor.arange(0, 2500, 2.5, dtype=dtype).tolist() == [
        dtype.const(i * 2.5) for i in range(1000)
    ]
    assert Tensor([1, 2]).cast(dtype).sum().item() == 3
    assert getattr(Tensor([1.1]), "half" if dtype is F16 else "bfloat16")().item() == value
    assert Tensor([value], dtype=dtype).float().dtype is F32


@pytest.mark.usefixtures("device")
@each_dtype
def test_sums_are_made_in_float32(dtype: DType) -> None:
    thousandth = float(dtype.const(0.001))
    t = Tensor(np.full(10000, 0.001), dtype=dtype)
    assert_close(t.mean(), thousandth, dtype)
    assert_close(t.sum(), 10000 * thousandth, dtype)
    assert t.sum(dtype=F32).dtype is F32 and t.sum(dtype=F64).dtype is F64
    assert Tensor.ones(3000, dtype=dtype).sum(dtype=dtypes.int32).item() == 3000
    x = values((60, 70), dtype)
    t = Tensor(x, dtype=dtype)
    assert_close(t.var(1), x.var(1, ddof=1), dtype)
    assert_close(t.std(0), x.std(0, ddof=1), dtype)
    assert_close(t.prod(1), x.prod(1), dtype)
    assert_close(t.max(1), x.max(1), dtype, 0)
    assert_close(t.min(), x.min(), dtype, 0)
    assert t.argmax(1).tolist() == x.argmax(1).tolist()
    assert_close(t.cumsum(1), x.cumsum(1), dtype, 16)
    assert_close(t.cummax(1)[0], np.maximum.accumulate(x, 1), dtype, 0)
    assert_close(t[:, :5].cumprod(1), x[:, :5].cumprod(1), dtype)
    powers = np.exp(x - x.max(1, keepdims=True))
    assert_close(t.softmax(), powers / powers.sum(1, keepdims=True), dtype)
    assert_close(t.logsumexp(1), np.log(np.exp(x).sum(1)), dtype)


@each_dtype
def test_a_mean_does_not_overflow_on_the_way(dtype: DType) -> None:
    large = float(dtype.const(60000))
    t = Tensor(np.full((256, 256), large), dtype=dtype)
    assert t.mean().item() == large
    image = Tensor(np.full((1, 1, 8, 8), large), dtype=dtype)
    assert image.avg_pool2d().max().item() == large


@pytest.mark.usefixtures("device")
@each_dtype
def test_products_are_summed_in_float32(dtype: DType) -> None:
    a, b = values((9, 200), dtype), values((200, 11), dtype, 1)
    t, u = Tensor(a, dtype=dtype), Tensor(b, dtype=dtype)
    assert_close(t @ u, a @ b, dtype, 2)
    exact = t.matmul(u, dtype=F32)
    assert exact.dtype is F32
    np.testing.assert_allclose(exact.numpy(), a @ b, rtol=1e-5, atol=1e-5)
    assert (t @ u.float()).dtype is F32
    assert (Tensor([300.0], dtype=F16) @ Tensor([300.0], dtype=F16)).item() == math.inf
    both = Tensor([300.0, 1.0], dtype=dtype) @ Tensor([300.0, -90000.0], dtype=F32)
    assert both.item() == 0.0  # 300 * 300 is not infinite on the way
    image = Tensor(values((2, 3, 5, 5), dtype), dtype=dtype)
    taps = Tensor(values((4, 3, 3, 3), dtype, 2), dtype=dtype)
    want = image.float().conv2d(taps.float()).numpy()
    assert_close(image.conv2d(taps), want, dtype)


# fmt: off
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "log2": np.log2, "exp2": np.exp2, "sqrt": np.sqrt,
    "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "trunc": np.trunc, "tanh": np.tanh, "square": np.square, "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[float]), "relu": lambda x: np.maximum(x, 0),
    "neg": lambda x: -x,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "silu": lambda x: x / (1 + np.exp(-x)), "isnan": np.isnan,
}
# fmt: on


@pytest.mark.usefixtures("device")
@each_dtype
@by_rows("name", FUNCTIONS)
def test_functions_are_computed_in_float32(name: str, dtype: DType) -> None:
    edges = [0.0, 1.0, np.inf, -np.inf, np.nan]
    x = np.concatenate([rounded(values((500,), dtype) * 3, dtype), edges])
    actual = getattr(Tensor(x, dtype=dtype), name)()
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x)
        if name in ("hardswish", "silu"):
            want[-2] = 0.0  # what it tends to at minus infinity
    if name == "isnan":
        assert actual.tolist() == want.tolist()
    else:
        assert_close(actual, want, dtype)


@pytest.mark.usefixtures("device")
@each_dtype
def test_arithmetic(dtype: DType) -> None:
    a, b = values((300,), dtype), values((300,), dtype, 1)
    t, u = Tensor(a, dtype=dtype), Tensor(b, dtype=dtype)
    assert_close(t + u, a + b, dtype, 0)
    assert_close(t * u, a * b, dtype, 0)
    assert_close(t / u, a / b, dtype, 0)
    assert_close(t // u, a // b, dtype, 0)
    assert_close(t**3, a**3, dtype)
    assert_close(t.abs() ** u, np.abs(a) ** b, dtype)
    assert_close(t.abs() ** -2.5, np.abs(a) ** -2.5, dtype)
    assert_close(t.maximum(u), np.maximum(a, b), dtype, 0)
    assert_close((t < u).where(t, 2), np.where(a < b, a, 2), dtype, 0)
    assert (t >= u).tolist() == (a >= b).tolist()
    assert t.bitcast("uint16").dtype is dtypes.uint16
    assert t.int().tolist() == a.astype(int).tolist()


@each_dtype
def test_constants_that_are_not_numbers_are_folded(dtype: DType) -> None:
    """numpy warns of a maximum of ml_dtypes' NaN; nobody hears of it."""
    assert math.isnan(Tensor(math.nan, dtype=dtype).clip(0.0, 2.5).sum().item())


@each_dtype
def test_random(dtype: DType) -> None:
    Tensor.manual_seed(3)
    draws = Tensor.rand(count(100_000), dtype=dtype)
    assert draws.dtype is dtype
    samples = draws.numpy()
    assert samples.min() >= 0 and samples.max() < 1 and abs(samples.mean() - 0.5) < 0.01
    assert np.unique(samples).size == 2**dtype.fraction_bits
    normal = Tensor.randn(count(1_000_000), dtype=dtype).numpy()
    assert np.isfinite(normal).all()
    assert abs(normal.astype(float).std() - 1) < 0.01
    between = Tensor.uniform(1000, low=-4, high=4, dtype=dtype)
    assert between.dtype is dtype and -4 <= between.numpy().min() < -3.5


@each_dtype
def test_kernels_check_print_and_parse(dtype: DType) -> None:
    a = Tensor(values((33, 40), dtype), dtype=dtype)
    tensor = ((a @ a.transpose(0, 1)) * 0.1 + 1.1).relu()
    verify(tensor.uop, "tensor")
    (kernel,) = explore(tensor).kernels
    assert Kernel.from_text(kernel.to_text()).ast is kernel.ast
    namespace: dict[str, Any] = {}
    exec(kernel.optimized().to_python(), namespace)
    assert namespace["kernel"].ast is kernel.optimized().ast
    for name in Device.names() if LONG else ("LLVM", "PYTHON"):
        if Device.available(name):
            result, (output,) = kernel.optimized().check(name), kernel.run(name)
            assert result, f"{name}: {result}"
            assert output.dtype == dtype.numpy
            greatest = abs(output.astype(float)).max()
            assert result.tolerance < 20 * greatest * 2.0**-dtype.fraction_bits
    sums = [n for n in kernel.ast.toposort() if n.op is Ops.REDUCE]
    assert [n.dtype for n in sums] == [F32]


def test_ml_dtypes_is_loaded_when_a_bfloat16_is_met() -> None:
    script = (
        "import sys; from workbench import Tensor, dtypes\n"
        "Tensor([1.0], dtype=dtypes.half).realize()\n"
        "before = 'ml_dtypes' in sys.modules\n"
        "Tensor([1.0], dtype=dtypes.bfloat16).realize()\n"
        "print(before, 'ml_dtypes' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ["False", "True"]
    assert dtypes.from_numpy(np.dtype(ml_dtypes.bfloat16)) is BF16
