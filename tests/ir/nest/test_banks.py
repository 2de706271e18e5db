"""Rows of a shared tile are longer than its elements where work-items would meet in one bank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.backends.gpu.target import common_gpu
from workbench.base.target import Target
from workbench.ir.nest.storage import plan_storage
from workbench.ir.node.ops import Ops
from workbench.ir.opt.apply import why_not

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
