"""Kernels that draw the weights of a model: one row, before all others; and those that draw other
random numbers."""

from __future__ import annotations

import re

import pytest

from tests.viz.record.support import broken, plain
from tests.viz.support import array
from workbench import Tensor, explore, nn
from workbench.ir.node.ops import Ops
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.explore import load
from workbench.viz.model.decisions import draws_numbers
from workbench.viz.record import record
from workbench.viz.record.record import build


class Net:
    def __init__(self) -> None:
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu().dropout(0.5))


def weights(ex: Exploration) -> list[int]:
    """The positions of the kernels that draw weights."""
    return [place for place, kernel in enumerate(ex.kernels) if kernel.phases == ("weights",)]


def test_lazy_weights_are_one_row_before_the_model() -> None:
    net = Net()
    ex = explore(net(array(2, 8)))
    assert weights(ex) == [0, 1, 2, 3] and len(ex.kernels) == 5
    text = str(ex.plan)
    assert text.startswith("5 kernels (4 of weights), 5 copies, on ")
    assert re.search(r"^ *1-4  weights: 4 kernels, computed before +\d", text, re.MULTILINE)
    assert text.count("weights:") == 1, "the row is not opened in text"
    record = build(ex)
    assert broken(plain(record)) == []
    assert [row.letter for row in record.plan.phases] == ["W"]
    assert record.plan.hint.startswith("4 of 5 kernels draw the weights")
    first = record.plan.repeats[0]
    assert (first.first, first.size, first.times) == (0, 4, 1)
    assert ex.check(), "all kernels compute what they did"
    Tensor.realize(*nn.state.get_parameters(net))  # as the hint says
    drawn = explore(net(array(2, 8)))
    assert not weights(drawn) and build(drawn).plan.hint == ""
    assert [k.name for k in drawn.kernels] == [ex.kernels[4].name]


def test_lazy_weights_of_a_training_step_come_before_the_forward() -> None:
    """The optimiser's new versions have the names; the mask of the dropout is the forward's."""
    net = Net()
    optimiser = nn.optim.SGD(nn.state.get_parameters(net), 0.1)
    with Tensor.train():
        loss = net(array(2, 8)).square().mean()
        loss.backward()
        ex = explore(loss, *optimiser.schedule_step())
    assert weights(ex) == [0, 1, 2, 3]
    assert ex.kernels[4].phases == ("forward",) and "optimiser" in ex.kernels[-1].phases


def test_what_no_variable_holds_is_drawn_with_the_model() -> None:
    ex = explore(Tensor.rand(8, 8) @ Tensor.rand(8, 8))
    assert len(ex.kernels) == 3 and not weights(ex)
    x = Tensor.rand(8, 8)
    assert not weights(explore(x)), "it is what was asked for"
    total = (x @ x).relu()
    last = explore(total.softmax())
    assert weights(last) == [0], "what is computed of x is the computation"


def test_a_function_holds_the_weights_in_its_closure() -> None:
    def made() -> object:
        w = Tensor.randn(8, 8) * 0.1
        return lambda x: (x @ w).relu()

    ex = explore(made(), array(4, 8).numpy())
    assert weights(ex) == [0] and len(ex.kernels) == 2


def test_a_saved_exploration_keeps_its_weights(tmp_path: object) -> None:
    net = Net()
    ex = explore(net(array(2, 8)))
    again = load(ex.save(f"{tmp_path}/net.json"))
    assert weights(again) == weights(ex) == [0, 1, 2, 3]


def test_what_is_computed_of_random_numbers_alone_is_not_counted() -> None:
    """A Monte Carlo estimate is the computation, and no weights."""
    x, y = Tensor.rand(1000), Tensor.rand(1000)
    (inside,) = explore((x * x + y * y < 1).mean()).kernels[-1:]
    assert not draws_numbers(inside.ast)
    ways = [Tensor.randn, Tensor.rand, Tensor.uniform, Tensor.kaiming_uniform]
    ways += [Tensor.glorot_uniform, Tensor.kaiming_normal, Tensor.normal]
    for way in ways:
        (kernel,) = explore(way(4, 6)).kernels
        assert draws_numbers(kernel.ast), way


def test_a_repeat_is_named_by_what_it_computes() -> None:
    x = array(8, 64)
    for layer in [nn.Linear(64, 64) for _ in range(5)]:
        x = layer(x).relu()
    (repeat,) = [row for row in build(explore(x)).plan.repeats if row.times > 1]
    assert (repeat.size, repeat.title) == (3, "matmul+bias+relu")


def test_a_record_has_the_kernels_of_the_computation_in_detail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record, "LARGE_PLAN", 12)
    x = array(8, 64)
    for layer in [*[nn.Linear(64, 64) for _ in range(12)], nn.Linear(64, 8)]:
        x = layer(x)
    page = build(explore(x))
    detailed = {row.kernel for row in page.variants if row.offers}
    computing = [k for k, row in enumerate(page.kernels) if not row.draws_numbers]
    assert len(computing) == 13 and detailed == {computing[0], computing[-1]}, "others are equal"


def test_a_kernel_that_reads_more_than_a_key_is_not_counted() -> None:
    ex = explore(Tensor.rand(8, 8) * 2)
    kernel = ex.kernels[0].ast
    assert draws_numbers(kernel)
    keys = [n for n in kernel.toposort() if n.op is Ops.PARAM and n.arg[1] == 2]
    longer = {key: key.replace(arg=(key.arg[0], 3)) for key in keys}
    assert keys and not draws_numbers(kernel.substitute(longer))
