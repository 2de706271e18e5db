"""Running schedules: what is looked at in place, and how long memory lives."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from workbench import Context, GlobalCounters, Tensor
from workbench.backends.memory import BufferPool
from workbench.backends.native.host_memory import HOST, host_memory
from workbench.execution import realize
from workbench.execution.realize import run_item
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner
from workbench.tensor.base import TensorReference, _alive, nodes_alive

N = np.arange(6 * 5 * 4, dtype=np.float32).reshape(6, 5, 4)


@pytest.fixture(params=["LLVM", "PYTHON"])
def tensor(request: pytest.FixtureRequest) -> Any:
    """A realised tensor of N."""
    with Context(DEV=request.param):
        yield Tensor(N).realize()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> BufferPool:
    """A pool of its own: nobody else's memory counts."""
    fresh = BufferPool(host_memory, limit_bytes=1 << 20)
    monkeypatch.setattr(host_memory, "pool", fresh)
    return fresh


# pieces

Pick = Callable[[Any], Any]

# fmt: off
PIECES: list[tuple[Pick, bool]] = [  # and whether they lie in one stretch
    (lambda t: t[2:5], True), (lambda t: t[5], True), (lambda t: t[-1, -1, -1], True),
    (lambda t: t[3][1:4], True), (lambda t: t[3, 1:4][1], True), (lambda t: t[2:5][1:][1], True),
    (lambda t: t[2:5].reshape(-1)[7:9], True), (lambda t: t.reshape(60, 2)[11:30], True),
    (lambda t: t[1:2, 2:4], True), (lambda t: t[1:2, 2:3, 1:3], True),
    (lambda t: t[:, 0], False), (lambda t: t[:2, 1:3], False), (lambda t: t[1:2, 2:4, 1:3], False),
    (lambda t: t[:, 1:3][2:4].reshape(-1)[1:3], False), (lambda t: t[::2], False),
    (lambda t: t[::-1][2:4], False), (lambda t: t[3].T[1:2], False),
    (lambda t: t[2:5] + 1, False),
]
# fmt: on


@by_rows(("pick", "in_place"), PIECES)
def test_a_stretch_of_memory_needs_no_kernel(tensor: Tensor, pick: Pick, in_place: bool) -> None:
    before = GlobalCounters.kernel_count
    assert len(pick(tensor).schedule()) == (not in_place)
    np.testing.assert_array_equal(pick(tensor).numpy(), pick(N))
    assert GlobalCounters.kernel_count - before == (not in_place)


def test_nothing_and_everything(tensor: Tensor) -> None:
    np.testing.assert_array_equal(tensor[3:3].numpy(), N[3:3])
    np.testing.assert_array_equal(tensor[6:, 5:].numpy(), N[6:, 5:])
    assert tensor[:].schedule() == ()


def test_a_piece_is_a_kernels_input_at_any_alignment(tensor: Tensor) -> None:
    for start in range(5):
        piece = tensor.reshape(-1)[start : start + 101].realize()
        actual = (piece * 2 + tensor.reshape(-1)[:101]).numpy()
        np.testing.assert_array_equal(actual, N.ravel()[start : start + 101] * 2 + N.ravel()[:101])


def test_pieces_of_pieces_stay_what_they_were(tensor: Tensor) -> None:
    piece = tensor[2:5].realize()
    first = piece[1:].realize()
    others = [(tensor + n).realize() for n in range(4)]  # takes what memory is free
    np.testing.assert_array_equal(first.numpy(), N[3:5])
    np.testing.assert_array_equal(others[3].numpy(), N + 3)
    copy = first.numpy()
    copy[:] = -1  # a read-back is the reader's own
    np.testing.assert_array_equal(first.numpy(), N[3:5])


def test_contiguous_is_a_copy(tensor: Tensor) -> None:
    assert len(tensor[2:5].contiguous().schedule()) == 1


def test_what_has_no_memory_yet_is_not_given_any() -> None:
    assert len(Tensor.empty(4, 4)[1:2].schedule()) == 1


# life


def test_a_piece_keeps_the_whole_alive_and_no_longer(pool: BufferPool) -> None:
    whole = (Tensor.arange(100_000) * 3).realize()
    size = pool.used_bytes
    assert size >= 400_000
    piece = whole[77:79].realize()
    del whole
    gc.collect()
    others = [(Tensor.arange(100_000) + n).realize() for n in range(3)]
    assert pool.used_bytes == 4 * size
    assert piece.tolist() == [231, 234]
    del piece, others
    gc.collect()
    assert pool.used_bytes == 0


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_memory_goes_with_the_tensors(pool: BufferPool, device: str) -> None:
    with Context(DEV=device):
        a = Tensor(np.ones((200, 200), np.float32))
        b = (a @ a).realize()
        c = (b.softmax() + a).sum(0).realize()
        assert pool.used_bytes > 2 * 160_000
        del a, b
        gc.collect()
        assert 0 < pool.used_bytes < 10_000
        assert pool.spare_bytes <= pool.limit_bytes
        del c
        gc.collect()
        assert pool.used_bytes == 0


def test_a_loop_does_not_grow(pool: BufferPool) -> None:
    x = Tensor(np.ones((300, 300), np.float32)).realize()
    used = []
    for step in range(30):
        x = (x * 0.5 + float(step)).relu().realize()
        used.append(pool.used_bytes)
    assert max(used[2:]) == used[1]  # the old value and the new one


def test_what_is_not_realised_is_not_kept(pool: BufferPool) -> None:
    x = Tensor(np.ones(1000, np.float32)).realize()
    before = pool.used_bytes
    for step in range(20):
        assert (x + step).sum().item() == 1000 * (1 + step)
    gc.collect()
    assert pool.used_bytes <= before + 64


def test_mem_used_is_what_the_pool_has_given(pool: BufferPool) -> None:
    before = GlobalCounters.mem_used
    x = Tensor(np.ones(100_000, np.float32)).realize()
    assert GlobalCounters.mem_used == before + pool.used_bytes
    del x


def chain(x: Tensor, length: int = 8) -> tuple[Tensor, Tensor]:
    """Return a value after so many stored ones, and the third of those."""
    values = [x]
    for _ in range(length):
        values.append((values[-1] * 2 + 1).contiguous())
    return values[-1], values[3]


def test_a_value_on_the_way_is_freed_after_its_last_reader(
    monkeypatch: pytest.MonkeyPatch, pool: BufferPool
) -> None:
    x = Tensor(np.ones(1 << 18, np.float32)).realize()
    gc.collect()
    before, counts, run = pool.used_bytes, [], run_item

    def counted(item: ScheduleItem, tuner: Tuner) -> None:
        run(item, tuner)
        counts.append((pool.used_bytes - before) // x.nbytes())

    monkeypatch.setattr(realize, "run_item", counted)
    y = chain(x)[0].realize()
    assert counts == [*[1] * 7, 2], "each is written over the one before; the last is the result"
    del y
    counts.clear()
    with Context(NO_MEMORY_PLANNER=1):
        y = chain(x)[0].realize()
    assert counts == [1, *[2] * 7]
    assert pool.used_bytes - before == x.nbytes()
    np.testing.assert_array_equal(y.numpy()[:2], [511, 511])


def test_a_value_on_the_way_that_a_tensor_holds_is_computed_once() -> None:
    x = Tensor(np.ones(1 << 10, np.float32)).realize()
    y, third = chain(x)
    later = third * 3
    del third
    y.realize()
    assert len(later.schedule()) == 1
    np.testing.assert_array_equal(later.numpy()[:2], [45, 45])


def test_tensors_may_be_made_while_others_are_computed() -> None:
    """As another thread may: here one is made at the moment at which all are looked at."""

    class Busy(Tensor):
        __slots__ = ("later",)

        def __getattribute__(self, name: str) -> Any:
            if name == "uop":
                object.__getattribute__(self, "later").append(Tensor([1.0]))
            return super().__getattribute__(name)

    busy = object.__new__(Busy)
    busy.later, busy._uop = [], Tensor([2.0]).uop
    busy._memory = busy._replayed = None
    _alive[TensorReference(busy, _alive.pop)] = None
    assert busy.uop in nodes_alive() and len(busy.later) >= 2


def test_a_value_that_is_read_late_stays_until_then() -> None:
    x = Tensor(np.arange(48, dtype=np.float32)).realize()
    first = (x + 1).contiguous()
    second = (first * 2).contiguous()
    y = ((second + 1).contiguous() + first + second).contiguous() + first.sum()
    del first, second
    n = np.arange(48) + 1
    np.testing.assert_array_equal(y.numpy(), (2 * n + 1) + n + 2 * n + n.sum())


def test_a_value_of_constants_is_computed_on_each_device() -> None:
    """It has no device: another one's memory is no operand of a kernel."""

    def numbers() -> Tensor:
        return (Tensor.arange(1000) * 3 % 7).contiguous()

    with Context(DEV="LLVM"):
        first = numbers().realize()
    with Context(DEV="PYTHON"):
        items = (Tensor(np.arange(1000, dtype=np.int32)) + numbers()).schedule()
        assert {b.device for item in items for b in item.buffers} <= {"PYTHON", HOST}
    assert first.device == "LLVM"
