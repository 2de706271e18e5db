"""A plan is of the expression as it was when it was explored, whatever happened since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench import Tensor, explore
from workbench.ir.node.ops import Ops
from workbench.viz.exploration.exploration import Exploration

A = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
Values = dict[str, Tensor]


def values() -> Values:
    """Return the tensors of exp(x * 2 / sum), by their names."""
    x = Tensor(A).realize()
    y = x * 2
    s = y.sum(1, keepdim=True)
    return {"x": x, "y": y, "s": s, "z": (y / s).exp()}


def forget(v: Values) -> None:
    v["z"].numpy()
    v.clear()


def write_before_reading(v: Values) -> None:
    v["z"] += 1
    v["z"].numpy()


SINCE: dict[str, Callable[[Values], object]] = {
    "nothing": lambda v: None,
    "it was computed": lambda v: v["z"].numpy(),
    "an inner value was computed": lambda v: v["s"].numpy(),
    "each was computed": lambda v: v["z"].realize(v["y"], v["s"]),
    "one after the other": lambda v: [t.realize() for t in v.values()],
    "an input was written": lambda v: v["x"].assign(7).realize(),
    "a part of an input was written": lambda v: v["x"][1].assign(7).realize(),
    "it was computed and its input written": lambda v: (
        v["z"].numpy(), v["x"].assign(7).realize(),
    ),
    "it was computed and written": lambda v: (
        v["z"].realize(), v["z"].assign(7).realize(),
    ),
    "it was written": lambda v: v["z"].assign(7).realize(),
    "it was written from itself": write_before_reading,
    "it stands for another": lambda v: v["z"].replace(v["x"] + 1).realize(),
    "the tensors are gone": forget,
}  # fmt: skip


def texts(ex: Exploration) -> list[str]:
    return [str(kernel) for kernel in ex.kernels]


def answer(ex: Exploration) -> Any:
    return ex.kernels[-1].run()[0]


@pytest.mark.parametrize("name", SINCE)
def test_a_plan_stays_the_expression_s(name: str) -> None:
    """Cut, fuse, back, and a rule off, of nodes: as for one where nothing happened since."""
    wide = A * 2
    want = np.exp(wide / wide.sum(1, keepdims=True))
    plans = []
    for since in (SINCE["nothing"], SINCE[name]):
        v = values()
        ex = explore(v["z"])
        nodes = ex.outputs[0].toposort()
        node = next(n for n in nodes if n.op is Ops.REDUCE_AXIS)
        inner = next(n for n in nodes if n.op is Ops.MUL)
        since(v)
        cut = ex.replan({node: True})
        twice = cut.replan({inner: True})
        back = twice.replan({node: None, inner: None})
        off = cut.planned_again(cut.choices, ("exp-formula",))
        all_of_it = (ex, cut, twice, back, ex.replan({node: False}))
        for each in all_of_it:
            np.testing.assert_allclose(answer(each), want, rtol=1e-6)
        assert len(cut.kernels) == len(off.kernels) == 2 and texts(back) == texts(ex)
        plans.append([texts(each) for each in (*all_of_it, off)])
    assert plans[0] == plans[1]


@pytest.mark.parametrize("name", [n for n in SINCE if "gone" not in n])
def test_an_inner_tensor_names_its_value_still(name: str) -> None:
    v = values()
    ex = explore(v["z"])
    SINCE[name](v)
    assert len(ex.replan({v["s"]: True}).kernels) == 2
    inner = ex.values(v["s"]).array
    np.testing.assert_allclose(inner, (A * 2).sum(1, keepdims=True), rtol=1e-5)


def test_what_was_computed_before_is_an_input() -> None:
    v = values()
    v["s"].realize()
    ex = explore(v["z"])
    v["z"].numpy()
    again = ex.replan({})
    assert texts(again) == texts(ex) and "PARAM 2" in texts(ex)[0]


def test_what_is_in_memory_is_right_beside_its_expression_alone() -> None:
    in_memory = Tensor(A).realize()
    checks = explore(in_memory).check()
    assert "right" not in str(checks) and "nothing is computed" in str(checks)
