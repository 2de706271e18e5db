"""Floats of 8 bits: each cast bit for bit PyTorch's, dtypes as recorded in tinygrad 0.14, what is
computed in float32, and what leaves and enters as other libraries' values."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG
from workbench import Device, Kernel, explore
from workbench.base.dtypes import DType, dtypes, promote
from workbench.tensor import Tensor

E4M3, E5M2 = dtypes.fp8s
each_dtype = pytest.mark.parametrize("dtype", dtypes.fp8s, ids=str)
by_both = pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
"""That all devices cast alike is tested in tests/agreement/test_edge_cases.py."""
CODES = np.arange(256, dtype=np.uint8)
SOURCES = "float32 float64 float16 bfloat16 int64 int32 int8 uint8 bool".split()


def torch_dtype(dtype: DType) -> Any:
    return torch.float8_e4m3fn if dtype is E4M3 else torch.float8_e5m2


def numbers(dtype: DType) -> Any:
    """Return floats (float64) of all sizes, those of `dtype`, what is half-way between two, and
    their neighbours in float32."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-8, 5, 20_000)
    held = torch.from_numpy(CODES).view(torch_dtype(dtype)).float().numpy()
    held = np.sort(held[np.isfinite(held)])
    middle = (held[1:] + held[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf)]
    most = [448, 449, 464, 464.5, 480, 57344, 61439, 61440, 65536, 1e30, math.inf]
    special = [*most, *(-n for n in most), 0.0, -0.0, math.nan, -math.nan, 1 + 2.0**-40]
    usual = rng.standard_normal(sizes.size) * sizes
    return np.concatenate([usual, held, middle, *beside, special])


@by_both
@each_dtype
def test_every_cast_is_pytorch_s(dtype: DType, device: str) -> None:
    values = torch.from_numpy(numbers(dtype))
    for name in SOURCES:
        kind = getattr(torch, name)
        source = values if kind.is_floating_point else values[values.abs() < 2**62]
        if name in ("int8", "uint8"):
            source = torch.from_numpy(CODES)
        source = source.to(kind)
        bits = source.view(torch.int16) if name == "bfloat16" else source
        tensor = Tensor(bits.numpy(), device=device)
        tensor = tensor.bitcast("bfloat16") if name == "bfloat16" else tensor
        want = source.to(torch_dtype(dtype)).view(torch.uint8).numpy()
        actual = tensor.cast(dtype).realize().bitcast("uint8").numpy()
        if name == "bfloat16":  # the sign of PyTorch's NaN
            actual, want = (actual[~source.isnan().numpy()], want[~source.isnan().numpy()])
        np.testing.assert_array_equal(actual, want, err_msg=name)


@by_both
@each_dtype
def test_every_code_is_pytorch_s_number(dtype: DType, device: str) -> None:
    codes = torch.from_numpy(CODES).view(torch_dtype(dtype))
    tensor = Tensor(CODES, device=device).bitcast(dtype)
    for name in ("float32", "float64", "float16", "bfloat16", "bool"):
        want = codes.to(getattr(torch, name))
        want = want if name == "bool" else want.double()
        actual = tensor.cast(name).numpy()
        with np.errstate(invalid="ignore"):  # a signalling NaN
            actual = actual.astype(want.numpy().dtype)
        np.testing.assert_array_equal(actual, want.numpy(), err_msg=name)
    number = [0.0 if math.isnan(x) else x for x in codes.float().tolist()]
    whole = [int(max(-128, min(127, x))) for x in number]  # saturated; NaN is 0
    assert tensor.cast("int8").tolist() == whole
    back = tensor.float().cast(dtype).bitcast("uint8").numpy()
    is_number = ~np.isnan(codes.float().numpy())
    np.testing.assert_array_equal(back[is_number], CODES[is_number])


def test_promotion_is_tinygrad_s() -> None:
    for small in dtypes.fp8s:
        for other in (dtypes.bool, *dtypes.ints, small):
            assert promote(small, other) is promote(other, small) is small
        for other in (dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            assert promote(small, other) is promote(other, small) is other
        for scalar in (True, 2, 2.5):
            assert (Tensor([1], dtype=small) + scalar).dtype is small
    assert promote(E4M3, E5M2) is promote(E5M2, E4M3) is dtypes.float16
    assert [d.name for d in dtypes.fp8s] == ["fp8e4m3", "fp8e5m2"]
    assert dtypes.fp8s == dtypes.floats[:2] and E4M3.max == math.inf == -E4M3.min


@pytest.mark.usefixtures("device")
@each_dtype
def test_made_and_read_back(dtype: DType) -> None:
    value = float(dtype.const(1.3))
    assert value == 1.25 and Tensor(1.3, dtype=dtype).item() == value
    for tensor in (
        Tensor([1.3, 1e9], dtype=str(dtype)),
        Tensor(np.array([1.3, 1e9]), dtype=dtype),
        Tensor(np.array([1.3, 1e9])).cast(dtype),
    ):
        assert tensor.dtype is dtype and tensor.numpy().dtype == np.float32
        assert tensor.tolist() == [value, 448.0 if dtype is E4M3 else math.inf]
        assert (tensor.element_size(), tensor.nbytes()) == (1, 2)
        assert f"{dtype} (2,)" in str(tensor)
    array = np.array([0.5, 2, -0.0], dtype.numpy)
    assert Tensor(array).dtype is dtype and Tensor(array).tolist() == [0.5, 2.0, -0.0]
    assert Tensor.full((2,), 1.3, dtype=dtype).contiguous().tolist() == [value] * 2
    assert Tensor.ones(2, dtype=dtype).pad(((1, 0),)).tolist() == [0, 1, 1]
    assert Tensor.arange(0, 600, 100, dtype=dtype).tolist() == [
        dtype.const(n) for n in range(0, 600, 100)
    ]
    Tensor.manual_seed(1)
    draws = Tensor.rand(400, dtype=dtype)
    steps = 2**dtype.fraction_bits
    assert draws.dtype is dtype
    assert set(draws.tolist()) == {i / steps for i in range(steps)}
    assert Tensor.randn(9, dtype=dtype).dtype is dtype
    assert Tensor.kaiming_uniform(3, 3, dtype=dtype).dtype is dtype


@pytest.mark.usefixtures("device")
@each_dtype
def test_sums_and_products_are_made_in_float32(dtype: DType) -> None:
    ones = Tensor.ones(300, dtype=dtype)
    assert ones.sum().dtype is dtype and ones.sum().item() == dtype.const(300)
    assert ones.sum(dtype="float32").item() == 300.0 and ones.mean().item() == 1.0
    a, b = Tensor.ones(5, 300, dtype=dtype), Tensor.ones(300, 4, dtype=dtype)
    assert (a @ b).dtype is dtype and (a @ b).max().item() == dtype.const(300)
    exact = a.matmul(b, dtype=dtypes.float32)
    assert exact.dtype is dtypes.float32 and exact.numpy().min() == 300.0
    assert (a @ b.half()).dtype is dtypes.half and (a @ b.float()).dtype is dtypes.float32
    x = np.random.default_rng(0).standard_normal((7, 9)).astype(dtype.numpy)
    t, wide = Tensor(x), x.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    for actual, want in (
        (t.softmax(1), powers / powers.sum(1, keepdims=True)),
        (t.exp(), np.exp(wide)),
        (t.sum(0), wide.sum(0)),
        (t.var(1), wide.var(1, ddof=1)),
        (t.max(1), wide.max(1)),
        (t.sort(1)[0], np.sort(wide, 1)),
    ):
        assert actual.dtype is dtype
        step = 2.0 ** -(dtype.fraction_bits + 1)
        np.testing.assert_allclose(actual.numpy(), want, rtol=step * 1.001, atol=2**-10)
    assert t.argmax(1).tolist() == wide.argmax(1).tolist()


@pytest.mark.usefixtures("device")
def test_what_is_too_large() -> None:
    """fp8e4m3 has no infinity: it saturates, and compares with what it does not hold."""
    t = Tensor([448.0, -448.0, math.nan, 1.0], dtype=E4M3)
    assert (t + t).tolist()[:2] == [448.0, -448.0]
    assert t.isinf().tolist() == [False] * 4
    assert t.isfinite().tolist() == [True, True, False, True]
    assert (t == math.inf).tolist() == [False] * 4
    assert (t < 1000).tolist() == [True, True, False, True]
    assert (t != 1000.0).tolist() == [True] * 4 and (t > -math.inf).sum().item() == 3
    assert t.isclose(t).tolist() == [True, True, False, True]
    assert (
        Tensor.full((1, 1, 2, 2), -448.0, dtype=E4M3).max_pool2d(2, padding=1).max().item() == -448
    )
    u = Tensor([57344.0, -57344.0], dtype=E5M2)
    assert (u + u).isinf().tolist() == [True, True] and u.isinf().any().item() is False


@pytest.mark.usefixtures("device")
@each_dtype
def test_gradients(dtype: DType) -> None:
    """A weight may be rounded to 8 bits on the way, or be of 8 bits."""
    weight = Tensor([1.5, 2.3], requires_grad=True)
    (weight.cast(dtype) * 2).sum().backward()
    assert weight.grad is not None and weight.grad.dtype is dtypes.float32
    assert weight.grad.tolist() == [2.0, 2.0]
    small = Tensor([1.5, 2.0], dtype=dtype, requires_grad=True)
    (small * small).sum().backward()
    assert small.grad is not None and small.grad.dtype is dtype
    assert small.grad.tolist() == [3.0, 4.0]


@each_dtype
def test_other_libraries(dtype: DType) -> None:
    tensor = Tensor([1.0, 2.5, -448.0], dtype=dtype)
    for twin in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), tensor * 1):
        assert twin.dtype is dtype and twin.tolist() == tensor.tolist()
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert tensor.data().tolist() == tensor.bitcast("uint8").tolist()
    assert Tensor([1.0], dtype="bfloat16").data().tolist() == [0x80, 0x3F]
    with pytest.raises(BufferError, match=f"numpy, which makes the capsule, has no {dtype}"):
        tensor.__dlpack__()
    array = np.array([1.0, 2.0], getattr(ml_dtypes, dtype.numpy.name))
    shared = Tensor.from_numpy(array, share=True, device="PYTHON")
    shared[0] = 4.0
    shared.realize()
    assert array.tolist() == [4.0, 2.0] and shared.dtype is dtype


@each_dtype
def test_kernels_check_print_and_parse(dtype: DType) -> None:
    a = Tensor(np.random.default_rng(0).standard_normal((17, 20)), dtype=dtype)
    (kernel,) = explore(((a @ a.transpose(0, 1)) * 0.3 + 1000.0).relu()).kernels
    assert Kernel.from_text(kernel.to_text()).ast is kernel.ast
    assert f"PARAM 0 {dtype}[289]" in str(kernel)
    for name in Device.names() if LONG else ("LLVM", "PYTHON"):
        if Device.available(name):
            result, (output,) = kernel.optimized().check(name), kernel.run(name)
            assert result and output.dtype == dtype.numpy, f"{name}: {result}"
            assert result.tolerance <= 0.5 * abs(output.astype(float)).max() * 1.1
            np.testing.assert_array_equal(output, kernel.optimized().run(name)[0])
