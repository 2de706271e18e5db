"""Forward, backward and optimiser: which a kernel belongs to, and what is stored in between."""

from __future__ import annotations

import numpy as np
import pytest

from tests.viz.names import strangers
from tests.viz.record.support import broken, plain
from workbench import Tensor, explore, nn
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.record import build


class Net:
    def __init__(self) -> None:
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).tanh())


def trained() -> tuple[Net, Tensor]:
    net = Net()
    x = Tensor(np.random.default_rng(0).random((16, 8), np.float32)).realize()
    Tensor.realize(*nn.state.get_parameters(net))
    return net, net(x).square().mean()


def with_adam() -> Exploration:
    net = Net()
    optimiser = nn.optim.Adam(nn.state.get_parameters(net))
    Tensor.realize(*nn.state.get_parameters(net))
    with Tensor.train():
        loss = net(Tensor.ones(16, 8).contiguous().realize()).square().mean()
        loss.backward()
        return explore(loss, *optimiser.schedule_step())


def by_hand() -> Exploration:
    """A step that a stranger writes: the weights are written to, and nothing says optimiser."""
    net, loss = trained()
    weights = nn.state.get_parameters(net)
    for weight, gradient in zip(weights, loss.gradient(*weights), strict=True):
        weight.assign(weight.detach() - 0.1 * gradient)
    return explore(loss, *weights)


def by_hand_into_new_tensors() -> Exploration:
    """The same, as in a formula: the weights stay as they are."""
    net, loss = trained()
    weights = nn.state.get_parameters(net)
    gradients = loss.gradient(*weights)
    return explore(loss, *(w - 0.1 * g for w, g in zip(weights, gradients, strict=True)))


def phases(ex: Exploration) -> set[str]:
    return {phase for kernel in ex.kernels for phase in kernel.phases}


def test_gradients_are_of_the_backward() -> None:
    net, loss = trained()
    ex = explore(loss, *loss.gradient(*nn.state.get_parameters(net)))
    assert phases(ex) == {"forward", "backward"}
    for kernel in ex.kernels:
        is_backward = kernel.title.startswith("backward: ")
        assert kernel.phases == (("backward",) if is_backward else ("forward",))
    record = build(ex, "first")
    assert broken(plain(record)) == []
    assert [row.letter for row in record.plan.phases] == ["F", "B"]
    colours = {row.name: row.colours for row in record.plan.phases}
    for kernel_row, region in zip(record.kernels, record.plan.regions, strict=True):
        assert region.colour in colours[kernel_row.phases[-1]]


def test_a_kernel_of_two_phases_has_the_colour_of_the_forward() -> None:
    """A maximum, and how many elements it is, which only its gradient needs."""
    random = np.random.default_rng(0)
    x, w, v = (
        Tensor(random.random(shape, np.float32)).realize()
        for shape in ((64, 1, 8, 8), (16, 1, 3, 3), (256, 10))
    )
    largest = x.conv2d(w, padding=1).relu().max_pool2d()
    loss = (largest.flatten(1) @ v).square().mean()
    record = build(explore(loss, *loss.gradient(w, v)), "first")
    colours = {row.name: row.colours for row in record.plan.phases}
    for kernel_row, region in zip(record.kernels, record.plan.regions, strict=True):
        names = kernel_row.phases
        main = "forward" if "forward" in names else names[-1]
        assert region.colour in colours[main]
    stored = [row.name for row in record.plan.activations]
    assert any("max" in name for name in stored), "it is the forward's, whoever stores it"


@pytest.mark.parametrize("explored", [with_adam, by_hand, by_hand_into_new_tensors])
def test_what_is_made_of_gradients_is_of_the_optimiser(explored: object) -> None:
    assert callable(explored)
    ex = explored()
    assert phases(ex) == {"forward", "backward", "optimiser"}
    last = [kernel.phases for kernel in ex.kernels][-1]
    assert "optimiser" in last
    loss = next(k for k in ex.kernels if "mean" in k.title)
    assert loss.phases == ("forward",)


def test_a_penalty_of_gradients_is_of_the_forward() -> None:
    x = Tensor(np.ones((4, 4), np.float32)).realize()
    w = Tensor(np.ones((4, 4), np.float32)).realize()
    loss = (x @ w).tanh().sum()
    (first,) = loss.gradient(w)
    penalty = first.square().sum().exp()
    (second,) = penalty.gradient(w)
    ex = explore(loss, penalty, second)
    assert phases(ex) == {"forward", "backward"}
    assert ex.kernels[-1].phases == ("backward",)


def test_without_gradients_nothing_is_said_of_phases() -> None:
    ex = explore(strangers.Stack()(strangers.weight(4, 8)))
    record = build(ex, "first")
    assert phases(ex) == set() and not record.plan.phases
    assert not record.plan.activations
    assert "backward" not in str(ex.plan)


def test_what_is_stored_for_the_backward() -> None:
    """Each is written by a kernel of the forward, read by some of the backward, and once listed;
    the total is what is printed."""
    net, loss = trained()
    ex = explore(loss, *loss.gradient(*nn.state.get_parameters(net)))
    record = build(ex, "first")
    rows = record.plan.activations
    expected = {
        read.node
        for read in record.plan.reads
        if record.kernels[read.source].phases == ["forward"]
        and record.kernels[read.reader].phases == ["backward"]
    }
    assert rows and {row.node for row in rows} == expected
    assert len(rows) == len(expected)
    hidden = next(row for row in rows if "16x32" in row.name)
    assert hidden.bytes == 16 * 32 * 4 and hidden.module == "net: tanh"
    assert hidden.line is not None
    line = record.lines[hidden.line]
    assert line.text == "return self.down(self.up(x).tanh())"
    assert hidden.readers == sorted(hidden.readers)
    total = sum(row.bytes for row in rows)
    text = str(ex.plan)
    assert f"Stored for the backward: {len(rows)} value" in text
    assert f"{total / 1024:.3g}" in text.partition("Stored for the backward")[2][:60]
