"""A step of training in each library: forward, backward and Adam."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from workbench.bench.training.models import Model

Step = Callable[[], float]
"""Takes a step, and returns its loss when it is done."""
RATE = 1e-3


def step_of(library: str, model: Model) -> tuple[Step, Callable[[], int | None]]:
    """Return the step of `model` in a library by its name (a row of `PEERS`), and a function that
    counts the kernels of a step once there were some; None where that is unknown."""
    if library.startswith("torch"):
        return _torch_step(model, library == "torch.compile"), lambda: None
    return _tensor_step(library, model)


class TensorLibrary:
    """Workbench or tinygrad, as `models.py` uses them."""

    def __init__(self, name: str):
        self.nn = import_module(f"{name}.nn")

    def max_pool2d(self, x: Any, size: int) -> Any:
        return x.max_pool2d(size)

    def gelu(self, x: Any) -> Any:
        return x.gelu()

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return q.scaled_dot_product_attention(k, v, is_causal=True)


class TorchLibrary:
    """torch, as `models.py` uses it."""

    def __init__(self) -> None:
        self.nn = import_module("torch.nn")
        self._functional = import_module("torch.nn.functional")

    def max_pool2d(self, x: Any, size: int) -> Any:
        return self._functional.max_pool2d(x, size)

    def gelu(self, x: Any) -> Any:
        return self._functional.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        functional = self._functional
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _tensor_step(library: str, model: Model) -> tuple[Step, Callable[[], int | None]]:
    module = import_module(library)
    parameters = import_module(f"{library}.nn.state").get_parameters
    optim = import_module(f"{library}.nn.optim")
    forward, layers = model.make(TensorLibrary(library))
    optimizer = optim.Adam(parameters(layers), lr=RATE)
    x, y = (module.Tensor(a).realize() for a in model.data())

    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        out = forward(x)
        if model.has_classes:
            loss = out.sparse_categorical_crossentropy(y)
        else:
            loss = out.square().mean()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    captured, counters = module.TinyJit(train), module.GlobalCounters

    def step() -> float:
        counters.reset()
        with module.Context(TRAINING=1):
            return float(captured(x, y).item())

    return step, lambda: int(counters.kernel_count)


def _torch_step(model: Model, is_compiled: bool) -> Step:
    torch = import_module("torch")
    functional = import_module("torch.nn.functional")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    forward, layers = model.make(TorchLibrary())
    parameters = torch.nn.ModuleList(layers).parameters()
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    place = torch.get_default_device()
    inputs, classes = (torch.from_numpy(a).to(place) for a in model.data())
    call, labels = torch.compile(forward) if is_compiled else forward, classes.long()

    def step() -> float:
        optimizer.zero_grad()
        out = call(inputs)
        if model.has_classes:
            loss = functional.cross_entropy(out, labels)
        else:
            loss = out.square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step
