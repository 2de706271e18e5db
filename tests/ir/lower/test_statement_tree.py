"""The statement tree: loops, barriers and storage, on hand-built kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.tools.filecheck import filecheck
from tests.tools.kernels import EXAMPLES, LLVM, interpreted, reordered, run, tiled_matmul
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import verify

MATMUL = EXAMPLES["matmul_bias_relu"].graph


def applied(graph: UOp, *opts: Opt) -> UOp:
    for opt in opts:
        graph, _ = apply_opt(graph, opt, LLVM)
    return graph


def tree(graph: UOp, target: Target = LLVM) -> str:
    """Return the text of a kernel's tree, which is verified and does what the kernel does."""
    block = build_tree(graph, target)
    verify(block, "lowered")
    return to_expr(block)


def test_a_matmul_is_three_loops_and_a_register() -> None:
    filecheck(
        tree(MATMUL),
        """
        CHECK:      acc0 = DEFINE register float32
        CHECK-NOT:  scratch
        CHECK:      for g0 in 8 (global, chunked) {
        CHECK-NEXT: for g1 in 16 (global) {
        CHECK-NEXT: acc0 = 0.0
        CHECK-NEXT: for r0 in 12 (reduce) {
        CHECK-NEXT: acc0 += p1[g0*12 + r0] * p2[r0*16 + g1]
        CHECK-NEXT: }
        CHECK-NEXT: p0[g0*16 + g1] = max(acc0 + p3[g1], 0.0)
        CHECK-NEXT: }
        CHECK-NEXT: }
        """,
    )


def test_lanes_have_no_loop_and_make_a_register_tile() -> None:
    graph = applied(MATMUL, Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g0", 4))
    filecheck(
        tree(graph),
        """
        CHECK:      acc0 = DEFINE register float32[4][8]
        CHECK:      u1 = RANGE 4 upcast
        CHECK:      u0 = RANGE 8 upcast
        CHECK:      for g0 in 2 (global, chunked) {
        CHECK-NEXT: for g1 in 2 (global) {
        CHECK-NEXT: acc0[u1, u0] = 0.0 (lanes u0)
        CHECK-NEXT: for r0 in 12 (reduce) {
        CHECK-NEXT: acc0[u1, u0] += p1[(g0*4 + u1)*12 + r0] * p2[r0*16 + (g1*8 + u0)] (lanes u0)
        CHECK-NEXT: }
        CHECK-NEXT: p0[(g0*4 + u1)*16 + (g1*8 + u0)] = max({{.*}}) (lanes u0)
        CHECK-NOT:  for u
        """,
    )


def test_a_split_reduction_has_one_accumulator() -> None:
    filecheck(
        tree(applied(MATMUL, Opt(OptOps.SPLIT, "r0", 4))),
        """
        CHECK:      acc0 = 0.0
        CHECK-NEXT: for r0 in 3 (reduce) {
        CHECK-NEXT: for r1 in 4 (reduce) {
        CHECK-NEXT: acc0 += p1[g0*12 + (r0*4 + r1)] * p2[(r0*4 + r1)*16 + g1]
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: p0[g0*16 + g1] = max(
        """,
    )


def test_an_unrolled_dot_product_keeps_its_lanes_apart_until_it_is_read() -> None:
    filecheck(
        tree(applied(MATMUL, Opt(OptOps.UNROLL, "r0", 4))),
        """
        CHECK:      acc0 = DEFINE register float32[4]
        CHECK:      acc0[n0] = 0.0 (lanes n0)
        CHECK-NEXT: for r0 in 3 (reduce) {
        CHECK-NEXT: acc0[n0] += {{.*}} (lanes n0)
        CHECK-NEXT: }
        CHECK-NEXT: [[s]] = REDUCE(add, acc0[n0], n0)
        """.replace("[[s]]", "{{s[0-9]+}}"),
    )


def test_softmax_is_four_loops_in_one_row() -> None:
    """The row of exponentials is scratch of its logical shape."""
    filecheck(
        tree(EXAMPLES["softmax"].graph),
        """
        CHECK:      acc0 = DEFINE register float32
        CHECK-NEXT: acc2 = DEFINE register float32
        CHECK-NEXT: e = DEFINE scratch float32[16]
        CHECK:      for g0 in 8 (global, chunked) {
        CHECK-NEXT: acc0 = -inf
        CHECK-NEXT: acc2 = 0.0
        CHECK-NEXT: for r0 in 16 (reduce) {
        CHECK-NEXT: acc0 max= p1[g0*16 + r0]
        CHECK-NEXT: }
        CHECK-NEXT: for f0 in 16 (fill) {
        CHECK-NEXT: e[f0] = exp2(p1[g0*16 + f0] - acc0)
        CHECK-NEXT: }
        CHECK-NEXT: for r1 in 16 (reduce) {
        CHECK-NEXT: acc2 += e[r1]
        CHECK-NEXT: }
        CHECK-NEXT: for i0 in 16 (loop) {
        CHECK-NEXT: p0[g0*16 + i0] = e[i0] / acc2
        CHECK-NEXT: }
        CHECK-NEXT: }
        """,
    )


def test_a_work_group_is_cut_at_its_barriers() -> None:
    """Accumulators of all work-items live on between the parts."""
    filecheck(
        tree(EXAMPLES["tiled_matmul"].graph),
        """
        CHECK:      acc2 = DEFINE scratch float32[4][4]
        CHECK-NEXT: As = DEFINE scratch float32[4][4]
        CHECK-NEXT: Bs = DEFINE scratch float32[4][4]
        CHECK-NEXT: acc2r = DEFINE register float32
        CHECK:      for g0 in 3 (global, chunked) {
        CHECK-NEXT: for g1 in 3 (global) {
        CHECK-NEXT: for l0 in 4 (local) {
        CHECK-NEXT: for l1 in 4 (local) {
        CHECK-NEXT: acc2[l0, l1] = 0.0
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for r0 in 3 (reduce) {
        CHECK-NEXT: for a_f0 in 4 (fill) {
        CHECK-NEXT: for a_f1 in 4 (fill) {
        CHECK-NEXT: As[a_f0, a_f1] = p1[(g0*4 + a_f0)*12 + r0*4 + a_f1]
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for b_f0 in 4 (fill) {
        CHECK-NEXT: for b_f1 in 4 (fill) {
        CHECK-NEXT: Bs[b_f0, b_f1] = p2[(r0*4 + b_f0)*12 + g1*4 + b_f1]
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for l0 in 4 (local) {
        CHECK-NEXT: for l1 in 4 (local) {
        CHECK-NEXT: acc2r = acc2[l0, l1]
        CHECK-NEXT: for r1 in 4 (reduce) {
        CHECK-NEXT: acc2r += As[l0, r1] * Bs[r1, l1]
        CHECK-NEXT: }
        CHECK-NEXT: acc2[l0, l1] = acc2r
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for l0 in 4 (local) {
        CHECK-NEXT: for l1 in 4 (local) {
        CHECK-NEXT: p0[(g0*4 + l0)*12 + g1*4 + l1] = acc2[l0, l1]
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: }
        """,
    )


@pytest.mark.parametrize("tiles, width", [(1, 4), (2, 8), (3, 4), (4, 16), (5, 3)])
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_work_group_computes_a_matmul(tiles: int, width: int, device: str) -> None:
    example = tiled_matmul(tiles, width)
    arrays = example.arrays()
    expected = example.wanted(arrays)
    assert np.allclose(run(example.graph, device, arrays), expected, atol=1e-4)
    assert np.allclose(interpreted(example.graph, arrays), expected, atol=1e-4)


def test_local_without_a_stage_is_a_tile_and_nothing_more() -> None:
    graph = applied(MATMUL, Opt(OptOps.LOCAL, "g0", 4), Opt(OptOps.LOCAL, "g1", 4))
    filecheck(
        tree(graph),
        """
        CHECK:      acc0 = DEFINE register float32
        CHECK-NOT:  scratch
        CHECK:      for g0 in 2 (global, chunked) {
        CHECK-NEXT: for g1 in 4 (global) {
        CHECK-NEXT: for l0 in 4 (local) {
        CHECK-NEXT: for l1 in 4 (local) {
        CHECK-NEXT: acc0 = 0.0
        CHECK-NEXT: for r0 in 12 (reduce) {
        """,
    )


def test_an_inner_reduction_stands_inside_the_outer_one() -> None:
    filecheck(
        tree(EXAMPLES["nested_reduction"].graph),
        """
        CHECK:      for g0 in 6 (global, chunked) {
        CHECK-NEXT: acc1 = 0.0
        CHECK-NEXT: for r0 in 8 (reduce) {
        CHECK-NEXT: acc0 = -inf
        CHECK-NEXT: for r1 in 12 (reduce) {
        CHECK-NEXT: acc0 max= p1[(g0*8 + r0)*12 + r1]
        CHECK-NEXT: }
        CHECK-NEXT: acc1 += acc0 * p2[r0]
        CHECK-NEXT: }
        CHECK-NEXT: p0[g0] = acc1
        """,
    )


def test_a_reduction_outermost_keeps_all_results_in_an_array() -> None:
    filecheck(
        tree(applied(MATMUL, Opt(OptOps.ORDER, "r0", "g0"))),
        """
        CHECK:      acc0 = DEFINE scratch float32[8][16]
        CHECK:      for g0 in 8 (loop) {
        CHECK-NEXT: for g1 in 16 (loop) {
        CHECK-NEXT: acc0[g0, g1] = 0.0
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for r0 in 12 (reduce) {
        CHECK-NEXT: for g0 in 8 (loop) {
        CHECK-NEXT: for g1 in 16 (loop) {
        CHECK-NEXT: acc0[g0, g1] += p1[g0*12 + r0] * p2[r0*16 + g1]
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: }
        CHECK-NEXT: for g0 in 8 (loop) {
        CHECK-NEXT: for g1 in 16 (loop) {
        CHECK-NEXT: p0[g0*16 + g1] = max(acc0[g0, g1] + p3[g1], 0.0)
        CHECK-NOT:  chunked
        """,
    )


def test_a_reduction_in_the_middle_keeps_a_row() -> None:
    filecheck(
        tree(reordered(MATMUL, ("g0", "r0", "g1"))),
        """
        CHECK:      acc0 = DEFINE scratch float32[16]
        CHECK:      for g0 in 8 (global, chunked) {
        CHECK-NEXT: for g1 in 16 (loop) {
        CHECK-NEXT: acc0[g1] = 0.0
        CHECK-NEXT: }
        CHECK-NEXT: for r0 in 12 (reduce) {
        CHECK-NEXT: for g1 in 16 (loop) {
        CHECK-NEXT: acc0[g1] += p1[g0*12 + r0] * p2[r0*16 + g1]
        """,
    )


def test_an_array_accumulator_is_in_registers_around_its_own_inner_loop() -> None:
    split = applied(
        MATMUL,
        Opt(OptOps.UPCAST, "g1", 8),
        Opt(OptOps.SPLIT, "r0", 4),
        Opt(OptOps.ORDER, "r0", "g0"),
    )
    filecheck(
        tree(split),
        """
        CHECK:      acc0 = DEFINE scratch float32[8][2][8]
        CHECK:      acc0r = DEFINE register float32[8]
        CHECK:      for r0 in 3 (reduce) {
        CHECK-NEXT: for g0 in 8 (loop) {
        CHECK-NEXT: for g1 in 2 (loop) {
        CHECK-NEXT: acc0r[u0] = acc0[g0, g1, u0] (lanes u0)
        CHECK-NEXT: for r1 in 4 (reduce) {
        CHECK-NEXT: acc0r[u0] += {{.*}} (lanes u0)
        CHECK-NEXT: }
        CHECK-NEXT: acc0[g0, g1, u0] = acc0r[u0] (lanes u0)
        CHECK-NEXT: }
        """,
    )


def test_a_tile_is_not_hoisted_out_of_a_loop_it_does_not_depend_on() -> None:
    """Rule 2: As depends on g0 and r0, not on g1, which stands between them."""
    text = tree(EXAMPLES["tiled_matmul"].graph)
    outer = text.index("for g1 in 3")
    assert text.index("As[a_f0, a_f1] =") > outer and "As = DEFINE scratch float32[4][4]" in text


def test_a_row_that_waits_for_all_rows_becomes_an_array() -> None:
    order = ("r0", "g0", "f0", "r1", "i0")
    filecheck(
        tree(reordered(EXAMPLES["softmax"].graph, order)),
        """
        CHECK: acc0 = DEFINE scratch float32[8]
        CHECK: for r0 in 16 (reduce) {
        CHECK-NEXT: for g0 in 8 (loop) {
        CHECK-NEXT: acc0[g0] max= p1[g0*16 + r0]
        CHECK: e[f0] = exp2(p1[g0*16 + f0] - acc0[g0])
        """,
    )


def test_one_loop_serves_two_reductions_that_name_it() -> None:
    """Two closers that name one range ask to share its loop."""
    g0, r0 = axis("g0", 4), axis("r0", 8)
    x = load(param(1, 32), g0 * 8 + r0)
    value = reduced(Ops.MAX, x, r0) + reduced(Ops.ADD, x, r0)
    graph = kernel("g0 r0", (at(param(0, 4), g0), value, "g0"))
    text = tree(graph)
    assert text.count("for r0 in 8") == 1
    filecheck(
        text,
        """
        CHECK:      for r0 in 8 (reduce) {
        CHECK-NEXT: acc0 max= p1[g0*8 + r0]
        CHECK-NEXT: acc1 += p1[g0*8 + r0]
        CHECK-NEXT: }
        CHECK-NEXT: p0[g0] = acc0 + acc1
        """,
    )


def test_a_reduction_that_reads_another_one_waits_for_its_loop_to_end() -> None:
    """The barrier: the variance reads the mean through r0, so r0 runs twice."""
    g0, r0 = axis("g0", 4), axis("r0", 8)
    x = load(param(1, 32), g0 * 8 + r0)
    apart = x + -(reduced(Ops.ADD, x, r0) * 0.125)
    graph = kernel("g0 r0", (at(param(0, 4), g0), reduced(Ops.ADD, apart * apart, r0), "g0"))
    assert tree(graph).count("for r0 in 8") == 2
    arrays = [np.full(4, np.nan, np.float32), np.arange(32, dtype=np.float32)]
    expected = np.full(4, 42.0)
    for device in ("LLVM", "PYTHON"):
        assert np.allclose(run(graph, device, arrays), expected)


# the budget


def test_too_large_an_array_names_the_loops_that_were_split() -> None:
    graph = applied(MATMUL, Opt(OptOps.ORDER, "r0", "g0"))
    with pytest.raises(CompileError) as caught:
        build_tree(graph, Target("LLVM", scratch_bytes=500))
    error = caught.value
    assert error.stage == "statement-tree"
    assert "512 bytes" in error.because and "500 bytes" in error.because
    assert re.search(r"\bg0, g1\b", error.because) and "order" in error.hint
    build_tree(graph, Target("LLVM", scratch_bytes=512))


def test_too_large_a_stage_is_refused() -> None:
    with pytest.raises(CompileError, match="(?s)e is an array of 64 bytes.*smaller tile"):
        build_tree(EXAMPLES["softmax"].graph, Target("LLVM", scratch_bytes=63))


def test_the_budget_is_for_all_arrays_together() -> None:
    graph = EXAMPLES["tiled_matmul"].graph  # three arrays of 64 bytes
    build_tree(graph, Target("LLVM", scratch_bytes=192))
    with pytest.raises(CompileError, match="192 with the other"):
        build_tree(graph, Target("LLVM", scratch_bytes=191))


def test_registers_need_no_scratch() -> None:
    build_tree(MATMUL, Target("LLVM", scratch_bytes=0))
