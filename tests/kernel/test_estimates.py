"""Counts are what a program does: held against carrying it out step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest

from tests.kernel.executed import executed
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.engine import array_of
from workbench.ir.ops import Ops

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
    found = []
    for form in FORMS:
        kernel = explore(form[0]()).kernels[-1]
        found.append((names(form), kernel.apply(*form[1])))
        found.append((f"{form[0].__name__} auto", kernel.optimized()))
    return found


@pytest.mark.parametrize("form", FORMS, ids=names)
def test_counts_are_what_the_program_does(
    form: tuple[Callable[[], Tensor], list[Opt]],
) -> None:
    kernel = explore(form[0]()).kernels[-1]
    for chosen in (kernel.apply(*form[1]), kernel.optimized()):
        buffers = kernel.data.buffers(kernel.original, "LLVM")
        arrays = [np.array(array_of(b)) for b in buffers]
        arrays[0][:] = 0
        done = executed(chosen.compile("LLVM")["linear"], arrays)
        counts = replace(chosen.counts, barriers=0)  # tests/ir/lower/test_barriers.py
        assert astuple(counts) == astuple(done)
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
