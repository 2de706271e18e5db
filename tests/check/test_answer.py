"""`check` finds right kernels right and wrong ones wrong, whatever their values and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.ir.samples import at, axis, kernel, load, param
from tests.kernel.samples import DEVICES, UPCAST, text_kernel
from tests.tools.kernels import EXAMPLES, matmul_bias_relu
from workbench import Kernel, Tensor, explore
from workbench.base.dtypes import dtypes
from workbench.check.answer import FULL_STEPS, SAMPLES, check, lane_steps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.text.printer import to_text


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_check_finds_right_kernels_right(name: str, device: str) -> None:
    subject = text_kernel(name)
    result = subject.check(device)
    assert result and result.ok and result.max_abs_error <= result.tolerance < 1e-3
    assert result.checked == result.total == subject.run(device)[0].size
    assert str(result).startswith("right: ")


def test_small_numbers_are_compared_as_closely_as_large_ones() -> None:
    values = np.full((4, 4), 1e-3, np.float32)
    subject, wrong = (explore(Tensor(values) * by).kernels[0] for by in (2, 2.001))
    assert subject.check("LLVM")
    assert not replace(subject, ast=wrong.ast).check("LLVM")


def test_an_error_is_said_beside_the_greatest_value() -> None:
    x = Tensor(np.linspace(1, 80, 64, dtype=np.float32))
    result = explore(x.exp()).kernels[0].check("LLVM")
    assert result and result.relative is not None
    error, tolerance = result.relative
    assert result.max_abs_error > 1e20, "a float32 of 5e34 is no nearer to the next"
    assert 0 < error < 2**-22 < tolerance < 2**-18
    assert result.summary.endswith(
        f"{error:.2g} of the greatest value (tolerance {tolerance:.2g} of it)"
    )
    whole = explore(Tensor([1, 2, 3]) + 1).kernels[0].check("LLVM")
    assert whole.relative is None and "0 of 3 differ" in str(whole)


def test_values_that_underflow_have_no_share_of_the_greatest() -> None:
    """The tolerance of such values is the least normal number: 2e+40 of the greatest, it said."""
    x = Tensor(np.linspace(-100, -95, 8, dtype=np.float32))
    result = explore(x.exp()).kernels[0].check("LLVM")
    assert result and result.relative is not None and result.relative[1] > 1
    assert result.summary.endswith("(tolerance 1.18e-38; the values are smaller, and may become 0)")


SWAPS = {
    "matmul_bias_relu": (Ops.MAX, Ops.MIN), "softmax": (Ops.FDIV, Ops.MUL),
    "convolution": (Ops.MUL, Ops.ADD), "nested_reduction": (Ops.MUL, Ops.MAX),
    "tiled_matmul": (Ops.MUL, Ops.ADD),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SWAPS)
def test_check_finds_a_wrong_operation(name: str, device: str) -> None:
    good = text_kernel(name)
    old, new = SWAPS[name]
    nodes = [n for n in good.ast.toposort() if n.op is old and n.dtype.is_float]
    wrong = replace(good, ast=good.ast.substitute({nodes[-1]: nodes[-1].replace(op=new)}))
    result = wrong.check(device)
    assert not result and result.max_abs_error > result.tolerance
    assert str(result).startswith("WRONG: ")


@pytest.mark.parametrize("device", DEVICES)
def test_check_finds_a_wrong_reduction_index_and_constant(device: str) -> None:
    good = text_kernel("matmul_bias_relu")
    for change in (_other_reduction, _transposed, _other_constant, _one_column_short):
        wrong = replace(good, ast=change(good.ast))
        assert not wrong.check(device).ok, change.__name__


def _other_reduction(graph: UOp) -> UOp:
    node = next(n for n in graph.toposort() if n.op is Ops.REDUCE)
    return graph.substitute({node: node.replace(arg=Ops.MAX)})


def _transposed(graph: UOp) -> UOp:
    ranges = {n.axis_name: n for n in graph.toposort() if n.op is Ops.RANGE}
    place = next(n for n in graph.toposort() if n.op is Ops.INDEX and n.src[0].arg == (3, 16))
    return graph.substitute({place: at(place.src[0], ranges["g0"])})


def _other_constant(graph: UOp) -> UOp:
    node = next(n for n in graph.toposort() if n.is_const and n.dtype is dtypes.float32)
    return graph.substitute({node: node.like(0.5)})


def _one_column_short(graph: UOp) -> UOp:
    """One element of the output is never written."""
    store = next(n for n in graph.toposort() if n.op is Ops.STORE)
    place = store.src[0]
    inside = place.src[1] < 127
    return graph.substitute({place: at(place.src[0], gated(place.src[1], inside))})


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_check_finds_what_is_not_finite(wrong: float) -> None:
    good = text_kernel("transpose")
    store = next(n for n in good.ast.toposort() if n.op is Ops.STORE)
    value = (store.src[0].src[1] < 5).where(store.src[1].like(wrong), store.src[1])
    result = replace(
        good, ast=good.ast.substitute({store: store.replace(src=(store.src[0], value))})
    ).check()
    assert not result.ok and result.max_abs_error == np.inf


def test_nan_and_infinity_are_right_where_they_should_be() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1e38], np.float32)
    (subject,) = explore(Tensor(x) * 10).kernels
    for device in DEVICES:
        assert subject.check(device).ok


@pytest.mark.parametrize("seed", range(12))
def test_a_result_that_cancels_is_not_wrong(seed: int) -> None:
    """Only rounding errors are left, and the reference may have none by chance; a result that is
    off by one element of the sum is found."""
    values = np.random.default_rng(seed).standard_normal((1, 64)).astype(np.float32)
    subject = explore(Tensor(values).softmax(1).sum(1) - 1).kernels[-1]
    for version in (subject, subject.optimized()):
        result = version.check("LLVM")
        assert result, result
        assert result.tolerance < 1e-4
    short = explore(Tensor(values[:, :63]).softmax(1).sum(1) - 1 + 1e-3).kernels[-1]
    actual = short.run("LLVM")
    inputs = [b.to_numpy() for b in subject.data.buffers(subject.original, "LLVM")]
    assert not check(subject.original, subject.original.outputs, inputs, actual)


def test_an_overflow_in_float32_does_not_hide_a_wrong_answer() -> None:
    """exp2(200) is infinite in float32 and not in float64: that element says nothing, but the
    others are held to the same tolerance as ever."""
    values = np.array([1, 2, 3, 200], np.float32)
    x = Tensor(values)
    subject = explore(x.exp2() / x.exp2() + x).kernels[-1]
    assert np.isnan(subject.run("LLVM")[0][3])
    assert subject.check("LLVM").ok
    (load,) = {n for n in subject.ast.toposort() if n.op is Ops.LOAD}
    wrong = replace(subject, ast=subject.ast.substitute({load: load * 1.01}))
    assert not wrong.check("LLVM").ok


def test_check_of_integers_is_exact() -> None:
    (subject,) = explore(Tensor(np.arange(-50, 50, dtype=np.int32)) // 7 * 3).kernels
    for device in DEVICES:
        result = subject.check(device)
        assert result.ok and result.tolerance == 0
    off = replace(subject, ast=_plus_one(subject.ast))
    assert not off.check().ok


def _plus_one(graph: UOp) -> UOp:
    store = next(n for n in graph.toposort() if n.op is Ops.STORE)
    place, value = store.src
    value = (place.src[1].alu(Ops.CMPEQ, UOp.index(99))).where(value + 1, value)
    return graph.substitute({store: store.replace(src=(place, value))})


def test_check_samples_what_is_too_large() -> None:
    example = matmul_bias_relu(256, 256, 512)
    assert lane_steps(example.graph) > FULL_STEPS
    good = Kernel.from_text(to_text(example.graph)).apply(UPCAST)
    result = good.check("LLVM")
    assert result.ok and SAMPLES <= result.checked < result.total == 256 * 256
    assert good.check("LLVM") == result, "the sample is the same each time"
    wrong = replace(good, ast=_other_constant(good.ast))
    assert not wrong.check("LLVM").ok


def test_a_large_kernel_below_the_limit_is_checked_in_full() -> None:
    example = matmul_bias_relu(128, 128, 512)
    assert lane_steps(example.graph) <= FULL_STEPS
    assert Kernel.from_text(to_text(example.graph)).check("LLVM").checked == 128 * 128


@pytest.mark.parametrize("device", DEVICES)
def test_a_kernel_of_several_outputs(device: str) -> None:
    g0, g1 = axis("g0", 6), axis("g1", 4)
    x = load(param(2, 6), g0)
    y = load(param(3, 4), g1)
    graph = kernel(
        "g0 g1", (at(param(0, 6), g0), x * 2.0, "g0"), (at(param(1, 4), g1), y + 1.0, "g1")
    )
    subject = Kernel.from_text(to_text(graph))
    first, second = subject.run(device)
    assert first.shape == (6,) and second.shape == (4,)
    assert subject.check(device).ok
    wrong = replace(subject, ast=_other_constant(subject.ast))
    assert not wrong.check(device).ok


@pytest.mark.parametrize("device", DEVICES)
def test_a_kernel_whose_slots_have_a_gap(device: str) -> None:
    g0 = axis("g0", 6)
    graph = kernel("g0", (at(param(0, 6), g0), load(param(2, 6), g0) * 2.0, "g0"))
    subject = Kernel.from_text(to_text(graph))
    assert subject.run(device)[0].shape == (6,) and subject.check(device).ok


A, B = (np.random.default_rng(n).standard_normal(4000).astype(np.float32) for n in (1, 2))
DECIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": lambda p: p - p.floor(),
    "remainder": lambda p: p % 1.0,
    "sine": lambda p: (p * 1e4).sin(),
    "comparison": lambda p: (p > p.round()).cast("int32"),
    "cast": lambda p: (p.exp() * 1000).cast("int32"),
    "product": lambda p: (p.reshape(50, 80).maximum(0.9) * 1e8).cast("int32"),
}


@pytest.mark.parametrize("name", DECIDED)
def test_where_a_rounding_decides_other_answers_are_wrong(name: str) -> None:
    kernel = explore(DECIDED[name](Tensor(A) * Tensor(B) * 5)).kernels[-1]
    assert kernel.check("LLVM") and kernel.optimized().check("LLVM")
    run = kernel.data.check_run(kernel.original, "LLVM")
    answers = kernel.run("LLVM")
    for other in (np.zeros_like, np.ones_like, lambda a: np.roll(a, 1)):
        verdict = run.verdict([other(array) for array in answers])
        assert not verdict and "WRONG" in str(verdict)
