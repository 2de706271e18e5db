"""The gradient pass as rewrites: replayed, they lead to the gradients; each says its rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from workbench import Tensor
from workbench.base.errors import GradientError
from workbench.base.trace import observe
from workbench.ir.gradient.backward import GRADIENT
from workbench.ir.gradient.occurrences import merged
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.rewrite import replay, without
from workbench.tensor.autograd.lines import backward_passes

Function = Callable[[Tensor, Tensor], Tensor]
CASES: list[tuple[Function, set[str]]] = [
    (lambda x, y: (x @ y).relu().sum(), {"gradient-mul", "gradient-reduce-add"}),
    (lambda x, y: (x / x + x * y * x).sum(), {"gradient-fdiv"}),
    (lambda x, y: (x.softmax(1) * y).sum(), {"gradient-exp"}),
    (lambda x, y: (x.max(1) + y.prod()).sum(), {"gradient-reduce-max"}),
    (lambda x, y: x.reshape(1, 1, 4, 4).conv2d(y.reshape(1, 1, 4, 4)).sum(), {"gradient-windows"}),
    (lambda x, y: (rounded(x) * y).sum(), {"gradient-rounded"}),
    (lambda x, y: (x.square() * y).sum().gradient(x)[0].sum(), {"gradient-add"}),
    (lambda x, y: x.sum() + y.sum() * 0 + x[0, 0], {"gradient-shrink"}),
]


@Tensor.custom_gradient
def rounded(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    return x.round(), lambda g: g * 2


@pytest.mark.parametrize(("function", "names"), CASES)
def test_replayed_the_steps_lead_to_the_gradients(function: Function, names: set[str]) -> None:
    x, y = (Tensor(np.full((4, 4), n, np.float32)).realize() for n in (1.5, 2))
    result = function(x, y)
    gradients = result.gradient(x, y, materialize_grads=True)
    records = backward_passes(g.derivation for g in gradients if g.derivation)
    record = records[-1].record()
    assert record is not None and record.name == GRADIENT.name
    assert replay(record.before, record.matches) is record.after
    reached = [merged([g.uop], ())[g.uop] for g in gradients if g.derivation]
    assert set(record.after.src[1:]) >= {*reached}
    assert names <= {match.rule.name for match in record.matches}
    for match in record.matches:
        source, node, g = match.before.src
        assert match.before.op is Ops.GRADIENT and match.before not in g.toposort()
        assert g.shape == node.shape and match.after.shape == source.shape
        assert node.op.name.lower() in match.rule.about


def test_without_the_rule_of_windows_the_rules_of_ops_are_used() -> None:
    """Switched off, a rule is not used: the gradient is made another way, or refused."""
    x, y = (Tensor(np.full((1, 1, 4, 4), n, np.float32)).realize() for n in (1.5, 2))
    loss = x.conv2d(y, padding=1).square().sum()
    with observe() as watching:
        (plain,) = loss.gradient(x)
    with without(["gradient-windows"]), observe() as without_windows:
        (other,) = loss.gradient(x)
    names = [
        {m.rule.name for r in w.records for m in r.matches} for w in (watching, without_windows)
    ]
    assert "gradient-windows" in names[0] - names[1] and plain.uop is not other.uop
    np.testing.assert_allclose(plain.numpy(), other.numpy(), rtol=1e-6)
    with without(["gradient-mul"]):
        assert (x + y).sum().gradient(x)
        with pytest.raises(GradientError, match="switch gradient-mul on"):
            (x * y).sum().gradient(x)


def test_an_observer_sees_what_is_recorded_afterwards() -> None:
    x = Tensor(np.ones((4, 4), np.float32)).realize()
    loss = (x.exp() * x).sum()
    with observe() as watching:
        (g,) = loss.gradient(x)
    (seen,) = [r for r in watching.records if r.name == GRADIENT.name]
    assert g.derivation is not None
    (made_by,) = backward_passes([g.derivation])
    record = made_by.record()
    assert record is not None and record.matches == seen.matches
    assert (record.before, record.after) == (seen.before, seen.after)


def test_what_is_no_longer_alive_is_left_out() -> None:
    """The steps keep nothing in memory."""
    x = Tensor(np.ones((4, 4), np.float32)).realize()
    loss = (x.exp() * x).sum()
    (g,) = loss.gradient(x)
    assert g.derivation is not None
    (made_by,) = backward_passes([g.derivation])
    g.realize()
    del loss
    assert made_by.record() is None
