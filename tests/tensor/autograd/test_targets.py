"""A target of gradient() is that tensor, and not others of the same value: constants, copies,
detached values. Compared with torch, whose tensors are told apart anyway."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import by_rows, count
from workbench import Tensor, TinyJit
from workbench.base.errors import GradientError
from workbench.nn import LayerNorm, Linear
from workbench.nn.state import get_parameters


def lists(tensors: Sequence[Tensor]) -> list[Any]:
    return [t.tolist() for t in tensors]


def three() -> Tensor:
    return Tensor(3.0)


SCALARS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "an equal literal": (lambda x: x * 3.0, 3.0),
    "an equal scalar": (lambda x: x * Tensor(3.0) + Tensor(3.0), 3.0),
    "of itself": (lambda x: x - x, 0.0),
    "negative": (lambda x: -x, -1.0),
    "subtracted": (lambda x: 2 - x, -1.0),
    "alone": (lambda x: x, 1.0),
    "squared": (lambda x: x**2, 6.0),
    "to the power 0": (lambda x: x**0, 0.0),
    "an exponent": (lambda x: (2.0**x) * 1.0, 8 * float(np.log(2))),
    "broadcast": (lambda x: (x * Tensor([1.0, 2.0])).sum(), 3.0),
    "repeated": (lambda x: x.expand(4, 2).sum(), 8.0),
    "stacked": (lambda x: (x.stack(x) * Tensor([3.0, 4.0])).sum(), 7.0),
    "chosen": (lambda x: (Tensor([1.0, 5.0]) > x).where(x, 3.0).sum(), 1.0),
    "compared": (lambda x: x * (x > 1.0), 1.0),
    "in half precision": (lambda x: (x * Tensor([3.0], dtype="float16")).sum(), 3.0),
    "converted": (lambda x: x.double() * 3.0, 3.0),
    "computed apart": (lambda x: (x * 3.0).realize().detach() + x, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_a_scalar_is_no_literal(name: str) -> None:
    function, want = SCALARS[name]
    x = Tensor(3.0)
    (gradient,) = function(x).gradient(x)
    assert gradient.shape == () and gradient.dtype is x.dtype
    assert gradient.item() == pytest.approx(want)


EQUALS: dict[str, Callable[[], Tensor]] = {
    "zeros": lambda: Tensor.zeros(2),
    "ones": lambda: Tensor.ones(2),
    "full": lambda: Tensor.full((2,), 0.5),
    "a scalar": lambda: Tensor(3.0),
    "an array without axes": lambda: Tensor(np.float32(3.0)),
    "arange": lambda: Tensor.arange(2.0),
    "linspace": lambda: Tensor.linspace(0, 1, 2),
    "eye": lambda: Tensor.eye(2),
    "ones_like": lambda: Tensor([3.0, 4.0]).ones_like(),
    "of integers": lambda: Tensor.arange(2).float(),
    "a multiple of integers": lambda: Tensor.arange(2) * 0.5,
    "a mask": lambda: (Tensor.arange(2) > 0).float(),
    "an expression": lambda: Tensor.ones(2) * 2 + 1,
    "a view": lambda: Tensor.ones(4)[1:3],
    "no elements": lambda: Tensor.zeros(0),
    "an empty list": lambda: Tensor([]),
    "data": lambda: Tensor([1.0, 2.0]),
    "stored": lambda: Tensor.zeros(2).contiguous().realize(),
    "computed": lambda: (Tensor([1.0, 2.0]) * 2).realize(),
    "written": lambda: written(Tensor.zeros(2)),
    "empty memory": lambda: Tensor.full((2,), 2.0).clone(),
}  # fmt: skip

COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda x: x.detach(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "without gradients": Tensor.no_grad()(lambda x: x * 1.0),
}


def written(x: Tensor) -> Tensor:
    x[0] = 1.0
    return x


def assert_apart(a: Tensor, b: Tensor) -> None:
    """Check that two tensors of one value have each their own first and second gradient."""
    loss = (a * a * 3 + b * 5 + a.ones_like() * 7).sum()
    for targets in ((a, b), (b, a)):
        da, db = loss.gradient(*targets)[:: 1 if targets[0] is a else -1]
        second, none = da.sum().gradient(a, b, materialize_grads=True)
        np.testing.assert_allclose(da.numpy(), 6 * a.numpy())
        np.testing.assert_allclose(db.numpy(), np.full(b.shape, 5.0))
        np.testing.assert_allclose(second.numpy(), np.full(a.shape, 6.0))
        np.testing.assert_allclose(none.numpy(), np.zeros(b.shape))


@by_rows("name", EQUALS)
def test_equal_tensors_are_two_targets(name: str) -> None:
    assert_apart(EQUALS[name](), EQUALS[name]())


@by_rows("copied", COPIES)
@by_rows("name", EQUALS)
def test_a_copy_is_another_target(name: str, copied: str) -> None:
    x = EQUALS[name]()
    assert_apart(COPIES[copied](x), x)


def test_a_clone_leads_to_its_original() -> None:
    x = Tensor([1.0, 2.0])
    y = x.clone()
    assert lists((x * 3 + y * 5).sum().gradient(x, y)) == [[8.0, 8.0], [5.0, 5.0]]


def test_a_target_may_be_below_another_one() -> None:
    x, s = Tensor.ones(3), Tensor(1.0)
    y = x * s
    loss = (y * y + s * x + s).sum()
    assert lists(loss.gradient(y, x, s, x)) == [[2.0] * 3, [3.0] * 3, 12.0, [3.0] * 3]


def test_layers_of_one_size_have_their_own_gradients() -> None:
    class Model:
        def __init__(self) -> None:
            self.linear = Linear(4, 4)
            self.first, self.second = LayerNorm(4), LayerNorm(4)

        def __call__(self, x: Tensor) -> Tensor:
            return self.second(self.linear(self.first(x)).tanh()).square().mean()

    Tensor.manual_seed(0)
    model = Model()
    x = Tensor([[1.0, 2.0, 4.0, 8.0]])
    parameters = get_parameters(model)
    gradients = [g.numpy() for g in model(x).gradient(*parameters)]
    for parameter in parameters:
        parameter.requires_grad_()
    model(x).backward()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        assert parameter.grad is not None
        np.testing.assert_allclose(gradient, parameter.grad.numpy(), atol=1e-6)


def test_in_a_captured_function_constants_stay_apart() -> None:
    weights = [Tensor.ones(2), Tensor.ones(2)]

    @TinyJit
    def step(x: Tensor) -> list[Tensor]:
        a, b = weights
        return (x * a * 3 + b * a.ones_like()).sum().gradient(a, b)

    for n in range(4):
        assert lists(step(Tensor([n, n + 1.0]))) == [[3.0 * n, 3.0 * n + 3], [1.0, 1.0]]


def test_an_equal_tensor_is_not_below() -> None:
    x = Tensor.ones(2)
    with pytest.raises(GradientError, match="target 1"):
        (x * 2).sum().gradient(x, Tensor.ones(2))


def test_a_detached_target_lets_nothing_through() -> None:
    x = Tensor([1.0, 2.0])
    y = x.detach()
    assert lists((y * 3 + x * 5).sum().gradient(y, x)) == [[3.0, 3.0], [5.0, 5.0]]


def test_constants_cost_nothing() -> None:
    assert (Tensor(3.0) * Tensor.ones(4) + Tensor(2.0)).schedule() == ()
    x = Tensor([1.0, 2.0])
    kernels = (x * Tensor(3.0) + Tensor.zeros(2)).schedule()
    same = (x * 3.0 + 0.0).schedule()
    assert [k.kernel for k in kernels] == [k.kernel for k in same]


# random programs


class Ours:
    """What a random program calls, of this library."""

    tensor, full, ones, arange = Tensor, Tensor.full, Tensor.ones, Tensor.arange

    @staticmethod
    def leaf(x: Tensor) -> Tensor:
        return x

    @staticmethod
    def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return condition.where(x, y)

    @staticmethod
    def compute(x: Tensor) -> None:
        x.realize()


class Torchs:
    """The same of torch, where a target asks for its gradient first."""

    tensor, full, ones, arange = torch.tensor, torch.full, torch.ones, torch.arange
    where = torch.where

    @staticmethod
    def leaf(x: Any) -> Any:
        return x.requires_grad_()

    @staticmethod
    def compute(x: Any) -> None:
        pass


OPS: tuple[Callable[[Any, Any, Any, float], Any], ...] = (
    lambda make, a, b, number: a * b,
    lambda make, a, b, number: a * number,
    lambda make, a, b, number: a + b,
    lambda make, a, b, number: a - b,
    lambda make, a, b, number: number - a,
    lambda make, a, b, number: a / (b * b + 1.0),
    lambda make, a, b, number: a.tanh(),
    lambda make, a, b, number: a**number,
    lambda make, a, b, number: a * make.ones(3) + make.full((), number),
    lambda make, a, b, number: make.where(a > number, a, b),
    lambda make, a, b, number: a.expand(2, 3),
    lambda make, a, b, number: a.reshape(-1)[:1] * b,
    lambda make, a, b, number: a.sum() * b,
    lambda make, a, b, number: a.clone(),
)


def program(seed: int, make: Any, computed: float = 0.0) -> tuple[list[Any], Any]:
    """Return the targets and the loss of a random program: constants and data, many of them equal,
    and what is made of them, of which a share is computed on the way."""
    rng, dice = np.random.default_rng(seed), np.random.default_rng(seed + 1_000_000)
    constants = [
        make.ones(3), make.ones(3), make.full((3,), 2.0), make.full((), 1.0),
        make.full((), 2.0), make.full((2, 3), 1.0), make.arange(3.0),
        make.tensor([0.5, -1.0, 2.0]), make.tensor(2.0), make.tensor(2.0),
    ]  # fmt: skip
    targets = [make.leaf(x) for x in constants]
    pool = targets.copy()
    for _ in range(rng.integers(3, 9)):
        a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
        number = float(rng.choice([0.0, 1.0, 2.0]))
        choice = rng.integers(0, len(OPS) + 1)
        if choice == len(OPS):
            pool.append(make.leaf(a.detach()))
            targets.append(pool[-1])
        else:
            pool.append(OPS[choice](make, a, b, number))
        if dice.random() < computed:
            make.compute(pool[dice.integers(len(pool))])
    chosen = [pool[i] for i in rng.integers(0, len(pool), 4)]
    return targets, sum((x.sum() for x in chosen), pool[-1].sum())


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_random_programs_are_torchs(part: int) -> None:
    for seed in range(part, count(400), 4):
        targets, loss = program(seed, Ours)
        others, expected = program(seed, Torchs)
        ours = loss.gradient(*targets, materialize_grads=True)
        theirs = torch.autograd.grad(expected, others, allow_unused=True, materialize_grads=True)
        Tensor.realize(*ours)
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-4, err_msg=str(seed)
            )


@pytest.mark.parametrize("part", range(4))
def test_of_values_computed_before_a_gradient_is_whole_or_refused(part: int) -> None:
    """A value that was computed before has no expression any more, where no leaf is below it."""
    counts = {"right": 0, "refused": 0}
    for seed in range(part, count(1200, 30), 4):
        targets, loss = program(seed, Ours, 0.8)
        others, expected = program(seed, Torchs)
        theirs = torch.autograd.grad(expected, others, allow_unused=True, materialize_grads=True)
        for target, other in zip(targets, theirs, strict=True):
            try:
                (mine,) = loss.gradient(target, materialize_grads=True)
            except GradientError as error:
                assert "computed before" in str(error)
                counts["refused"] += 1
                continue
            np.testing.assert_allclose(
                mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-4, err_msg=str(seed)
            )
            counts["right"] += 1
    assert counts["right"] > counts["refused"] > 0, counts
