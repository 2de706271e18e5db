"""The memory of a schedule: predicted and measured, and never that of a value that can be read."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

from tests.agreement.programs import program
from tests.support import count
from workbench import Context, Tensor, TinyJit
from workbench.backends.device import Device
from workbench.execution import realize
from workbench.execution.memory_plan import MemoryPlan, plan_memory, values_at_hand
from workbench.execution.realize import planned, run_item
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner

N = 1 << 16
RNG = np.random.default_rng(0)


def data(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32)).realize()


def mlp(x: Tensor) -> Tensor:
    """Products of different sizes, one after the other."""
    for size in (96, 200, 64, 128, 200, 32):
        x = (x @ data(x.shape[1], size)).relu()
    return x.sum(1)


def chain(x: Tensor) -> Tensor:
    for _ in range(6):
        x = (x * 0.5 + 1).contiguous()
    return x


def fans(x: Tensor) -> Tensor:
    """Values of which one lives long, others short."""
    first = (x + 1).contiguous()
    parts = [(first * n).contiguous().sum(0).contiguous() for n in range(5)]
    wide = Tensor.stack(*parts).exp().contiguous()
    return (wide.sum() + first.T).contiguous() * 2


MODELS = {"mlp": mlp, "chain": chain, "fans": fans}


def spied(monkeypatch: pytest.MonkeyPatch) -> tuple[list[MemoryPlan], list[int]]:
    """Return lists that get each plan that the engine makes, and the bytes in use after each item,
    more than before all."""
    plans: list[MemoryPlan] = []
    used: list[int] = []
    pool = Device[Device.DEFAULT].memory.pool
    make, run = plan_memory, run_item
    gc.collect()
    before = pool.used_bytes

    def planned(*arguments: object, **more: object) -> MemoryPlan:
        plans.append(make(*arguments, **more))  # type: ignore[arg-type]
        return plans[-1]

    def counted(item: ScheduleItem, tuner: Tuner) -> None:
        run(item, tuner)
        used.append(pool.used_bytes - before)

    monkeypatch.setattr(realize, "plan_memory", planned)
    monkeypatch.setattr(realize, "run_item", counted)
    return plans, used


@pytest.mark.parametrize("name", MODELS)
def test_the_predicted_memory_is_what_is_measured(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = MODELS[name](data(48, 64))
    schedule = y.schedule()
    plans, used = spied(monkeypatch)
    result = y.realize()
    (plan,) = plans
    assert used == [*plan.held_bytes] and len(used) == len(schedule)
    assert max(used) == plan.peak_bytes == plan.held_bytes[plan.peak]
    del result


def test_what_is_written_over_an_old_version_is_no_new_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new version in the memory of the old one, after two values on the way to it."""
    state, x = data(256, 128), data(256, 128)
    other = (x.exp().contiguous().sum(0).contiguous() * x).contiguous()
    plans, used = spied(monkeypatch)
    state.assign(state + other)
    del other
    state.realize()
    (plan,) = plans
    assert used == [*plan.held_bytes]
    assert used[-1] < 2 * state.nbytes(), "it is written in place"


def test_less_is_held_than_without(monkeypatch: pytest.MonkeyPatch) -> None:
    plans, used = spied(monkeypatch)
    x = data(512, 128)
    del used[:], plans[:]
    chain(x).realize()
    with_plan = max(used)
    (plan,) = plans
    assert len(plan.pieces) == 5 and plan.blocks[Device.DEFAULT].size_bytes == x.nbytes()
    assert "5 values on the way need 262,144 bytes instead of 1,310,720" in str(plan)
    del used[:]
    with Context(NO_MEMORY_PLANNER=1):
        chain(x).realize()
    assert with_plan <= max(used) and len(plans) == 1


@pytest.mark.parametrize("name", MODELS)
def test_no_two_values_that_live_at_once_share_a_byte(name: str) -> None:
    items = MODELS[name](data(48, 64)).schedule()
    inner = {b for item in items[:-1] for b in item.outputs}
    check(plan_memory(items, inner, is_kept=True), items, inner)


def check(plan: MemoryPlan, items: tuple[ScheduleItem, ...], inner: set[UOp]) -> None:
    pieces = plan.pieces
    assert pieces.keys() == inner
    for buffer, piece in pieces.items():
        uses = [n for n, item in enumerate(items) if buffer in item.buffers]
        assert (piece.first, piece.last) == (uses[0], uses[-1])
        assert piece.offset % 64 == 0
        assert piece.size_bytes >= buffer.size * buffer.dtype.itemsize
        assert piece.offset + piece.size_bytes <= plan.blocks[piece.device].size_bytes
        for other, beside in pieces.items():
            apart = beside.last < piece.first or piece.last < beside.first
            apart |= piece.offset + piece.size_bytes <= beside.offset
            apart |= beside.offset + beside.size_bytes <= piece.offset
            in_place = piece.over is other and beside.last == piece.first
            in_place |= beside.over is buffer and piece.last == beside.first
            assert apart or in_place or other is buffer


def test_random_programs_have_sound_plans() -> None:
    shared = 0
    for seed in range(count(1000, 30)):
        pick, tensors = random.Random(seed), program(seed).tensors("LLVM")
        parts = [t.contiguous() if pick.random() < 0.5 else t for t in tensors]
        items = planned([t.uop for t in parts])[0].items
        outputs = [b for item in items for b in item.outputs]
        inner = {b for b in outputs if pick.random() < 0.7}
        plan = plan_memory(items, inner, is_kept=True)
        check(plan, items, inner)
        sizes = sum(block.size_bytes for block in plan.blocks.values())
        shared += sizes < plan.apart_bytes
    assert shared


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_values_that_can_be_read_are_not_in_planned_memory(device: str) -> None:
    """Each value of a chain, held or not, is right after the next runs have used its memory."""
    pick = random.Random(device)
    for _ in range(count(100, 25)):
        values = [Tensor(RNG.standard_normal(100).astype(np.float32), device=device)]
        wanted = [values[0].numpy()]
        for _ in range(pick.randint(3, 8)):
            a, b = pick.randrange(len(values)), pick.randrange(len(values))
            values.append((values[a] * 0.5 + values[b]).contiguous())
            wanted.append(wanted[a] * np.float32(0.5) + wanted[b])
        held = pick.sample(range(len(values)), 2)
        kept = {n: values[n] for n in held}
        last = values[-1]
        del values
        last.realize()
        np.testing.assert_allclose(last.numpy(), wanted[-1], rtol=1e-5)
        for n, tensor in kept.items():
            np.testing.assert_allclose(tensor.numpy(), wanted[n], rtol=1e-5)


def test_values_on_the_way_of_a_replay_share_a_block() -> None:
    weights = [data(512, 512) for _ in range(5)]
    pool = Device[Device.DEFAULT].memory.pool

    def step(x: Tensor) -> Tensor:
        for weight in weights:
            x = (x @ weight).relu()
        return x.realize()

    x, used = data(128, 512), []
    expected = step(x).numpy()
    for planner_off in (0, 1):
        gc.collect()
        before = pool.used_bytes
        with Context(NO_MEMORY_PLANNER=planner_off):
            replayed = TinyJit(step)
            for _ in range(3):
                actual = replayed(x).numpy()
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
            gc.collect()
            used.append(pool.used_bytes - before)
            del replayed
    assert used[1] - used[0] == 2 * x.nbytes(), "two values at a time, and not four"


def test_what_empty_memory_holds_is_no_value() -> None:
    """Labels that are only inspected may be anything: they were refused once the memory was
    there."""
    labels = Tensor.empty(8, dtype="int32")
    labels.numpy()
    assert values_at_hand(labels.uop) is None
    written = Tensor.empty(2, dtype="int32").assign(Tensor([1, 2], dtype="int32")).realize()
    assert values_at_hand(written.uop) is not None


def test_what_is_computed_of_empty_memory_is_no_value() -> None:
    def of_empty() -> Tensor:
        return Tensor.empty(8, dtype="int32")

    twice = of_empty().cast("int64").realize()
    for values in (
        *(of_empty().cast("int64"), of_empty()[2:4], of_empty().clone(), twice + 1),
        *((of_empty() + 1).contiguous().flip(0) * 2, of_empty().sum(), of_empty().to("PYTHON")),
    ):
        values.realize()
        assert values_at_hand(values.uop) is None, values
    raised = of_empty()
    raised += 1
    assert values_at_hand(raised.realize().uop) is None


def test_empty_memory_that_is_filled_has_values() -> None:
    labels = Tensor.empty(2, 2, dtype="int32")
    for row in range(2):
        labels[row] = Tensor([row, 1], dtype="int32")
    for values in (labels, labels + 1):
        found = values_at_hand(values.realize().uop)
        assert found is not None
        np.testing.assert_array_equal(found, values.numpy())
