"""Tree reductions: a work-group combines its partial results in halves, in shared memory.

    for r1 in 16 { acc += tile[r1] }  ->   for r1_8 in 8 (fill) { tile[r1_8] += tile[r1_8 + 8] }
                                           barrier
                                           for r1_4 in 4 (fill) { tile[r1_4] += tile[r1_4 + 4] }
                                           barrier
                                           for r1 in 4 { acc += tile[r1] }

The steps of a fill are dealt out to work-items (`work_groups.py`), so a sum of n takes about as
many steps as n has bits, where every work-item would have made all n. Of an odd number the middle
one waits for the next step. The last few each work-item combines by itself: that is sooner done
than to wait. Where a machine has warp shuffles, warps combine their parts first
(`warp_shuffles.py`), and this is done with what they leave, if it is many. Source: Harris,
"Optimizing parallel reduction in CUDA" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.nest.placement import Item, Loop
from workbench.ir.nest.warp_reduction import FEW, WarpReduction, tile_loops
from workbench.ir.node import construct
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def halvings(count: int) -> Iterator[int]:
    """Yield how many partial results are left after each step."""
    while count > FEW:
        count = (count + 1) // 2
        yield count


def tree_loops(items: Sequence[Item], warps: Mapping[UOp, WarpReduction]) -> dict[Loop, int]:
    """Return the loops whose reductions a work-group does in halves, each with the number of its
    partial results: the elements of tiles that nothing else reads, or the cells that warps leave of
    them."""
    counts: dict[Loop, int] = {}
    for loop, (tile, *_) in tile_loops(items).items():
        plan = warps.get(tile)
        count = tile.memory_shape[0] if plan is None else plan.cells
        if count > FEW and not (plan and plan.is_repeated):
            counts[loop] = count
    return counts


def in_halves(loop: UOp, count: int) -> list[UOp]:
    """Return the statements instead of a LOOP over `count` partial results of `tree_loops`."""
    axis, parts = loop.axis, list[UOp]()
    for half in halvings(count):
        step = UOp.range(count - half, f"{axis.axis_name}_{half}", AxisType.FILL)
        combined = [_combined(update, axis, step, half) for update in loop.body]
        parts.append(UOp(Ops.LOOP, dtypes.void, (step, *combined)))
        parts.append(construct.barrier())
        count = half
    rest = UOp.range(count, axis.axis_name, axis.axis_kind)
    return [*parts, loop.substitute({axis: rest})]


def _combined(update: UOp, axis: UOp, step: UOp, half: int) -> UOp:
    """Return the STORE of an element of a tile combined with the one `half` further on."""
    place = update.src[1].src[0]
    target, source = (place.substitute({axis: at}) for at in (step, step + half))
    own, other = (construct.running(at, half) for at in (target, source))
    return construct.store(target, own.alu(update.combines, other), None)
