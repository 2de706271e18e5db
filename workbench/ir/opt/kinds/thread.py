"""THREAD: parts of the output computed in parallel by threads of the CPU.

THREAD("g0", 2):

    for g0 in 8 (global, chunked) { -> for t0 in 2 (thread) {
      acc0 = 0.0                         for g0 in 4 (global, chunked) {
      for r0 in 12 (reduce) {              acc0 = 0.0
        acc0 += p1[r0*8 + g0]              for r0 in 12 (reduce) {
      }                                      acc0 += p1[r0*8 + (t0*4 + g0)]
      p0[g0] = acc0                        }
    }                                      p0[t0*4 + g0] = acc0
                                         }
                                       }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, refuse_amount, simplified, unused_axis_name
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges

MAX_THREADS = 256


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    refusal = refuse_amount(kernel, opt, "global output")
    if refusal is not None:
        return refusal
    threads = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.THREAD]
    if threads:
        name, n = threads[0].axis_name, threads[0].extent
        return Refusal(f"{name} is spread over {n} threads already", "one THREAD only")
    amount = amount_of(kernel, opt)
    if amount > MAX_THREADS:
        return Refusal(f"{amount} threads were asked for, and {MAX_THREADS} is the limit")
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with the outer part of an output axis as threads, the outermost loop.

    Shapes:   axis of N elements becomes (amount, N // amount); `amount` divides N.
    Rewrite:  for g0 in N: s   ->   for t0 in 2 (threads): for g0 in N/2: s[g0 := t0*(N/2) + g0]
    Also known as: parallel (Halide, TVM), OpenMP's parallel for with a static schedule.
    """
    old, amount = ranges(kernel)[str(opt.axis)], amount_of(kernel, opt)
    part = old.extent // amount
    thread = UOp.range(amount, unused_axis_name(kernel, AxisType.THREAD), AxisType.THREAD)
    inner = UOp.range(part, old.axis_name, old.axis_kind)
    order = [thread.axis_name, *kernel.arg.order]
    if part == 1:
        order.remove(old.axis_name)
    changed = kernel.substitute({old: thread if part == 1 else thread * part + inner})
    return simplified(construct.in_order(changed, order))


THREAD = OptKind(
    "THREAD",
    here="an outer part of the output for each of several cores",
    on_a_gpu="(none) work-groups spread over the cores by themselves",
    why_not=why_not,
    apply=apply,
    applies_to=frozenset({AxisType.GLOBAL}),
    amounts=lambda target: () if target.has_groups else range(2, target.cores + 1),
    makes=AxisType.THREAD,
    promise=20,
)
