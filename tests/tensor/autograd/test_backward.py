"""backward() and gradient(): what accumulates where, what stops a gradient, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import calls_of
from workbench import Context, Tensor, TinyJit
from workbench.base.errors import DTypeError, GradientError, ShapeError


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    return (((x @ w1 + b1).relu() @ w2).sigmoid() ** 2).mean()


def test_an_mlp_has_torchs_gradients() -> None:
    rng = np.random.default_rng(0)
    shapes = (16, 8), (8, 32), (32,), (32, 4)
    arrays = [rng.standard_normal(shape).astype("f") for shape in shapes]
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    loss, expected = mlp(*ours), mlp(*theirs)
    assert loss.item() == pytest.approx(expected.item())  # computing it keeps its graph
    loss.backward()
    expected.backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        np.testing.assert_allclose(mine.grad.numpy(), other.grad, rtol=1e-5, atol=1e-7)


def test_gradients_add_up() -> None:
    x = leaf(1.0, 2.0)
    for times in (1, 2):
        assert (x * x).sum().backward() is not None
        assert x.grad is not None and x.grad.tolist() == [2.0 * times, 4.0 * times]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]


def test_leaves_are_tensors_not_nodes() -> None:
    a, b = Tensor.zeros(3).requires_grad_(), Tensor.zeros(3).requires_grad_()
    (a * 2 + b * 3).sum().backward()
    assert a.grad is not None and a.grad.tolist() == [2.0] * 3
    assert b.grad is not None and b.grad.tolist() == [3.0] * 3
    x = leaf(1.0, 2.0)
    again = x.detach().requires_grad_()
    (x * 2 + again * 5).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]
    assert again.grad is not None and again.grad.tolist() == [5.0, 5.0]


def test_a_leaf_that_is_computed_meanwhile_is_the_same_leaf() -> None:
    w = Tensor.arange(3).float().requires_grad_()
    loss = (w * w).sum()
    w.realize()
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [0.0, 2.0, 4.0]
    x = Tensor.arange(3).float() + 1
    y = (x * x).sum()
    x.realize()
    assert y.gradient(x)[0].tolist() == [2.0, 4.0, 6.0]


def test_a_computed_value_keeps_its_expression() -> None:
    x = leaf(1.0, 2.0)
    y = (x * 3).realize()
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [18.0, 36.0]


def test_who_asks_for_nothing_gets_nothing() -> None:
    x, y = leaf(1.0), Tensor([2.0])
    (x * y).sum().backward()
    assert y.grad is None and y.requires_grad is None and y.is_leaf
    assert (x * y).requires_grad is True and not (x * y).is_leaf
    assert x.requires_grad_(False).requires_grad is False
    with pytest.raises(GradientError, match="no tensor to find a gradient for"):
        (x * y).sum().backward()


STOPS: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda x: x.detach() * x,
    "no_grad": lambda x: _squared(x) * x,
    "compared": lambda x: (x > 0.0).float() * 2 * x,
    "computed": lambda x: (x.detach() * 1).realize() * x,
}


@Tensor.no_grad()
def _squared(x: Tensor) -> Tensor:
    return x * 1.0


@pytest.mark.parametrize("name", STOPS)
def test_what_stops_a_gradient(name: str) -> None:
    x = leaf(2.0)
    STOPS[name](x).sum().backward()
    assert x.grad is not None and x.grad.item() == 2.0


def test_no_gradient_flows_in_a_block_of_no_grad() -> None:
    x = leaf(2.0)
    with Tensor.no_grad():
        y = x * 3
        with Tensor.enable_grad():
            z = x * 3
    assert y.requires_grad is None and z.requires_grad is True


def test_second_derivatives() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    (g,) = (x**3).sum().gradient(x)
    (h,) = g.sum().gradient(x)
    (third,) = h.sum().gradient(x)
    assert g.tolist() == [3.0, 12.0, 27.0]
    assert h.tolist() == [6.0, 12.0, 18.0]
    assert third.tolist() == [6.0, 6.0, 6.0]


def test_training_is_a_setting() -> None:
    @Tensor.train()
    def trained() -> bool:
        return Tensor.training

    assert not Tensor.training
    with Tensor.train():
        assert Tensor.training
        with Tensor.train(False):
            assert not Tensor.training
        assert Tensor.training
    Tensor.training = True
    assert Tensor.training
    Tensor.training = False
    assert trained() and not Tensor.training


REFUSED: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "several elements": (lambda x: (x * 2).backward(), ShapeError, "shape \\(2,\\)"),
    "integers": (lambda x: x.int().sum().backward(), DTypeError, "int64"),
    "no leaf": (lambda x: Tensor([1.0]).backward(), GradientError, "requires_grad"),
    "a target of integers": (lambda x: x.sum().gradient(Tensor([1])), DTypeError, "int"),
    "not a tensor": (lambda x: x.sum().gradient(2), DTypeError, "int"),  # type: ignore[arg-type]
    "not below": (lambda x: x.sum().gradient(Tensor([1.0])), GradientError, "target 0"),
    "a seed of another shape": (
        lambda x: (x * 2).backward(Tensor([1.0])), ShapeError, "\\(1,\\) does not fit"
    ),
    "a leaf of integers": (lambda x: Tensor([1]).requires_grad_(), DTypeError, "int32"),
    "a result": (lambda x: (x * 2).requires_grad_(False), GradientError, "detach"),
    "bits": (
        lambda x: x.bitcast("int32").bitcast("float32").sum().backward(),
        GradientError,
        "BITCAST has no gradient",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(leaf(1.0, 2.0))


def test_the_error_names_the_line_of_the_op() -> None:
    x = leaf(1.0)
    y = x.bitcast("int32").bitcast("float32")
    here = test_the_error_names_the_line_of_the_op.__code__.co_firstlineno + 2
    with pytest.raises(GradientError) as refusal:
        (y * 2).sum().backward()
    assert refusal.value.where == f"test_backward.py, line {here}"


def test_zeros_for_a_target_that_is_not_below() -> None:
    x, y = leaf(1.0, 2.0), Tensor([3.0, 4.0])
    assert x.sum().gradient(y, materialize_grads=True)[0].tolist() == [0.0, 0.0]
    assert x.floor().sum().gradient(x)[0].tolist() == [0.0, 0.0]
    with Context(TRAINING=1):
        dropped = x.dropout(1.0)
    for nothing in (x[:0].cat(y), y.cat(x[2:], y), dropped):
        assert nothing.sum().gradient(x)[0].tolist() == [0.0, 0.0]


def test_a_leaf_that_is_not_below_is_told_of_zeros() -> None:
    with pytest.raises(GradientError, match="materialize_grads=True"):
        (Tensor([3.0, 4.0]).realize() * 2).sum().gradient(leaf(1.0, 2.0))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: ((x * 2).realize() * 3).sum(),
        lambda x: (x * 2).sum().realize(),
        lambda x: Tensor([1.0, 2.0]).assign(x * 2).realize().sum(),
        lambda x: (x * 2).realize().sum().realize() * x.sum(),
        lambda x: (x * 2).contiguous().realize().clone().realize().sum() + x.sum(),
    ],
)
def test_no_part_of_a_gradient_of_what_was_computed_before(loss: Any) -> None:
    for x in (Tensor([1.0, 2.0]), Tensor([1.0, 2.0]).realize(), Tensor([1.0, 2.0]) * 1):
        with pytest.raises(GradientError, match="computed before"):
            loss(x).gradient(x, materialize_grads=True)
    x = leaf(1.0, 2.0)
    assert (x * 2).realize().sum().gradient(x)[0].tolist() == [2.0, 2.0]


def test_what_was_computed_before_from_others_is_a_constant() -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    constant = (y * 2).realize()
    mask = (x > 1).float().realize()
    apart = (x * 2).realize().detach()
    loss = (x * constant + x * mask + x * apart).sum()
    assert loss.gradient(x)[0].tolist() == [8.0, 13.0]
    assert (x * 2).sum().gradient(y, materialize_grads=True)[0].tolist() == [0.0, 0.0]


def test_a_replay_says_what_its_results_were_computed_from() -> None:
    w, other = (Tensor([1.0, 1.0]).contiguous().realize() for _ in range(2))
    dot = TinyJit(lambda x: (x * w).sum().realize())
    for _ in range(4):
        x = Tensor([1.0, 2.0]).realize()
        result = dot(x)
        for target in (x, w):
            with pytest.raises(GradientError, match="computed before"):
                (result * target.sum()).gradient(target)
        assert (result * other.sum()).gradient(other)[0].tolist() == [3.0, 3.0]
        assert (result * result).gradient(result)[0].item() == 6.0


def layers(count: int) -> Callable[[], object]:
    def step() -> Tensor:
        x = Tensor.ones(4, 8)
        weights = [Tensor.ones(8, 8).requires_grad_() for _ in range(count)]
        for w in weights:
            x = (x @ w).relu()
        return x.sum().backward()

    return step


def test_building_the_backward_is_linear() -> None:
    few, many = calls_of(layers(10)), calls_of(layers(40))
    assert many < 5 * few
