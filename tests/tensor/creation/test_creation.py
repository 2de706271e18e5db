"""Data in and out: lists, scalars, numpy arrays of any layout, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers
from workbench.base.dtypes import dtypes
from workbench.base.errors import ShapeError
from workbench.ir.node.construct import is_known
from workbench.ir.node.ops import Ops
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

# fmt: off
LISTS: list[tuple[Any, str]] = [
    ([True, False], "bool"), ([1, 2, 3], "int32"), ([1, 2.0], "float32"), ([], "float32"),
    ([[], []], "float32"),
    ([True, 2], "int32"), ([[1, 2], [3, 4]], "int32"), ([[[1.5]]], "float32"),
    ((1, (2)), "int32"),
    (range(4), "int32"), ([2**31], "int64"), ([2**63], "uint64"), ([-(2**31)], "int32"),
    ([1.5, True], "float32"),
]
LAYOUTS = {
    "contiguous": lambda x: x, "transposed": lambda x: x.T, "strided": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1, ::-1], "broadcast": lambda x: np.broadcast_to(x[:1], (3, 7)),
    "fortran": np.asfortranarray, "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "other byte order reversed": lambda x: x.astype(x.dtype.newbyteorder())[::-1, 2::-2].T,
    "overlapping": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1),
    "unaligned": lambda x: np.frombuffer(b"0" + x.tobytes(), x.dtype, -1, 1).reshape(x.shape),
    "empty": lambda x: x[:0], "one element": lambda x: x[:1, :1], "0-d": lambda x: x[0, 0],
    "0-d array": lambda x: np.array(x[0, 0]),
}
# fmt: on
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


@by_rows(("data", "dtype"), LISTS, ids=str)
def test_lists(data: Any, dtype: str) -> None:
    assert_agrees(Tensor(data), np.array(data, dtype))


@pytest.mark.parametrize(
    ("value", "dtype"), [(True, "bool"), (3, "int32"), (2**40, "int64"), (0.1, "float32")]
)
def test_scalars_are_constants(value: Any, dtype: str) -> None:
    t = Tensor(value)
    assert is_known(t.uop)
    assert t.schedule() == ()
    assert_agrees(t, np.array(value, dtype))


@by_rows("dtype", DTYPES)
@by_rows("layout", LAYOUTS)
def test_numpy_round_trip(layout: str, dtype: str) -> None:
    x = LAYOUTS[layout](numbers((5, 7), dtype))
    t = Tensor(x)
    want = np.asarray(x).astype(dtype)
    assert_agrees(t, want)
    assert_agrees(~t if dtype == "bool" else t + t, ~want if dtype == "bool" else want + want)
    assert t.tolist() == want.tolist()


def test_read_only_and_later_changes() -> None:
    x = numbers((3, 4))
    x.flags.writeable = False
    assert_agrees(Tensor(x) * 2, x * 2)
    y = numbers((3, 4))
    t, before = Tensor(y), y.copy()
    y[:] = 0
    assert_agrees(t, before)
    out = t.numpy()
    out[:] = 0
    assert_agrees(t, before)


@by_rows("dtype", DTYPES)
def test_dtype_given(dtype: str) -> None:
    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    want = x.astype(dtype)
    for data in (x, x.tolist(), x.astype(np.int16), Tensor(x)):
        assert_agrees(Tensor(data, dtype=dtype), want)
    assert_agrees(Tensor(1, dtype=dtype), np.array(1, dtype))


def test_dtype_given_converts_as_cast_does() -> None:
    x = [300.5, -1.5, float("nan")]
    assert Tensor(x, dtype="int8").tolist() == [127, -1, 0]
    assert Tensor(np.array(x), dtype="int8").tolist() == [127, -1, 0]
    assert Tensor(np.array([300, -1]), dtype="uint8").tolist() == [44, 255]
    assert Tensor(np.array([1e300]), dtype="float32").tolist() == [float("inf")]


def test_a_masked_array_without_a_mask_is_an_array() -> None:
    assert Tensor(np.ma.masked_array([1, 2], [False, False])).tolist() == [1, 2]


def test_numpy_scalars() -> None:
    assert Tensor(np.float64(1.5)).dtype is dtypes.float64
    assert Tensor([np.float64(1.5), np.int8(2)]).dtype is dtypes.float32
    assert Tensor([np.arange(3), np.arange(3)]).tolist() == [[0, 1, 2], [0, 1, 2]]


def test_bytes_are_numbers_as_they_lie_in_memory() -> None:
    assert_agrees(Tensor(b"\x00\x01\xff"), np.uint8([0, 1, 255]))
    assert_agrees(Tensor(bytearray(b"ab")) + 1, np.uint8([98, 99]))
    x = numbers((5,))
    for dtype in ("float32", "int16", "uint64"):
        whole = x.astype(dtype)
        assert_agrees(Tensor(whole.tobytes(), dtype=dtype), whole)
    assert Tensor(b"").shape == (0,)
    half = np.array([1.5, -2], np.float32).view(np.uint32) >> 16
    assert Tensor(half.astype(np.uint16).tobytes(), dtype="bfloat16").tolist() == [1.5, -2]
    with pytest.raises(ShapeError, match="an element takes 4 bytes"):
        Tensor(b"abc", dtype="int32")


def test_constant_tensors() -> None:
    assert_agrees(Tensor.full((2, 3), 7), np.full((2, 3), 7, np.int32))
    assert_agrees(Tensor.full(3, 0.5, dtype="float64"), np.full(3, 0.5))
    assert_agrees(Tensor.zeros(2, 3), np.zeros((2, 3), np.float32))
    assert_agrees(Tensor.ones((4,), dtype=dtypes.int8), np.ones(4, np.int8))
    assert_agrees(Tensor.zeros(0, 3), np.zeros((0, 3), np.float32))
    assert Tensor.ones(2, 3).schedule() == ()
    assert (Tensor.ones(4) + Tensor.ones(4)).schedule() == ()
    assert [item.kernel is None for item in Tensor.ones(4).contiguous().schedule()] == [False]
    assert is_known(Tensor(np.array(1.5)).uop) and is_known(Tensor(np.float32(2)).uop)
    assert_agrees(Tensor.ones(4).contiguous() + 1, np.full(4, 2, np.float32))


@by_rows(
    "args",
    [(5,), (2, 9), (9, 2, -2), (0, 10, 3), (3, 3), (5, 2), (0.0, 2.0, 0.25), (2.5,), (0,),
     (-3,), (10, 0, -3), (-5, 5, 4), (5.5, 1.0, -1.25), (0, 1, 0.1), (1.0, 0.0, 0.5),
     (0.5, 3), (-0.5,), (255,), (256,), (1000, -1000, -7)],
    ids=str,
)  # fmt: skip
def test_arange(args: tuple[Any, ...]) -> None:
    want = np.arange(*args)
    assert_agrees(Tensor.arange(*args), want.astype("f4" if want.dtype == "f8" else "i4"), 4)


@pytest.mark.parametrize("step", [-1, -0.5])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arange_downwards_begins_at_plain_zero(dtype: str, step: float) -> None:
    falling = Tensor.arange(0, 5 * step, step, dtype=dtype).numpy()
    np.testing.assert_array_equal(falling, np.arange(0, 5 * step, step).astype(dtype))
    assert not np.signbit(falling[0])  # 1 / -0.0 is minus infinity


@pytest.mark.parametrize("args", [(256,), (255,), (0, 10, 0.5), (5.5, 1.0, -1.25), (9, 2, -2)])
def test_an_arange_is_counted_by_the_loop_that_stores_it(args: tuple[Any, ...]) -> None:
    """In its kernel is no sum, and inside another's it needs neither memory nor a kernel."""
    alone = Tensor.arange(*args)
    (kernel,) = [item.kernel for item in alone.schedule() if item.kernel is not None]
    assert all(n.op is not Ops.REDUCE for n in kernel.toposort())
    values = Tensor.ones(len(alone)).contiguous().realize()
    (item,) = (values * alone).schedule()
    assert item.kernel is not None and len(item.inputs) == 1


def test_arange_of_a_dtype() -> None:
    assert_agrees(Tensor.arange(2**31, 2**31 + 3), np.arange(2**31, 2**31 + 3))
    assert_agrees(Tensor.arange(2**60, 2**60 + 9, 4), np.arange(2**60, 2**60 + 9, 4))
    assert_agrees(Tensor.arange(5, dtype="float64"), np.arange(5.0))
    assert_agrees(Tensor.arange(0, 1, 0.25, dtype="float64"), np.arange(0, 1, 0.25))
    assert_agrees(Tensor.arange(-100, 100, 3, dtype="int8"), np.arange(-100, 100, 3, "i1"))
    # cut off after the step, not before
    assert_agrees(Tensor.arange(0, 3, 0.5, dtype="int32"), np.int32([0, 0, 1, 1, 2, 2]))


@by_rows("steps", [0, 1, 2, 3, 7, 100])
@by_rows("ends", [(0, 1), (5, -5), (-1.5, 2.5), (3, 3), (1e6, 1e6 + 1)])
def test_linspace(ends: tuple[float, float], steps: int) -> None:
    want = np.linspace(*ends, steps)
    actual = Tensor.linspace(*ends, steps).numpy()
    size = max(map(abs, ends))
    np.testing.assert_allclose(actual, want, rtol=3e-7, atol=3e-7 * size)
    assert actual.dtype == np.float32
    if steps > 1:
        assert (actual[0], actual[-1]) == ends
    wide = Tensor.linspace(*ends, steps, dtype="float64").numpy()
    np.testing.assert_allclose(wide, want, rtol=1e-15, atol=1e-15 * size)


def test_linspace_of_integers() -> None:
    assert_agrees(Tensor.linspace(0, 10, 5, dtype="int32"), np.int32([0, 2, 5, 7, 10]))


@pytest.mark.parametrize("shape", [(3,), (1,), (0,), (2, 5), (5, 2), (0, 3), (3, 0)])
def test_eye(shape: tuple[int, ...]) -> None:
    assert_agrees(Tensor.eye(*shape), np.eye(*shape, dtype=np.float32))
    assert_agrees(Tensor.eye(*shape, dtype="int8"), np.eye(*shape, dtype=np.int8))
    assert_agrees(Tensor.eye(*shape, dtype="bool"), np.eye(*shape, dtype=bool))


def test_like() -> None:
    for dtype in DTYPES:
        t = Tensor(numbers((2, 3), dtype))
        assert_agrees(t.zeros_like(), np.zeros((2, 3), dtype))
        assert_agrees(t.ones_like(), np.ones((2, 3), dtype))
        assert_agrees(t.full_like(7), np.full((2, 3), 7, dtype))
    assert Tensor([1]).full_like(0.5).tolist() == [0]
    assert_agrees(Tensor([1]).full_like(0.5, "float64"), np.array([0.5]))
    assert Tensor([1], device="PYTHON").zeros_like().device == "PYTHON"


def test_empty_needs_no_kernel() -> None:
    t = Tensor.empty(3, 4)
    assert (t.shape, t.dtype) == ((3, 4), dtypes.float32)
    assert t.schedule() == ()
    assert Tensor.empty(2).uop is not Tensor.empty(2).uop
    assert t.numpy().shape == (3, 4)
    array = (Tensor.empty((2, 3), dtype="int32") * 0 + 5).numpy()
    assert_agrees(Tensor(array), np.full((2, 3), 5, np.int32))
    assert Tensor.empty(0, 3).numpy().shape == (0, 3)
    assert Tensor.empty(2, device="PYTHON").device == "PYTHON"
    assert len((t + Tensor.empty(4)).schedule()) == 1


def test_sizes_may_be_numpy_integers() -> None:
    n = np.int64(3)
    assert Tensor.zeros(n, n).shape == (3, 3)
    assert Tensor([1, 2, 3]).reshape(n, 1).shape == (3, 1)
    assert Tensor.ones(n).sum(np.int64(0)).item() == 3


def test_where_of_scalars() -> None:
    mask = Tensor([True, False])
    assert_agrees(mask.where(1, 0), np.int32([1, 0]))
    assert_agrees(mask.where(1.5, 0), np.float32([1.5, 0]))
    assert_agrees(mask.where(True, False), np.array([True, False]))
    assert_agrees(Tensor([False, True]).where(float("nan"), 1), np.float32([1, float("nan")]))
    assert_agrees(mask.where(np.int8([1, 2]), 100), np.int8([1, 100]))
    # the condition's type says nothing about what is chosen
    assert_agrees(Tensor([False, True]).where(np.int64(300), 7), np.int32([7, 300]))


def test_empty_and_none() -> None:
    assert Tensor(None).shape == (0,)
    assert (Tensor([]) + 1).tolist() == []


def test_reading_back_computes_once() -> None:
    for read in (Tensor.numpy, Tensor.tolist, Tensor.data, Tensor.item, np.asarray):
        t = Tensor([[1.5]]) * 2
        read(t)
        assert t.schedule() == ()


def test_item() -> None:
    assert Tensor([[4]]).item() == 4
    assert Tensor(2.5).item() == 2.5
    assert (Tensor([1.5]) > 1).item() is True


def test_realize_returns_the_tensor_and_keeps_the_value() -> None:
    x = numbers((3, 4))
    t = Tensor(x) + 1
    assert t.realize() is t
    assert t.schedule() == ()
    a, b = Tensor(x) * 2, Tensor(x) * 3
    a.realize(b)
    assert b.schedule() == ()
    assert_agrees(a + b, x * 2 + x * 3)


def test_array_protocol() -> None:
    x = numbers((2, 2))
    assert np.array_equal(np.asarray(Tensor(x)), x)
    assert np.asarray(Tensor(x), dtype=np.float64).dtype == np.float64


def test_devices() -> None:
    x = numbers((2, 3))
    here = Tensor(x)
    for name in ("LLVM", "PYTHON"):
        there = (here + 1).to(name)
        assert there.device == name
        assert_agrees(there * 2, (x + 1) * 2)
        assert Tensor(x, device=name.lower()).device == name
        assert (Tensor(x, device=name) + Tensor(1.0)).device == name
        assert Tensor(3.0, device=name).to(name).device == name
        filled = Tensor.full((2,), 3.0, device=name).contiguous()
        assert filled.realize().device == name
        assert filled.uop.op is Ops.BUFFER
        assert filled.uop.arg[1] == name
