"""Ctrl-C anywhere in training: each tensor has its old value or its new one, nothing is held."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tools.interrupts import Interrupt, is_interrupted, places
from workbench import Context, Tensor, TinyJit
from workbench.base.context import DEV
from workbench.execution.capture import is_capturing
from workbench.nn.optim import SGD, Adam
from workbench.tensor.jit.guard import Guard

WEIGHTS = [np.float32([[1, 2, 3], [4, 5, 6]]) / 8, np.float32([4, -4, 2]) / 8]


class Training:
    """A model of two weights, its optimiser, and a step of training."""

    def __init__(self) -> None:
        self.w, self.b = (Tensor(values, requires_grad=True) for values in WEIGHTS)
        self.optimizer = SGD([self.w, self.b], lr=0.125, momentum=0.5)
        self.state = [self.w, self.b, *self.optimizer._state()]
        self.x = Tensor(np.float32([[1, 2]])).realize()
        self.call: Callable[[Tensor], Tensor] = self.loss
        self.start()
        self.old = [tensor.numpy() for tensor in self.state]

    def start(self) -> None:
        """Set the state to what it is at first."""
        for number, tensor in enumerate(self.state):
            value = WEIGHTS[number % 2] * (1 + number // 2)
            tensor.assign(Tensor(value)).realize()
        self.w.grad = self.b.grad = None

    def loss(self, x: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = ((x @ self.w + self.b) ** 2).sum()
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self) -> None:
        self.call(self.x).numpy()

    def capture(self) -> None:
        """Run two steps, of which the second is captured."""
        self.call = TinyJit(self.loss)
        self.step()
        self.start()
        self.step()


# A signal that is handled in a `__del__` is reported by the interpreter, and does not end the step.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "trials"), [("replay", 1600), ("eager", 250), ("capture", 150)])
def test_a_step_that_is_interrupted_leaves_old_values_or_new_ones(kind: str, trials: int) -> None:
    training, random = Training(), Random(kind)
    run = training.capture if kind == "capture" else training.step
    if kind == "replay":
        training.call = TinyJit(training.loss)
    device, interrupted = DEV.value, 0
    with Context(TRAINING=1):
        for _ in range(4):
            training.start()
            run()
        new = [tensor.numpy() for tensor in training.state]
        training.start()
        most = places(run)
        for _ in range(count(trials, 30)):
            training.start()
            place = random.randint(1, most)
            interrupted += is_interrupted(run, place)
            for tensor, *values in zip(training.state, training.old, new, strict=True):
                actual = tensor.numpy()
                assert any(np.array_equal(actual, value) for value in values), place
            assert not is_capturing() and DEV.value == device, place
            training.start()
            run()
            for tensor, value in zip(training.state, new, strict=True):
                np.testing.assert_array_equal(tensor.numpy(), value, f"after {place}")
    assert interrupted > count(trials, 30) // 2
    other: Any = TinyJit(lambda x: x @ training.w + training.b)
    for _ in range(3):
        expected = training.x.numpy() @ new[0] + new[1]
        np.testing.assert_allclose(other(training.x).numpy(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_a_replay_notes_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a guard notes for quick looks is all there, or not used: after half of it, the next
    call looked at the values of tensors that were gone."""
    note, block = Guard._note, Interrupt()

    def interrupted(*arguments: Any) -> None:
        with block:
            note(*arguments)

    weight = Tensor(np.float32([1, 2]), requires_grad=True).realize()
    optimizer = Adam([weight], lr=0.125)

    @Tensor.train()
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (x * weight).sum().backward()
        optimizer.step()
        return loss.realize()

    train, x = TinyJit(step), Tensor([3.0, 4.0]).realize()
    for _ in range(3):
        train(x)
    monkeypatch.setattr(Guard, "_note", interrupted)
    while block.count >= block.at:
        weight.grad = Tensor([0.0, 0.0])  # the former is gone: the guard looks at all anew
        block = Interrupt(block.at + 1)
        with suppress(KeyboardInterrupt):
            train(x)
        block, last = Interrupt(), block
        assert np.isfinite(train(x).item())
        block = last
    assert block.at > 5
