"""Counts are what a program does: held against carrying it out step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest

from tests.kernel.executed import executed
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.ir.nest.estimates import least_operations, loop_bytes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    drawn = np.random.default_rng(seed).standard_normal(shape)
    return Tensor(drawn.astype(np.float32))


def product() -> Tensor:
    return (numbers(12, 16) @ numbers(16, 24, seed=1) + numbers(24, seed=2)).relu()


def masked() -> Tensor:
    return numbers(3, 10).pad(((1, 2), (0, 1))).sum(1)


def window() -> Tensor:
    padded = numbers(1, 1, 9, 9).pad(((0, 0), (0, 0), (1, 1), (1, 1)))
    return padded.conv2d(numbers(2, 1, 3, 3, seed=1))


def turned() -> Tensor:
    return numbers(16, 32).transpose() + 1.0


def rows() -> Tensor:
    return numbers(5, 16).softmax()


def whole() -> Tensor:
    return numbers(6, 64).sum(1)


def opt(op: str, axis: str, arg: Any = None) -> Opt:
    return Opt(OptOps[op], axis, arg)


FORMS: list[tuple[Callable[[], Tensor], list[Opt]]] = [
    (product, []),
    (product, [opt("UPCAST", "g1", 8), opt("UPCAST", "g0", 4)]),
    (product, [opt("UNROLL", "r0", 4)]),
    (product, [opt("UPCAST", "g1", 8), opt("UNROLL", "r0", 4)]),
    (product, [opt("LOCAL", "g0", 4), opt("LOCAL", "g1", 8)]),
    (product, [opt("GROUP", "r0", 4)]),
    (product, [opt("GROUPTOP", "r0", 4), opt("UPCAST", "g1", 8)]),
    (product, [opt("THREAD", "g0", 2), opt("UPCAST", "g1", 8)]),
    (product, [opt("PADTO", "g0", 8), opt("UPCAST", "g0", 8)]),
    (product, [opt("PADTO", "r0", 6), opt("UNROLL", "r0", 6)]),
    (product, [opt("SPLIT", "g1", 8), opt("STAGE", "g1", 2), opt("UPCAST", "g1", 3)]),
    (product, [opt("STAGE", "g0", 1)]),
    (product, [opt("ORDER", "r0", "g0")]),
    (masked, []),
    (masked, [opt("UNROLL", "r0", 0)]),
    (window, []),
    (window, [opt("UPCAST", "g1", 3), opt("UNROLL", "r0", 0)]),
    (turned, [opt("UPCAST", "g0", 8)]),
    (turned, [opt("UPCAST", "g1", 8), opt("UPCAST", "g0", 8)]),
    (rows, []),
    (whole, [opt("UNROLL", "r0", 16)]),
    (whole, [opt("GROUP", "r0", 8), opt("THREAD", "g0", 2)]),
]
SEEN = {Ops.SHUFFLE, Ops.HREDUCE, Ops.FMA, Ops.SET, Ops.DEFINE}


def names(form: tuple[Callable[[], Tensor], list[Opt]]) -> str:
    return f"{form[0].__name__} {' '.join(map(str, form[1]))}"


def forms() -> list[tuple[str, Kernel]]:
    candidates = []
    for form in FORMS:
        kernel = explore(form[0]()).kernels[-1]
        candidates.append((names(form), kernel.apply(*form[1])))
        candidates.append((f"{form[0].__name__} auto", kernel.optimized()))
    return candidates


@pytest.mark.parametrize("form", FORMS, ids=names)
def test_counts_are_what_the_program_does(form: tuple[Callable[[], Tensor], list[Opt]]) -> None:
    kernel = explore(form[0]()).kernels[-1]
    for chosen in (kernel.apply(*form[1]), kernel.optimized()):
        buffers = kernel.data.buffers(kernel.original, "LLVM")
        arrays = [b.to_numpy() for b in buffers]
        arrays[0][:] = 0
        run_counts = executed(chosen.compile("LLVM")["linear"], arrays)
        counts = replace(chosen.counts, barriers=0)  # tests/ir/lower/test_barriers.py
        assert astuple(counts) == astuple(run_counts)
        np.testing.assert_allclose(
            arrays[0], chosen.run("LLVM")[0].reshape(-1), rtol=1e-4, atol=1e-5
        )


def test_the_forms_have_all_that_counts() -> None:
    """Masks, shuffles, sums of lanes, scratch: each is in one of the programs above."""
    steps = [s for _, kernel in forms() for s in kernel.compile("LLVM")["linear"]]
    assert {s.op for s in steps} >= SEEN
    assert any(s.op is Ops.LOAD and len(s.src) == 2 for s in steps), "masked loads"
    assert any(s.op is Ops.STORE and len(s.src) == 3 for s in steps), "masked stores"
    assert any(s.op is Ops.LOOP and s.arg == "thread" for s in steps)


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32)).realize()


def places(*shape: int) -> Array:
    return np.arange(np.prod(shape)).reshape(shape)


BIG, SIDE = (256, 256), places(256, 256)
TOUCHED: list[tuple[str, Callable[[Tensor], Tensor], Callable[[Array], Array]]] = [
    ("corner", lambda a: a[:8, :8] + 1, lambda a: a[:8, :8]),
    ("strided", lambda a: a[::4, ::8] + 1, lambda a: a[::4, ::8]),
    ("broadcast", lambda a: a[:1].expand(64, 256) + 1, lambda a: a[:1]),
    ("flipped", lambda a: a[:8].flip(1) + 1, lambda a: a[:8]),
    ("reshaped", lambda a: a[:8, :9].reshape(72) + 1, lambda a: a[:8, :9]),
    ("padded", lambda a: a[:8, 3:9].pad(((1, 2), (500, 500))), lambda a: a[:8, 3:9]),
    ("joined", lambda a: Tensor.cat(a[:4], a[100:104]), lambda a: a[[*range(4), *range(100, 104)]]),
    ("windows", lambda a: a[:63, :63].reshape(1, 1, 63, 63).max_pool2d((3, 3), 2),
     lambda a: a[:63, :63]),
    ("windows with gaps", lambda a: a[:64].reshape(1, 1, 64, 256).max_pool2d((1, 1), 2),
     lambda a: a[:64:2, ::2]),
    ("windows, padded", lambda a: a[:60, :60].reshape(1, 1, 60, 60).pad(
        ((0, 0), (0, 0), (1, 1), (1, 1))).avg_pool2d((3, 3), 1), lambda a: a[:60, :60]),
    ("neighbours", lambda a: a[:100, :200] + a[1:101, :200], lambda a: a[:101, :200]),
    ("twice", lambda a: a[:16, :16] @ a[:16, :16], lambda a: a[:16, :16]),
]  # fmt: skip


@pytest.mark.parametrize("case", TOUCHED, ids=lambda case: case[0])
def test_bytes_are_those_that_are_touched(
    case: tuple[str, Callable[[Tensor], Tensor], Callable[[Array], Array]],
) -> None:
    _, make, read = case
    out = make(zeros(*BIG))
    (kernel,) = explore(out).kernels
    least = 4 * (np.unique(read(SIDE)).size + np.prod(out.shape))
    assert kernel.estimates.bytes == least
    assert kernel.compile("LLVM").estimates.bytes == least
    assert kernel.cost.estimates.bytes == least


def test_what_data_pick_is_held_to_be_different_each_time() -> None:
    table, index = zeros(5000, 16), Tensor(np.zeros(100, np.int32)).realize()
    (kernel,) = explore(table[index]).kernels
    assert kernel.estimates.bytes == 4 * (100 + 100 * 16 + 100 * 16)
    # never more than there is
    few = zeros(3, 16)
    (kernel,) = explore(few[index]).kernels
    assert kernel.estimates.bytes == 4 * (100 + 3 * 16 + 100 * 16)


def test_where_a_pad_has_values_is_no_arithmetic() -> None:
    x = zeros(8, 8).pad(((1, 1), (1, 1)))
    for out in (x + 1, x.sum()):
        (kernel,) = explore(out).kernels
        assert kernel.estimates.flops == 100
    (kernel,) = explore(Tensor.arange(64) < 5).kernels
    assert kernel.estimates.flops == 64, "these comparisons are values"


MOVED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cat": lambda a, b: a.cat(b),
    "cat along rows": lambda a, b: a.cat(b, dim=1),
    "stack": lambda a, b: Tensor.stack(a, b),
    "pad": lambda a, b: a.pad(((1, 1), (2, 2)), value=5.0),
    "roll": lambda a, b: a.roll(3, 0),
    "flip": lambda a, b: a.flip(0).contiguous(),
    "tril": lambda a, b: a.tril(),
    "choice by place": lambda a, b: (Tensor.arange(16) < 7).where(a, b),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_only_moves_has_no_operations(name: str) -> None:
    (kernel,) = explore(MOVED[name](zeros(16, 16), zeros(16, 16))).kernels
    assert kernel.estimates.flops == 0


def test_gigabytes_a_second_are_of_what_is_touched() -> None:
    (kernel,) = explore(zeros(512, 512)[:8, :8] + 1).kernels
    timing = kernel.time(budget_s=0.01)
    moved = timing.gbytes_per_s * 1e9 * timing.median_s
    assert moved == pytest.approx(2 * 4 * 64)


RECOMPUTED: dict[str, Callable[[Tensor], Tensor]] = {
    "sums of columns": lambda x: x / x.sum(axis=0),
    "sums of rows": lambda x: x / x.sum(axis=1, keepdim=True),
    "sums of sums": lambda x: x + (x * x.sum(axis=0)).sum(axis=1, keepdim=True),
    "a row's factor": lambda x: x / (x[0] + 1),
    "a column's factor": lambda x: x / (x[:, :1] + 1),
    "a sum of all": lambda x: x - x.sum(),
    "a factor in a sum": lambda x: (x * (x[0] + 1)).sum(axis=1),
}


@pytest.mark.parametrize("name", RECOMPUTED)
@pytest.mark.parametrize("stored", [False, True])
def test_operations_and_bytes_are_those_that_the_planned_loops_execute(
    name: str, stored: bool
) -> None:
    """A value in a loop that it does not depend on is computed in each round, as it was planned."""
    ex = explore(RECOMPUTED[name](zeros(8, 20)))
    choices: dict[UOp | Tensor, bool | None]
    choices = {d.node: stored for d in ex.decisions if d.estimates}
    for kernel in ex.replan(choices).kernels:
        counts = kernel.counts
        assert kernel.estimates.flops == 2 * counts.fmas + counts.other
        assert least_operations(kernel.original) <= kernel.estimates.flops
        assert loop_bytes(kernel.original) == counts.bytes_loaded + counts.bytes_stored
