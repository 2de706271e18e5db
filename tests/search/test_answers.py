"""What a search returns is right: it is compared with what the expression means."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.search.support import numbers, quick
from workbench import Kernel, Opt, OptKind, OptOps, Rule, RuleSet, explore, unregister, var
from workbench import register as registered
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.kernel.run import CheckRun
from workbench.search.evaluation import Answers

Array = np.ndarray[Any, Any]
X = var("x")


def product() -> Kernel:
    return explore((numbers(16, 16) @ numbers(16, 16)) * 2.0).kernels[0]


@contextmanager
def a_wrong_rule() -> Iterator[None]:
    rules = registered(RuleSet("mine", [Rule("no-factor", X * 2.0, X)]), into="simplify-tensor")
    try:
        yield
    finally:
        unregister(rules)


@pytest.fixture
def wrong_opt() -> Iterator[Opt]:
    """An opt of the user that turns a factor of 2 into one of 3."""

    def tripled(kernel: UOp, opt: Opt) -> UOp:
        factors = [n for n in kernel.toposort() if n.op is Ops.CONST and n.arg == 2.0]
        return kernel.substitute({n: UOp.const(n.dtype, 3.0) for n in factors})

    registered(
        OptKind(
            "TRIPLE", here="a factor", on_a_gpu="the same",
            why_not=lambda kernel, opt, target: None, apply=tripled, promise=1,
        )
    )  # fmt: skip
    yield Opt(OptOps.TRIPLE, "g0", None)
    unregister("TRIPLE")


@pytest.mark.usefixtures("made_up_times")
def test_a_wrong_opt_is_not_believed(wrong_opt: Opt) -> None:
    """The start has it too: the candidates agree with each other, and not with the expression."""
    start = product().apply(wrong_opt)
    assert not start.check()
    result = quick(start)
    assert result.best != 0 and result.kernel.check()
    assert result.tried[0].note.startswith("WRONG") and result.speedup is None
    assert wrong_opt not in result.kernel.applied_opts
    assert result.answer.startswith("right") and "before any rule" in str(result)


@pytest.mark.usefixtures("made_up_times")
def test_a_wrong_rule_is_not_believed() -> None:
    with a_wrong_rule():
        kernel = product()
        result = quick(kernel)
    assert result.best == 0 and result.kernel.ast is kernel.ast
    assert "WRONG" in str(result) and "before any rule" in result.answer
    assert not quick(product()).answer.startswith("WRONG")


def test_nor_on_an_executor() -> None:
    with ThreadPoolExecutor(1) as executor:
        right = quick(product(), executor=executor)
        with a_wrong_rule():
            wrong = quick(product(), executor=executor)
    assert right.answer.startswith("right") and "WRONG" in str(wrong)


def test_an_answer_is_compared_once_and_an_error_is_no_verdict() -> None:
    kernel, ran = product(), list[UOp]()

    def outputs(candidate: UOp, check: CheckRun) -> list[Array]:
        ran.append(candidate)
        if len(ran) == 1:
            raise WorkbenchError("the program crashed", "SIGSEGV")
        return [kernel.run()[0].reshape(-1)]

    answers = Answers(lambda: kernel.data.check_run(kernel.original, "LLVM"), outputs)
    assert answers.problem(kernel.ast) == "the program crashed: SIGSEGV"
    assert answers.words(kernel.ast) == ""
    assert answers.problem(kernel.ast) == answers.problem(kernel.ast) == ""
    assert len(ran) == 2 and answers.words(kernel.ast).startswith("right")
