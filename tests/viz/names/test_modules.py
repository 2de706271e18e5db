"""The module that made a kernel, of models as strangers write them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.viz.names import strangers
from workbench import Tensor, explore
from workbench.viz.exploration.exploration import Exploration

CASES: list[tuple[Callable[[], Any], list[str]]] = [
    (strangers.Layer, ["net: matmul"]),
    (strangers.Stack, ["net.layers.0: matmul", "net.layers.1: matmul"]),
    (strangers.Acts, ["net.acts.first: relu", "net.acts.second: relu", "net: add"]),
    (strangers.Sequence, ["net.layers.0: linear", "net.layers.2: linear"]),
    (lambda: strangers.Tree(2), ["net: matmul", "net.below: matmul", "net.below.below: matmul"]),
    (strangers.Private, ["net._inner: matmul", "net: mul"]),
    (strangers.Child, ["net: matmul", "net: exp"]),
    (strangers.Slots, ["net.layer: matmul"]),
    (strangers.Sequential, ["net.layers.0: linear", "net.layers.2: linear"]),
]


def first_modules(ex: Exploration) -> list[str]:
    return [str(k.modules[0]) for k in ex.kernels if k.modules and k.modules[0].path]


def test_each_of_many_layers_has_its_path_beside_much_data() -> None:
    numbers = [list(range(5000)) for _ in range(300)]  # a list is searched, numbers are not
    layers = [strangers.Layer() for _ in range(600)]
    x = strangers.weight(4, 8)
    assert first_modules(explore(layers[599](x))) == ["layers.599: matmul"]
    assert len(numbers) == 300


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_a_kernel_has_the_path_of_the_object_that_made_it(
    make: Callable[[], Any], expected: list[str]
) -> None:
    net, x = make(), strangers.weight(4, 8)
    assert first_modules(explore(net(x))) == expected


def test_layers_of_a_list_that_somebody_runs_have_their_places() -> None:
    x, layers = strangers.weight(4, 8), strangers.Sequence().layers
    assert first_modules(explore(x.sequential(layers))) == ["layers.0: linear", "layers.2: linear"]


def test_a_method_may_call_its_object_as_it_likes() -> None:
    class Scaled:
        def __init__(s, weight: Tensor):
            s.weight = weight

        def __call__(s, x: Tensor) -> Tensor:
            return s.scaled(s, x.softmax())

        @staticmethod
        def scaled(other: Any, x: Tensor) -> Tensor:
            return x @ other.weight

        @staticmethod
        def shifted(x: Tensor) -> Tensor:
            return x + 1

    class Net:
        def __init__(this) -> None:
            this.blocks = [Scaled(strangers.weight(8, 8)) for _ in range(2)]

        def __call__(this, x: Tensor) -> Tensor:
            for block in this.blocks:
                x = block(x)
            return block.shifted(x)

    net = Net()
    ex = explore(net(strangers.weight(4, 8)))
    paths = {call.path for kernel in ex.kernels for call in kernel.modules}
    assert paths == {"net.blocks.0", "net.blocks.1", "net"}, "the tensor of a static method is none"


def test_a_gradient_has_the_module_of_its_forward() -> None:
    trainer, x = strangers.Trainer(), strangers.weight(4, 8)
    loss = trainer.loss(x)
    weights = [one.weight for one in trainer.model.layers]
    ex = explore(loss, *loss.gradient(*weights))
    names = [str(call) for kernel in ex.kernels for call in kernel.modules]
    assert names[:2] == [f"trainer.model.layers.{i}: matmul" for i in (0, 1)]
    assert "trainer: gradient of square" in names
    of_gradients = [name for name in names if "gradient of matmul" in name]
    assert {name.partition(":")[0] for name in of_gradients} == {
        "trainer.model.layers.0",
        "trainer.model.layers.1",
    }


def test_a_variable_of_a_loop_hides_no_path() -> None:
    net, x = strangers.Stack(), strangers.weight(4, 8)
    for layer in net.layers:
        assert layer.weight is not None
    assert first_modules(explore(net(x))) == ["net.layers.0: matmul", "net.layers.1: matmul"]


def test_an_object_without_a_name_is_called_by_its_class_and_a_function_by_its_own() -> None:
    x = strangers.weight(4, 8)
    nets = iter([strangers.Layer()])  # no variable leads there
    assert first_modules(explore(next(nets)(x))) == ["Layer: matmul"]
    layer = strangers.Layer()
    y = strangers.doubled(layer, x)
    assert first_modules(explore(y)) == ["layer: matmul", "doubled: mul"]
    assert first_modules(explore(x @ x.T)) == [], "it stands where explore does"


def test_nothing_lives_longer() -> None:
    def explored() -> tuple[Any, Tensor, Exploration]:
        net, x = strangers.Stack(), strangers.weight(4, 8)
        y = net(x)
        return weakref.ref(net), y, explore(y)

    owner, y, ex = explored()
    gc.collect()
    assert owner() is None and y is not None and ex.kernels


def test_variables_of_a_function_are_not_kept_and_its_locals_are_its_own() -> None:
    class Model:
        def __call__(self, x: Tensor) -> bool:
            y = x + 1
            before = weakref.ref(y)
            y = y * 2
            y = x + 3
            return before() is None

    assert Model()(strangers.weight(4, 4))
    reader = strangers.Reader()
    reader(strangers.weight(4, 8))
    assert reader.names == ["self", "x"], "a table that is read stays as it is"
