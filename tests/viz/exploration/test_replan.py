"""Cut here, fuse anyway: decisions that the reader makes, with what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.support import count
from workbench import Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.schedule.plan import Decision
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.decisions import cost_choices

Array = np.ndarray[Any, Any]
A = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((64, 16)).astype(np.float32)


def answer(ex: Exploration) -> Array:
    return ex.kernels[-1].run()[0]


def decision(ex: Exploration, op: Ops) -> Decision:
    return next(d for d in ex.decisions if d.node.op is op)


def test_cut_here() -> None:
    y = (Tensor(A) @ Tensor(B)).relu()
    ex = explore(y)
    assert len(ex.kernels) == 1 and not any(d.forced for d in ex.decisions)
    total = decision(ex, Ops.REDUCE_AXIS)
    cut = ex.replan({total.node: True})
    assert len(cut.kernels) == 2
    cut_decision = decision(cut, Ops.REDUCE_AXIS)
    assert (cut_decision.name, cut_decision.stored, cut_decision.forced) == (
        "store-forced",
        True,
        True,
    )
    assert cut_decision.reason == "you asked for it" and cut_decision.estimates == total.estimates
    assert [d.forced for d in cut.decisions].count(True) == 1
    np.testing.assert_array_equal(answer(cut), answer(ex))
    assert cut.forced == {total.node: True} and ex.forced == {}
    again = cut.replan({total.node: None})
    assert len(again.kernels) == 1 and again.forced == {}


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_value_without_elements_is_stored_by_no_kernel(device: str) -> None:
    y = Tensor.arange(64).reshape(1, 64).pad(((1, -1), (0, 0)), value=-2)
    ex = explore(y)
    nothing = [n for n in ex.outputs[0].toposort() if n.shape == (0, 64)]
    assert nothing
    for changes in (*[{n: True} for n in nothing], dict.fromkeys(nothing, True)):
        cut = ex.replan(changes)
        assert [k.ast.arg.name for k in cut.kernels] == ["e_64"]
        assert (cut.kernels[0].optimized().run(device)[0] == -2).all()


def test_fuse_anyway() -> None:
    e = Tensor(A).exp()
    y = (e @ Tensor(B)).relu() + e.sum()
    ex = explore(y)
    stored = next(d for d in ex.decisions if d.name == "store-cheaper")
    fused = ex.replan({stored.node: False})
    fusion = next(d for d in fused.decisions if d.node is stored.node)
    assert (fusion.name, fusion.stored, fusion.forced) == ("fuse-forced", False, True)
    assert stored.node not in [node for i in fused.items for node in i.nodes]
    np.testing.assert_allclose(answer(fused), answer(ex), rtol=1e-5)


def test_a_tensor_names_its_value_and_changes_add_up() -> None:
    e = Tensor(A).exp()
    total = (e @ Tensor(B)).relu()
    ex = explore(total * 2.0)
    one = ex.replan({e: True})
    two = one.replan({total: True})
    assert len(two.kernels) == len(one.kernels) + 1
    assert [d.forced for d in two.decisions].count(True) == len(two.forced) == 2
    np.testing.assert_allclose(answer(two), answer(ex), rtol=1e-5)


def test_what_moves_may_be_stored_too() -> None:
    ex = explore(Tensor(A).transpose() + 1.0)
    moved = next(n for n in ex.outputs[0].toposort() if n.op is Ops.PERMUTE)
    cut = ex.replan({moved: True})
    assert len(cut.kernels) == 2
    np.testing.assert_array_equal(answer(cut), A.T + 1)
    plan = ex.replan({moved: False})
    assert next(d for d in plan.decisions if d.node is moved).forced


def test_what_cannot_be_says_why() -> None:
    y = (Tensor(A) + 1.0).contiguous() * 2.0
    ex = explore(y)
    cases: list[tuple[Any, bool, str]] = [
        (y, False, "it is a result that was asked for"),
        (decision(ex, Ops.CONTIGUOUS).node, False, "contiguous\\(\\) asks for it"),
        (decision(ex, Ops.COPY).node, False, "it is data in memory already"),
        (decision(ex, Ops.COPY).node.src[0], True, "in memory"),
        (Tensor(B) + 3.0, True, "none of the kernels computes it"),
        (3, True, "neither a node nor a Tensor"),
    ]
    for value, store, because in cases:
        with pytest.raises(WorkbenchError, match=because):
            ex.replan({value: store})
    assert ex.replan({y: True}).decisions[0].stored, "stored it is anyway"


def test_a_row_in_the_kernel_is_a_choice_before_and_after_a_cut() -> None:
    x = Tensor(np.ones((64, 48), np.float32), device="LLVM")
    ex = explore(x.softmax(axis=1))
    (row,) = [d for d in ex.decisions if d.name == "fuse-row"][:1]
    cut = ex.replan({row.node: True})
    fused = cut.replan({row.node: False})
    plans = {False: fused, True: cut}
    for stored, plan in plans.items():
        (now,) = [d for d in plan.decisions if d.forced]
        choices = cost_choices(now)
        assert [c.text for c in choices] == [c.text for c in cost_choices(row)]
        assert [c.cost for c in choices] == [c.cost for c in cost_choices(row)]
        (chosen,) = [c for c in choices if c.wins]
        assert ("keep a row" in chosen.text) is not stored
        assert now.stored is stored


def test_forced_plans_compute_the_same() -> None:
    """Any value stored, any value fused: the answers of random expressions stay."""
    for seed in range(count(200)):
        sample = case(seed)
        tensor, expected = sample.run("LLVM")
        ex = explore(tensor)
        pick = np.random.default_rng(seed)
        forced = {}
        for d in ex.decisions:
            if d.name != "store-asked" and pick.random() < 0.3:
                forced[d.node] = not d.stored
        for node, store in forced.items():
            ex = ex.replan({node: store})
        if ex.kernels and ex.items[-1].kernel is not None:
            actual = ex.kernels[-1].run()[0].reshape(expected.shape)
            np.testing.assert_allclose(
                actual, expected, rtol=1e-4, atol=sample.tolerance(), err_msg=sample.script()
            )
