"""Steps of training beside torch and tinygrad: forward, backward and Adam.

    python bench/training.py [--rounds N] [--only NAME]

Three models: an MLP, a convolutional network for the digits, and a transformer block. Each library
runs in a process of its own with two threads, and they take turns, so that a change of the
machine's speed meets all. `first` is the first step, from nothing to its loss; the others are
medians of a step, and what they are of torch's. Goals: at most torch's time by the geometric mean,
none above 1.5, and a fifth of tinygrad's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from workbench.bench.peers import OURS, PEERS
from workbench.measure.timing import rounds

THREADS = 2
MODELS = ("mlp", "digits", "block")
LIBRARIES = ("workbench", "torch", "torch.compile", "tinygrad")
BATCHES = {"mlp": (128, 784), "digits": (128, 1, 8, 8), "block": (4, 256, 384)}
HEADS = 6


def main() -> int:
    parser = argparse.ArgumentParser(description="Time steps of training.")
    parser.add_argument("--rounds", type=int, default=30, help="of each, in turn")
    parser.add_argument("--only", choices=MODELS, help="one model")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return serve(*options.worker)
    ratios = []
    print(
        f"{'model':8}{'library':16}{'first':>9}{'step':>11}{'of torch':>10}{'loss':>10}"
    )
    for model in [options.only] if options.only else MODELS:
        steps, firsts, losses = timed(model, options.rounds)
        for name, step in steps.items():
            ratio = step / steps.get("torch", math.nan)
            print(
                f"{model:8}{name:16}{firsts[name]:7.2f} s{step * 1e3:8.2f} ms"
                f"{ratio:10.2f}{losses[name]:10.4f}"
            )
        ratios.append(steps["workbench"] / steps.get("torch", math.nan))
    print(f"geometric mean of torch's time: {statistics.geometric_mean(ratios):.2f}")
    return 0


def timed(
    model: str, number: int
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return, by library, the median of a step and the first one in seconds, and the loss of the
    third step."""
    workers, firsts, losses = {}, {}, {}
    for name in LIBRARIES:
        worker = LibraryProcess(name, model)
        reply = worker.ask()
        if reply is None:
            print(f"{model:8}{name:16} is left out: it did not run here")
            continue
        workers[name], (firsts[name], losses[name]) = worker, reply
    samplers: dict[str, Callable[[], float]] = {
        name: worker.seconds for name, worker in workers.items()
    }
    samples = next(islice(rounds(samplers), number - 1, None))
    for worker in workers.values():
        worker.process.terminate()
        worker.process.wait()
    return {n: statistics.median(s) for n, s in samples.items()}, firsts, losses


class LibraryProcess:
    """A library in a process of its own, which takes a step when it is asked."""

    def __init__(self, library: str, model: str):
        peer = PEERS.get(library, OURS)
        environment = peer.environment(THREADS, os.path.abspath("build/bench"))
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", library, model],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment,
        )  # fmt: skip

    def ask(self) -> Any:
        """Return the next reply; None where the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def seconds(self) -> float:
        """Return how long a step took."""
        return float(self.ask()[0])


def serve(library: str, model: str) -> int:
    """Take a step for each line of input, and answer with its seconds and the loss. The first
    answer is of the first step, with the loss of the third."""
    numbers = np.random.default_rng(0)
    data = numbers.standard_normal(BATCHES[model], dtype=np.float32)
    classes = numbers.integers(10, size=len(data))
    make = torch_step if library.startswith("torch") else tensor_step
    step = make(library, model, data, classes)
    sys.stdin.readline()
    start = time.perf_counter()
    step()
    first_s = time.perf_counter() - start
    step()
    print(json.dumps((first_s, step())), flush=True)
    for _ in range(3):
        step()
    while sys.stdin.readline():
        start = time.perf_counter()
        loss = step()
        print(json.dumps((time.perf_counter() - start, loss)), flush=True)
    return 0


def tensor_step(
    library: str, model: str, data: Any, classes: Any
) -> Callable[[], float]:
    """Return a step of workbench or tinygrad, whose Tensors and layers have the same names."""
    module = importlib.import_module(library)
    nn = importlib.import_module(f"{library}.nn")
    tensor, jit = module.Tensor, module.TinyJit
    sizes = importlib.import_module(f"{library}.nn.state")

    net = tensor_net(nn, model)
    optimizer = nn.optim.Adam(sizes.get_parameters(net), lr=1e-3)
    x, y = tensor(data).realize(), tensor(classes.astype(np.int32)).realize()

    @jit
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        out = net(x)
        loss = (
            out.square().mean()
            if model == "block"
            else out.sparse_categorical_crossentropy(y)
        )
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    def run() -> float:
        with tensor.train():
            return float(step(x, y).item())

    return run


def tensor_net(nn: Any, model: str) -> Any:
    """Return a model of the layers of workbench or tinygrad."""

    class MLP:
        def __init__(self) -> None:
            self.layers = [
                nn.Linear(a, b) for a, b in ((784, 512), (512, 512), (512, 10))
            ]

        def __call__(self, x: Any) -> Any:
            return self.layers[2](self.layers[1](self.layers[0](x).relu()).relu())

    class Digits:
        def __init__(self) -> None:
            self.first, self.second = (
                nn.Conv2d(1, 16, 3, padding=1),
                nn.Conv2d(16, 32, 3, padding=1),
            )
            self.inner, self.last = nn.Linear(512, 64), nn.Linear(64, 10)

        def __call__(self, x: Any) -> Any:
            x = self.second(self.first(x).relu()).relu().max_pool2d(2).flatten(1)
            return self.last(self.inner(x).relu())

    class TransformerBlock:
        def __init__(self) -> None:
            width = BATCHES["block"][2]
            self.norms = [nn.LayerNorm(width), nn.LayerNorm(width)]
            self.inputs = nn.Linear(width, 3 * width)
            self.output = nn.Linear(width, width)
            self.wide = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)

        def __call__(self, x: Any) -> Any:
            batch, length, width = x.shape
            split = self.inputs(self.norms[0](x)).reshape(batch, length, 3, HEADS, -1)
            q, k, v = (split[:, :, n].transpose(1, 2) for n in range(3))
            mixed = q.scaled_dot_product_attention(k, v, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.narrow(self.wide(self.norms[1](x)).gelu())

    return {"mlp": MLP, "digits": Digits, "block": TransformerBlock}[model]()


def torch_step(
    library: str, model: str, data: Any, classes: Any
) -> Callable[[], float]:
    """Return the same step of torch, or of its compiler."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)

    net = torch_net(model)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.tensor(data), torch.tensor(classes)
    call = torch.compile(net) if library == "torch.compile" else net

    def step() -> float:
        optimizer.zero_grad()
        out = call(x)
        loss = (
            out.square().mean()
            if model == "block"
            else functional.cross_entropy(out, y)
        )
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def torch_net(model: str) -> Any:
    """Return a model of torch's layers."""
    from torch import nn
    from torch.nn import functional

    class TorchBlock(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = BATCHES["block"][2]
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.inputs = nn.Linear(width, 3 * width)
            self.output = nn.Linear(width, width)
            self.wide = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            split = self.inputs(self.norms[0](x)).reshape(batch, length, 3, HEADS, -1)
            q, k, v = (split[:, :, n].transpose(1, 2) for n in range(3))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
            hidden = functional.gelu(self.wide(self.norms[1](x)), approximate="tanh")
            return x + self.narrow(hidden)

    mlp = (784, 512, 512, 10)
    layers: list[nn.Module] = []
    for a, b in zip(mlp, mlp[1:], strict=False):
        layers += [nn.Linear(a, b), nn.ReLU()]
    digits = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    nets = {"mlp": nn.Sequential(*layers[:-1]), "digits": digits, "block": TorchBlock()}
    return nets[model]


if __name__ == "__main__":
    sys.exit(main())
