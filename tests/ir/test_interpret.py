"""The reference interpreter against numpy written by hand, and against plain Python loops."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir import samples
from tests.ir.samples import (
    F,
    at,
    axis,
    buffer,
    kernel,
    load,
    param,
    reduced,
    stage,
    tensor,
)
from workbench.dtypes import DType, dtypes
from workbench.errors import VerifyError
from workbench.ir import interpret_steps
from workbench.ir.interpret import interpret_kernel, interpret_tensor, interpret_tensors
from workbench.ir.ops import Ops
from workbench.ir.uop import KernelInfo, UOp, gated

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


# the tensor level


def test_movement_means_what_numpy_does() -> None:
    b = buffer(1, 3, 4)
    x = floats(3, 4)
    want = np.flip(np.pad(x.T, ((1, 0), (0, 2))), 1).reshape(25)[1:25].reshape(6, 4)
    want = np.broadcast_to(want.max(1, keepdims=True) * 2, (2, 6, 3))
    got = interpret_tensor(samples.pooled(), {b: x})
    assert got.dtype == np.float32 and got.flags.writeable
    np.testing.assert_array_equal(got, want)


def test_roots_share_what_they_compute() -> None:
    b = buffer(1, 5)
    square = b * b
    got = interpret_tensors([square, square + 1.0, b], {b: floats(5)})
    np.testing.assert_array_equal(got[0] + 1, got[1])
    got[2][0] = 9  # results are copies


def test_iota_and_constants() -> None:
    iota = UOp(Ops.IOTA, dtypes.int32, (), 4)
    np.testing.assert_array_equal(interpret_tensor(iota * 3 + 1, {}), [1, 4, 7, 10])
    spread = tensor(Ops.EXPAND, UOp.const(F, 0.1), (2, 2))
    np.testing.assert_array_equal(
        interpret_tensor(spread, {}), np.full((2, 2), np.float32(0.1))
    )


IDENTITY = {
    (Ops.ADD, F): 0, (Ops.MUL, F): 1, (Ops.MAX, F): -math.inf, (Ops.MIN, F): math.inf,
    (Ops.MAX, dtypes.int8): -128, (Ops.MIN, dtypes.uint64): 2**64 - 1,
    (Ops.ADD, dtypes.bool): False, (Ops.MUL, dtypes.bool): True, (Ops.MAX, dtypes.bool): False,
}  # fmt: skip


@pytest.mark.parametrize("op, dtype", IDENTITY, ids=str)
def test_an_empty_reduction_gives_the_identity(op: Ops, dtype: DType) -> None:
    want = IDENTITY[op, dtype]
    b = buffer(1, 0, 2, dtype=dtype)
    got = interpret_tensor(
        tensor(Ops.REDUCE_AXIS, b, (op, (0,))), {b: np.empty((0, 2), dtype.numpy)}
    )
    assert got.tolist() == [[want, want]]
    r0 = axis("r0", 0)
    k = kernel(
        "r0",
        (
            at(param(0, 1, dtype), UOp.index(0)),
            reduced(op, UOp.const(dtype, 1), r0),
            "",
        ),
    )
    assert interpret_kernel(k, [np.zeros(1, dtype.numpy)])[0].tolist() == [want]


def test_reductions_wrap_or_are_logical() -> None:
    small, truth = buffer(1, 3, dtype=dtypes.uint8), buffer(2, 3, dtype=dtypes.bool)
    held = {
        small: np.array([200, 100, 3], np.uint8),
        truth: np.array([True, True, False]),
    }
    for op, b, want in (
        (Ops.ADD, small, 47), (Ops.MUL, small, 96), (Ops.ADD, truth, True), (Ops.MUL, truth, False),
    ):  # fmt: skip
        assert interpret_tensor(
            tensor(Ops.REDUCE_AXIS, b, (op, (0,))), held
        ).tolist() == [want]


def test_max_keeps_nan() -> None:
    b = buffer(1, 2)
    held = {b: np.array([math.nan, 1.0], np.float32)}
    assert math.isnan(
        interpret_tensor(tensor(Ops.REDUCE_AXIS, b, (Ops.MAX, (0,))), held)[0]
    )
    assert math.isnan(interpret_tensor(b.alu(Ops.MAX, b.like(9)), held)[0])


def test_float32_is_rounded_at_each_step_and_widened_on_request() -> None:
    b = buffer(1, 1)
    held = {b: np.array([1.0], np.float32)}
    node = (b + 1e-8) + -1.0
    assert interpret_tensor(node, held)[0] == 0
    wide = interpret_tensor(node, held, widen=True)
    assert wide.dtype == np.float64 and wide[0] == pytest.approx(np.float32(1e-8))
    bits = b.cast(dtypes.float64).cast(F).bitcast(dtypes.int32)
    assert interpret_tensor(bits, held, widen=True)[0] == 0x3F800000
    assert interpret_tensor(bits.bitcast(F) * 0.5, held, widen=True)[0] == 0.5


def test_an_array_that_does_not_fit_is_named() -> None:
    b = buffer(1, 2)
    for held in ({}, {b: floats(3)}, {b: np.zeros(2)}):
        with pytest.raises(VerifyError, match="given for"):
            interpret_tensor(b, held)
    with pytest.raises(VerifyError, match="parameter 0"):
        interpret_kernel(samples.matmul(2, 2, 2), [np.zeros(3, np.float32)])
    with pytest.raises(VerifyError, match="parameter 3"):
        interpret_kernel(samples.matmul(2, 2, 2), [floats(4)] * 3)


# casts, against a table of Python

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


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("source", [F, dtypes.float64], ids=str)
@pytest.mark.parametrize("widen", [False, True])
def test_float_to_int_saturates(source: DType, dtype: DType, widen: bool) -> None:
    b = buffer(1, len(CASTS), dtype=source)
    array = np.array(CASTS, source.numpy)
    got = interpret_tensor(b.cast(dtype), {b: array}, widen)
    assert got.dtype == dtype.numpy
    assert got.tolist() == [truncated(v, dtype) for v in array.tolist()]


def test_other_casts() -> None:
    b = buffer(1, 3, dtype=dtypes.int32)
    held = {b: np.array([-1, 0, 300], np.int32)}
    assert interpret_tensor(b.cast(dtypes.uint8), held).tolist() == [255, 0, 44]
    assert interpret_tensor(b.cast(dtypes.uint64), held).tolist() == [2**64 - 1, 0, 300]
    assert interpret_tensor(b.cast(dtypes.bool), held).tolist() == [True, False, True]
    assert interpret_tensor(b.cast(dtypes.bool).cast(F), held).tolist() == [
        1.0,
        0.0,
        1.0,
    ]
    floats_ = b.cast(F) * math.nan
    assert interpret_tensor(floats_.cast(dtypes.bool), held).tolist() == [True] * 3
    assert interpret_tensor(b.bitcast(dtypes.uint32), held).tolist() == [
        2**32 - 1,
        0,
        300,
    ]


# the kernel level


def test_matmul_with_bias_and_relu() -> None:
    a, b, c = floats(3, 5), floats(5, 4), floats(4)
    out = np.full(12, 7, np.float32)
    got = interpret_kernel(samples.matmul(3, 5, 4), [out, a, b, c])
    np.testing.assert_allclose(
        got[0].reshape(3, 4), np.maximum(a @ b + c, 0), rtol=1e-5, atol=1e-6
    )
    assert got[0].dtype == np.float32 and (out == 7).all()


def test_staged_kernels() -> None:
    a, b = floats(8, 8), floats(8, 8)
    got = interpret_kernel(samples.tiled_matmul(), [np.zeros((8, 8), np.float32), a, b])
    np.testing.assert_allclose(got[0], a @ b, rtol=1e-5, atol=1e-6)
    x = floats(3, 7)
    e = np.exp2(x - x.max(1, keepdims=True))
    got = interpret_kernel(samples.softmax(3, 7), [np.zeros((3, 7), np.float32), x])
    np.testing.assert_allclose(got[0], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_guarded_index_reads_zero_and_writes_nothing() -> None:
    x = floats(9)
    got = interpret_kernel(samples.padded_sum(9), [np.full(9, np.nan, np.float32), x])
    padded = np.pad(x, 1)
    np.testing.assert_allclose(
        got[0], padded[:-2] + padded[1:-1] + padded[2:], rtol=1e-5, atol=1e-6
    )
    nothing = kernel(
        "g0", (at(param(0, 0), gated(axis("g0", 2), axis("g0", 2) < 0)), F_ONE, "g0")
    )
    assert interpret_kernel(nothing, [floats(0)])[0].size == 0


F_ONE = UOp.const(F, 1.0)


def test_what_is_not_written_keeps_its_input() -> None:
    g0 = axis("g0", 3)
    k = kernel("g0", (at(param(0, 6), g0 * 2), load(param(1, 3), g0), "g0"))
    out, x = floats(6), floats(3)
    want = out.copy()
    want[::2] = x
    np.testing.assert_array_equal(interpret_kernel(k, [out, x])[0], want)


def test_an_index_out_of_range_is_named() -> None:
    g0, r0 = axis("g0", 4), axis("r0", 4)
    beyond = kernel("g0", (at(param(0, 4), g0), load(param(1, 4), g0 + 1), "g0"))
    below = kernel("g0", (at(param(0, 4), g0 - 1), F_ONE, "g0"))
    wrong_gate = kernel(
        "g0", (at(param(0, 4), g0), load(param(1, 4), gated(g0 + 1, g0 < 9)), "g0")
    )
    staged = stage("t", (3,), load(param(1, 4), r0), r0)
    filled = kernel("g0 r0", (at(param(0, 4), g0), at(staged, g0.like(0)), "g0"))
    for k, words in (
        (beyond, r"g0 \+ 1 is 4"),
        (below, "is -1"),
        (wrong_gate, "is 4"),
        (filled, "r0 is 3"),
    ):
        with pytest.raises(VerifyError, match=words):
            interpret_kernel(k, [floats(4), floats(4)])


def test_a_reduction_counts_every_step_of_its_ranges() -> None:
    g0, r0, r1 = axis("g0", 3), axis("r0", 4), axis("n1", 5)
    value = reduced(Ops.ADD, load(param(1, 3), g0), r0, r1)
    k = kernel("g0 r0", (at(param(0, 3), g0), value, "g0"))
    x = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(interpret_kernel(k, [floats(3), x])[0], x * 20)


def test_two_reductions_in_turn() -> None:
    g0, r0, r1 = axis("g0", 3), axis("r0", 4), axis("r1", 4)
    x = param(1, 12)
    mean = reduced(Ops.ADD, load(x, g0 * 4 + r0), r0) * 0.25
    apart = load(x, g0 * 4 + r1) + -mean
    k = kernel(
        "g0 r0 r1", (at(param(0, 3), g0), reduced(Ops.ADD, apart * apart, r1), "g0")
    )
    a = floats(3, 4)
    np.testing.assert_allclose(
        interpret_kernel(k, [floats(3), a])[0], a.var(1) * 4, rtol=1e-5
    )


def test_several_outputs_and_order_between_stores() -> None:
    g0, g1 = axis("g0", 4), axis("g1", 4)
    first = kernel("g0", (at(param(0, 4), g0), load(param(2, 4), g0) * 2.0, "g0")).src[
        0
    ]
    after = UOp(Ops.AFTER, F, (param(0, 4), first))
    second = kernel("g1", (at(param(1, 4), g1), load(after, g1 * -1 + 3), "g1")).src[0]
    k = UOp.sink(first, second, arg=KernelInfo("two", ("g0", "g1")))
    x = floats(4)
    got = interpret_kernel(k, [floats(4), floats(4), x])
    np.testing.assert_array_equal(got[0], x * 2)
    np.testing.assert_array_equal(got[1], x[::-1] * 2)


def test_a_product_is_summed_as_ieee_says() -> None:
    """Contracting must not factor: inf - inf is NaN only where the loop would meet it."""
    g0, r0 = axis("g0", 2), axis("r0", 2)
    value = reduced(Ops.ADD, load(param(1, 2), r0) * load(param(2, 2), g0), r0)
    k = kernel("g0 r0", (at(param(0, 2), g0), value, "g0"))
    got = interpret_kernel(
        k, [floats(2), np.array([1, -1], np.float32), np.array([np.inf, 0], np.float32)]
    )
    assert math.isnan(got[0][0]) and got[0][1] == 0
    huge = np.array([3e38, -3e38], np.float32)
    got = interpret_kernel(k, [floats(2), huge, np.array([10, 1], np.float32)])
    assert math.isnan(got[0][0])


@pytest.mark.parametrize("name", samples.KERNELS)
def test_windows_do_not_change_the_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    k = samples.KERNELS[name]
    params = {p.arg[0]: p for p in k.toposort() if p.op is Ops.PARAM}
    arrays = [floats(params[slot].arg[1]) for slot in sorted(params)]
    whole = interpret_kernel(k, arrays, widen=True)
    monkeypatch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 5)
    np.testing.assert_allclose(
        interpret_kernel(k, arrays, widen=True)[0], whole[0], rtol=1e-12
    )


def test_a_range_that_a_stage_closes_too_is_not_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    g0 = axis("g0", 9)
    turned = at(stage("t", (9,), load(param(1, 9), g0), g0), g0 * -1 + 8)
    k = kernel("g0", (at(param(0, 9), g0), turned, "g0"))
    x = floats(9)
    monkeypatch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 2)
    np.testing.assert_array_equal(interpret_kernel(k, [floats(9), x])[0], x[::-1])


def test_a_big_product_is_never_held_whole() -> None:
    n = 512
    a, b = floats(n, n), floats(n, n)
    got = interpret_kernel(
        samples.matmul(n, n, n),
        [floats(n * n), a, b, np.zeros(n, np.float32)],
        widen=True,
    )
    want = np.maximum(a.astype(float) @ b.astype(float), 0)
    np.testing.assert_allclose(got[0].reshape(n, n), want, rtol=1e-10, atol=1e-10)


def test_a_big_reduction_comes_in_windows() -> None:
    g0, r0 = axis("g0", 64), axis("r0", 1 << 16)
    value = load(param(1, 1 << 16), r0).alu(Ops.MAX, (g0.cast(F)))
    k = kernel("g0 r0", (at(param(0, 64), g0), reduced(Ops.ADD, value, r0), "g0"))
    x = np.arange(1 << 16, dtype=np.float32) % 70
    want = [np.maximum(x, i).sum(dtype=float) for i in range(64)]
    np.testing.assert_allclose(
        interpret_kernel(k, [floats(64), x], widen=True)[0], want
    )


def test_deep_kernels_do_not_recurse() -> None:
    g0 = axis("g0", 2)
    value = load(param(1, 2), g0)
    for _ in range(samples.DEEP):
        value = value * 0.5 + 1.0
    k = kernel("g0", (at(param(0, 2), g0), value, "g0"))
    np.testing.assert_allclose(interpret_kernel(k, [floats(2), floats(2)])[0], 2)


# any kernel, against the definition: a Python loop over every step


@st.composite
def kernels(draw: st.DrawFn) -> UOp:
    """A nest of reductions and stages over int32, with indexes of every kind."""
    sizes = st.integers(1, 3)
    g0, g1 = axis("g0", draw(sizes)), axis("g1", draw(sizes))
    x = param(1, 12, dtypes.int32)
    names = iter(range(100))

    def index(ranges: list[UOp], size: int) -> UOp:
        total = UOp.index(draw(st.integers(0, 5)))
        for r in ranges:
            total = total + r * draw(st.integers(0, 3))
        return total % size

    def value(ranges: list[UOp], depth: int) -> UOp:
        kind = draw(
            st.sampled_from(
                ["load", "gate", "sum", "reduce", "stage"]
                if depth
                else ["load", "gate"]
            )
        )
        if kind == "load":
            return load(x, index(ranges, 12))
        if kind == "gate":
            place = index(ranges, 20)
            return load(x, gated(place, place < 12))
        if kind == "sum":
            return value(ranges, depth - 1) + value(ranges, depth - 1) * ranges[0].cast(
                dtypes.int32
            )
        fresh = axis(("r" if kind == "reduce" else "f") + str(next(names)), draw(sizes))
        inner = value([*ranges, fresh], depth - 1)
        if kind == "reduce":
            op = draw(st.sampled_from([Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN]))
            return reduced(op, inner, fresh)
        rows = stage(f"s{next(names)}", (2, fresh.extent), inner, UOp.index(1), fresh)
        return at(rows, index(ranges, 2), index(ranges, fresh.extent))

    target = at(param(0, g0.extent * g1.extent, dtypes.int32), g0 * g1.extent + g1)
    done = samples.store(target, value([g0, g1], 3))
    order = sorted(r.axis_name for r in done.toposort() if r.op is Ops.RANGE)
    return UOp.sink(
        UOp(Ops.END, dtypes.void, (done, g0, g1)), arg=KernelInfo("any", tuple(order))
    )


PYTHON = {Ops.ADD: lambda a, b: a + b, Ops.MUL: lambda a, b: a * b, Ops.MAX: max, Ops.MIN: min,
          Ops.MOD: lambda a, b: a % b, Ops.CMPLT: lambda a, b: a < b}  # fmt: skip


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def step_by_step(node: UOp, env: dict[UOp, int], x: list[int]) -> Any:
    """Evaluate a value for one step of its open ranges."""

    def below(n: UOp) -> Any:
        return step_by_step(n, env, x)

    if node.op is Ops.CONST:
        return node.arg
    if node.op is Ops.RANGE:
        return env[node]
    if node.op is Ops.CAST:
        return below(node.src[0])
    if node.op is Ops.INVALID or (node.op is Ops.WHERE and not below(node.src[0])):
        return None
    if node.op is Ops.WHERE:
        return below(node.src[1])
    if node.op is Ops.LOAD:
        place = below(node.src[0].src[1])
        return 0 if place is None else x[place]
    if node.op is Ops.REDUCE:
        start = {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: -(2**31), Ops.MIN: 2**31 - 1}[
            node.arg
        ]
        for i in range(node.src[1].extent):
            start = wrap(
                PYTHON[node.arg](
                    start, step_by_step(node.src[0], env | {node.src[1]: i}, x)
                )
            )
        return start
    if node.op is Ops.INDEX:
        rows, fresh = node.src[0], node.src[0].src[2]
        row, column = below(node.src[1]), below(node.src[2])
        return step_by_step(rows.src[0], env | {fresh: column}, x) if row == 1 else 0
    result = PYTHON[node.op](*map(below, node.src))
    return result if node.dtype is not dtypes.int32 else wrap(result)


@given(
    kernels(),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=12, max_size=12),
    st.booleans(),
)
def test_any_kernel_means_what_its_loops_do(k: UOp, x: list[int], small: bool) -> None:
    done, g0, g1 = k.src[0].src
    want = [
        step_by_step(done.src[1], {g0: i, g1: j}, x)
        for i, j in product(range(g0.extent), range(g1.extent))
    ]
    arrays = [np.zeros(len(want), np.int32), np.array(x, np.int32)]
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 2)
        assert interpret_kernel(k, arrays)[0].tolist() == want
