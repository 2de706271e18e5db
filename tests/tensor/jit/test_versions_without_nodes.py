"""Versions of state that a replay has written: their nodes are made when they are asked for."""

from __future__ import annotations

import pickle
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tensor.jit.support import held, numbers
from workbench import Tensor, TinyJit
from workbench.nn.optim import SGD, Adam

X = numbers((6, 4), 1)


class Sum:
    """State that a captured function writes: `total` grows by its argument; `call` returns it."""

    def __init__(self) -> None:
        self.total, self.value = held(np.zeros_like(X)), np.zeros_like(X)
        self.call: Any = TinyJit(self.add)

    def add(self, x: Tensor) -> Tensor:
        self.total.assign(self.total + x)
        return x * 2

    def step(self, n: int) -> None:
        result = self.call(held(X * n))
        self.value = self.value + X * n
        assert np.allclose(result.numpy(), X * n * 2)


def test_other_functions_read_each_version() -> None:
    state = Sum()
    for n in range(4):
        state.step(n)
    reader: Any = TinyJit(lambda x: (state.total * 3).contiguous().sum(axis=0) + x)
    for n in range(12):
        state.step(n)
        if n % 3:
            x = held(X[0])
            expected = state.value.sum(axis=0) * 3 + X[0]
            np.testing.assert_allclose(reader(x).numpy(), expected, rtol=1e-4, atol=1e-3)
        if n % 4 == 1:
            np.testing.assert_allclose(state.total.numpy(), state.value, rtol=1e-5)


def test_random_uses_between_steps() -> None:
    random = Random("uses")
    for _ in range(count(100)):
        state, kept = Sum(), list[tuple[Tensor, Any]]()
        view = state.total[1:3] if random.random() < 0.5 else None
        for n in range(12):
            state.step(n)
            use = random.randrange(7)
            if use == 0:  # an expression of this version, computed later
                kept.append((state.total * 2, state.value * 2))
            elif use == 1:
                kept.append((state.total.clone().realize(), state.value))
            elif use == 2:
                state.total += 1
                state.value = state.value + 1
            elif use == 3 and view is not None:
                np.testing.assert_allclose(view.numpy(), state.value[1:3], rtol=1e-4, atol=1e-4)
            elif use == 4:
                copy = deepcopy(state.total)
                kept.append((copy, state.value))
                kept.append((pickle.loads(pickle.dumps(state.total)), state.value))
            elif use == 5:
                state.total.realize()
        for tensor, value in (*kept, (state.total, state.value)):
            np.testing.assert_allclose(tensor.numpy(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_training_is_that_of_eager_code(optimizer: Any) -> None:
    """Weights are read, and gradients taken, between the steps of the captured function."""
    models = []
    for is_captured in (False, True):
        w = Tensor(X, requires_grad=True).realize()
        own = optimizer([w], lr=0.05)

        def step(x: Tensor, w: Tensor = w, own: Any = own) -> Tensor:
            own.zero_grad()
            loss: Tensor = ((x * w) ** 2).mean().backward()
            own.step()
            return loss

        models.append((w, TinyJit(step) if is_captured else step))
    with Tensor.train():
        for n in range(8):
            x = numbers((6, 4), n)
            losses = [step(held(x)).numpy() for _, step in models]
            np.testing.assert_allclose(*losses, rtol=1e-4)
            memory = models[1][0]._memory
            assert n < 4 or (memory is not None and memory.replayed), "no node was needed"
            if n % 3 == 2:
                for w, _ in models:
                    w.grad = None
                    (w * w).sum().backward()
                grads = [w.grad.numpy() for w, _ in models if w.grad is not None]
                np.testing.assert_allclose(grads[0], grads[1], rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(grads[1], 2 * models[1][0].numpy(), rtol=1e-4)
    np.testing.assert_allclose(*[w.numpy() for w, _ in models], rtol=1e-3, atol=1e-4)
