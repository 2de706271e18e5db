"""The opts with which `realize` runs a kernel, from a tuning file, or a search with BEAM.

Predictions and the search are imported when a kernel first needs them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from workbench.backends.device import Device
from workbench.base.context import BEAM, NOOPT, Context
from workbench.base.recording import span
from workbench.debug import debug_print
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.passes import Memo
from workbench.search.tuning import tuned_kernel

BUDGET_S = 10.0
"""Seconds of a search: the default of `Kernel.search`, so that they share cached results."""

OptsOrigin = Literal["none", "code", "tuning file", "search", "default", "hand"]
"""Who chose the opts of a kernel; `hand`: a user, by `apply`."""


class ChosenOpts(NamedTuple):
    """A kernel with the opts to run it with, these opts, and who chose them."""

    kernel: UOp
    opts: tuple[Opt, ...]
    origin: OptsOrigin


_results = Memo[ChosenOpts]()
"""What searches found, by kernel, device and width of the search."""


def tuned(kernel: UOp, device: str) -> UOp:
    """Return `kernel` as `realize` runs it on `device`: with the opts that `choose_opts` returns.

    Errors: KernelOptError for an opt in the code that is not legal.
    """
    return choose_opts(kernel, device).kernel


def choose_opts(kernel: UOp, device: str) -> ChosenOpts:
    """Return the opts with which `realize` runs `kernel` on `device`: those that the code gives it;
    else none, for source text, on some devices and with the setting NOOPT; else those of a tuning
    file; else those that a search of the width BEAM finds; else the default opts. On an emulator
    nothing is searched, since its times are not those of a kernel; for a machine that is elsewhere
    times are predicted.

    Errors: KernelOptError for an opt in the code that is not legal.
    """
    info = Device[device]
    has_times = info.is_elsewhere or not info.is_emulator
    width = BEAM.value if has_times else 0
    origin: OptsOrigin = "default"
    if kernel.code is not None:
        return ChosenOpts(kernel, (), "none")
    if kernel.arg.opts is not None:
        width, origin = 0, "code"
    elif info.runs_plain or NOOPT.value:
        return ChosenOpts(kernel, (), "none")
    elif (from_file := tuned_kernel(kernel, device)) is not None:
        return ChosenOpts(*from_file, "tuning file")
    if width > 0:
        key = kernel, info, width
        return _results.value(key, lambda: best(kernel, device, width))
    from workbench.cost.default_opts import default_opts

    default = default_opts(kernel, info.target)
    return ChosenOpts(default.kernel, default.opts, origin)


def best(kernel: UOp, device: str, width: int) -> ChosenOpts:
    """Return the best opts that a search of `width` finds on `device`, on random data, or that an
    earlier search in the cache has found."""
    from workbench.kernel.inputs import Seeded, written
    from workbench.kernel.kernel import Kernel
    from workbench.search.search import run

    shapes = tuple((param.length,) for param in written(kernel))
    with Context(DEV=device, BEAM=0):
        start = Kernel(kernel, kernel, Seeded(), shapes, title=kernel.arg.name)
        with span("search", kernel):
            result = run(start, width, BUDGET_S, shows_progress=False)
    debug_print(1, f"search {kernel.arg.name}: {str(result).splitlines()[0]}")
    return ChosenOpts(result.kernel.ast, result.kernel.applied_opts, "search")
