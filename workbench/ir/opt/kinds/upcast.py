"""UPCAST: neighbouring outputs computed together.

UPCAST("g0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 2 (global, chunked) {
      acc0 = 0.0                         acc0[u0] = 0.0  (lanes u0)
      for r0 in 12 (reduce) {            for r0 in 12 (reduce) {
        acc0 += p1[r0*8 + g0]              acc0[u0] += p1[r0*8 + (g0*4 + u0)]  (lanes u0)
      }                                  }
      p0[g0] = acc0                      p0[g0*4 + u0] = acc0[u0]  (lanes u0)
    }                                  }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, divide, refuse_amount, refuse_lanes
from workbench.ir.opt.opt import OUTPUT_KINDS, Opt, OptKind, Refusal


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    refusal = refuse_amount(kernel, opt, "output")
    return refusal or refuse_lanes(kernel, opt, target)


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with `amount` neighbouring elements of an output axis computed together.

    Shapes:   axis of N elements becomes (N // amount, amount); `amount` divides N.
    Rewrite:  for g1 in N: s   ->   for g1 in N/4: for u0 in 4 (upcast): s[g1 := 4*g1 + u0]
    Also known as: Halide split + vectorize/unroll; TVM split + vectorize; Exo divide_loop +
    unroll_loop.
    """
    return divide(kernel, str(opt.axis), amount_of(kernel, opt), AxisType.UPCAST)


UPCAST = OptKind(
    "UPCAST",
    here="neighbouring outputs as vector lanes, or as rows of a register tile: each load serves"
    " more",
    on_a_gpu="a register tile per work-item; wide loads where the axis has stride 1",
    why_not=why_not,
    apply=apply,
    applies_to=OUTPUT_KINDS,
    amounts=(0, 2, 3, 4, 5, 6, 7, 8, 16),
    makes=AxisType.UPCAST,
    promise=10,
)
