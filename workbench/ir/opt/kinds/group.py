"""GROUP and GROUPTOP: a reduction split over a work-group, with partial results in scratch memory.

GROUP("r0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc2 = 0.0
      for r0 in 12 (reduce) {            for x0 in 4 (group reduce) {
        acc0 += p1[r0*8 + g0]              acc0 = 0.0
      }                                    for r0 in 3 (reduce) {
      p0[g0] = acc0                          acc0 += p1[(r0*4 + x0)*8 + g0]
    }                                      }
                                           group0[x0] = acc0
                                         }
                                         for r1 in 4 (reduce) {
                                           acc2 += group0[r1]
                                         }
                                         p0[g0] = acc2
                                       }

GROUPTOP("r0", 4):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc2 = 0.0
      for r0 in 12 (reduce) {            for x0 in 4 (group reduce) {
        acc0 += p1[r0*8 + g0]              acc0 = 0.0
      }                                    for r0 in 3 (reduce) {
      p0[g0] = acc0                          acc0 += p1[(x0*3 + r0)*8 + g0]
    }                                      }
                                           group0[x0] = acc0
                                         }
                                         for r1 in 4 (reduce) {
                                           acc2 += group0[r1]
                                         }
                                         p0[g0] = acc2
                                       }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import amount_of, refuse_amount, simplified, unused_axis_name
from workbench.ir.opt.kinds.nolocals import refuse_no_groups
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    warp = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.WARP]
    if warp:
        because = "a tensor core computes the sum: the lanes of a warp have its elements together"
        return Refusal(because, "UNROLL, or the list without TC")
    return refuse_no_groups(kernel, opt) or refuse_amount(kernel, opt, "reduce")


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with the reductions over an axis in two stages within a work-group.

    Shapes:   axis of N elements becomes (N // n, n), for GROUPTOP (n, N // n); n divides N.
    Rewrite:  s = sum over r0 in N of v(r0)   ->   for x0 in n: part[x0] = sum over r0 in N/n of
              v(r0*n + x0)  (GROUPTOP: v(x0*(N/n) + r0));  s = sum over r1 in n of part[r1]
    Also known as: rfactor (Halide, TVM), cross-thread reduction.
    """
    old, n = ranges(kernel)[str(opt.axis)], amount_of(kernel, opt)
    left = old.extent // n
    member = UOp.range(n, unused_axis_name(kernel, AxisType.GROUP_REDUCE), AxisType.GROUP_REDUCE)
    parts = UOp.range(n, unused_axis_name(kernel, AxisType.REDUCE), AxisType.REDUCE)
    inner = UOp.range(left, old.axis_name, old.axis_kind)
    place = member * left + inner if opt.op is GROUPTOP else inner * n + member
    split = member if left == 1 else place
    stages = _names(kernel)
    replacements: dict[UOp, UOp] = {}
    for node in kernel.toposort():
        if node is old:
            continue
        with derived_from(node):
            if node.op is Ops.REDUCE and old in node.src[1:]:
                value = replacements[node.src[0]].substitute({old: split})
                axes = [r for r in node.src[1:] if r is not old] + [inner] * (left > 1)
                part = construct.reduce(value, axes, node.combines)
                row = construct.stage(part, [member], next(stages), (n,))
                read = construct.load(construct.index(row, parts))
                replacements[node] = node.rebuild((read, parts))
            else:
                replacements[node] = node.rebuild(tuple([replacements.get(s, s) for s in node.src]))
    order = list(kernel.arg.order)
    order.insert(_after_all_own(kernel, old), parts.axis_name)
    at = order.index(old.axis_name)
    order[at : at + 1] = [member.axis_name, *([old.axis_name] if left > 1 else [])]
    return simplified(construct.in_order(replacements[kernel], order))


def _after_all_own(kernel: UOp, axis: UOp) -> int:
    """Return the position in the loop order after all ranges of reductions over `axis`. The second
    stage stands there, and integer axes count its range after theirs."""
    order: tuple[str, ...] = kernel.arg.order
    together = [n.src[1:] for n in kernel.toposort() if n.op is Ops.REDUCE]
    own = {r.axis_name for closes in together if axis in closes for r in closes}
    return 1 + max(order.index(name) for name in own if name in order)


def _names(kernel: UOp) -> Iterator[str]:
    stage_names = {n.name for n in kernel.toposort() if n.op is Ops.STAGE}
    names = (f"group{number}" for number in count())
    return (name for name in names if name not in stage_names)


GROUP = OptKind(
    "GROUP",
    here="partial results side by side in an array, that a second reduction combines",
    on_a_gpu="work-items of one work-group reduce parts, and combine them: warps by shuffles where"
    " the machine has them, then in shared memory",
    why_not=why_not,
    apply=apply,
    applies_to=frozenset({AxisType.REDUCE}),
    amounts=(0, 4, 8, 16, 32, 64, 256),
    makes=AxisType.GROUP_REDUCE,
    promise=90,
)
GROUPTOP = replace(GROUP, name="GROUPTOP", promise=100)
