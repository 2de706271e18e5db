"""Models as strangers write them: without a base class, with lists, functions, recursion."""

from __future__ import annotations

from typing import Any

from workbench import Tensor, nn


def weight(*shape: int) -> Tensor:
    return Tensor.ones(*shape).contiguous().realize()


class Layer:
    """A layer of one's own: a tensor, and no layer of the package."""

    def __init__(self, size: int = 8):
        self.weight = weight(size, size)

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Act:
    def forward(self, x: Tensor) -> Tensor:
        return x.relu().contiguous()


class Stack:
    """A list of layers, and a loop over it."""

    def __init__(self) -> None:
        self.layers = [Layer(), Layer()]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).contiguous()
        return x


class Acts:
    """Two instances of a class without any tensor."""

    def __init__(self) -> None:
        self.acts = {"first": Act(), "second": Act()}

    def __call__(self, x: Tensor) -> Tensor:
        for act in self.acts.values():
            x = act.forward(x) + 1
        return x


class Sequence:
    """Layers of the package and a function, one after the other."""

    def __init__(self) -> None:
        linears = [nn.Linear(8, 8, bias=False) for _ in range(2)]
        self.layers: list[Any] = [linears[0], Tensor.contiguous, linears[1]]
        Tensor.realize(*[linear.weight for linear in linears])

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Sequential(Sequence):
    """The same, by the method that runs a list."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


class Tree:
    """A module in a module of its own class."""

    def __init__(self, depth: int):
        self.weight = weight(8, 8)
        self.below = Tree(depth - 1) if depth else None

    def __call__(self, x: Tensor) -> Tensor:
        x = (x @ self.weight).contiguous()
        return self.below(x) if self.below else x


class Private:
    """Attributes that begin with an underscore, and a helper that is called with `self`."""

    def __init__(self) -> None:
        self._inner = Layer()

    def __call__(self, x: Tensor) -> Tensor:
        return doubled(self._inner, x)


def doubled(layer: Layer, x: Tensor) -> Tensor:
    return layer(x).contiguous() * 2


class Child(Layer):
    """A method of the class above, called through super()."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x).contiguous().exp()


class Slots:
    """An object that cannot be referred to weakly."""

    __slots__ = ("layer",)

    def __init__(self) -> None:
        self.layer = Layer()

    def __call__(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Trainer:
    """An object that has the model, and asks for the loss."""

    def __init__(self) -> None:
        self.model = Stack()

    def loss(self, x: Tensor) -> Tensor:
        return self.model(x).square().mean()


class Reader:
    """A method that holds the table of its variables over calls of tensors."""

    def __init__(self) -> None:
        self.weight = weight(8, 8)
        self.names: list[str] = []

    def __call__(self, x: Tensor) -> Tensor:
        here = locals()
        for name in here:
            x = x @ self.weight
            self.names.append(name)
        return x


class Pair:
    """A block of two kernels."""

    def __init__(self) -> None:
        self.layer = Layer()

    def __call__(self, x: Tensor) -> Tensor:
        return self.layer(x).contiguous().exp().contiguous()


class Pairs:
    """Blocks behind a kernel that is like the last one of a block."""

    def __init__(self, count: int) -> None:
        self.blocks = [Pair() for _ in range(count)]

    def __call__(self, x: Tensor) -> Tensor:
        x = x.exp().contiguous()
        for block in self.blocks:
            x = block(x)
        return x
