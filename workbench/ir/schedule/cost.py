"""The scheduler's estimates of the cost of computing a value and of storing it.

Unit: about one float operation. They are rough on purpose: a decision is recorded with its
estimates, so that a reader can disagree.

Sections: The scheduler's estimates of the cost of computing a value and of storing it; Staged
rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from workbench.base.sequences import common_prefix
from workbench.ir.node.ops import ELEMENTWISE, MOVEMENT, OPS, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import TRUE, ZERO, Access, numbered_range, settle

# --------------------------------------------------------------------------------------------------
# The scheduler's estimates of the cost of computing a value and of storing it.

STORE_COST = 8.0
"""Per element: written once and read back."""
READ_COST = 1.0
"""Per use of a stored element: the alternative to computing it in place."""
LAUNCH_COST = 10_000.0
"""Per kernel: its compilation, a launch and its bookkeeping."""
MASK_COST = 1.0
"""Per read of a padded value: the test for padding."""
TILE_REUSE = 8.0
"""A register tile computes an elementwise operand once for about this many uses."""
WINDOW_REUSE = 4.0
"""The uses where every loop moves the operand, as with windows of one channel: neighbouring windows
overlap."""
WINDOW = 7
"""Most steps of an axis of a window. A longer sum is computed in lanes, and each lane tests another
position."""
REREADS = 4
"""A reduction that reads its operands this often can gain from a register tile."""
UNTILED_COST = 0.5
"""Per multiplication of a product of matrices that has no register tile."""
TILE_WORK = 1 << 15
"""A product of matrices with fewer multiplications than this needs no register tile."""
PARALLEL_WORK = 1 << 16
"""A full reduction of more elements than this, fused before a loop, holds up the other cores."""
SPLIT_WORK = 1 << 20
"""A reduction of this many elements to FEW_RESULTS is worth a kernel of partial results."""
FEW_RESULTS = 8
"""Most results of a reduction that are too few for the cores to share."""

MOST_POSITION_STEPS = 8
"""Most steps of a position in a comparison that is computed wherever it is read."""

_CAP = 1e30
NO_PRODUCTS: Mapping[UOp, bool] = MappingProxyType({})


def totals(
    nodes: dict[UOp, None], boundaries: Collection[UOp], products: Mapping[UOp, bool] = NO_PRODUCTS
) -> dict[UOp, float]:
    """Return per node the cost of computing it with everything below it fused once.

    Stored values (`boundaries`), and reductions, which have decisions of their own, cost a read; a
    reduction in `products` costs its computation. The cost of a value with several users is shared
    out among them.
    """
    users = Counter(s for node in nodes for s in set(node.src))
    cost: dict[UOp, float] = {}
    to_users: dict[UOp, float] = {}
    for node in nodes:
        below = sum(to_users[s] for s in set(node.src))
        cost[node] = min(_CAP, below + _own(node))
        is_separate = node.op is Ops.REDUCE_AXIS and not products.get(node, False)
        read = node in boundaries or is_separate
        to_users[node] = float(node.size) if read else cost[node] / max(1, users[node])
    return cost


def steps(node: UOp) -> int:
    """Return an estimate of the machine operations for one element of a node: a sine expands to
    about a hundred."""
    return max(1, int(OPS[node.op].cost))


def _own(node: UOp) -> float:
    if node.op in ELEMENTWISE:
        return node.size * OPS[node.op].cost
    if node.op is Ops.REDUCE_AXIS:
        return float(node.src[0].size)
    if node.op is Ops.BUFFER:
        return float(node.size)
    return 0.0


def reducing(nodes: dict[UOp, None], boundaries: set[UOp]) -> dict[UOp, bool]:
    """Return per node whether it has a reduction below it, up to the values already stored."""
    reduces: dict[UOp, bool] = {}
    for node in nodes:
        reduces[node] = node.op is Ops.REDUCE_AXIS or any(
            reduces[s] and s not in boundaries for s in node.src
        )
    return reduces


def products_below(nodes: dict[UOp, None], boundaries: set[UOp]) -> dict[UOp, bool]:
    """Return per node whether it is a product of matrices (a reduction that reads its operands
    REREADS times over) or in its epilogue: computed from it element by element, up to where the
    value is stored or has several users."""
    users = Counter(s for node in nodes for s in set(node.src))
    products: dict[UOp, bool] = {}
    for node in nodes:
        products[node] = rereads(node, boundaries) or any(
            products[s] and users[s] == 1 and s not in boundaries and s.size == node.size
            for s in node.src
        )
    return products


def is_product(node: UOp, boundaries: Collection[UOp]) -> bool:
    """Whether a reduction gains from a register tile: it rereads several operands, or one in
    several ways."""
    if not rereads(node, boundaries):
        return False
    ends = _ends(node.src[0], _repeated(node, boundaries))
    return len([*islice((n for n in ends if n.size > 1), 2)]) > 1


def rereads(node: UOp, boundaries: Collection[UOp]) -> bool:
    """Whether a value is a large reduction that reads its operands REREADS times over."""
    if node.op is not Ops.REDUCE_AXIS or node.src[0].size < TILE_WORK:
        return False
    if _selects(node) or _is_prefix(node):
        return False
    # An operand that is computed from many others is still no larger than itself.
    walks = (_repeated(node, boundaries), _is_inside_reduction(node, boundaries))
    return any(_are_small(_ends(node.src[0], walk), node.src[0].size / REREADS) for walk in walks)


def _are_small(operands: Iterable[UOp], most: float) -> bool:
    """Whether operands have at most so many elements together. Of a residual network a walk
    could go down to its first layer: it ends with the first operands that are too many."""
    total = 0
    for operand in operands:
        total += operand.size
        if total > most:
            return False
    return most >= 1


def rounds_in_order(node: UOp) -> bool:
    """Whether a value is a sum or product of floats, whose rounding depends on the order that a
    loop chooses; a sum that only selects an element does not round."""
    if node.op is not Ops.REDUCE_AXIS or not node.dtype.is_float:
        return False
    return node.combines in (Ops.ADD, Ops.MUL) and not _selects(node)


def _selects(node: UOp) -> bool:
    """Whether a sum selects the elements whose position equals an index: `rules.collapse` turns its
    loop into a load."""
    if node.combines is not Ops.ADD or node.src[0].op is not Ops.WHERE:
        return False
    condition = _moved(node.src[0].src[0])
    return condition.op is Ops.CMPEQ and any(_moved(side).op is Ops.IOTA for side in condition.src)


def _is_prefix(node: UOp) -> bool:
    """Whether a reduction combines the elements before, or after, a position, as a level of a scan
    does; the levels of a scan share a kernel."""
    source = node.src[0]
    return source.op is Ops.WHERE and compares_positions(_moved(source.src[0]))


def compares_positions(node: UOp) -> bool:
    """Whether a value is `a < b` of positions and constants, or two of these, in few steps."""
    if node.op is Ops.AND:
        return all(compares_positions(_moved(source)) for source in node.src)
    if node.op is not Ops.CMPLT:
        return False
    left = [*node.src]
    for _ in range(MOST_POSITION_STEPS):
        if not left:
            return True
        step = _moved(left.pop())
        if step.op in (Ops.ADD, Ops.MUL):
            left += step.src
        elif step.op not in (Ops.IOTA, Ops.CONST):
            return False
    return False


def _moved(node: UOp) -> UOp:
    while node.op in MOVEMENT:
        node = node.src[0]
    return node


def _is_inside_reduction(node: UOp, boundaries: Collection[UOp]) -> Callable[[UOp], bool]:
    """Return a test of values below the reduction `node`: whether one is neither a reduction nor
    stored."""
    return lambda n: n.op is not Ops.REDUCE_AXIS and n is not node and n not in boundaries


def _repeated(node: UOp, boundaries: Collection[UOp]) -> Callable[[UOp], bool]:
    """Return a test: `_is_inside_reduction`, and with as many elements as the reduction has
    operands or more."""
    inside = _is_inside_reduction(node, boundaries)
    return lambda n: inside(n) and n.size >= node.src[0].size


def _ends(node: UOp, inside: Callable[[UOp], bool]) -> Iterator[UOp]:
    """Yield the values at which a walk down from `node`, through values `inside`, ends, the nearest
    first."""
    pending, visited = [node], {node}
    for value in pending:  # it grows: breadth first
        if not value.src or not inside(value):
            yield value
            continue
        for source in value.src:
            if source not in visited:
                visited.add(source)
                pending.append(source)


# --------------------------------------------------------------------------------------------------
# Staged rows: values that several statements of a kernel read under shared outer loops.
#
# Softmax reads exp(x - m) twice, to sum it and to divide it; under the loop over rows that is one
# row, which fits in cache. So it is computed once per row into scratch: cheaper than computing it
# twice, and far cheaper than a round through memory.

ROW_BYTES = 64 << 10
"""Bytes of the longest row: an eighth of a second-level cache of 512 KiB, since a longer one would
evict its own start. It does not depend on the Target on purpose: the schedule is the same on every
machine and device, so that kernels, their names and a search's lists of opts mean the same
everywhere. Where a device has no room for a row, lowering computes it where it is read
(`ir/nest/recompute.py`)."""
STAGE_COST = 2.0
"""Per element: written to cache once and read back."""


class Staging(NamedTuple):
    """How a value is staged: `fill` is the access that computes the row. `private` are the axes of
    the value that the row has; the loops around the row fix the other axes."""

    fill: Access
    private: tuple[int, ...]


def staging(node: UOp, reads: list[Access]) -> Staging | None:
    """Return how to stage `node` for `reads`. None for a single read, for reads in several kernels
    or under a condition, for a row that is too long, and without a shared loop that the row depends
    on: filled before all loops, it would be the whole value, computed and stored by every core."""
    first = reads[0]
    if len(reads) < 2 or any(a.root is not first.root or a.valid is not TRUE for a in reads):
        return None
    common = common_prefix(*[a.loops for a in reads])
    private = tuple(
        axis
        for axis, n in enumerate(node.shape)
        if n > 1 and not _fixed([a.indices[axis] for a in reads], common)
    )
    indices = tuple(ZERO if axis in private else index for axis, index in enumerate(first.indices))
    shared = settle(Access(indices, TRUE, common, first.root)).loops
    row = math.prod(node.shape[axis] for axis in private) * node.dtype.itemsize
    if not shared or not private or row > ROW_BYTES:
        return None
    root = first.root
    fills = {axis: numbered_range(node.shape[axis], AxisType.FILL, root) for axis in private}
    indices = tuple(fills.get(axis, i) for axis, i in enumerate(indices))
    return Staging(Access(indices, TRUE, (*shared, *fills.values()), root), private)


def _fixed(indices: list[UOp], loops: tuple[UOp, ...]) -> bool:
    """Whether all reads use one index, and the shared loops determine it."""
    if any(i is not indices[0] for i in indices):
        return False
    return indices[0] is ZERO or indices[0].ranges <= set(loops)
