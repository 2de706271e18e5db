"""Groups of values that are outputs of one kernel.

Kernels of one iteration space are joined where that gains: they read the same elements at the same
step, one reads what another computes, or both are so small that a launch takes longer than their
work. A path from one through another kernel to the other forbids it: it would be a cycle.
Source of the idea: the horizontal fusion of tensor compilers, tinygrad's multi-output kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access, settle
from workbench.ir.schedule.outputs.reads import KernelReads, PlacedRead, kernel_reads, placed
from workbench.ir.schedule.plan import OutputGroup, SchedulePlan

MOST_OUTPUTS = 8
"""Outputs of one kernel; more make its code too long."""
MOST_ACCESSES = 12
"""Different reads and writes of a kernel that is not small: a core prefetches no more."""
MOST_STEPS = 600
"""Operations of an element of a joined kernel; a longer one compiles too slowly."""
SHARED_PART = 0.25
"""Part of the bytes of the smaller of two kernels that joining them must save."""
SMALL_WORK = 1 << 16
"""Operations of kernels that take no longer than a launch."""
FAR_BYTES = 1 << 19
"""Bytes of an array that is summed along its far stride in any order, since it stays in the
second-level cache."""
EPILOGUE_PART = 0.125
"""Most work that may stand beside the reductions of another kernel, as a part of theirs: its loops
have the lanes of these."""


def output_groups(
    plan: SchedulePlan,
    single: Collection[UOp],
    devices: Mapping[UOp, str],
    products: Collection[UOp],
) -> list[OutputGroup]:
    """Return the groups of stored values that gain from one kernel. Those in `alone` have a kernel
    of their own; `products` are the reductions that need a register tile."""
    spaces = {node: _space(node, devices) for node in plan.stored if node not in single}
    counts = Counter(spaces.values())
    if all(count < 2 for count in counts.values()):
        return []
    joins = _Joins(kernel_reads(plan), products)
    for node, space in reversed(spaces.items()):
        if counts[space] > 1:
            joins.add(node, space)
    return [joined.group() for joined in joins.joined() if len(joined.kernels) > 1]


def _space(node: UOp, devices: Mapping[UOp, str]) -> IterationSpace:
    return IterationSpace(tuple(n for n in node.shape if n != 1), devices[node])


class IterationSpace(NamedTuple):
    """The loops over the outputs of a kernel, and its device."""

    extents: tuple[int, ...]
    device: str


@dataclass(slots=True, eq=False)
class _Joined:
    """Kernels that are joined to one (or one alone), in a graph of such; `needs` are those whose
    values it reads."""

    kernels: list[KernelReads]
    needs: set[_Joined] = field(default_factory=set)
    together: dict[UOp, UOp] = field(default_factory=dict)
    bytes_read_once: int = 0

    @property
    def roots(self) -> dict[UOp, Access]:
        return {kernel.root: kernel.own for kernel in self.kernels}

    @property
    def reads(self) -> dict[PlacedRead, tuple[UOp, ...]]:
        """What it reads from memory, with the reductions around each read."""
        roots = self.roots
        reads: dict[PlacedRead, tuple[UOp, ...]] = {}
        for kernel in self.kernels:
            reads.update((r, a) for r, a in kernel.around.items() if r.source not in roots)
        return reads

    @property
    def work(self) -> float:
        return sum(kernel.work for kernel in self.kernels)

    @property
    def traffic(self) -> int:
        return sum(kernel.traffic for kernel in self.kernels) - self.bytes_read_once

    @property
    def reductions(self) -> list[UOp]:
        return [r for kernel in self.kernels for r in kernel.reductions]

    def group(self) -> OutputGroup:
        """Return it as a group."""
        members = tuple([kernel.root for kernel in self.kernels])
        accesses = len(self.reads) + len(members)
        return OutputGroup(members, self.together, self.bytes_read_once, accesses)


class _Joins:
    """The kernels of a plan while they are joined, one after the other, sources first."""

    def __init__(self, kernels: Mapping[UOp, KernelReads], products: Collection[UOp]):
        self._of = {root: _Joined([kernel]) for root, kernel in kernels.items()}
        for root, kernel in kernels.items():
            self._of[root].needs.update(self._of[s] for s in kernel.sources)
        self._products = products
        self._readers: dict[tuple[IterationSpace, PlacedRead], UOp] = {}
        self._roots: dict[UOp, IterationSpace] = {}
        self._small: dict[IterationSpace, UOp] = {}

    def joined(self) -> list[_Joined]:
        """Return all kernels as they are now."""
        return list(dict.fromkeys(self._of.values()))

    def add(self, root: UOp, space: IterationSpace) -> None:
        """Join the kernel of `root` to that one, of those that were added, from which it gains most
        bytes."""
        kernel = self._of[root]
        gains: dict[_Joined, int] = {}
        for other in self._related(kernel.kernels[0], space):
            gain = self._gain(other, kernel)
            if gain is not None and not _is_cycle(other, kernel):
                gains[other] = gain
        if gains:
            best = max(gains, key=gains.__getitem__)
            self._join(best, kernel, gains[best])
            kernel = best
        self._roots[root] = space
        self._readers.update(((space, read), root) for read in kernel.reads)
        if kernel.work <= SMALL_WORK:
            self._small[space] = root

    def _related(self, kernel: KernelReads, space: IterationSpace) -> Iterable[_Joined]:
        """Return the kernels that read what `kernel` does, or compute it, or are as small."""
        roots = [self._readers.get((space, read)) for read in kernel.nbytes]
        roots += [s for s in kernel.sources if self._roots.get(s) == space]
        roots.append(self._small.get(space))
        return dict.fromkeys(self._of[root] for root in roots if root is not None)

    def _gain(self, one: _Joined, other: _Joined) -> int | None:
        """Return the bytes that are read once where `other` (one kernel) is joined to `one`; None
        where that is impossible, or gains nothing."""
        (kernel,) = other.kernels
        roots, reads = one.roots, one.reads
        if len(roots) == MOST_OUTPUTS or not _reads_in_place(kernel, roots):
            return None
        if sum(k.steps for k in one.kernels) + kernel.steps > MOST_STEPS:
            return None
        if not self._loops_agree(one, other):
            return None
        read_once = [r for r in kernel.nbytes if r in reads or r.source in roots]
        gain = sum(kernel.nbytes[read] for read in read_once)
        if one.work + other.work <= SMALL_WORK:
            return gain
        if one.reductions and kernel.reductions and _waits_far(kernel, roots, reads):
            return None
        accesses = len(reads) + len(roots) + len(kernel.nbytes) - len(read_once) + 1
        least = SHARED_PART * min(one.traffic, other.traffic)
        return gain if gain >= least and accesses <= MOST_ACCESSES else None

    def _loops_agree(self, one: _Joined, other: _Joined) -> bool:
        """Whether both want the same lanes: a product of matrices has a register tile for its one
        reduction, and beside a reduction there may be little that has none."""
        both = one.reductions, other.reductions
        if any(r in self._products for r in (*both[0], *both[1])):
            return not all(both)
        if all(both) or not any(both):
            return True
        beside, reducing = (other, one) if both[0] else (one, other)
        return beside.work <= EPILOGUE_PART * reducing.work

    def _join(self, one: _Joined, other: _Joined, gain: int) -> None:
        (kernel,) = other.kernels
        _share_loops(one, kernel)
        one.kernels.append(kernel)
        one.needs |= other.needs
        one.needs -= {one}
        one.bytes_read_once += gain
        self._of[kernel.root] = one
        for each in self._of.values():
            if other in each.needs:
                each.needs = (each.needs - {other}) | {one}


def _reads_in_place(kernel: KernelReads, roots: Mapping[UOp, Access]) -> bool:
    """Whether a kernel reads each of `roots` only at the element that is written at that step."""
    for root, own in roots.items():
        written = placed(root, own)
        for access in kernel.sources.get(root, ()):
            if placed(root, settle(access)) != written:
                return False
    return True


def _waits_far(
    kernel: KernelReads, roots: Mapping[UOp, Access], shared: Collection[PlacedRead]
) -> bool:
    """Whether a kernel needs complete sums of another one to sum, along the far stride of a large
    array, what that one does: such a loop belongs outside of the outputs, with all sums of a row at
    once, and two of which one needs the other cannot both be there."""
    if roots.keys().isdisjoint(kernel.sources):
        return False
    return any(
        kernel.nbytes[read] > FAR_BYTES and kernel.around[read] and _is_far(read)
        for read in kernel.nbytes
        if read in shared
    )


def _is_far(read: PlacedRead) -> bool:
    """Whether neighbours in memory are along an output axis, and not along one that is reduced."""
    kinds = {axis.axis_kind for axis in read.indices[-1].ranges}
    return kinds == {AxisType.GLOBAL}


def _is_cycle(one: _Joined, other: _Joined) -> bool:
    """Whether a path leads from one of two kernels through another kernel to the other."""
    return _leads(other.needs - {one}, one) or _leads(one.needs - {other}, other)


def _leads(start: Iterable[_Joined], end: _Joined) -> bool:
    reached = set(start)
    stack = list(reached)
    while stack:
        for below in stack.pop().needs:
            if below is end:
                return True
            if below not in reached:
                reached.add(below)
                stack.append(below)
    return end in reached


def _share_loops(one: _Joined, kernel: KernelReads) -> None:
    """Map the reductions of `kernel` to those of `one` that read the same elements at the same
    steps, where none is computed from the other."""
    reads = one.reads
    for read, around in kernel.around.items():
        for new, old in zip(around, reads.get(read, ()), strict=False):
            first = one.together.get(old, old)
            if new is first or new in one.together or _extents(new) != _extents(first):
                continue
            others = [old, first, *[r for r, to in one.together.items() if to is first]]
            if all(_are_independent(new, r) for r in others):
                one.together[new] = first


def _extents(reduction: UOp) -> list[int]:
    shape = reduction.src[0].shape
    return [shape[axis] for axis in sorted(reduction.reduced_axes) if shape[axis] != 1]


def _are_independent(one: UOp, other: UOp) -> bool:
    return one not in other.toposort() and other not in one.toposort()
