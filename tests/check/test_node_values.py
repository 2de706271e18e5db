"""The values of a node are what numpy computes for it, whole, at a position, and in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.check import node_values as module
from workbench.check.node_values import values_of_tensor
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = np.ndarray[Any, Any]
A = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
LOGS = np.arange(16).astype(np.float32) - 1


def product() -> Kernel:
    with np.errstate(all="ignore"):
        (kernel,) = explore(Tensor(A) @ Tensor(B) * 2.0 + Tensor(LOGS).log2()).kernels
    return kernel


def node(kernel: Kernel, op: Ops) -> UOp:
    return next(n for n in kernel.ast.toposort() if n.op is op and n.dtype.is_float)


def test_every_value_of_a_kernel_is_there() -> None:
    kernel = product()
    total = kernel.values(node(kernel, Ops.REDUCE))
    assert total.axes == ("g0", "g1") and total.at == {} and total.chosen == ()
    np.testing.assert_allclose(total.array, A @ B, rtol=1e-5)
    terms = kernel.values(node(kernel, Ops.MUL))
    assert terms.axes == ("g0", "g1", "r0")
    np.testing.assert_array_equal(terms.array, (A[:, None, :] * B.T[None]).astype(np.float32))
    loads = {n.src[0].src[0].arg[0]: n for n in kernel.ast.toposort() if n.op is Ops.LOAD}
    np.testing.assert_array_equal(kernel.values(loads[1]).array, A)
    place = kernel.values(loads[1].src[0])
    np.testing.assert_array_equal(place.array, np.arange(48).reshape(6, 8))
    store = kernel.values(kernel.ast.src[0])
    np.testing.assert_allclose(store.array, kernel.run()[0], rtol=1e-5)


def test_figures_leave_nan_apart() -> None:
    kernel = product()
    logs = kernel.values(node(kernel, Ops.LOG2))
    assert logs.axes == ("g1",) and (logs.nans, logs.infinite) == (1, 1)
    assert logs.min == -np.inf and logs.max == pytest.approx(np.log2(14))
    text = str(logs)
    assert "log2(" in text and "g1 in 16" in text and "1 of 16 NaN, 1 infinite" in text
    index = kernel.values(next(n for n in kernel.ast.toposort() if n.op is Ops.RANGE))
    assert index.nans == 0 and (index.min, index.max) == (0, index.array.size - 1)


def test_positions_are_chosen_by_axis_name() -> None:
    kernel = product()
    total = node(kernel, Ops.REDUCE)
    one = kernel.values(total, at={"g1": 3})
    assert one.axes == ("g0",) and one.at == {"g1": 3} and "at g1=3" in str(one)
    np.testing.assert_allclose(one.array, (A @ B)[:, 3], rtol=1e-5)
    point = kernel.values(node(kernel, Ops.MUL), at={"g0": 5, "g1": 15, "r0": 7})
    assert point.array == A[5, 7] * B[7, 15] and point.axes == ()
    with pytest.raises(WorkbenchError, match="'r0' is not an axis") as error:
        kernel.values(total, at={"r0": 0})
    assert "g0 in 6, g1 in 16" in error.value.because
    for bad in (6, -1, 1.5, True):
        with pytest.raises(WorkbenchError, match="no position"):
            kernel.values(total, at={"g0": bad})


def test_a_part_of_all_values_is_the_value_at_positions() -> None:
    kernel = product()
    total = node(kernel, Ops.REDUCE)
    whole = kernel.values(total)
    positions: tuple[dict[str, int], ...] = ({}, {"g0": 1}, {"g1": 2, "g0": 0})
    for at in positions:
        part, own = whole.part(at), kernel.values(total, at)
        assert (part.axes, part.at, part.chosen) == (own.axes, own.at, own.chosen)
        np.testing.assert_allclose(part.array, own.array, rtol=1e-5)
    with pytest.raises(WorkbenchError, match="there is no position"):
        whole.part({"g0": 99})


def test_after_opts_every_node_has_the_same_values() -> None:
    kernel = product().apply(Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 2))
    total = kernel.values(node(kernel, Ops.REDUCE))
    assert set(total.axes) == {"g0", "g1", "u0"}
    moved = total.array.transpose([total.axes.index(n) for n in ("g0", "g1", "u0")])
    np.testing.assert_allclose(moved.reshape(6, 16), A @ B, rtol=1e-5)


def test_a_gated_index_and_a_staged_row() -> None:
    (kernel,) = explore(Tensor(A).pad(((1, 0), (0, 0))).sum(1)).kernels
    load = node(kernel, Ops.LOAD)
    assert kernel.values(load.src[0]).min == -1
    np.testing.assert_array_equal(kernel.values(load).array[0], np.zeros(8))
    (rows,) = explore(Tensor(B).softmax()).kernels
    row = kernel = rows.values(node(rows, Ops.STAGE))
    assert row.array.shape == (8, 16) and row.max == 1.0
    shifted = B - B.max(1, keepdims=True)
    np.testing.assert_allclose(kernel.array, np.exp(shifted), rtol=1e-5)


def test_a_range_that_is_open_here_and_closed_below_may_be_fixed() -> None:
    kernel = product()
    terms = node(kernel, Ops.MUL)
    total = node(kernel, Ops.REDUCE)
    both = terms * total  # r0 is open in the one, and summed in the other
    actual = kernel.values(both, at={"r0": 2, "g0": 1})
    expected = A[1, 2] * B[2] * (A @ B)[1]
    np.testing.assert_allclose(actual.array, expected, rtol=1e-4)


def test_too_many_values_are_seen_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = product()
    monkeypatch.setattr(module, "MOST_STEPS", 200)
    part = kernel.values(node(kernel, Ops.MUL), at={"g1": 3})
    assert part.chosen == () and part.array.shape == (6, 8)
    part = kernel.values(node(kernel, Ops.MUL))
    assert part.chosen == ("g0",) and part.axes == ("g1", "r0")
    np.testing.assert_array_equal(part.array, A[0] * B.T)
    assert "all of g0 would be too many" in str(part)
    monkeypatch.setattr(module, "MOST_STEPS", 0)
    with pytest.raises(WorkbenchError, match="too much work"):
        kernel.values(node(kernel, Ops.REDUCE))


@pytest.mark.parametrize("op", [Ops.PARAM, Ops.SINK])
def test_what_is_no_value_says_so(op: Ops) -> None:
    kernel = product()
    valueless = next(n for n in kernel.ast.toposort() if n.op is op)
    with pytest.raises(WorkbenchError, match=f"{op.name} has no values"):
        kernel.values(valueless)


def test_a_product_that_is_added_in_an_fma_has_values() -> None:
    kernel = product()
    lowered = kernel.compile()["lowered"]
    fma = next(n for n in lowered.toposort() if n.op is Ops.FMA)
    terms = kernel.values(fma).array
    assert sorted(terms.flat) == sorted((A[:, None] * B.T[None]).flat)


def test_values_of_a_tensor() -> None:
    x = Tensor(A)
    y = (x * 2.0).sum(1)
    ex = explore(y)
    np.testing.assert_allclose(ex.values(y).array, (A * 2).sum(1), rtol=1e-6)
    inner = next(d.node for d in ex.decisions if d.node.op is Ops.MUL)
    row = ex.values(inner, at={"0": 2})
    assert row.axes == ("1",) and row.at == {"0": 2}
    np.testing.assert_array_equal(row.array, A[2] * 2)
    assert ex.values(inner, at={0: 2}).array.shape == (8,)  # type: ignore[dict-item]
    with pytest.raises(WorkbenchError, match="no position 6"):
        ex.values(inner, at={"0": 6})
    large = Tensor.ones(1 << 13, 1 << 13) + Tensor(A).sum()
    with pytest.raises(WorkbenchError, match="too much work"):
        values_of_tensor(large.uop, {})


def test_values_of_a_memory_that_only_a_run_writes() -> None:
    """A BUFFER between two kernels is allocated by a run alone: its values are computed."""
    inner = (Tensor(A) @ Tensor(B)).contiguous()
    ex = explore(inner.softmax() + inner.sum())
    buffers = {b: n for item in ex.items for b, n in zip(item.outputs, item.nodes, strict=True)}
    assert len(buffers) > 2
    for buffer, value in buffers.items():
        np.testing.assert_array_equal(ex.values(buffer).array, ex.values(value).array)
    first = next(b for b, n in buffers.items() if n.op is Ops.CONTIGUOUS)
    np.testing.assert_allclose(ex.values(first).array, A @ B, rtol=1e-5)


def test_a_function_in_a_kernel_has_values_before_it_is_expanded() -> None:
    ex = explore(Tensor(A).exp())
    drafts = next(record.after for record in ex.passes if record.name == "rangeify")
    exp = next(n for n in drafts[-1].kernel.toposort() if n.op is Ops.EXP)
    np.testing.assert_allclose(ex.kernels[0].values(exp).array, np.exp(A), rtol=1e-6)


def test_values_of_random_expressions_are_those_of_numpy() -> None:
    """Every line of the program, at a position, too; the numpy side shares nothing with it."""
    for seed in range(count(150)):
        expression = case(seed)
        lines = expression.run_lines("LLVM")
        ex = explore(lines[-1][0])
        for tensor, expected in lines:
            found = ex.values(tensor)
            np.testing.assert_allclose(
                found.array.astype(np.float64), expected.astype(np.float64),
                atol=expression.tolerance(), err_msg=expression.script(),
            )  # fmt: skip
            if expected.size and expected.ndim:
                at = {"0": expected.shape[0] - 1}
                np.testing.assert_array_equal(found.part(at).array, found.array[-1])
                np.testing.assert_array_equal(ex.values(tensor, at).array, found.array[-1])
