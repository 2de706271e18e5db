"""The first value that differs from numpy's is found, with its line, and no right one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.check.test_bisect import BAD, with_rule
from tests.support import count
from workbench import Tensor, explore
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.movement import TENSOR_RULES

A = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)


def expression() -> Tensor:
    h = (Tensor(A) @ Tensor(B)).relu()
    half = h * 0.5
    return (half.softmax() + h.sum()).pad(((1, 0), (0, 2)))


def test_where_nothing_is_wrong_all_are_compared() -> None:
    checks = explore(expression()).check_nodes()
    assert checks and checks.wrong is None and checks.compared == checks.total > 8
    assert str(checks).startswith(f"all {checks.total} values agree with numpy")
    assert "before any rule" in str(checks)


@pytest.mark.parametrize("rules", [TENSOR_RULES, KERNEL_RULES])
def test_the_first_wrong_value_has_its_line_and_place(
    rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_rule(rules, BAD, monkeypatch):
        checks = explore(expression()).check_nodes()
    wrong = checks.wrong
    assert not checks and wrong is not None and wrong.line is not None
    assert wrong.node.op is Ops.MUL and wrong.line.inner[-1].text.strip() == "half = h * 0.5"
    right = np.maximum(A @ B, 0) * 0.5
    greatest = np.unravel_index(np.argmax(right), right.shape)
    assert wrong.at == greatest
    assert wrong.expected == pytest.approx(right.max(), rel=1e-5)
    assert wrong.actual == pytest.approx(2 * right.max(), rel=1e-5)
    text = str(checks)
    assert f"value {checks.compared} of {checks.total} is the first" in text
    assert "half = h * 0.5" in text and "instead of" in text


def test_a_value_that_is_only_moved_is_named_if_it_is_the_wrong_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = var("x")

    def unflipped(x: UOp) -> UOp:
        return x

    bad = Rule("bad-flip", op(Ops.FLIP, x), unflipped)
    with with_rule(TENSOR_RULES, bad, monkeypatch):
        wrong = explore(Tensor(A).flip(0).exp() + 1).check_nodes().wrong
    assert wrong is not None and wrong.node.op is Ops.FLIP


def test_a_value_that_cannot_be_compiled_is_the_first_wrong_one() -> None:
    checks = explore(Tensor(A).exp2() + 1, without=["exp2-polynomial"]).check_nodes()
    assert checks.wrong is not None and checks.wrong.verdict is None
    assert checks.wrong.node.op is Ops.EXP2 and "it fails: " in str(checks)


def test_special_values_and_sizes_agree() -> None:
    special = A.copy()
    special[0, :3] = np.nan, np.inf, -np.inf
    half = Tensor(special.astype(np.float16))
    whole = Tensor(np.arange(-6, 9, dtype=np.int32).reshape(3, 5))
    empty = Tensor(np.zeros((0, 4), np.float32))
    tensors = (
        Tensor(special).sum(1).exp() / Tensor(special).max(1), half.softmax().sum(),
        (whole // 2).sum(0) * (whole % 3 < 1).any(0), (empty + 1).sum(0) * 2,
        Tensor(special).cumsum(1).max(0).log(),
    )  # fmt: skip
    checks = explore(*tensors).check_nodes()
    assert checks.wrong is None and checks.compared == checks.total > 20, checks


def test_random_expressions_agree() -> None:
    for seed in range(count(200, 40)):
        checks = explore(case(seed).run("LLVM")[0]).check_nodes()
        assert checks.wrong is None, f"{checks}\n{case(seed).script()}"
        assert checks.compared == checks.total


def test_the_first_wrong_line_of_a_random_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy says which line is the first wrong one: the node is of that line, and of none before
    it."""
    found, x = 0, var("x", "float")
    bad = Rule("bad-sum", op(Ops.ADD, x, var("y", "float")), x)
    for seed in range(count(400, 40)):
        with with_rule(TENSOR_RULES, bad, monkeypatch):
            expression = case(seed)
            lines = expression.run_lines("LLVM")
            used = UOp.sink(lines[-1][0].uop).toposort()
            differing = [
                number for number, (tensor, expected) in enumerate(lines)
                if tensor.uop in used and not np.allclose(
                    tensor.clone().numpy().astype(np.float64), expected.astype(np.float64),
                    atol=3 * expression.tolerance(),
                )
            ]  # fmt: skip
            if not differing:
                continue
            tensors = [tensor for tensor, _ in expression.run_lines("LLVM")]
            ex = explore(tensors[-1])
            checks = ex.check_nodes()
        assert checks.wrong is not None, expression.script()
        before, upto = (
            UOp.sink(*map(ex.expression.node_of, tensors[:end])).toposort()
            for end in (differing[0], differing[0] + 1)
        )
        assert checks.wrong.node in upto, expression.script()
        assert checks.wrong.node not in before, expression.script()
        found += 1
    assert found > 1
