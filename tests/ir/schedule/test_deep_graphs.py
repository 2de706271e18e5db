"""Graphs of many nodes: work grows with their number, code does not double, nothing recurses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.schedule.support import agrees, kernels, numbers, planned
from tests.support import calls_of, count
from workbench import Tensor
from workbench.execution import realize
from workbench.execution.memory_plan import without_detach
from workbench.ir.nest.estimates import estimate
from workbench.ir.node.ops import Ops
from workbench.ir.schedule.access import MOST_EVALUATIONS
from workbench.ir.schedule.by_hand import HandChoices


def chain_and_diamonds(length: int) -> Tensor:
    """About `length` nodes, each value used twice every few steps."""
    x = Tensor(numbers(4, 4))
    for i in range(length // 4):
        y = x * 0.5
        x = (y + y * y) * 0.25 if i % 2 else y.relu() + x + 1.0
    return x


def calls_to_schedule(length: int) -> int:
    x = chain_and_diamonds(length)
    return calls_of(lambda: planned(x))


def test_the_work_grows_with_the_number_of_nodes() -> None:
    nodes = count(5_000, 2)
    (values,) = without_detach([chain_and_diamonds(nodes).uop])
    assert 0.9 * nodes < len(values.toposort()) < 1.3 * nodes
    small, large = calls_to_schedule(nodes // 10), calls_to_schedule(nodes)
    assert large < 14 * small


def test_a_deep_graph_computes_and_does_not_recurse() -> None:
    x = Tensor(np.zeros((2, 3), np.int32))
    for _ in range(count(10_000, 4)):
        x = x + 1
    assert x.numpy().tolist() == [[count(10_000, 4)] * 3] * 2
    y = Tensor(numbers(2, 3))
    n = y.numpy()
    for _ in range(count(1_500, 2)):
        y, n = ((y + 1.0).relu() * 0.5, np.maximum(n + np.float32(1), 0) * np.float32(0.5))
    np.testing.assert_allclose(y.numpy(), n, rtol=1e-5)


def test_doubling_does_not_double_the_code() -> None:
    """A value added to itself 24 times is 24 additions, not two to the 24th."""
    x = Tensor(numbers(4))
    y = x.exp()
    for _ in range(24):
        y = y + y
    (kernel,) = kernels(y)
    assert len(kernel.toposort()) < 100
    agrees(y, np.exp(numbers(4)) * 2.0**24, 1)


@pytest.mark.parametrize("length", [30, 200])
def test_a_value_read_two_ways_at_each_step_is_computed_a_few_times(length: int) -> None:
    """As a row, it would stand before all loops, and rows inside rows would be counted as
    filled 64 times as often as the one that reads them."""
    x, n = Tensor(numbers(8, 8)), numbers(8, 8)
    for _ in range(length):
        x, n = x.maximum(x.T), np.maximum(n, n.T)
    (kernel,) = kernels(x)
    assert not any(node.op is Ops.STAGE for node in kernel.toposort())
    operations = estimate(kernel).flops
    assert operations <= 4 * length * n.size
    if length == 30:
        agrees(x, n, 0)


def test_more_evaluations_than_a_float_counts() -> None:
    """A person may fuse what no computer could run: that is planned, with estimates."""
    x, w = Tensor(numbers(64, 64)), Tensor(numbers(64, 64))
    for _ in range(200):
        x = x @ w
    nodes = realize.planned([x.uop])[1][0].toposort()
    inner = [n for n in nodes if n.op in (Ops.REDUCE_AXIS, Ops.MUL)][:-1]
    assert len(inner) == 399
    plan, _ = realize.planned([x.uop], HandChoices(dict.fromkeys(inner, False)))
    most = max(d.estimates["evaluations"] for d in plan.decisions if d.estimates)
    assert most == MOST_EVALUATIONS
