"""GROUP and GROUPTOP: a reduction shared out in a work-group, through scratch memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from workbench.ir.axis import AxisType
from workbench.ir.ops import Ops
from workbench.ir.opt.divide import amount_of, refuse_amount, settled, unused
from workbench.ir.opt.opt import Opt, OptOps, Refusal, ranges
from workbench.ir.uop import KernelInfo, UOp
from workbench.target import Target
from workbench.trace import became

APPLIES = frozenset({AxisType.REDUCE})
AMOUNTS = (0, 4, 8, 16, 32, 64, 256)
HERE = "partial results side by side in an array, that a second reduction combines"
ON_A_GPU = (
    "work-items of one work-group reduce parts, and combine them in shared memory"
)


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    refusal = refuse_amount(kernel, opt, APPLIES, "reduce")
    if refusal is not None:
        return refusal
    axis = ranges(kernel)[str(opt.axis)]
    for reduce in _reductions(kernel, axis):
        needed = amount_of(kernel, opt) * reduce.dtype.itemsize
        if needed > target.scratch_bytes:
            limit = target.scratch_bytes
            because = f"partial results of {needed:,} bytes, and the limit is {limit:,}"
            return Refusal(because, "a smaller amount")
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with the reductions over an axis in two stages, in one work-group.

    Shapes:   axis of N elements becomes (N // n, n), for GROUPTOP (n, N // n); n divides N.
    Rewrite:  s = sum over r0 in N of v(r0)   ->   for x0 in n: part[x0] = sum over r0 in N/n of
              v(r0*n + x0)  (GROUPTOP: v(x0*(N/n) + r0));  s = sum over r1 in n of part[r1]
    Also known as: rfactor (Halide, TVM), cross-thread reduction.
    """
    old, n = ranges(kernel)[str(opt.axis)], amount_of(kernel, opt)
    left = old.extent // n
    member = UOp.range(n, unused(kernel, AxisType.GROUP_REDUCE), AxisType.GROUP_REDUCE)
    again = UOp.range(n, unused(kernel, AxisType.REDUCE), AxisType.REDUCE)
    inner = UOp.range(left, old.axis_name, old.axis_kind)
    place = member * left + inner if opt.op is OptOps.GROUPTOP else inner * n + member
    split = member if left == 1 else place
    stages = _names(kernel)
    done: dict[UOp, UOp] = {}
    for node in kernel.toposort():
        if node is old:
            continue
        if node.op is Ops.REDUCE and old in node.src[1:]:
            value = done[node.src[0]].substitute({old: split})
            kept = [r for r in node.src[1:] if r is not old] + [inner] * (left > 1)
            part = node.rebuild((value, *kept)) if kept else value
            row = UOp(Ops.STAGE, node.dtype, (part, member), (next(stages), (n,)))
            held = UOp(Ops.INDEX, node.dtype, (row, again))
            read = UOp(Ops.LOAD, node.dtype, (held,))
            done[node] = node.rebuild((read, again))
        else:
            done[node] = node.rebuild(tuple([done.get(s, s) for s in node.src]))
    became(done)
    order = list(kernel.arg.order)
    at = order.index(old.axis_name)
    order[at : at + 1] = [
        member.axis_name, *([old.axis_name] if left > 1 else []), again.axis_name,
    ]  # fmt: skip
    return settled(done[kernel].replace(arg=KernelInfo(kernel.arg.name, tuple(order))))


def _reductions(kernel: UOp, axis: UOp) -> list[UOp]:
    return [n for n in kernel.toposort() if n.op is Ops.REDUCE and axis in n.src[1:]]


def _names(kernel: UOp) -> Iterator[str]:
    """Yield names for new stages."""
    taken = {n.arg[0] for n in kernel.toposort() if n.op is Ops.STAGE}
    names = (f"group{number}" for number in count())
    return (name for name in names if name not in taken)
