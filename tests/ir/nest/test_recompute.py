"""Rows that do not fit are computed where they are read: the kernel without them is one of its
level, needs no memory for them, and computes what it did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.ir.opt.support import apply, opt
from tests.ir.samples import at, axis, kernel, load, param, reduced, stage
from tests.support import count
from tests.tools.kernels import LLVM, Example, interpreted, random_form, softmax
from tests.tools.kernels import tiled_matmul as tiled
from workbench.base.target import Target
from workbench.ir.nest.recompute import recompute_rows
from workbench.ir.nest.storage import excess
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.verify.verify import verify

NO_ROOM = replace(LLVM, scratch_bytes=0)


def softmax_of_sums(rows: int, columns: int, depth: int) -> Example:
    """The staged row is computed from a row of sums, which is staged too."""
    g0, r0, r1, r2 = axis("g0", rows), *(axis(n, columns) for n in ("r0", "r1", "r2"))
    r3, f0, f1, i0 = axis("r3", depth), *(axis(n, columns) for n in ("f0", "f1", "i0"))
    x = load(param(1, rows * columns * depth), (g0 * columns + f0) * depth + r3)
    sums = stage("sums", (columns,), reduced(Ops.ADD, x, r3), f0)
    greatest = reduced(Ops.MAX, load(sums, r0), r0)
    e = stage("e", (columns,), (load(sums, f1) + -greatest).alu(Ops.EXP2), f1)
    value = load(e, i0).alu(Ops.FDIV, reduced(Ops.ADD, load(e, r1), r1))
    value = value + reduced(Ops.ADD, load(e, r2) * load(sums, r2), r2)
    target = at(param(0, rows * columns), g0 * columns + i0)
    graph = kernel("g0 f0 r3 r0 f1 r1 r2 i0", (target, value, "g0 i0"))

    def oracle(x: np.ndarray) -> np.ndarray:
        s = x.reshape(rows, columns, depth).sum(2)
        e = np.exp2(s - s.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True) + (e * s).sum(1, keepdims=True)

    return Example("softmax_of_sums", graph, oracle)


def sums_of_sums(rows: int, columns: int, depth: int) -> Example:
    """The staged row is a sum of sums, which do not differ along the row themselves."""
    g0, f0, r0, i0 = axis("g0", rows), *(axis(n, columns) for n in ("f0", "r0", "i0"))
    r1, r2 = axis("r1", depth), axis("r2", 2)
    inner = reduced(Ops.ADD, load(param(2, depth * 2), r1 * 2 + r2), r2)
    x = load(param(1, rows * columns * depth), (g0 * columns + f0) * depth + r1)
    e = stage("e", (columns,), reduced(Ops.ADD, x * inner, r1), f0)
    value = load(e, i0) * reduced(Ops.ADD, load(e, r0), r0)
    target = at(param(0, rows * columns), g0 * columns + i0)
    graph = kernel("g0 f0 r1 r2 r0 i0", (target, value, "g0 i0"))

    def oracle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        e = x.reshape(rows, columns, depth) @ y.reshape(depth, 2).sum(1)
        return e * e.sum(1, keepdims=True)

    return Example("sums_of_sums", graph, oracle)


EXAMPLES = {e.name: e for e in (softmax(4, 8), softmax_of_sums(3, 8, 4))}


def stages(graph: UOp) -> list[str]:
    return [n.name for n in graph.toposort() if n.op is Ops.STAGE]


def same(example: Example, graph: UOp, other: UOp) -> None:
    arrays = example.arrays()
    verify(other, "kernel")
    wanted = example.wanted(arrays)
    assert np.allclose(interpreted(graph, arrays), wanted, atol=1e-5)
    assert np.allclose(interpreted(other, arrays), wanted, atol=1e-5)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_form_without_its_rows_computes_the_same(name: str) -> None:
    """Rows filled in lanes, in parts, and padded, and read in any order of loops; where the memory
    is a byte too little, or there is half of it."""
    example, changed = EXAMPLES[name], 0
    for seed in range(count(100)):
        graph = random_form(example, seed, seed % 5).graph
        over = excess(graph, NO_ROOM)
        assert over is not None
        for limit in (over.total_bytes - 1, over.total_bytes // 2):
            target = replace(LLVM, scratch_bytes=limit)
            other = recompute_rows(graph, target)
            if other is not graph:
                assert excess(graph, target) is not None
                assert excess(other, target) is None
                same(example, graph, other)
                changed += 1
    assert changed > count(100), f"{changed} forms had rows to compute again"


def test_a_row_that_fits_stays() -> None:
    example = softmax(4, 8)
    fits = Target("LLVM", scratch_bytes=4 * 8)
    assert recompute_rows(example.graph, fits) is example.graph
    assert stages(recompute_rows(example.graph, replace(fits, scratch_bytes=31))) == []


def test_the_longest_row_goes_first() -> None:
    """Two rows of 32 bytes do not fit in 40; one of them does."""
    example = EXAMPLES["softmax_of_sums"]
    other = recompute_rows(example.graph, Target("LLVM", scratch_bytes=40))
    assert len(stages(other)) == 1
    same(example, example.graph, other)


def test_sums_that_differ_along_a_row_are_new_ones() -> None:
    """Each read of the row of sums has a loop of its own over what is added."""
    example = EXAMPLES["softmax_of_sums"]
    other = recompute_rows(example.graph, NO_ROOM)
    assert stages(other) == []
    deep = [n for n in other.toposort() if n.op is Ops.RANGE and n.extent == 4]
    assert len({n.axis_name for n in deep}) == len(deep) > 2
    same(example, example.graph, other)


def test_a_sum_inside_of_a_sum_along_a_row_is_a_new_one() -> None:
    """Its loop stands inside of another loop at each read."""
    example = sums_of_sums(3, 8, 4)
    other = recompute_rows(example.graph, NO_ROOM)
    assert stages(other) == [] and excess(other, NO_ROOM) is None
    deep = [n for n in other.toposort() if n.op is Ops.RANGE and n.extent == 2]
    assert len({n.axis_name for n in deep}) == len(deep) == 2
    same(example, example.graph, other)


@pytest.mark.parametrize("amount", [2, 4, 8])
def test_a_row_that_lanes_fill(amount: int) -> None:
    example = softmax(4, 8)
    graph = apply(example.graph, opt("UPCAST", "f0", amount))
    assert stages(recompute_rows(graph, NO_ROOM)) == []
    same(example, graph, recompute_rows(graph, NO_ROOM))


def test_tiles_and_parts_of_a_reduction_are_no_rows() -> None:
    """What somebody staged, and what a work-group combines, is there on purpose."""
    product = tiled(3, 4).graph
    assert recompute_rows(product, NO_ROOM) is product
    parts = apply(softmax(4, 8).graph, opt("GROUP", "r1", 4))
    assert recompute_rows(parts, NO_ROOM) is parts  # they do not fit either
