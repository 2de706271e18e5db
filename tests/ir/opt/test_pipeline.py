"""PIPELINE: where it is legal, and that its kernels compute the same, without races."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.ir.opt.support import apply, opt
from tests.tools.kernels import LLVM, sum_of_columns
from workbench import Tensor, explore
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.emulator.program import emulated
from workbench.ir.lower.launch import barriers
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import why_not
from workbench.ir.opt.opt import Opt
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import verify
from workbench.pipeline import stages

GPU = common_gpu("a GPU")
TILE = [
    opt("UPCAST", "g0", 2), opt("LOCAL", "g0", 4), opt("LOCAL", "g1", 4), opt("SPLIT", "r0", 4),
    opt("ORDER", "r0", "l0"), opt("STAGE", "r0", 1), opt("STAGE", "r0", 2),
]  # fmt: skip


def product(m: int, n: int, k: int, opts: Sequence[Opt]) -> UOp:
    a, b = Tensor.empty(m, k), Tensor.empty(k, n)
    graph = explore(a @ b).kernels[-1].ast
    return apply(graph, *opts, target=GPU)


@pytest.mark.parametrize("buffers", [2, 3, 4, 7])
@pytest.mark.parametrize("shape", [(16, 8, 32), (15, 7, 31), (8, 4, 4)])
def test_the_same_numbers(shape: tuple[int, int, int], buffers: int) -> None:
    """There may be fewer steps than buffers."""
    m, n, k = shape
    pads = [("g0", 8, m), ("g1", 4, n), ("r0", 4, k)]
    padded = [opt("PADTO", name, size) for name, size, extent in pads if extent % size]
    kept = TILE if k > 4 else [o for o in TILE if o.op.name not in ("SPLIT", "ORDER")]
    if k == 4:
        kept = [opt("SPLIT", "r0", 2), *[o for o in TILE if o.op.name != "SPLIT"]]
    graph = product(m, n, k, [*padded, *kept, opt("PIPELINE", "r0", buffers)])
    assert parse(to_text(graph)) is graph
    built = stages(graph, GPU, "linear")
    for name in ("kernel", "lowered", "linear"):
        verify(getattr(built, name), name)  # type: ignore[arg-type]
    dice = np.random.default_rng(buffers)
    a, b = (dice.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    out = np.zeros(m * n, np.float32)
    trace = emulated(built.linear, [out, a.reshape(-1), b.reshape(-1)], GPU)
    assert trace.findings == ()
    np.testing.assert_allclose(trace.outputs[0].reshape(m, n), a @ b, 1e-4, 1e-4)
    waits = [node.arg for node in built.linear if node.op is Ops.BARRIER]
    assert waits == [buffers - 1, buffers - 2]


def test_one_barrier_a_step() -> None:
    plain, ahead = (product(16, 8, 32, TILE), product(16, 8, 32, [*TILE, opt("PIPELINE", "r0", 3)]))
    groups, steps = 2 * 2, 8
    assert barriers(plain, GPU) == groups * 2 * steps // 2
    assert barriers(ahead, GPU) == groups * (steps + 2)


def test_fills_come_before_the_loop_and_after_what_it_computes() -> None:
    opts = [
        opt("LOCAL", "g0", 8), opt("SPLIT", "r0", 4), opt("ORDER", "r0", "l0"),
        opt("STAGE", "r0", 1),
    ]  # fmt: skip
    graph = apply(sum_of_columns(24, 8).graph, *opts, opt("PIPELINE", "r0", 3), target=GPU)
    lines = [line.strip() for line in to_expr(stages(graph, GPU, "tree").tree).splitlines()]
    begin = lines.index("for r0_first in 2 (fill) {")
    assert [line for line in lines[begin:] if line != "}"][:-2] == [
        "for r0_first in 2 (fill) {", "barrier", "for a_r1 in 4 (fill) {",
        "for a_l0 in 8 (fill) {",
        "As[r0_first % 3, a_r1, a_l0] = p1[(r0_first*4 + a_r1)*8 + a_l0]",
        "for r0 in 6 (reduce) {", "barrier", "for l0 in 8 (local, item) {",
        "for r1 in 4 (reduce) {", "acc1 += As[r0 % 3, r1, l0]", "for a_r1 in 4 (fill) {",
        "for a_l0 in 8 (fill) {",
        "As[(r0 + 2) % 3, a_r1, a_l0] = p1[((r0 + 2)*4 + a_r1)*8 + a_l0 where r0 < 4]",
    ]  # fmt: skip


def test_each_step_of_the_computation_copies_a_part() -> None:
    graph = product(16, 8, 32, [*TILE[:5], opt("ORDER", "r1", "l0"), *TILE[5:]])
    graph = apply(graph, opt("PIPELINE", "r0", 2), target=GPU)
    lines = [line.strip() for line in to_expr(stages(graph, GPU, "tree").tree).splitlines()]
    inside = lines[lines.index("for r1 in 4 (reduce) {") :]
    assert "for a_l0 in 1 (fill) {" not in inside
    assert sum("where r0 < 7" in line for line in inside) == 2
    assert "for b_r1 in 4 (fill) {" not in inside, "a step copies one row of four"


@pytest.mark.parametrize(
    ("opts", "each", "because"),
    [
        ([], ("r0", 2), "no tile is filled in each step of r0"),
        (TILE, ("r1", 2), "no tile is filled in each step of r1"),
        (TILE, ("r9", 3), "no loop 'r9'"),
        (TILE, ("r0", 1), "is 2 to 8, not 1"),
        (TILE, ("r0", 99), "is 2 to 8, not 99"),
        ([*TILE, opt("PIPELINE", "r0", 2)], ("r0", 3), "have 2 buffers already"),
        ([opt("LOCAL", "g0", 4), opt("STAGE", "g1", 2)], ("g1", 2), "does more than fill tiles"),
    ],
)
def test_refused(opts: list[Opt], each: tuple[str, int], because: str) -> None:
    refusal = why_not(product(16, 8, 32, opts), opt("PIPELINE", *each), GPU)
    assert refusal is not None
    assert because in refusal.because


def test_refused_on_a_processor() -> None:
    refusal = why_not(sum_of_columns(12, 8).graph, opt("PIPELINE", "r0", 2), LLVM)
    assert refusal is not None
    assert "no work-item waits" in refusal.because


def test_too_much_shared_memory() -> None:
    wide = [opt("UPCAST", "g0", 8), opt("LOCAL", "g0", 16), *TILE[2:]]
    graph = product(
        128, 16, 512, [o if o.op.name != "SPLIT" else opt("SPLIT", "r0", 16) for o in wide]
    )
    assert why_not(graph, opt("PIPELINE", "r0", 2), GPU) is None
    refusal = why_not(graph, opt("PIPELINE", "r0", 4), GPU)
    assert refusal is not None
    assert refusal.hint == "fewer buffers, or a smaller tile"


@pytest.mark.parametrize("buffers", [2, 3, 4])
def test_a_loop_that_comes_again_waits_for_the_last_copies_before(buffers: int) -> None:
    """Those beyond its end write zeros to buffers that its next time fills."""
    again = [*TILE, opt("SPLIT", "r0", 4), opt("PIPELINE", "r2", buffers)]
    graph = product(16, 8, 64, again)
    target = replace(GPU, copies_async=True)
    built = stages(graph, target, "linear")
    dice = np.random.default_rng(buffers)
    a, b = (dice.standard_normal(s).astype(np.float32) for s in ((16, 64), (64, 8)))
    arrays = [np.zeros(16 * 8, np.float32), a.reshape(-1), b.reshape(-1)]
    trace = emulated(built.linear, arrays, target)
    assert trace.findings == ()
    np.testing.assert_allclose(trace.outputs[0].reshape(16, 8), a @ b, 1e-4, 1e-4)
    waits = [node.arg for node in built.linear if node.op is Ops.BARRIER]
    assert waits[0] == 0 and waits[-1] == buffers - 2
    assert sum(trace.barriers.values()) == barriers(graph, target)
