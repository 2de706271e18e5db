"""The list of what is legal: the same as opt by opt, and no slower than the kernel is large."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from operator import add
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.ir.samples import at, axis, kernel, load, param
from tests.support import count
from tests.tools.kernels import EXAMPLES, LLVM, TARGETS, random_form, run
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_opt, legal_opts, legality, why_not
from workbench.ir.opt.opt import Opt, OptOps


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_list_is_what_each_opt_alone_says(name: str) -> None:
    for seed in range(count(30, 30)):
        graph = random_form(EXAMPLES[name], seed, 2).graph
        first: dict[UOp, Opt] = {}
        reasons = {}
        for each in actions(graph, LLVM):
            refusal = why_not(graph, each, LLVM)
            if refusal is None:
                first.setdefault(apply_opt(graph, each, LLVM)[0], each)
            else:
                reasons[each] = refusal.because
        assert legality(graph, LLVM) == (tuple(first.values()), reasons)
        assert legal_opts(graph, LLVM) == tuple(first.values())


def test_listing_takes_as_many_steps_as_the_kernel_has_nodes() -> None:
    few, many = (_steps(lambda n=n: legality(_sum(n), LLVM)) for n in (100, 200))  # type: ignore[misc]
    assert many < 2.5 * few  # each input has a STAGE to judge


def _sum(inputs: int) -> UOp:
    """Return a kernel that adds rows; none is worth a copy, as each element is read once."""
    g = axis("g0", 64)
    rows = [load(param(slot, 64), g) for slot in range(1, inputs + 1)]
    return kernel("g0", (at(param(0, 64), g), reduce(add, rows), "g0"))


def _steps(work: Callable[[], object]) -> int:
    """Return how many functions `work` calls, those in C too."""
    calls = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_each_read_of_an_input_has_a_tile_of_its_own() -> None:
    """STAGE copies what changes with its loop; the second copy's axes are numbered."""
    gram = EXAMPLES["gram"]
    graph = gram.graph
    for name in ("g1", "g0"):
        graph, _ = apply_opt(graph, Opt(OptOps.STAGE, name, 1), LLVM)
    stages = [n for n in graph.toposort() if n.op is Ops.STAGE]
    assert sorted(n.arg[0] for n in stages) == ["As", "As2"]
    assert {"a_r0", "a_r0_2"} < set(graph.arg.order)
    arrays = gram.arrays()
    for device in TARGETS:
        actual = run(graph, device, [a.copy() for a in arrays])
        np.testing.assert_allclose(actual, gram.wanted(arrays), rtol=1e-4, atol=1e-4)
