"""A rule that is wrong on purpose is found, in whatever pass it fires, and no right one is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.support import count
from tests.tools.compiler import needs_c
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, explore, pipeline
from workbench.base.errors import WorkbenchError
from workbench.base.trace import Match, PassRecord
from workbench.check import bisect as module
from workbench.check.bisect import first_wrong
from workbench.ir.lower.lower import DECOMPOSED, DECOMPOSED_INTEGERS, low_precision
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.passes import Memo
from workbench.ir.rewriting.patterns import const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.index import SIMPLIFY
from workbench.ir.rules.movement import TENSOR_RULES

A = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
x, y, c = var("x", "float"), var("y", "float"), const("c", "float")
BAD = Rule("bad", x * c, x)


def expression() -> tuple[Tensor, ...]:
    h = (Tensor(A) @ Tensor(B)).softmax()
    return ((h @ Tensor(B)).relu().reshape(16, 8)[::-1] * 0.5).cumsum(1), h.sum(0)


@contextmanager
def with_rule(rules: RuleSet, bad: Rule, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a rule to a table of the package."""
    with monkeypatch.context() as patch:
        patch.setattr(rules, "rules", (*rules.rules, bad))
        patch.setattr(pipeline, "_programs", Memo())
        rules.__dict__.pop("by_op", None)
        yield
    rules.__dict__.pop("by_op", None)


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
def test_where_nothing_is_wrong_nothing_is_found(device: str) -> None:
    ex = explore(*expression())
    assert ex.bisect() is None
    for kernel in ex.kernels:
        assert kernel.bisect(device) is None
        assert kernel.optimized().bisect(device) is None
        assert ex.bisect(kernel.optimized()) is None


TILES = (Opt(OptOps.LOCAL, "g0", 4), Opt(OptOps.LOCAL, "g1", 8), Opt(OptOps.SPLIT, "r0", 8),
         Opt(OptOps.ORDER, "r0", "l0"))  # fmt: skip


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X", "METAL:M3"])
@pytest.mark.parametrize(
    "opts",
    [TILES, (*TILES, Opt(OptOps.STAGE, "r0", 1)), (Opt(OptOps.GROUP, "r0", 8),), ()],
    ids=str,
)
def test_registers_of_work_items_are_not_one(machine: str, opts: tuple[Opt, ...]) -> None:
    (kernel,) = explore(Tensor(A) @ Tensor(B), device=machine).kernels
    assert kernel.apply(*opts).check().ok
    assert kernel.apply(*opts).bisect() is None


@pytest.mark.parametrize("machine", ["CUDA:H100", "METAL:M3"])
def test_a_tile_is_computed_by_lanes_together(machine: str) -> None:
    a, b = (Tensor(x).cast(dtypes.float16).realize() for x in (A, B))
    kernel = explore(a.matmul(b, dtype=dtypes.float32), device=machine).kernels[-1]
    tiled = kernel.apply(Opt(OptOps.TC, "g0 g1 r0", 2))
    assert tiled.check().ok and tiled.bisect() is None


def test_random_expressions_have_nothing_wrong() -> None:
    for seed in range(count(400)):
        ex = explore(case(seed).run("LLVM")[0])
        assert ex.bisect() is None, case(seed).script()


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_low_precision_is_checked_by_its_own_precision(dtype: Any) -> None:
    f = Tensor(A).cast(dtype).realize()
    assert explore(((f @ f.transpose()).softmax() + 1).sum(1)).bisect() is None


@pytest.mark.parametrize(
    "rules, stage", [(TENSOR_RULES, "simplify-tensor"), (KERNEL_RULES, "simplify-kernel")]
)
def test_a_wrong_rule_of_scheduling_is_found(
    rules: RuleSet, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_rule(rules, BAD, monkeypatch):
        fault = explore(*expression()).bisect()
    assert fault is not None and fault.stage == stage and fault.rule is BAD
    assert fault.before.op is Ops.MUL and fault.after is fault.before.src[0]
    assert fault.unsure == () and "greatest error" in fault.problem
    text = str(fault)
    assert f"in pass {stage} changes the value" in text and "rule    bad: " in text
    assert explore(*expression()).bisect() is None, "without it all is right"


def test_a_wrong_rule_inside_an_opt_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = explore((Tensor(A) @ Tensor(B)) * 0.5).kernels
    upcast = kernel.apply(Opt(OptOps.UPCAST, "g1", 4))
    with with_rule(SIMPLIFY, BAD, monkeypatch):
        fault = upcast.apply(Opt(OptOps.UNROLL, "r0", 4)).bisect()
    assert fault is not None and fault.rule is BAD and fault.stage == "simplify-kernel"
    assert upcast.bisect() is None


def test_a_wrong_rule_of_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(DECOMPOSED.run, RuleSet)
    bad = Rule("bad-max", op(Ops.MAX, x, y), x)
    (kernel,) = explore((Tensor(A).relu() + 1.0).exp2()).kernels
    with with_rule(DECOMPOSED.run, bad, monkeypatch):
        fault = kernel.bisect()
        assert fault is not None and fault.stage == "decompose" and fault.rule is bad
        assert fault.number <= fault.rewrites


@pytest.mark.parametrize("opts", [TILES, TILES[:2]], ids=str)
def test_a_wrong_rule_is_found_in_work_items_too(
    opts: tuple[Opt, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(DECOMPOSED_INTEGERS.run, RuleSet)
    bad = Rule("bad-max", op(Ops.MAX, x, y), x)
    product = (Tensor(A) @ Tensor(B)).relu()
    (kernel,) = explore(product, device="CUDA:H100").kernels
    kernel = kernel.apply(*opts)
    assert kernel.bisect() is None
    with with_rule(DECOMPOSED_INTEGERS.run, bad, monkeypatch):
        fault = kernel.bisect()
    assert fault is not None
    assert fault.stage == "decompose" or "pass decompose" in fault.unsure


def test_states_that_cannot_be_judged_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the loads are of integers, half of low-precision floats: nobody can say what that
    is."""
    assert isinstance(low_precision((dtypes.float16,)).run, RuleSet)
    bad = Rule("bad-add", op(Ops.ADD, x, y), x, where=lambda x: x.dtype is dtypes.float32)
    f, g = (Tensor(a).cast(dtypes.bfloat16).realize() for a in (A, A * 2))
    (kernel,) = explore(f + g * f).kernels
    with with_rule(low_precision((dtypes.float16,)).run, bad, monkeypatch):
        fault = kernel.bisect()
    assert fault is not None and fault.stage == "low-precision"
    blamed = {fault.rule.name, *fault.unsure}
    assert "bad-add" in blamed or any("rewrite" in u for u in fault.unsure)


def test_a_kernel_that_does_not_compile_is_the_pass_that_fails() -> None:
    (kernel,) = explore(Tensor(A).exp2()).kernels
    fault = kernel.without("exp2-polynomial").bisect()
    assert fault is not None and fault.stage == "render" and "EXP2" in fault.problem


def numbers(*values: int) -> PassRecord:
    """Return a pass whose states are numbers: not graphs, so a function."""
    return PassRecord(f"to-{values[1]}", "", values[0], values[1])


def test_a_wrong_function_is_named_with_those_nobody_judged() -> None:
    def oracle(state: Any) -> str | None:
        return {0: "", 1: None, 2: "", 3: None, 4: "wrong"}[state]

    records = [numbers(0, 1), numbers(1, 2), numbers(2, 3), numbers(3, 4)]
    fault = first_wrong(records, oracle)
    assert fault is not None
    assert (fault.stage, fault.number, fault.unsure) == ("to-4", 0, ("pass to-3",))
    assert "or it was pass to-3" in str(fault)
    assert first_wrong(records[:3], oracle) is None


@pytest.mark.parametrize("wrong_rewrite", range(1, 8))
@pytest.mark.parametrize("hidden", [(), (2, 3), (1, 4, 5, 6), tuple(range(1, 7))])
def test_the_first_wrong_state_that_can_be_judged(
    wrong_rewrite: int, hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [Tensor.full((2, 3), i).uop for i in range(8)]
    matches = tuple(Match(f"r{i}", nodes[i - 1], nodes[i]) for i in range(1, 8))
    record = PassRecord("p", "", nodes[0], nodes[7], matches)
    monkeypatch.setattr(module, "replay", lambda before, found, n: nodes[n])

    def oracle(state: Any) -> str | None:
        number = nodes.index(state)
        return None if number in hidden else "wrong" if number >= wrong_rewrite else ""

    fault = first_wrong([record], oracle)
    assert fault is not None
    visible = [n for n in range(8) if n not in hidden]
    expected = min(n for n in visible if n >= wrong_rewrite)
    before = max(n for n in visible if n < wrong_rewrite)
    assert fault.number == expected and fault.rule == f"r{expected}"
    assert fault.unsure == tuple(f"rewrite {n}" for n in range(before + 1, expected))


def test_what_is_too_large_says_so() -> None:
    large = Tensor.ones(1024, 1024).contiguous().realize()
    kernel: Kernel = explore(large @ large).kernels[0]
    with pytest.raises(WorkbenchError, match="too large"):
        kernel.bisect()
    with pytest.raises(WorkbenchError, match="too large"):
        explore(large @ large).bisect()
    with pytest.raises(WorkbenchError, match="not a kernel of this exploration"):
        explore(*expression()).bisect(kernel)
