"""The search that `realize` does where the setting BEAM is a width."""

from __future__ import annotations

from workbench.base.context import Context
from workbench.debug import say
from workbench.ir.node.uop import UOp
from workbench.kernel.inputs import Seeded, written
from workbench.kernel.kernel import Kernel
from workbench.search.search import run

BUDGET_S = 10.0
"""Seconds of a search, as `Kernel.search` has them by default: one finds what the other found."""


def best(kernel: UOp, device: str, width: int) -> UOp:
    """Return `kernel` with the best opts that a search of `width` finds on `device`, on random
    data; a search of the same kernel that is in the cache is used again."""
    shapes = tuple((param.length,) for param in written(kernel))
    with Context(DEV=device, BEAM=0):
        start = Kernel(kernel, kernel, Seeded(), shapes, title=kernel.arg.name)
        result = run(start, width, BUDGET_S, shows_progress=False)
    say(1, f"search {kernel.arg.name}: {str(result).splitlines()[0]}")
    fastest: UOp = result.kernel.ast
    return fastest
