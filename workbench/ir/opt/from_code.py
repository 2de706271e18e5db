"""Opts in tensor code: `t.contiguous(arg=opts)` gives the opts of the kernel that stores `t`.

In a graph they are plain data, (kind, axis, arg) each, so that IR text and files have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp, WrittenOpt
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.heuristic.step import HeuristicStep, HeuristicSteps
from workbench.ir.opt.opt import Opt, OptOps

WHY = "contiguous(arg=..) in the code asks for these opts, and no others are chosen"


def opt_rows(opts: Sequence[Opt]) -> tuple[WrittenOpt, ...]:
    """Return opts as a graph has them."""
    return tuple([(opt.op.name, opt.axis, opt.arg) for opt in opts])


def opts_from_code(kernel: UOp) -> tuple[Opt, ...] | None:
    """Return the opts that the code asks for; None where it asks for none in particular.

    Errors: KernelOptError for a kind that this process does not have.
    """
    if kernel.arg.opts is None:
        return None
    for name, _, _ in kernel.arg.opts:
        if name not in OptOps.__members__:
            what, because = f"there is no opt {name}", "it was registered elsewhere"
            raise KernelOptError(what, because, "workbench.register it here, too")
    return tuple([Opt(OptOps[name], axis, arg) for name, axis, arg in kernel.arg.opts])


def opts_from_code_text(kernel: UOp, target: Target) -> str:
    """Return which opts the code asks for, and whether they are legal; "" where it asks for none
    in particular."""
    try:
        opts = opts_from_code(kernel)
        if opts is None:
            return ""
        words = ", ".join(map(str, opts)) or "no opts"
        with_opts_from_code(kernel, opts, target)
    except KernelOptError as error:
        return f"{error.what}: {error.because}"
    return f"contiguous(arg=..) asks for {words}"


def with_opts_from_code(
    kernel: UOp, opts: Sequence[Opt], target: Target
) -> tuple[UOp, tuple[Opt, ...], HeuristicSteps]:
    """Return a kernel with the opts that the code asks for, those opts with their axes by name, and
    the step that says so. Errors: KernelOptError where one is not legal."""
    applied: list[Opt] = []
    for opt in opts:
        try:
            kernel, named = apply_opt(kernel, opt, target)
        except KernelOptError as error:
            what = f"{error.what}, which contiguous(arg=..) asks for"
            raise KernelOptError(what, error.because, error.hint, error.where) from None
        applied.append(named)
    steps = HeuristicSteps((HeuristicStep("from-code", tuple(applied), WHY),))
    return kernel, tuple(applied), steps
