"""The models that are trained: written once for all libraries, whose layers have the same names.

A model is a function of a `Library` that returns its forward function and its layers. Three of them
have goals; the others have what is more often slow: odd sizes, strides, groups, a single image.

Sections: The models that are trained; A step of training in each library.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from workbench.bench.suite import Array

# --------------------------------------------------------------------------------------------------
# The models that are trained.

Forward = Callable[[Any], Any]
HEADS = 6
WIDTH = 384


class Library(Protocol):
    """What models need of a library, besides methods of its tensors."""

    nn: Any

    def max_pool2d(self, x: Any, size: int) -> Any:
        """Return the greatest element of each window of `size` by `size`."""

    def gelu(self, x: Any) -> Any:
        """Return the GELU by its tanh approximation."""

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """Return causal scaled dot-product attention."""


@dataclass(frozen=True, slots=True)
class BenchModel:
    """A model and the shape of its data. With `words` the data are indexes below that number.

    The loss is the cross entropy of 10 classes, or without `has_classes` the mean square of the
    model's result.
    """

    name: str
    shape: tuple[int, ...]
    make: Callable[[Library], tuple[Forward, list[Any]]]
    has_classes: bool = True
    words: int = 0

    def data(self) -> tuple[Array, Array]:
        """Return the inputs, float32 (int32 with `words`), and a class for each, int32."""
        random = np.random.default_rng(0)
        inputs: Array
        if self.words:
            inputs = random.integers(self.words, size=self.shape, dtype=np.int32)
        else:
            inputs = random.standard_normal(self.shape, dtype=np.float32)
        return inputs, random.integers(10, size=self.shape[0], dtype=np.int32)


def mlp(*sizes: int) -> Callable[[Library], tuple[Forward, list[Any]]]:
    """Return a model of linear layers of these sizes with ReLUs between them."""

    def make(library: Library) -> tuple[Forward, list[Any]]:
        pairs = zip(sizes, sizes[1:], strict=False)
        layers = [library.nn.Linear(a, b) for a, b in pairs]

        def forward(x: Any) -> Any:
            for layer in layers[:-1]:
                x = layer(x).relu()
            return layers[-1](x)

        return forward, layers

    return make


def digits(library: Library) -> tuple[Forward, list[Any]]:
    """Two convolutions and two linear layers for images of 8 x 8."""
    nn = library.nn
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    inner, last = nn.Linear(512, 64), nn.Linear(64, 10)

    def forward(x: Any) -> Any:
        x = library.max_pool2d(second(first(x).relu()).relu(), 2).flatten(1)
        return last(inner(x).relu())

    return forward, [first, second, inner, last]


def block(library: Library) -> tuple[Forward, list[Any]]:
    """A transformer block: causal attention and an MLP, a layer norm before each."""
    nn = library.nn
    norms = [nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)]
    inputs, output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
    wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(x: Any) -> Any:
        batch, length, width = x.shape
        split = inputs(norms[0](x)).reshape(batch, length, 3, HEADS, -1)
        q, k, v = (split[:, :, n].transpose(1, 2) for n in range(3))
        mixed = library.attention(q, k, v).transpose(1, 2)
        x = x + output(mixed.reshape(batch, length, width))
        return x + narrow(library.gelu(wide(norms[1](x))))

    return forward, [*norms, inputs, output, wide, narrow]


def strided(library: Library) -> tuple[Forward, list[Any]]:
    """Convolutions of stride 2, the first with a kernel of 5, on images of 33 x 33."""
    nn = library.nn
    first = nn.Conv2d(3, 32, 5, stride=2, padding=2)
    second, last = nn.Conv2d(32, 64, 3, stride=2), nn.Linear(64 * 8 * 8, 10)

    def forward(x: Any) -> Any:
        return last(second(first(x).relu()).relu().flatten(1))

    return forward, [first, second, last]


def grouped(library: Library) -> tuple[Forward, list[Any]]:
    """A convolution of 4 groups, a depthwise one, and one of 1 x 1."""
    nn = library.nn
    first = nn.Conv2d(16, 32, 3, padding=1, groups=4)
    second = nn.Conv2d(32, 32, 3, padding=1, groups=32)
    third, last = nn.Conv2d(32, 48, 1), nn.Linear(48, 10)

    def forward(x: Any) -> Any:
        x = third(second(first(x).relu()).relu()).relu()
        return last(x.mean((2, 3)))

    return forward, [first, second, third, last]


def images(library: Library) -> tuple[Forward, list[Any]]:
    """Two convolutions with pooling, for images of 64 x 64."""
    nn = library.nn
    first, second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    last = nn.Linear(32 * 16 * 16, 10)

    def forward(x: Any) -> Any:
        x = library.max_pool2d(first(x).relu(), 2)
        return last(library.max_pool2d(second(x).relu(), 2).flatten(1))

    return forward, [first, second, last]


def norm_softmax(library: Library) -> tuple[Forward, list[Any]]:
    """A layer norm and a softmax along an axis of 768."""
    norm = library.nn.LayerNorm(768)
    return lambda x: norm(x).softmax(-1) * 100, [norm]


def embedding(library: Library) -> tuple[Forward, list[Any]]:
    """The mean of the vectors of words, and a linear layer."""
    table, last = library.nn.Embedding(5000, 64), library.nn.Linear(64, 10)
    return lambda x: last(table(x).mean(1)), [table, last]


def lstm(library: Library) -> tuple[Forward, list[Any]]:
    """Four steps of an LSTM cell."""
    cell, last = library.nn.LSTMCell(64, 128), library.nn.Linear(128, 10)

    def forward(x: Any) -> Any:
        state = None
        for n in range(x.shape[1]):
            state = cell(x[:, n], state)
        assert state is not None
        return last(state[0])

    return forward, [cell, last]


def residual(library: Library) -> tuple[Forward, list[Any]]:
    """A block of a ResNet: two convolutions with batch norms beside the identity."""
    nn = library.nn
    convs = [nn.Conv2d(32, 32, 3, padding=1, bias=False) for _ in range(2)]
    norms, last = [nn.BatchNorm2d(32), nn.BatchNorm2d(32)], nn.Linear(32, 10)

    def forward(x: Any) -> Any:
        y = norms[1](convs[1](norms[0](convs[0](x)).relu()))
        return last((x + y).relu().mean((2, 3)))

    return forward, [*convs, *norms, last]


def batch_norms(library: Library) -> tuple[Forward, list[Any]]:
    """Convolutions with batch norms on images of 14 x 14."""
    nn = library.nn
    convs = [nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)]
    norms, last = [nn.BatchNorm2d(16), nn.BatchNorm2d(32)], nn.Linear(32 * 5 * 5, 10)

    def forward(x: Any) -> Any:
        for conv, norm in zip(convs, norms, strict=True):
            x = norm(conv(x)).relu()
        return last(library.max_pool2d(x, 2).flatten(1))

    return forward, [*convs, *norms, last]


MODELS: dict[str, BenchModel] = {
    model.name: model
    for model in (
        BenchModel("mlp", (128, 784), mlp(784, 512, 512, 10)),
        BenchModel("digits", (128, 1, 8, 8), digits),
        BenchModel("block", (4, 256, WIDTH), block, has_classes=False),
    )
}
"""The models with goals."""
WIDE_MODELS: dict[str, BenchModel] = {
    model.name: model
    for model in (
        BenchModel("odd mlp", (37, 131), mlp(131, 257, 97, 10)),
        BenchModel("stride 2", (16, 3, 33, 33), strided),
        BenchModel("groups", (8, 16, 28, 28), grouped),
        BenchModel("one image", (1, 3, 64, 64), images),
        BenchModel("images", (8, 3, 64, 64), images),
        BenchModel("softmax", (512, 768), norm_softmax, has_classes=False),
        BenchModel("embedding", (32, 100), embedding, words=5000),
        BenchModel("lstm", (32, 4, 64), lstm),
        BenchModel("residual", (8, 32, 28, 28), residual),
        BenchModel("batch norm", (64, 1, 14, 14), batch_norms),
    )
}
"""Models of more shapes, which find slow cases sooner."""


# --------------------------------------------------------------------------------------------------
# A step of training in each library: forward, backward and Adam.

Step = Callable[[], float]
"""Takes a step, and returns its loss when it is done."""
RATE = 1e-3


def step_of(library: str, model: BenchModel) -> tuple[Step, Callable[[], int | None]]:
    """Return the step of `model` in a library by its name (a row of `PEERS`), and a function that
    returns the number of kernels of the last step (None: unknown)."""
    if library.startswith("torch"):
        return _torch_step(model, library == "torch.compile"), lambda: None
    return _tensor_step(library, model)


class TensorLibrary:
    """Workbench or tinygrad as a `Library`."""

    def __init__(self, name: str):
        self.nn = import_module(f"{name}.nn")

    def max_pool2d(self, x: Any, size: int) -> Any:
        return x.max_pool2d(size)

    def gelu(self, x: Any) -> Any:
        return x.gelu()

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return q.scaled_dot_product_attention(k, v, is_causal=True)


class TorchLibrary:
    """torch as a `Library`."""

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


def _tensor_step(library: str, model: BenchModel) -> tuple[Step, Callable[[], int | None]]:
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


def _torch_step(model: BenchModel, is_compiled: bool) -> Step:
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
