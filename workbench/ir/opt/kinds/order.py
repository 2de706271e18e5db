"""ORDER and SWAP: the order of loops. Every order is correct; they differ in time and memory.

SWAP exchanges two loops: SWAP("g0", "r0") equals the following ORDER.

ORDER("r0", "g0"):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (loop) {
      acc0 = 0.0                         acc0[g0] = 0.0
      for r0 in 12 (reduce) {          }
        acc0 += p1[r0*8 + g0]          for r0 in 12 (reduce) {
      }                                  for g0 in 8 (loop) {
      p0[g0] = acc0                        acc0[g0] += p1[r0*8 + g0]
    }                                    }
                                       }
                                       for g0 in 8 (loop) {
                                         p0[g0] = acc0[g0]
                                       }
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from workbench.base.target import Target
from workbench.ir.nest.storage import Excess
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import simplified
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    order = kernel.arg.order
    loops = "its loops are, outermost first: " + " ".join(order)
    if opt.arg is None:
        hint = f'{opt.op.name}("{opt.axis}", another of: {" ".join(order)})'
        return Refusal(f"{opt.op.name} needs a second axis", hint)
    for name in (opt.axis, opt.arg):
        if isinstance(name, str) and name in order:
            continue
        if str(name) in ranges(kernel):
            return Refusal(f"{name} is a lane axis and has no place in the loop order", loops)
        return Refusal(f"the kernel has no axis {name}", loops)
    if opt.axis == opt.arg:
        return Refusal("a loop cannot move past itself", loops)
    axes = ranges(kernel)
    for name in (str(opt.axis), str(opt.arg)):
        if axes[name].axis_kind is AxisType.THREAD:
            because = f"{name} is spread over threads, which run all other loops"
            return Refusal(because, f"another loop; {name} stays outermost")
    if opt.op is ORDER and order.index(str(opt.axis)) + 1 == order.index(str(opt.arg)):
        return Refusal(f"{opt.axis} stands right before {opt.arg} already", loops)
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with loop `axis` moved right before loop `arg` (SWAP: the two exchanged).

    Rewrite:  order g0 g1 r0   ->   ORDER("g1", "g0"): order g1 g0 r0
    Also known as: reorder (Halide, TVM, Exo); ijk -> ikj is the classic first lesson.
    """
    order = list(kernel.arg.order)
    axis, other = str(opt.axis), str(opt.arg)
    if opt.op is SWAP:
        i, j = order.index(axis), order.index(other)
        order[i], order[j] = other, axis
    else:
        order.remove(axis)
        order.insert(order.index(other), axis)
    return simplified(construct.in_order(kernel, order))


def _neighbours(kernel: UOp) -> Iterable[tuple[str, str]]:
    """Yield (inner, outer) for each pair of neighbouring loops: ORDER exchanges them."""
    return ((inner, outer) for outer, inner in pairwise(kernel.arg.order))


def _less_memory(over: Excess | None) -> str:
    if over is None or not over.split:
        return "the loop order as it is"
    outer = over.split[0]
    return f"SPLIT of {outer} first: a loop that stays inside of its outer part needs less"


ORDER = OptKind(
    "ORDER",
    here="which loop runs inside which: what is reused soon stays in cache or registers",
    on_a_gpu="the order of the loops inside a work-item, and of the work-groups",
    why_not=why_not,
    apply=apply,
    argument="axis",
    choices=_neighbours,
    promise=40,
    less_memory=_less_memory,
)
SWAP = replace(ORDER, name="SWAP", choices=lambda kernel: ())
"""Menus and searches do not try SWAP: on neighbouring loops it equals ORDER."""
