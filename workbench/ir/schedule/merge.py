"""Merging axes: two neighbouring loops become one where every buffer is walked as by one loop.

An elementwise kernel over (3, 4, 5) contiguous elements is a loop over 60. Tried by
substitution: m // n for the outer axis, m % n for the inner; kept where simplification leaves
no more divisions than there were. Source of the idea: axis coalescing (ISL, TVM's fuse).
"""

from __future__ import annotations

from workbench.base.trace import Match, PassStep, note_steps, tentative
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rules.index import SIMPLIFY_AXES
from workbench.ir.schedule.build import named

MERGE_LOOPS = PassStep(
    "merge-loops", "Two neighbouring loops that walk every buffer as one are one loop."
)


def merge_axes(kernel: UOp) -> UOp:
    """Return `kernel` with every pair of axes merged that one loop can walk."""
    merges: list[tuple[UOp, UOp, UOp, UOp]] = []
    changed = True
    while changed:
        changed = False
        axes = {n.axis_name: n for n in kernel.toposort() if n.op is Ops.RANGE}
        order = [axes[name] for name in kernel.arg.order]
        for outer, inner in zip(order, order[1:], strict=False):
            merged = _merged(kernel, outer, inner)
            if merged is not None:
                merges.append((outer, inner, kernel, merged))
                kernel, changed = merged, True
                break
    if merges:
        note_steps(lambda: [_step(*merge) for merge in merges])
    return kernel


def _step(outer: UOp, inner: UOp, before: UOp, after: UOp) -> Match:
    names, sizes = zip(*[(a.axis_name, a.extent) for a in (outer, inner)], strict=True)
    about = f"{' and '.join(names)}: {sizes[0]} times {sizes[1]} is {sizes[0] * sizes[1]}"
    return Match(MERGE_LOOPS.at(about), before, after)


def _merged(kernel: UOp, outer: UOp, inner: UOp) -> UOp | None:
    if outer.axis_kind is not inner.axis_kind or not _closed_together(kernel, outer, inner):
        return None
    size = inner.extent
    both = UOp.range(outer.extent * size, outer.axis_name, outer.axis_kind)
    order = [name for name in kernel.arg.order if name != inner.axis_name]
    with tentative(kernel) as part:
        tried = kernel.substitute({outer: both // size, inner: both % size})
        tried = construct.in_order(tried, order)
        simple = SIMPLIFY_AXES(tried)
        if _divisions(simple) > _divisions(kernel):
            return None
        part.after = simple
    return named(kinds(simple))


def _closed_together(kernel: UOp, outer: UOp, inner: UOp) -> bool:
    """Whether every list of ranges that has one of the two has both."""
    for node in kernel.toposort():
        if node.op in (Ops.REDUCE, Ops.END) and (outer in node.src) != (inner in node.src):
            return False
    return True


def _divisions(kernel: UOp) -> int:
    return sum(n.op in (Ops.IDIV, Ops.MOD) for n in kernel.toposort())
