"""UNROLL: several steps of a reduction per iteration.

UNROLL("r0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc0[n0] = 0.0  (lanes n0)
      for r0 in 12 (reduce) {            for r0 in 3 (reduce) {
        acc0 += p1[r0*8 + g0]              acc0[n0] += p1[(r0*4 + n0)*8 + g0]  (lanes n0)
      }                                  }
      p0[g0] = acc0                      s6 = REDUCE(add, acc0[n0], n0)
    }                                    p0[g0] = s6
                                       }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, divide, refuse_amount, refuse_lanes
from workbench.ir.opt.opt import REDUCE_KINDS, Opt, OptKind, Refusal


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    refusal = refuse_amount(kernel, opt, "reduce")
    return refusal or refuse_lanes(kernel, opt, target)


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with `amount` steps of a reduce axis in each iteration.

    Shapes:   axis of N elements becomes (N // amount, amount); `amount` divides N.
    Rewrite:  for r0 in N: s   ->   for r0 in N/4: for n0 in 4 (unroll): s[r0 := 4*r0 + n0]
    Also known as: unroll (Halide, TVM, Exo); as the only lane axis, Halide's atomic().vectorize().
    """
    return divide(kernel, str(opt.axis), amount_of(kernel, opt), AxisType.UNROLL)


UNROLL = OptKind(
    "UNROLL",
    here="several steps per iteration; the vector of a dot product where nothing else is one",
    on_a_gpu="several steps per iteration: fewer branches, wider loads",
    why_not=why_not,
    apply=apply,
    applies_to=REDUCE_KINDS,
    amounts=(0, 2, 3, 4, 5, 6, 7, 8, 16),
    makes=AxisType.UNROLL,
    promise=50,
)
