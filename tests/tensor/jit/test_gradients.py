"""Gradients of what captured functions return: as without TinyJit, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.jit.gradient_programs import outcome, program
from workbench import Tensor, TinyJit, nn
from workbench.base.errors import GradientError
from workbench.nn.optim import SGD

CALLS = 4


def leaf(*values: float) -> Tensor:
    return Tensor(np.float32(values), requires_grad=True).realize()


def plain(*values: float) -> Tensor:
    return Tensor(np.float32(values)).realize()


def refused() -> Any:
    return pytest.raises(GradientError, match="captured TinyJit")


def test_through_a_replay_the_gradient_of_an_argument_is_refused() -> None:
    call = TinyJit(lambda x: x * x)
    x = leaf(1, 2, 3)
    assert (call(x) * x).sum().gradient(x)[0].tolist() == [3, 12, 27], "the first call"
    for _ in range(3):
        y = call(x)
        for loss in (y.sum(), (y * x).sum(), (y * 2).realize().sum()):
            with refused():
                loss.gradient(x)
            with refused():
                loss.gradient(x, materialize_grads=True)
            with refused():
                loss.backward()
        assert x.grad is None
        assert (y * y).sum().gradient(y)[0].tolist() == [2, 8, 18]
        assert (y.detach() * x).sum().gradient(x)[0].tolist() == [1, 4, 9]


def test_through_a_replay_the_gradient_of_a_leaf_that_it_closes_over_is_refused() -> None:
    w, v = leaf(1, 2), leaf(5, 7)
    call = TinyJit(lambda x: x * w)
    for number in range(CALLS):
        loss = (call(plain(3, 4)) * w * v).sum()
        assert loss.gradient(v)[0].tolist() == [3, 16]
        if number < 2:  # the expression of the capture leads to w
            assert loss.gradient(w)[0].tolist() == [30, 112]
        else:
            with refused():
                loss.gradient(w)
            with refused():
                loss.backward()
    assert v.grad is None, "no half of a backward()"


def test_a_leaf_behind_an_expression_or_a_view_is_found() -> None:
    w = leaf(1, 2)
    call = TinyJit(lambda x: x * 3)
    for argument in (lambda: w * 2, lambda: w.reshape(1, 2).reshape(2), lambda: call(w) + 1):
        call.reset()
        for number in range(CALLS):
            y = call(argument())
            if number:
                with refused():
                    (y * w).sum().backward()
                del y
    y = call(call(w))
    w.assign(plain(8, 9)).realize()
    with refused():
        (y * w).sum().backward()


def test_what_a_call_returns_is_computed_from_other_results() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        h = x * 2
        return h, h * h

    call = TinyJit(function)
    for _ in range(CALLS):
        h, y = call(plain(1, 2))
        with pytest.raises(GradientError, match="computed before"):
            (y * h).sum().gradient(h)
        assert (h * h).sum().gradient(h)[0].tolist() == [4, 8]


def test_state_that_is_computed_from_the_result() -> None:
    s = plain(1, 1)

    def function(x: Tensor) -> Tensor:
        u = x * 2
        s.assign(s + u.realize())
        return u

    call = TinyJit(function)
    for number in range(CALLS):
        u = call(plain(1, 2))
        assert s.tolist() == [3 + 2 * number, 5 + 4 * number]
        with pytest.raises(GradientError, match="computed before"):
            (s * u).sum().gradient(u)


def test_requires_grad_is_that_without_a_capture() -> None:
    w = leaf(1, 2)
    of_leaf, of_data = TinyJit(lambda x: (x * w, (x * w).detach(), x > w)), TinyJit(lambda x: x * 2)
    for _ in range(CALLS):
        y, constant, mask = of_leaf(plain(3, 4))
        assert (y.requires_grad, y.is_leaf) == (True, False)
        assert (constant.requires_grad, constant.is_leaf) == (None, True)
        assert mask.requires_grad is None
        assert of_data(plain(1)).requires_grad is None
        assert y.requires_grad_() is y and not y.is_leaf
        with pytest.raises(GradientError, match="requires_grad=False"):
            y.requires_grad_(False)


class Encoder:
    """A layer and a normalisation with running statistics."""

    def __init__(self) -> None:
        Tensor.manual_seed(0)
        self.layer, self.norm = nn.Linear(2, 3), nn.BatchNorm(3)
        for parameter in self.parameters():
            parameter.requires_grad_()

    def parameters(self) -> list[Tensor]:
        layers = self.layer, self.norm
        return [tensor for layer in layers for tensor in (layer.weight, layer.bias)]

    def __call__(self, x: Tensor) -> Tensor:
        return self.norm(self.layer(x)).relu()


DATA = np.float32([[1, 2], [3, -4], [-5, 6], [0.5, 0.25]])


def frozen_by_no_grad(jit: Callable[[Any], Any]) -> list[Any]:
    encoder, head = Encoder(), leaf(1, 2, 3)
    call, losses = jit(Tensor.no_grad()(lambda x: encoder(x))), []
    with Tensor.train():
        for number in range(CALLS):
            loss = (call(Tensor(DATA + number)) * head).square().sum()
            loss.backward()
            losses += [loss.item(), head.grad.tolist()]
    return [*losses, encoder.layer.weight.grad]


def frozen_by_detach(jit: Callable[[Any], Any]) -> list[Any]:
    encoder, head = Encoder(), leaf(1, 2, 3)
    call, losses = jit(lambda x: encoder(x)), []
    for number in range(CALLS):
        loss = (call(Tensor(DATA + number)).detach() * head).square().sum()
        loss.backward()
        losses += [loss.item(), head.grad.tolist()]
    return [*losses, encoder.layer.weight.grad]


def statistics_of_a_step(jit: Callable[[Any], Any]) -> list[Any]:
    """The step trains; eager code then reads the weights and the running statistics."""
    encoder = Encoder()
    optimizer = SGD(encoder.parameters(), 0.01)

    def step(x: Tensor) -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = encoder(x).square().mean().backward()
            optimizer.step()
            return loss

    call, seen = jit(step), []
    for number in range(CALLS):
        seen.append(call(Tensor(DATA + number)).item())
        optimizer.zero_grad()
        encoder(Tensor(DATA)).sum().backward()
        for parameter in encoder.parameters():
            seen.append(None if parameter.grad is None else parameter.grad.tolist())
        seen.append((encoder.norm.running_mean * 2).tolist())
    return seen


def other_leaves(jit: Callable[[Any], Any]) -> list[Any]:
    w, x = leaf(1, 2), leaf(3, 4)
    call, seen = jit(lambda x: (x.argmax(), x > w, (x * w).detach(), x)), []
    for _ in range(CALLS):
        place, mask, constant, same = call(x)
        w.grad = x.grad = None
        (mask.where(w, x) * constant * same * (place + 1)).sum().backward()
        seen += [w.grad.tolist(), x.grad.tolist()]
    return seen


def own_backward(jit: Callable[[Any], Any]) -> list[Any]:
    w, seen = leaf(1, 2), []

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        loss = (x * w * w).sum()
        return loss.detach(), loss.gradient(w)[0].detach()

    call = jit(function)
    for number in range(CALLS):
        loss, gradient = call(plain(3, number))
        seen += [loss.item(), (gradient * w).sum().gradient(w)[0].tolist()]
    return seen


def a_leaf_that_is_assigned(jit: Callable[[Any], Any]) -> list[Any]:
    w, v, seen = leaf(1, 2), leaf(1, 1), []
    call = jit(lambda x: w.assign((w * 0.5 + x).detach()))
    for number in range(CALLS):
        call(plain(number, 1))
        w.grad = v.grad = None
        (w * w * v).sum().backward()
        seen += [w.grad.tolist(), v.grad.tolist()]
    return seen


RIGHT = {
    "frozen by no_grad": frozen_by_no_grad,
    "frozen by detach": frozen_by_detach,
    "statistics and weights of a step": statistics_of_a_step,
    "other leaves": other_leaves,
    "its own backward": own_backward,
    "a leaf that is assigned": a_leaf_that_is_assigned,
}


@by_rows("name", RIGHT)
def test_what_flows_through_no_result_is_as_without_a_capture(name: str) -> None:
    actual, expected = RIGHT[name](TinyJit), RIGHT[name](lambda function: function)
    assert len(actual) == len(expected)
    for mine, other in zip(actual, expected, strict=True):
        if other is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_a_capture_leaves_the_gradients_of_other_tensors_whole() -> None:
    """A capture gives all memory new BUFFERs."""
    x, h = leaf(1, 2, 3), plain(1, 2, 3)
    computed, waiting, of_plain = (x * x).realize(), h * 2, (h * 3).realize()
    of_computed = computed * 2
    for _ in range(3):
        assert (computed * x).sum().gradient(x)[0].tolist() == [3, 12, 27]
        assert (of_computed + computed).sum().gradient(computed)[0].tolist() == [3, 3, 3]
        assert (waiting + h * h).sum().gradient(h)[0].tolist() == [4, 6, 8]
        with pytest.raises(GradientError, match="computed before"):
            (of_plain * h).sum().gradient(h)
        call = TinyJit(lambda a: a + 1)
        for _ in range(3):
            call(plain(1)).realize()


def test_a_detached_value_that_was_computed_is_a_constant() -> None:
    x = plain(1, 2)
    y = (x * 3).detach().realize()
    assert (y * x).sum().gradient(x)[0].tolist() == [3, 6]


def test_a_value_of_before_a_write_does_not_lead_to_the_new_one() -> None:
    x = plain(1, 2)
    y = (x * 3).realize()
    x.assign(y).realize()
    assert (y * x).sum().gradient(x)[0].tolist() == [3, 6]


@pytest.mark.parametrize(("device", "programs", "few"), [("LLVM", 1200, 40), ("PYTHON", 200, 4)])
def test_random_programs_have_the_gradients_of_eager_code(
    device: str, programs: int, few: int
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(count(programs, few)):
        text = program(Random(seed))
        wrong = outcome(text, device, counts)
        assert not wrong, f"seed {seed}\n{text}\n{wrong}"
    assert counts["equal through a call"] and counts["equal"] > counts["refused"], counts
    assert counts["refused for a reason"] > 10 * counts["refused, and unconnected"], counts
