"""SPLIT: one loop as two nested loops.

SPLIT("r0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc0 = 0.0
      for r0 in 12 (reduce) {            for r0 in 3 (reduce) {
        acc0 += p1[r0*8 + g0]              for r1 in 4 (reduce) {
      }                                      acc0 += p1[(r0*4 + r1)*8 + g0]
      p0[g0] = acc0                        }
    }                                    }
                                         p0[g0] = acc0
                                       }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, divide, refuse_amount
from workbench.ir.opt.opt import OUTPUT_KINDS, REDUCE_KINDS, Opt, OptKind, Refusal, ranges


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    refusal = refuse_amount(kernel, opt, "loop")
    if refusal is not None:
        return refusal
    extent = ranges(kernel)[str(opt.axis)].extent
    if amount_of(kernel, opt) < extent:
        return None
    return Refusal(f"a tile of all {extent} elements leaves no outer loop")


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with an axis as two loops of its kind, the inner one right inside the outer.

    Shapes:   axis of N elements becomes (N // amount, amount); `amount` divides N.
    Rewrite:  for r0 in N: s   ->   for r0 in N/16: for r1 in 16: s[r0 := 16*r0 + r1]
    Also known as: Halide split/tile; TVM split; Exo divide_loop.
    """
    name = str(opt.axis)
    return divide(kernel, name, amount_of(kernel, opt), ranges(kernel)[name].axis_kind)


SPLIT = OptKind(
    "SPLIT",
    here="a tile: ORDER can then move its outer loop, so that what it touches stays in cache",
    on_a_gpu="a tile of the loop inside each work-item",
    why_not=why_not,
    apply=apply,
    applies_to=OUTPUT_KINDS | REDUCE_KINDS,
    amounts=(8, 16, 32, 64, 128, 256),
    promise=60,
)
