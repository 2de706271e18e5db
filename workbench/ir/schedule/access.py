"""Accesses of a consumer to a value: one index expression per axis, and the loops around the read.

Movement ops are only changes of the indexes; so pushing an access through one computes nothing.
This is rangeify: ranges appear where a value is stored or reduced, and movement disappears.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextvars import ContextVar
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.interrupts import scope
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rules.index import SIMPLIFY_INDEX

Ranges = tuple[UOp, ...]
TRUE = UOp.const(dtypes.bool, True)
ZERO = UOp.index(0)
MOST_EVALUATIONS = 10**30
"""Evaluations are counted up to this number: no kernel with more is ever run, and their cost fits
in a float."""


class Access(NamedTuple):
    """One read of a value, at an index per axis. `valid` is the condition under which the element
    is used. `loops` are the ranges around the read, outermost first, down to the innermost one that
    the element depends on: it is computed once per step of these. `root` is the stored value in
    whose kernel the read is."""

    indices: tuple[UOp, ...]
    valid: UOp
    loops: tuple[UOp, ...]
    root: UOp

    @property
    def evaluations(self) -> int:
        """How often the value is computed if it is fused here, up to MOST_EVALUATIONS."""
        return min(MOST_EVALUATIONS, math.prod(r.extent for r in self.loops))


class RangeNumbers:
    """The numbers of new ranges: those of each kernel, by its root, count from 0 in each walk. So a
    walk that decides as the one before makes equal ranges, and equal indexes."""

    def __init__(self) -> None:
        self._kernels: dict[UOp, int] = {}
        self._next: dict[UOp, int] = {}

    def restart(self) -> None:
        """Begin a walk."""
        self._next.clear()

    def name(self, root: UOp) -> str:
        """Return a name for a new range of the kernel of `root`."""
        number = self._next[root] = self._next.get(root, -1) + 1
        return f"_{self._kernels.setdefault(root, len(self._kernels))}_{number}"


_numbers: ContextVar[RangeNumbers] = ContextVar("numbers of ranges")


@scope
def numbered_ranges() -> Generator[RangeNumbers, None, None]:
    """Number the ranges of some walks in a `with` block; each run of it gives the same numbers."""
    numbers = RangeNumbers()
    token = _numbers.set(numbers)
    try:
        yield numbers
    finally:
        _numbers.reset(token)


def numbered_range(size: int, kind: AxisType, root: UOp) -> UOp:
    """Return a new range in the kernel of `root` (index 0 where the axis has one element); kernels
    rename theirs."""
    return ZERO if size == 1 else UOp.range(size, _numbers.get().name(root), kind)


def root_access(node: UOp) -> Access:
    """Return the access by which a stored value is written."""
    return output_access(node, node, output_loops(node, node))


def output_loops(node: UOp, root: UOp) -> tuple[UOp, ...]:
    """Return new loops over the elements of a value, in the kernel of `root`."""
    return tuple([numbered_range(n, AxisType.GLOBAL, root) for n in node.shape if n != 1])


def output_access(node: UOp, root: UOp, loops: tuple[UOp, ...]) -> Access:
    """Return the access by which a value is written in `loops`, in the kernel of `root`."""
    axes = iter(loops)
    indices = tuple([ZERO if n == 1 else next(axes) for n in node.shape])
    return Access(indices, TRUE, loops, root)


def push(node: UOp, access: Access, inner: Ranges | None = None) -> tuple[Access | None, ...]:
    """Return the accesses by which `node`, read by `access`, reads its sources (None: a constant,
    or a source without elements). A reduction is over new ranges, or over `inner`."""
    if not node.size or (all(s.is_const for s in node.src) and node.op is not Ops.CUSTOM):
        return (None,) * len(node.src)
    if node.op is Ops.CUSTOM:
        return tuple([_whole(source, access.root) for source in node.src])
    if node.op in (Ops.REDUCE_AXIS, Ops.PAD):  # others are as empty as their sources
        if not node.src[0].size:
            return (None,)
        is_pad = node.op is Ops.PAD
        return (_pad(node, access) if is_pad else _reduce(node, access, inner),)
    if node.op in _MOVES:
        indices = moved(node, access.indices)
        return (settle(access._replace(indices=indices)),)
    return tuple(None if s.is_const else access for s in node.src)


def _whole(source: UOp, root: UOp) -> Access | None:
    """Return the access by which a kernel that a user wrote reads an operand: all of it."""
    return output_access(source, root, output_loops(source, root)) if source.size else None


def simplified(node: UOp) -> UOp:
    """Return an index or condition in its simplest form."""
    if node.op in (Ops.RANGE, Ops.CONST):
        return node
    simplest: UOp = SIMPLIFY_INDEX(node)
    return simplest


def settle(access: Access) -> Access:
    """Cut the loops after the innermost range that the access depends on."""
    used = access.valid.ranges.union(*[i.ranges for i in access.indices])
    depth = max((n + 1 for n, r in enumerate(access.loops) if r in used), default=0)
    return access._replace(loops=access.loops[:depth])


def reduction_ranges(node: UOp, root: UOp) -> Ranges:
    """Return new ranges for the axes that a REDUCE_AXIS combines in the kernel of `root`."""
    shape, axes = node.src[0].shape, sorted(node.reduced_axes)
    return tuple([numbered_range(shape[a], AxisType.REDUCE, root) for a in axes if shape[a] != 1])


def _reduce(node: UOp, access: Access, inner: Ranges | None) -> Access:
    shape, axes = node.src[0].shape, sorted(node.reduced_axes)
    inner = reduction_ranges(node, access.root) if inner is None else inner
    left = iter(inner)
    ranges = {a: ZERO if shape[a] == 1 else next(left) for a in axes}
    indices = tuple(ranges.get(a, i) for a, i in enumerate(access.indices))
    return access._replace(indices=indices, loops=access.loops + inner)


def _pad(node: UOp, access: Access) -> Access:
    """Return the access by which a PAD reads its source; in the padding it is not valid."""
    valid, indices = inside_of_pad(node, access.indices, access.valid)
    return settle(access._replace(indices=indices, valid=valid))


def inside_of_pad(
    node: UOp, indices: tuple[UOp, ...], valid: UOp = TRUE
) -> tuple[UOp, tuple[UOp, ...]]:
    """Return the condition and the indices by which a PAD, read at `indices` under the condition
    `valid`, reads its source."""
    shifted = []
    shape = node.src[0].shape
    for index, n, (before, after) in zip(indices, shape, node.arg, strict=True):
        if before:
            valid = _both(valid, index >= before)
        if after:
            valid = _both(valid, index < before + n)
        shifted.append(simplified(index + (-before)) if before else index)
    return simplified(valid), tuple(shifted)


def _both(one: UOp, other: UOp) -> UOp:
    return other if one is TRUE else one & other


def _permute(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    placed = dict(zip(node.arg, indices, strict=True))
    return tuple(placed[a] for a in range(len(indices)))


def _expand(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    shape = node.src[0].shape
    tail = indices[len(indices) - len(shape) :]
    return tuple(ZERO if n == 1 else i for n, i in zip(shape, tail, strict=True))


def _shrink(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    return tuple(
        simplified(i + lo) if lo else i for i, (lo, _) in zip(indices, node.arg, strict=True)
    )


def _flip(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    shape = node.src[0].shape
    return tuple(
        simplified(i * -1 + (shape[a] - 1)) if a in node.arg else i for a, i in enumerate(indices)
    )


def _reshape(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """Match the shortest runs of axes with equal products of sizes; in one, flatten and divide."""
    target, source = node.shape, node.src[0].shape
    result: list[UOp] = []
    t = s = 0
    while s < len(source) or t < len(target):
        t0, s0 = t, s
        inside, outside = 1, 1
        while True:
            if inside == outside and (t > t0 or s > s0) and not _ones_left(target, source, t, s):
                break
            if t < len(target) and (inside <= outside or s >= len(source)):
                inside, t = inside * target[t], t + 1
            else:
                outside, s = outside * source[s], s + 1
            if t >= len(target) and s >= len(source):
                break
        result += _block(indices[t0:t], target[t0:t], source[s0:s])
    return tuple(result)


def _ones_left(target: tuple[int, ...], source: tuple[int, ...], t: int, s: int) -> bool:
    """Whether one side has only axes of size 1 left, which belong to this run."""
    done_t, done_s = t >= len(target), s >= len(source)
    return done_t != done_s


def _block(indices: tuple[UOp, ...], target: tuple[int, ...], source: tuple[int, ...]) -> list[UOp]:
    if target == source:
        return list(indices)
    flat = flatten(indices, target)
    out = []
    for axis, n in enumerate(source):
        stride = math.prod(source[axis + 1 :])
        index = flat // stride if stride > 1 else flat
        out.append(ZERO if n == 1 else simplified(index % n if axis else index))
    return out


def flatten(indices: tuple[UOp, ...], shape: tuple[int, ...]) -> UOp:
    """Return the row-major position of `indices` in `shape`."""
    total = ZERO
    for axis, index in enumerate(indices):
        stride = math.prod(shape[axis + 1 :])
        term = index * stride if stride > 1 else index
        if index is not ZERO:
            total = term if total is ZERO else total + term
    return simplified(total)


_MOVES = {
    Ops.PERMUTE: _permute,
    Ops.EXPAND: _expand,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.RESHAPE: _reshape,
}


def moved(node: UOp, indices: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """Return the indices at which `node`, read at `indices`, reads its source; only movement
    changes them."""
    move = _MOVES.get(node.op)
    return indices if move is None else move(node, indices)
