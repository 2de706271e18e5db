"""The order for memory: each item still reads what it did, and a step of training holds less."""

from __future__ import annotations

import gc
import random

import numpy as np

from tests.agreement.programs import program
from tests.support import count
from workbench import Context, Tensor, TinyJit, nn
from workbench.backends.memory import Lease
from workbench.execution.item_order import ordered_for_memory
from workbench.execution.memory_plan import plan_memory
from workbench.execution.realize import planned
from workbench.ir.node.uop import UOp
from workbench.nn.optim import Adam


def test_each_item_runs_after_those_whose_values_it_reads() -> None:
    for seed in range(count(1000, 30)):
        pick, tensors = random.Random(seed), program(seed).tensors("LLVM")
        parts = [t.contiguous() if pick.random() < 0.5 else t for t in tensors]
        items = planned([t.uop for t in parts])[0].items
        written = {b for item in items for b in item.outputs}
        order = ordered_for_memory(items, {b for b in written if pick.random() < 0.7})
        assert sorted(map(id, order)) == sorted(map(id, items)), f"program({seed})"
        complete: set[UOp] = set()
        for item in order:
            assert complete.issuperset(written.intersection(item.inputs)), f"program({seed})"
            complete.update(item.outputs)


def test_what_is_overwritten_is_read_before() -> None:
    """A kernel that reads an old version stays before the one that writes the new one over it."""
    x = Tensor.empty(4000)
    old = (x * 2).contiguous()
    reader = (old + 1).contiguous()
    parts = [old, reader, (reader * 3).contiguous(), (x * 4).contiguous()]
    items = planned([t.uop for t in parts])[0].items
    first, read, _, last = [item.outputs[0] for item in items]
    assert ordered_for_memory(items, {read})[:2] != items[:2], "the last adds no bytes"
    order = ordered_for_memory(items, {read}, lambda b: first if b is last else b)
    assert order.index(items[1]) < order.index(items[3])


def test_values_are_freed_before_the_next_are_computed() -> None:
    x = Tensor.empty(64, 1000)
    wide = [(x * n).contiguous() for n in range(2, 8)]
    sums = [w.sum(1).contiguous() for w in wide]
    items = planned([t.uop for t in sums])[0].items
    inner = {b for item in items for b in item.outputs if b.size == 64_000}
    breadth_first = sorted(items, key=lambda item: item.outputs[0] not in inner)
    depth_first = ordered_for_memory(breadth_first, inner)
    plans = [plan_memory(o, inner, is_kept=True) for o in (breadth_first, depth_first)]
    assert [plan.shared_bytes // x.nbytes() for plan in plans] == [6, 1]


def test_a_step_of_training_keeps_no_older_weights() -> None:
    """A weight, its new version and two averages of Adam are in memory, and none of earlier."""
    Tensor.manual_seed(0)
    layers = [nn.Linear(64, 510), nn.Linear(510, 510), nn.Linear(510, 64)]
    optimizer = Adam(nn.state.get_parameters(layers))

    def train(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        out = layers[2](layers[1](layers[0](x).gelu()).gelu())
        loss = out.square().mean()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    x = Tensor(np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)).realize()
    step, weight = TinyJit(train), layers[1].weight
    view = weight.T[:5]
    with Context(TRAINING=1):
        for _ in range(5):
            step(x).item()
            gc.collect()
    held = [o for o in gc.get_objects() if isinstance(o, Lease) and o.nbytes == weight.nbytes()]
    assert len(held) == 4
    np.testing.assert_array_equal(view.numpy(), weight.numpy().T[:5])
