"""The search in `realize`, for which the setting BEAM gives a width. Predictions and the search are
loaded when a kernel first needs them.
"""

from __future__ import annotations

from workbench.backends.device import Device
from workbench.base.context import BEAM, NOOPT, Context
from workbench.debug import debug_print
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Memo

BUDGET_S = 10.0
"""Seconds of a search, as `Kernel.search` has them by default: one finds what the other found."""

_results = Memo[UOp]()
"""Kernels with the opts that a search found, of a kernel, a device and the width of the search."""


def tuned(kernel: UOp, device: str) -> UOp:
    """Return `kernel` as `realize` runs it on `device`: with the opts that the code asks for, or
    else with the default opts, with those that a search of the width BEAM finds, or, by the setting
    NOOPT and on some devices, without opts. An emulator's times are not a kernel's, so that nothing
    is searched there; those of a machine that is not here are predicted.

    Errors: KernelOptError for an opt of the code's that is not legal.
    """
    info = Device[device]
    has_times = info.is_elsewhere or not info.is_emulator
    width = BEAM.value if has_times else 0
    if kernel.code is not None:
        return kernel
    if kernel.arg.opts is not None:
        width = 0
    elif info.runs_plain or NOOPT.value:
        return kernel
    if width > 0:
        of = kernel, info, width
        return _results.value(of, lambda: best(kernel, device, width))
    from workbench.cost.default_opts import default_opts

    return default_opts(kernel, info.target).kernel


def best(kernel: UOp, device: str, width: int) -> UOp:
    """Return `kernel` with the best opts that a search of `width` finds on `device`, on random
    data; a search of the same kernel that is in the cache is used again."""
    from workbench.kernel.inputs import Seeded, written
    from workbench.kernel.kernel import Kernel
    from workbench.search.search import run

    shapes = tuple((param.length,) for param in written(kernel))
    with Context(DEV=device, BEAM=0):
        start = Kernel(kernel, kernel, Seeded(), shapes, title=kernel.arg.name)
        result = run(start, width, BUDGET_S, shows_progress=False)
    debug_print(1, f"search {kernel.arg.name}: {str(result).splitlines()[0]}")
    fastest: UOp = result.kernel.ast
    return fastest
