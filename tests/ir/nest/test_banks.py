"""Rows of a shared tile are longer than its elements where work-items would meet in one bank."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, emulate, explore
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.target import Target
from workbench.ir.nest import accesses as banks
from workbench.ir.nest import storage
from workbench.ir.nest.accesses import LONGER, TileAccess, tile_accesses
from workbench.ir.nest.loops import Statement
from workbench.ir.nest.storage import excess, plan_storage
from workbench.ir.nest.transactions import BANK_BYTES, BANKS
from workbench.ir.nest.vectors import Vectors
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.apply import apply_if_legal, legal_opts, why_not

GPU = common_gpu("GPU")


def transposed(size: int, side: int) -> Kernel:
    x = np.arange(size * size, dtype=np.float32).reshape(size, size)
    kernel = explore(Tensor(x).realize().T.contiguous()).kernels[-1]
    opts = (
        Opt(OptOps.LOCAL, "g0", 256 // side),
        Opt(OptOps.LOCAL, "g1", side),
        Opt(OptOps.STAGE, "g1", 1),
    )
    for opt in opts:
        kernel = kernel.apply(opt)
    return kernel


def shapes(kernel: Kernel) -> list[tuple[int, ...]]:
    allocations = plan_storage(kernel.ast, GPU).allocations
    return [a.define.memory_shape for n, a in allocations.items() if n.op is Ops.STAGE]


@pytest.mark.parametrize("side, row", [(8, 9), (16, 18), (32, 36)])
def test_a_column_is_in_different_banks(side: int, row: int) -> None:
    kernel = transposed(64, side)
    (shape,) = shapes(kernel)
    assert shape == (256 // side, row)
    trace = emulate(kernel, GPU)
    shared = trace.total("shared")
    assert shared.conflicts <= shared.requests / 2 and not trace.findings
    assert side < 32 or shared.conflicts == 0, "a warp is one row"


def test_an_odd_row_stays_as_long_as_it_is() -> None:
    x = np.ones((7 * 15, 15 * 7), np.float32)
    kernel = explore(Tensor(x).realize().T.contiguous()).kernels[-1]
    for opt in (
        Opt(OptOps.LOCAL, "g0", 15),
        Opt(OptOps.LOCAL, "g1", 15),
        Opt(OptOps.STAGE, "g1", 1),
    ):
        kernel = kernel.apply(opt)
    assert shapes(kernel) == [(15, 15)]


def test_a_row_of_vectors_stays_aligned() -> None:
    a, b = (Tensor(np.ones((64, 64), np.float32)).realize() for _ in range(2))
    kernel = explore(a @ b).kernels[-1]
    for opt in (
        Opt(OptOps.UPCAST, "g0", 4),
        Opt(OptOps.UPCAST, "g1", 4),
        Opt(OptOps.LOCAL, "g0", 16),
        Opt(OptOps.LOCAL, "g1", 8),
        Opt(OptOps.SPLIT, "r0", 16),
        Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1),
        Opt(OptOps.STAGE, "r0", 2),
    ):
        kernel = kernel.apply(opt)
    assert all(shape[-1] == 4 for shape in shapes(kernel))
    trace = emulate(kernel, GPU)
    shared = trace.total("shared")
    assert shared.conflicts < shared.transactions / 10 and not trace.findings


def test_a_processor_has_no_banks() -> None:
    allocations = plan_storage(transposed(64, 32).ast, Target("LLVM")).allocations
    (tile,) = (a.define for n, a in allocations.items() if n.op is Ops.STAGE)
    assert tile.memory_shape == (8, 32)


def test_longer_rows_count_against_shared_memory() -> None:
    """A tile of 8 rows of 32 elements takes 36 of each."""
    kernel = transposed(64, 32)
    size = 4 * int(np.prod(shapes(kernel)[0]))
    plain = explore(Tensor(np.ones((64, 64), np.float32)).realize().T.contiguous())
    graph = plain.kernels[-1]
    for opt in (Opt(OptOps.LOCAL, "g0", 8), Opt(OptOps.LOCAL, "g1", 32)):
        graph = graph.apply(opt)
    stage = Opt(OptOps.STAGE, "g1", 1)
    assert why_not(graph.ast, stage, replace(GPU, shared_bytes=size)) is None
    refusal = why_not(graph.ast, stage, replace(GPU, shared_bytes=size - 4))
    assert refusal is not None and f"{size:,} bytes" in str(refusal)


def passes(access: TileAccess, shape: Sequence[int], nbytes: int) -> int:
    """Return how often the most used bank is read, work-item by work-item."""
    width = max(nbytes * access.lanes, BANK_BYTES)
    words = set()
    for item in range(max(1, BANKS * BANK_BYTES // width)):
        at = 0
        for number, places in enumerate(access.places):
            if item >= len(places):
                break
            at += places[item] * math.prod(shape[number + 1 :])
        else:
            words.add(at * nbytes // BANK_BYTES)
    return max(sum(w % BANKS == bank for w in words) for bank in range(BANKS))


def longest(accesses: Sequence[TileAccess], shape: tuple[int, ...], nbytes: int) -> tuple[int, ...]:
    """Return the shape of a tile's memory, by trying each."""
    lanes = math.lcm(*[access.lanes for access in accesses])
    last = len(shape) - (2 if lanes > 1 and shape[-1] == lanes else 1)
    shapes = [shape]
    for n in (last, last - 1):
        for more in LONGER:
            if n > 0 and more <= shape[n]:
                longer = (*shape[:n], shape[n] + more, *shape[n + 1 :])
                if math.prod(longer[n:]) % lanes == 0:
                    shapes.append(longer)
    costs = [sum(passes(a, each, nbytes) for a in accesses) for each in shapes]
    return min(zip(costs, map(math.prod, shapes), shapes, strict=True), key=lambda c: c[:2])[2]


def enumerated(at: Sequence[UOp], items: Sequence[UOp]) -> tuple[tuple[int, ...], ...]:
    """Return where the first work-items are along each dimension, by evaluating the indexes."""
    indexes = [split_gate(index)[0] for index in at]
    values = index_values(indexes, items, 1 << 20, others_stand=True)
    extents = [axis.extent for axis in items]
    assert values is not None
    return tuple(tuple(np.broadcast_to(v, extents).reshape(-1)[:BANKS].tolist()) for v in values)


def drawn_kernels(seed: int, machine: str) -> Iterator[UOp]:
    """Yield kernels with tiles, after opts that are drawn."""
    dice, target = random.Random(seed), Device[machine].target
    kind = dice.choice([dtypes.float32, dtypes.float16, dtypes.int8])
    m, n, k = (dice.choice([16, 24, 33, 64, 100]) for _ in range(3))
    a, b = Tensor.empty(m, k, dtype=kind), Tensor.empty(k, n, dtype=kind)
    values = [a @ b, a.T.contiguous() @ b.T if m == n else a.T.contiguous(), a.softmax(), a.sum(0)]
    kernel = explore(dice.choice(values)).kernels[-1].ast
    for op in (OptOps.UPCAST, OptOps.LOCAL, OptOps.LOCAL, None, OptOps.STAGE, OptOps.STAGE, None):
        offers = [o for o in legal_opts(kernel, target) if op in (None, o.op)]
        changed = apply_if_legal(kernel, dice.choice(offers), target) if offers else None
        kernel = kernel if changed is None else changed
        yield kernel


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X"])
def test_rows_are_as_long_as_by_trying_each(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    padded = storage.padded

    def both(
        tile: Statement,
        around: Sequence[UOp],
        readers: Sequence[Statement],
        shape: tuple[int, ...],
        vectors: Vectors,
    ) -> tuple[int, ...]:
        result = padded(tile, around, readers, shape, vectors)
        accesses = [*tile_accesses(tile, around, readers, vectors)]
        assert result == longest(accesses, shape, tile.node.dtype.itemsize)
        seen.add(result == shape)
        return result

    monkeypatch.setattr(storage, "padded", both)
    for seed in range(1, 7 + count(100, 50)):
        for kernel in drawn_kernels(seed, machine):
            plan_storage(kernel, Device[machine].target)
    assert seen == {False, True}


def test_first_work_items_are_those_of_the_indexes() -> None:
    """Of sums of axes by their factors, of quotients and remainders by evaluation."""
    for seed in range(100 + count(900)):
        dice = random.Random(seed)
        extents = [dice.choice([1, 2, 3, 4, 8, 16, 33]) for _ in range(dice.randint(1, 3))]
        items = [UOp.range(n, f"l{i}", AxisType.LOCAL) for i, n in enumerate(extents)]
        loop = UOp.range(7, "r0", AxisType.REDUCE)
        index = UOp.index(dice.randint(0, 5))
        for axis in (*items, loop):
            part = axis * dice.choice([1, 2, 16, 33])
            index = index + (part // 4 if dice.random() < 0.2 else part)
        places = banks._access([index, items[0]], items, 1).places
        inner = [*items]
        while len(inner) > 1 and math.prod(r.extent for r in inner[1:]) >= BANKS:
            inner.pop(0)
        assert places == enumerated([index, items[0]], inner), seed


def test_what_a_kernel_takes_is_bounded_without_longer_rows() -> None:
    for seed in range(1, 4 + count(40, 40)):
        for kernel in drawn_kernels(seed, "CUDA:H100"):
            for nbytes in (512, 2048, 8192, 1 << 15):
                target = replace(GPU, shared_bytes=nbytes)
                assert excess(kernel, target) == plan_storage(kernel, target).excess(target)
