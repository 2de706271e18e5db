"""The reference interpreter of the kernel level against numpy, and against plain Python loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir import samples
from tests.ir.samples import F, at, axis, floats, kernel, load, param, reduced, stage
from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.ir.meaning import interpret as interpret_steps
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, gated


def test_matmul_with_bias_and_relu() -> None:
    a, b, c = floats(3, 5), floats(5, 4), floats(4)
    out = np.full(12, 7, np.float32)
    actual = interpret_kernel(samples.matmul(3, 5, 4), [out, a, b, c])
    np.testing.assert_allclose(
        actual[0].reshape(3, 4), np.maximum(a @ b + c, 0), rtol=1e-5, atol=1e-6
    )
    assert actual[0].dtype == np.float32 and (out == 7).all()


def test_staged_kernels() -> None:
    a, b = floats(8, 8), floats(8, 8)
    actual = interpret_kernel(samples.tiled_matmul(), [np.zeros((8, 8), np.float32), a, b])
    np.testing.assert_allclose(actual[0], a @ b, rtol=1e-5, atol=1e-6)
    x = floats(3, 7)
    e = np.exp2(x - x.max(1, keepdims=True))
    actual = interpret_kernel(samples.softmax(3, 7), [np.zeros((3, 7), np.float32), x])
    np.testing.assert_allclose(actual[0], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_guarded_index_reads_zero_and_writes_nothing() -> None:
    x = floats(9)
    actual = interpret_kernel(samples.padded_sum(9), [np.full(9, np.nan, np.float32), x])
    padded = np.pad(x, 1)
    np.testing.assert_allclose(
        actual[0], padded[:-2] + padded[1:-1] + padded[2:], rtol=1e-5, atol=1e-6
    )
    nothing = kernel("g0", (at(param(0, 0), gated(axis("g0", 2), axis("g0", 2) < 0)), F_ONE, "g0"))
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
    wrong_gate = kernel("g0", (at(param(0, 4), g0), load(param(1, 4), gated(g0 + 1, g0 < 9)), "g0"))
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
    k = kernel("g0 r0 r1", (at(param(0, 3), g0), reduced(Ops.ADD, apart * apart, r1), "g0"))
    a = floats(3, 4)
    np.testing.assert_allclose(interpret_kernel(k, [floats(3), a])[0], a.var(1) * 4, rtol=1e-5)


def test_several_outputs_and_order_between_stores() -> None:
    g0, g1 = axis("g0", 4), axis("g1", 4)
    first = kernel("g0", (at(param(0, 4), g0), load(param(2, 4), g0) * 2.0, "g0")).src[0]
    after = UOp(Ops.AFTER, F, (param(0, 4), first))
    second = kernel("g1", (at(param(1, 4), g1), load(after, g1 * -1 + 3), "g1")).src[0]
    k = UOp.sink(first, second, arg=KernelInfo("two", ("g0", "g1")))
    x = floats(4)
    actual = interpret_kernel(k, [floats(4), floats(4), x])
    np.testing.assert_array_equal(actual[0], x * 2)
    np.testing.assert_array_equal(actual[1], x[::-1] * 2)


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
                ["load", "gate", "sum", "reduce", "stage"] if depth else ["load", "gate"]
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
    stores = samples.store(target, value([g0, g1], 3))
    order = sorted(r.axis_name for r in stores.toposort() if r.op is Ops.RANGE)
    return UOp.sink(
        UOp(Ops.END, dtypes.void, (stores, g0, g1)), arg=KernelInfo("any", tuple(order))
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
        start = {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: -(2**31), Ops.MIN: 2**31 - 1}[node.arg]
        for i in range(node.src[1].extent):
            start = wrap(
                PYTHON[node.arg](start, step_by_step(node.src[0], env | {node.src[1]: i}, x))
            )
        return start
    if node.op is Ops.INDEX:
        rows, fresh = node.src[0], node.src[0].src[2]
        row, column = below(node.src[1]), below(node.src[2])
        return step_by_step(rows.src[0], env | {fresh: column}, x) if row == 1 else 0
    result = PYTHON[node.op](*map(below, node.src))
    return result if node.dtype is not dtypes.int32 else wrap(result)


@given(
    kernels(), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=12, max_size=12), st.booleans()
)
def test_any_kernel_means_what_its_loops_do(k: UOp, x: list[int], small: bool) -> None:
    store, g0, g1 = k.src[0].src
    want = [
        step_by_step(store.src[1], {g0: i, g1: j}, x)
        for i, j in product(range(g0.extent), range(g1.extent))
    ]
    arrays = [np.zeros(len(want), np.int32), np.array(x, np.int32)]
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 2)
        assert interpret_kernel(k, arrays)[0].tolist() == want
