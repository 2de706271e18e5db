"""The lines that bind `ex`, run: they give the same kernels, whatever the user's line says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.viz.support import array
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.record.recipe import recipe

X = array(96, 96)


def rerun(ex: Exploration, **known: Any) -> Exploration:
    """Return the `ex` that the recipe binds where the names `known` are."""
    names = dict(known)
    exec(recipe(ex), names)
    exploration: Exploration = names["ex"]
    return exploration


def assert_same(one: Exploration, other: Exploration) -> None:
    assert [k.ast for k in one.kernels] == [k.ast for k in other.kernels]
    assert one.forced == other.forced and one.rules_off == other.rules_off
    assert [d.node for d in one.decisions] == [d.node for d in other.decisions]


def named() -> tuple[Exploration, dict[str, Any]]:
    z = (X @ X).relu()
    return explore(z), {"z": z}


def called() -> tuple[Exploration, dict[str, Any]]:
    a = X + 1
    ex = explore((a @ a).exp(), show="plan")
    return ex, {"a": a}


def several() -> tuple[Exploration, dict[str, Any]]:
    a = X + 1
    ex = explore(a.sum(), a.max())
    return ex, {"a": a}


def told_nowhere() -> tuple[Exploration, dict[str, Any]]:
    def value() -> Tensor:
        return (X * 3).exp()

    values = [value()]
    return explore(*values), {"y": values[0]}


@pytest.mark.parametrize("make", [named, called, several, told_nowhere])
def test_it_binds_the_same_exploration(make: Callable[[], Any]) -> None:
    ex, variables = make()
    assert_same(rerun(ex, **variables), ex)


def test_what_was_forced_and_switched_off_is_said() -> None:
    y = ((X * 0.25 + 1) @ X).softmax(1)
    ex = explore(y, without=("form-fma",))
    product = next(d.node for d in ex.decisions if d.name == "store-for-tile")
    fused = next(d.node for d in ex.decisions if not d.stored)
    forced = ex.replan({fused: True, product: False})
    assert_same(rerun(forced, y=y), forced)
    assert forced.forced and forced.rules_off
    moved = next(n for n in ex.outputs[0].toposort() if n.op.name == "EXPAND")
    planned = ex.replan({moved: False})
    assert_same(rerun(planned, y=y), planned)
