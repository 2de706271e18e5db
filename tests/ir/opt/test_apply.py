"""The list of what is legal: the same as opt by opt, and no slower than the kernel is large."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from operator import add
from types import FrameType
from typing import Any

import pytest

from tests.ir.samples import at, axis, kernel, load, param
from tests.kernels import EXAMPLES, LLVM, random_form
from tests.support import count
from workbench.ir.opt.apply import actions, apply_opt, judged, legal_opts, why_not
from workbench.ir.opt.opt import Opt
from workbench.ir.uop import UOp


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_list_is_what_each_opt_alone_says(name: str) -> None:
    for seed in range(count(30)):
        graph = random_form(EXAMPLES[name], seed, 2).graph
        first: dict[UOp, Opt] = {}
        reasons = {}
        for each in actions(graph, LLVM):
            refusal = why_not(graph, each, LLVM)
            if refusal is None:
                first.setdefault(apply_opt(graph, each, LLVM)[0], each)
            else:
                reasons[each] = refusal.because
        assert judged(graph, LLVM) == (tuple(first.values()), reasons)
        assert legal_opts(graph, LLVM) == tuple(first.values())


def test_listing_takes_as_many_steps_as_the_kernel_has_nodes() -> None:
    few, many = (_steps(lambda n=n: judged(_sum(n), LLVM)) for n in (100, 200))  # type: ignore[misc]
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
