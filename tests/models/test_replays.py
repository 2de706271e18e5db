"""Calls of a model one after the other: which run its graph, and that they compute the same."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench import Context, Tensor, explore, load_model
from workbench.models.model import MOST_CAPTURED
from workbench.models.torch.nodes import load_rows
from workbench.models.torch.table import ROWS as OPERATORS
from workbench.models.torch.values import to_torch

load_rows()
T = torch.nn
CALLS = 6


def network() -> Any:
    torch.manual_seed(0)
    return T.Sequential(T.Linear(4, 5), T.BatchNorm1d(5), T.ReLU(), T.Linear(5, 3))


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(to_torch(ours), theirs, rtol=1e-4, atol=1e-5)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that has an item for each run of a graph with a relu."""
    noted: list[int] = []
    monkeypatch.setitem(OPERATORS, "relu", lambda x: (noted.append(1), x.relu())[1])
    return noted


def test_later_calls_replay_and_earlier_results_stay(runs: list[int]) -> None:
    net = network().eval()
    model, inputs = load_model(net), [torch.randn(2, 4) for _ in range(CALLS)]
    results = [model(x) for x in inputs]
    assert len(runs) == 3  # expressions, a first run, a capture
    with torch.no_grad():
        for x, result in zip(inputs, results, strict=True):
            same(result, net(x))


def test_a_replay_reads_the_parameters_that_there_are() -> None:
    net, x = network().eval(), torch.randn(2, 4)
    model = load_model(net)
    with torch.no_grad():
        for n in range(CALLS):
            same(model(x), net(x))
            net[0].weight.mul_(1.5)
            net[3].bias.add_(n)
    weight = model.state_dict()["0.weight"]
    weight.assign(weight * 0).realize()
    with torch.no_grad():
        same(model(x), net(x))
        assert bool((net[0].weight == 0).all())


def test_replays_in_training_write_the_statistics(runs: list[int]) -> None:
    net = network().train()
    theirs, model = copy.deepcopy(net), load_model(net)
    with torch.no_grad():
        for _ in range(CALLS):
            x = torch.randn(6, 4)
            same(model(x), theirs(x))
            for one, other in zip(net.buffers(), theirs.buffers(), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert len(runs) == 3
    with torch.no_grad():
        same(model(x), theirs(x))
        net.eval()
        same(model(x), theirs.eval()(x))


def test_gradients_flow_at_every_call() -> None:
    net, model = network().eval(), load_model(network().eval())
    x = torch.randn(2, 4)
    for _ in range(CALLS):
        model(x).numpy()
    weight = model.state_dict()["0.weight"].requires_grad_()
    model(x).sum().backward()
    net(x).sum().backward()
    assert weight.grad is not None
    same(weight.grad, net[0].weight.grad)


def test_masks_are_drawn_at_each_call() -> None:
    model = load_model(T.Dropout().train())
    masks = [model(torch.ones(64)).tolist() for _ in range(CALLS)]
    assert len({tuple(mask) for mask in masks}) == CALLS


def test_inputs_of_many_shapes_are_captured_apart_and_the_last_ones_kept() -> None:
    net = network().eval()
    model = load_model(net)
    with torch.no_grad():
        for size in [*range(1, MOST_CAPTURED + 4), 2, 2, 2, 2]:
            x = torch.randn(size, 4)
            same(model(x), net(x))
    assert len(model._calls) == MOST_CAPTURED


def test_a_graph_that_computes_nothing_returns_its_input() -> None:
    model = load_model(T.Identity())
    for n in range(CALLS):
        assert model(np.array([n], np.float32)).tolist() == [n]


def test_without_captures_a_call_returns_an_expression() -> None:
    net, x = network().eval(), torch.randn(2, 4)
    model = load_model(net)
    for _ in range(CALLS):
        model(x).realize()
    with Context(JIT=0):
        assert len(explore(model(x)).kernels) == 1
    assert "relu" in str(explore(lambda a: model(a) * 2, x).kernels[0].modules)


def test_a_function_runs_at_each_call() -> None:
    factor = [1.0]
    model = load_model(lambda x: x * factor[0])
    for n in range(CALLS):
        factor[0] = n
        assert model(Tensor([2.0])).tolist() == [2.0 * n]
