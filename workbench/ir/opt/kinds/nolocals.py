"""NOLOCALS: a kernel without work-groups.

NOLOCALS():

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc0 = 0.0
      for r0 in 12 (reduce) {            for r0 in 12 (reduce) {
        acc0 += p1[r0*8 + g0]              acc0 += p1[r0*8 + g0]
      }                                  }
      p0[g0] = acc0                      p0[g0] = acc0
    }                                  }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    if opt.axis is not None or opt.arg is not None:
        return Refusal("NOLOCALS takes no axis and no amount", "Opt(OptOps.NOLOCALS)")
    if not kernel.arg.work_groups:
        return Refusal("the kernel is without work-groups already", "another opt")
    of_groups = [k for k in AxisType if k.is_work_item] + [AxisType.WARP]
    grouped = [r.axis_name for r in ranges(kernel).values() if r.axis_kind in of_groups]
    if grouped:
        are = "is" if len(grouped) == 1 else "are"
        because = f"{' and '.join(grouped)} {are} the work-items of a work-group"
        return Refusal(because, "NOLOCALS instead of LOCAL, GROUP, GROUPTOP and TC")
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with a mark: later opts that would make a work-group are refused.

    Also known as: a kernel over a range without a local size (OpenCL, SYCL).
    """
    return kernel.replace(arg=kernel.arg._replace(work_groups=False))


def refuse_no_groups(kernel: UOp, opt: Opt) -> Refusal | None:
    """Return why `opt` cannot make a work-group (NOLOCALS was applied), or None."""
    if kernel.arg.work_groups:
        return None
    because = f"{opt.op.name} makes a work-group, which NOLOCALS forbids"
    return Refusal(because, f"{opt.op.name} without NOLOCALS, or SPLIT for a tile")


NOLOCALS = OptKind(
    "NOLOCALS",
    here="(none) the program is the same: from here on LOCAL and GROUP are refused",
    on_a_gpu="each work-item by itself, numbered by one flat global size",
    why_not=why_not,
    apply=apply,
    argument="",
    less_memory=lambda over: "opts before it that need less",
)
