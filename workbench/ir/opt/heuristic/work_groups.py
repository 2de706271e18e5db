"""OptPlan, the opts of a step in order, and the default work-items.

Sections: Opts applied in order; Work-items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.ir.node.exact_range import Terms, divisor, terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.apply import apply_if_legal
from workbench.ir.opt.heuristic.register_tile import loads, unit_axis
from workbench.ir.opt.heuristic.step import PADDING, HeuristicStep
from workbench.ir.opt.opt import Opt, OptKind, OptOps, ranges

# --------------------------------------------------------------------------------------------------
# Opts applied in order: a step of the default opts names axes that its own opts made.

UNIT_REGISTERS = 1 << 16
"""Registers of a unit, if its maker does not say."""
WORD_BYTES = 4
"""Bytes of the smallest copy to shared memory that no work-item waits for."""
VECTOR_BYTES = 16
"""Bytes that a work-item loads before it stores them, if it waits for its loads."""
EQUAL = 0.02
"""Shares of idle work-items that differ by less count as equal."""


class OptPlan:
    """A kernel and the opts that led to it; opts that are not legal are left out."""

    def __init__(self, kernel: UOp, target: Target):
        self.kernel, self.target = kernel, target
        self.opts: list[Opt] = []

    def copy(self) -> OptPlan:
        """Return a plan with the same kernel and opts."""
        other = OptPlan(self.kernel, self.target)
        other.opts = [*self.opts]
        return other

    def apply(self, op: OptKind, axis: str, arg: int | str) -> bool:
        """Apply an opt if it is legal; return whether it is."""
        opt = Opt(op, axis, arg)
        with unobserved():
            changed = apply_if_legal(self.kernel, opt, self.target)
        if changed is None:
            return False
        self.kernel = changed
        self.opts.append(opt)
        return True

    def split(self, op: OptKind, axis: str, amount: int) -> str:
        """Apply `op` to an amount of an axis, which is padded if the amount does not divide it.
        Return the name of the new axis; "", with the plan unchanged, if the opt is not legal."""
        if amount < 2:
            return ""
        kernel, applied = self.kernel, len(self.opts)
        if ranges(kernel)[axis].extent % amount:
            self.apply(OptOps.PADTO, axis, amount)
        before = ranges(self.kernel)
        if self.apply(op, axis, amount):
            return next(n for n in ranges(self.kernel) if n not in before)
        self.kernel = kernel
        del self.opts[applied:]
        return ""

    def extent(self, axis: str) -> int:
        """Return the steps of an axis; 1 if opts have removed it."""
        node = ranges(self.kernel).get(axis)
        return 1 if node is None else node.extent


def item_count(extent: int, most: int, warp: int) -> int:
    """Return how many work-items share an axis. Divisors of its extent, and multiples of a warp to
    which it can be padded, are compared by their idle work-items; of about equal ones a divisor is
    preferred, then the largest. 1 if nothing fits."""
    sizes = [n for n in range(2, min(most, extent) + 1) if extent % n == 0]
    sizes += [n for n in range(warp, most + 1, warp) if _rounded(extent, n) > extent]
    sizes = [n for n in sizes if _rounded(extent, n) <= extent * PADDING]

    def merit(size: int) -> tuple[int, bool, int]:
        whole = _rounded(extent, size)
        idle = whole / extent * _rounded(size, warp) / size
        return round(idle / EQUAL), whole > extent, -size

    return min(sizes, key=merit, default=1)


def _rounded(extent: int, amount: int) -> int:
    return -(-extent // amount) * amount


def width_along(kernel: UOp, axis: UOp, target: Target, staged: bool = False) -> int:
    """Return the elements of a vector along an axis; 1 if vectors would not be contiguous, or not
    aligned to their size, in some load or store. If `staged`, loads without unit stride do not
    count, since their tile is copied first."""
    places = [n.place for n in [*loads(kernel), *kernel.stores] if axis in n.place.ranges]
    if staged:
        places = [p for p in places if _parts(p)[0].get(axis) == 1]
    if not places:
        return 1
    width = min(target.vector_width(place.dtype.itemsize) for place in places)
    while width > 1:
        fits = axis.extent % width == 0
        if fits and all(_is_aligned(place, axis, width) for place in places):
            return width
        width //= 2
    return 1


def _parts(place: UOp) -> tuple[Terms, int]:
    return terms(split_gate(place.src[-1])[0])


def _is_aligned(place: UOp, axis: UOp, width: int) -> bool:
    index, gate = split_gate(place.src[-1])
    conditions = [] if gate is None or axis not in gate.ranges else _conjuncts(gate)
    return _is_multiple(index, 0, axis, width) and all(
        axis not in each.ranges
        or each.op is Ops.CMPLT
        and each.src[1].is_const
        and _is_multiple(each.src[0], int(each.src[1].arg), axis, width)
        for each in conditions
    )


def _conjuncts(condition: UOp) -> list[UOp]:
    if condition.op is not Ops.AND:
        return [condition]
    return [part for source in condition.src for part in _conjuncts(source)]


def _is_multiple(index: UOp, limit: int, axis: UOp, width: int) -> bool:
    """Whether `index` has stride 1 along `axis`, and its other terms and `limit` are multiples of
    `width`."""
    parts, constant = terms(index)
    if parts.pop(axis, 0) != 1:
        return False
    rest = [factor * divisor(atom) for atom, factor in parts.items()]
    return all(n % width == 0 for n in (*rest, constant, limit)) and not any(
        axis in atom.ranges for atom in parts
    )


def unit_registers(target: Target) -> int:
    """Return the registers of a unit, which its work-items share."""
    hardware = target.hardware
    return (0 if hardware is None else hardware.unit_registers) or UNIT_REGISTERS


def stage_input(plan: OptPlan, slot: int, axis: str, together: bool = False) -> bool:
    """Stage an input inside of a loop, filled by vectors where its memory has them; return whether
    that is legal. If `together`, a work-item that waits for its loads loads several elements before
    it stores them."""
    before = ranges(plan.kernel)
    if not plan.apply(OptOps.STAGE, axis, slot):
        return False
    (itemsize,) = {
        n.dtype.itemsize
        for n in loads(plan.kernel)
        if n.place.memory.op is Ops.PARAM and n.place.memory.slot == slot
    }
    widest = 1
    fills = [n for n in ranges(plan.kernel) if n not in before]
    for name in fills:
        fill = ranges(plan.kernel)[name]
        if fill.axis_kind is not AxisType.FILL:
            continue
        if plan.target.copies_async and not _is_row(plan.kernel, fill):
            continue  # elements are copied one by one, but asynchronously
        width = width_along(plan.kernel, fill, plan.target)
        if plan.split(OptOps.UPCAST, name, width):
            widest = max(widest, width)
    if together and widest * itemsize < WORD_BYTES:
        _load_together(plan, fills, itemsize)
    return True


def _load_together(plan: OptPlan, fills: Sequence[str], itemsize: int) -> None:
    """Make a work-item load several elements of a fill before it stores them: it waits only once.
    The elements are a word of neighbours in memory, times several along another axis: one along
    which they are neighbours in the tile, and stored as a vector, if there is one."""
    *others, last = [n for n in plan.kernel.arg.order if n in fills]
    width = width_along(plan.kernel, ranges(plan.kernel)[last], plan.target)
    plan.split(OptOps.UPCAST, last, min(width, WORD_BYTES // itemsize))
    count = VECTOR_BYTES // itemsize
    rows = [n for n in others if _is_row(plan.kernel, ranges(plan.kernel)[n])]
    for name in [*rows, *others]:
        if plan.split(OptOps.UPCAST, name, math.gcd(plan.extent(name), count)):
            return


def _is_row(kernel: UOp, fill: UOp) -> bool:
    """Whether the elements that an axis fills are neighbours in their tile."""
    stages = [n for n in kernel.toposort() if n.op is Ops.STAGE]
    rows = [terms(n.src[-1])[0] for n in stages if fill in n.src[-1].ranges]
    return any(parts.get(fill) == 1 for parts in rows)


def pipelined(plan: OptPlan, axis: str, counts: Sequence[int]) -> int:
    """Pipeline the tiles of a loop with the first of `counts` buffers that is legal and at most the
    steps of the loop, if the target copies asynchronously. Return that number; 1 for none."""
    for count in counts if plan.target.copies_async else ():
        if count <= plan.extent(axis) and plan.apply(OptOps.PIPELINE, axis, count):
            return count
    return 1


def grid_loops(kernel: UOp) -> list[str]:
    """Return the loops whose steps are work-groups, outermost first."""
    axes = ranges(kernel)
    return [n for n in kernel.arg.order if axes[n].axis_kind is AxisType.GLOBAL]


def has_items(kernel: UOp) -> bool:
    """Whether a kernel has work-items or the tile of a warp already."""
    kinds = {r.axis_kind for r in ranges(kernel).values()}
    return AxisType.WARP in kinds or any(kind.is_work_item for kind in kinds)


# --------------------------------------------------------------------------------------------------
# Work-items: of the axes to which no other step has given any.
#
#     vectors     the axis along which results are neighbours, a vector for each work-item
#     work-items  the output loops, that axis innermost, so that neighbours are read together

ITEMS = 256
"""Work-items of a group: enough to hide each other's waits, with a few groups for each unit."""
VECTORS_OF_A_CORE = 1024
"""Vectors that keep a compute unit busy. With fewer, a work-item computes one element."""


def vectors(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A vector for each work-item, if vectors are aligned, and are many."""
    axis = unit_axis(kernel)
    if axis is None or has_items(kernel) or axis.axis_kind is not AxisType.GLOBAL:
        return None
    width = width_along(kernel, axis, target)
    count = math.prod(ranges(kernel)[n].extent for n in grid_loops(kernel)) // width
    plan = OptPlan(kernel, target)
    if count < target.cores * VECTORS_OF_A_CORE and target.cores > 1:
        return None
    if not plan.split(OptOps.UPCAST, axis.axis_name, width):
        return None
    why = f"{axis.axis_name} has stride 1 in all that is read and written along it"
    counts = {"extent": axis.extent, "lanes": width, "vectors": count}
    return HeuristicStep("vectors", tuple(plan.opts), why, counts)


def work_items(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Work-items of a group along the unit-stride axis, and along others if it is short."""
    if has_items(kernel):
        return None
    loops = [ranges(kernel)[n] for n in grid_loops(kernel)]
    unit = unit_axis(kernel)
    if unit is not None and unit.axis_kind in (AxisType.GLOBAL, AxisType.LOOP):
        loops = [axis for axis in loops if axis is not unit] + [unit]
    left = min(ITEMS, target.group_items)
    amounts: dict[str, int] = {}
    for axis in reversed(loops):
        is_first = not amounts
        amount = item_count(axis.extent, left, target.warp_lanes if is_first else 1)
        if amount > 1:
            amounts[axis.axis_name] = amount
            left //= amount
    plan = OptPlan(kernel, target)
    for name, amount in reversed([*amounts.items()][:3]):
        plan.split(OptOps.LOCAL, name, amount)
    if not plan.opts:
        return None
    names = " ".join(reversed(amounts))
    why = f"{names}: neighbouring outputs are computed by neighbouring work-items"
    counts = {"items": math.prod(amounts.values()), "warp": target.warp_lanes}
    return HeuristicStep("work-items", tuple(plan.opts), why, counts)
