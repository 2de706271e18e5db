"""A kernel is compared with what the user's expression means: a wrong rule of any pass is WRONG,
wherever it fires, and so is what reads a value that the rule took for another one."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.support import count
from tests.viz.record.support import plain
from tests.viz.session.support import done, session_of
from workbench import Kernel, Rule, RuleSet, Tensor, explore, register, unregister, var
from workbench.check import meanings
from workbench.check.node_values import memory_below
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.meaning.sampled import SampledElements, TooManyPositions
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.patterns import Pat, op
from workbench.kernel.inputs import OF_KERNEL, TOO_LARGE
from workbench.viz.record.page_run import page_data
from workbench.viz.schema.record import PageData

Array = np.ndarray[Any, Any]
X, Y = var("x"), var("y")
WRONG = {
    "simplify-tensor": (op(Ops.MAX, X, Y), X),
    "split-reductions": (op(Ops.MAX, X, Y), X),
    "simplify-kernel": (op(Ops.MAX, X, Y), X),
    "expand-functions": (op(Ops.EXP, X), X),
    "decompose": (op(Ops.MAX, X, Y), X),
}


@contextmanager
def registered(match: Pat, becomes: Pat, into: str) -> Iterator[None]:
    rules = register(RuleSet("mine", [Rule("mine", match, becomes)]), into=into)
    try:
        yield
    finally:
        unregister(rules)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape)
    return Tensor(values.astype(np.float32))


def answer_of(data: PageData) -> Array:
    """Return what a page holds the first output of an 8 x 8 kernel against."""
    (right,) = [buffer.data for buffer in data.buffers if buffer.written]
    return np.frombuffer(base64.b64decode(right), np.float32).reshape(8, 8)


@pytest.mark.parametrize("into", WRONG)
def test_a_wrong_rule_of_any_pass_is_named_wrong(into: str) -> None:
    with registered(*WRONG[into], into):
        ex = explore((numbers(8, 8) @ numbers(8, 8)).exp().log().relu())
        (kernel,) = ex.kernels
        for each in (kernel, kernel.optimized()):
            result = each.check()
            assert not result and "before any rule" in result.against
        checks = ex.check()
        assert not checks.ok and str(checks).count("WRONG") == 2
        wrong = kernel.bisect()
        is_lowering = into == "decompose"
        assert wrong and wrong.stage == (into if is_lowering else "scheduling")
        assert is_lowering or "before any rule" in str(wrong)
        in_page = page_data(kernel)
        assert "before any rule" in in_page.against
        assert not np.allclose(answer_of(in_page), kernel.run()[0])
        with session_of(ex) as session:
            done(session, "check", variant=0)
            verdict = plain(session.record)["variants"][0]["check"]
            assert not verdict["ok"] and "before any rule" in verdict["text"]
    ex = explore((numbers(8, 8) @ numbers(8, 8)).exp().log().relu())
    assert ex.check() and str(ex.check()).count("right") == 2
    assert ex.kernels[0].bisect() is None
    right, computed = answer_of(page_data(ex.kernels[0])), ex.kernels[0].run()[0]
    np.testing.assert_allclose(right, computed, rtol=1e-4, atol=1e-5)


def test_the_kernel_that_a_wrong_rule_changed_is_wrong_and_no_other() -> None:
    """x + 3 is stored for x: the kernel that computes x is right, the one that reads it is not."""
    with registered(X + 3.0, X, "simplify-tensor"):
        stored = (numbers(8, 8) @ numbers(8, 8)).contiguous()
        ex = explore((stored + 3.0) * 2.0)
        first, second = ex.kernels
        assert first.check() and not second.check()
        assert "WRONG" in str(ex.check()).splitlines()[1]
        assert not ex.check().results[0]


def test_a_rule_that_leaves_no_kernel_is_wrong_all_the_same() -> None:
    with registered(op(Ops.MAX, X, Y), X, "simplify-tensor"):
        ex = explore(Tensor([1.0, -2.0]).relu())
        assert not ex.kernels and not ex.check()
    assert explore(Tensor([1.0, -2.0]).relu()).check()


def test_a_value_that_only_a_rule_made_is_judged_with_the_results() -> None:
    ex = explore(numbers(1 << 20).sum())
    partial, total = ex.kernels
    assert partial.check() and total.check() and ex.check()
    assert "stands for none" in partial.check().against
    assert "stands for none" not in total.check().against


def test_inputs_of_a_kernel_are_right_though_the_kernels_before_are_wrong() -> None:
    ex = explore((numbers(8, 8) @ numbers(8, 8)).contiguous().exp().contiguous() + 1.0)
    with registered(op(Ops.EXP2, X), X, "decompose"):
        verdicts = [bool(kernel.check()) for kernel in ex.kernels]
        assert verdicts == [True, False, True]
        assert not ex.check()


def test_an_inner_value_of_wrong_results_is_no_bisected_kernel() -> None:
    """The partial sums stand for no value of the user's: what comes of them must be right."""
    with registered(X * 3.0, X, "simplify-tensor"):
        partial, total = explore((numbers(1 << 20) * 3.0).sum()).kernels
        for kernel in (partial, total):
            wrong = kernel.bisect()
            assert wrong and "bisect` of the exploration" in str(wrong)


def test_a_sum_that_is_too_much_to_compute_is_compared_with_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MOST_ELEMENTS", "MOST_OPERAND_ELEMENTS"):
        monkeypatch.setattr(meanings, name, 1 << 10)
    partial, total = explore(numbers(1 << 20).sum()).kernels
    assert partial.check() and "too much to compute" in partial.check().against
    assert total.check() and total.check().against == f"{OF_KERNEL}; {TOO_LARGE}"


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_gradient_rule_of_the_user_is_said_to_be_trusted(factor: float) -> None:
    """Its gradient means what the rule says: that this is the derivative, no check has shown. A
    rule that hands the gradient on as it is leaves no node of its own."""

    @Tensor.custom_gradient
    def squared(x: Tensor) -> Any:
        return x * x, lambda g: g * factor

    x = numbers(8, 8)
    (gradient,) = (squared(x.sin()) * numbers(8, 8, seed=1)).sum().gradient(x)
    against = explore(gradient).kernels[0].check().against
    assert "gradients are what the rule of squared says" in against
    (own,) = (x.sin() ** 2 * numbers(8, 8, seed=2)).sum().gradient(x)
    assert "the rule of" not in explore(own).kernels[0].check().against


def test_a_kernel_without_its_expression_says_so() -> None:
    kernel = explore(numbers(4) * 2).kernels[0]
    assert "came without" in Kernel.from_text(kernel.to_text()).check().against


@pytest.mark.parametrize("seed", range(count(200)))
def test_sampled_elements_are_those_of_the_whole(seed: int) -> None:
    node = case(seed).run("LLVM")[0].uop
    memory = memory_below(node.toposort())
    random = np.random.default_rng(seed)
    if not node.size:
        return
    for widen in (False, True):
        whole = np.broadcast_to(interpret_tensor(node, memory, widen), node.shape)
        places = np.unique(random.integers(0, node.size, 5))
        (some,) = SampledElements([(node, places)], 1 << 24).values(memory, widen)
        want = whole.reshape(-1)[places]
        np.testing.assert_allclose(
            some.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-30
        )


def test_a_large_result_is_sampled() -> None:
    a, b = numbers(512, 512), numbers(512, 512, seed=1)
    result = explore(a @ b).kernels[0].optimized().check()
    assert result and 0 < result.checked < result.total
    node = (a @ b).uop
    with pytest.raises(TooManyPositions):
        SampledElements([(node, np.arange(node.size))], 1 << 10)


def test_what_a_kernel_leaves_out_is_wrong() -> None:
    """Its memory may hold the right answer of a run before."""
    a, i = numbers(18, 33), var("i", "integer")
    (a.cumsum(1) * 2).numpy()
    with registered(i * 3, i * 2, "simplify-kernel"):
        exploration = explore(a.cumsum(1) * 2)
        assert [kernel.check("LLVM").ok for kernel in exploration.kernels] == [False, True]
        assert not exploration.check().ok
