"""The reads of each kernel of a plan, in a form in which kernels can be compared.

Two kernels of one iteration space read the same element at the same step where their indexes are
equal, once the ranges of each are called after their place in its loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access
from workbench.ir.schedule.cost import steps
from workbench.ir.schedule.plan import SchedulePlan


class PlacedRead(NamedTuple):
    """A read of memory, its ranges called after their places in the loops around it."""

    source: UOp
    indices: tuple[UOp, ...]
    valid: UOp


@dataclass(slots=True)
class KernelReads:
    """What the kernel of `root`, which is written by the access `own`, reads: the bytes of each
    read, and the reduction that each range around it is of, outermost first. `sources` are the
    stored values among what it reads, with their accesses; `reductions` are those that it
    computes; `steps` counts the operations of an element, `work` those of all."""

    root: UOp
    own: Access
    nbytes: dict[PlacedRead, int] = field(default_factory=dict)
    around: dict[PlacedRead, tuple[UOp, ...]] = field(default_factory=dict)
    sources: dict[UOp, list[Access]] = field(default_factory=dict)
    reductions: dict[UOp, None] = field(default_factory=dict)
    steps: int = 0
    work: float = 0.0

    @property
    def traffic(self) -> int:
        """Bytes that it reads and writes."""
        return sum(self.nbytes.values()) + self.root.size * self.root.dtype.itemsize


def kernel_reads(plan: SchedulePlan) -> dict[UOp, KernelReads]:
    """Return what each kernel, or copy, of a plan reads, by the stored value that is its root."""
    kernels = {node: KernelReads(node, plan.reads[node][0]) for node in plan.stored}
    reduction_of = _reductions(plan)
    for (node, access), below in plan.links.items():
        kernel = kernels[access.root]
        kernel.steps += steps(node)
        if node.is_elementwise:
            kernel.work += access.evaluations * OPS[node.op].cost
        elif node.op is Ops.REDUCE_AXIS and node.src[0].size > node.size:
            kernel.reductions[node] = None
            kernel.work += access.evaluations * (node.src[0].size // node.size)
        for source, at in zip(node.src, below, strict=True):
            if at is None:
                continue
            if source in plan.stored:
                kernel.sources.setdefault(source, []).append(at)
            elif source.op is not Ops.BUFFER:
                continue
            read = placed(source, at)
            elements = min(source.size, at.evaluations)
            kernel.nbytes[read] = elements * source.dtype.itemsize
            kernel.around[read] = tuple([reduction_of[r] for r in at.loops if r in reduction_of])
    return kernels


def placed(source: UOp, access: Access) -> PlacedRead:
    """Return an access in the form in which it is compared."""
    names = {
        axis: UOp.range(axis.extent, f"_{place}", axis.axis_kind)
        for place, axis in enumerate(access.loops)
    }
    if not names:
        return PlacedRead(source, access.indices, access.valid)
    indices = tuple([index.substitute(names) for index in access.indices])
    return PlacedRead(source, indices, access.valid.substitute(names))


def _reductions(plan: SchedulePlan) -> dict[UOp, UOp]:
    """Return the reduction that each range is of."""
    reduction_of: dict[UOp, UOp] = {}
    for (node, access), below in plan.links.items():
        if node.op is Ops.REDUCE_AXIS and below[0] is not None:
            inner = below[0].loops[len(access.loops) :]
            reduction_of.update(dict.fromkeys(inner, node))
    return reduction_of
