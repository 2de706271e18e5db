"""LOCAL: the inner part of an output axis as the work-items of a work-group.

LOCAL("g0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 2 (global, chunked) {
      acc0 = 0.0                         for l0 in 4 (local) {
      for r0 in 12 (reduce) {              acc0 = 0.0
        acc0 += p1[r0*8 + g0]              for r0 in 12 (reduce) {
      }                                      acc0 += p1[r0*8 + (g0*4 + l0)]
      p0[g0] = acc0                        }
    }                                      p0[g0*4 + l0] = acc0
                                         }
                                       }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, divide, refuse_amount
from workbench.ir.opt.kinds.nolocals import refuse_no_groups
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    return refuse_no_groups(kernel, opt) or refuse_amount(kernel, opt, "output")


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with the inner part of an output axis as work-items of a work-group.

    Shapes:   axis of N elements becomes (N // amount, amount); `amount` divides N.
    Rewrite:  for g0 in N: s   ->   for g0 in N/16: .. for l0 in 16 (local): s[g0 := 16*g0 + l0]
    Also known as: gpu_threads (Halide); on a CPU an inner tile.
    """
    axes = ranges(kernel)
    outer = [n for n in kernel.arg.order if axes[n].axis_kind in _LAUNCH_AXES]
    position = {n: i for i, n in enumerate(kernel.arg.order)}
    last = max([str(opt.axis), *outer], key=lambda n: position[n])
    return divide(kernel, str(opt.axis), amount_of(kernel, opt), AxisType.LOCAL, after=last)


_LAUNCH_AXES = frozenset({AxisType.GLOBAL, AxisType.THREAD, AxisType.LOCAL})


LOCAL = OptKind(
    "LOCAL",
    here="an inner tile of the output: one work-group's part, a block for the cache",
    on_a_gpu="work-items that run together and share local memory",
    why_not=why_not,
    apply=apply,
    applies_to=frozenset({AxisType.GLOBAL, AxisType.LOOP}),
    amounts=(2, 3, 4, 8, 13, 16, 29, 32),
    makes=AxisType.LOCAL,
    promise=70,
)
