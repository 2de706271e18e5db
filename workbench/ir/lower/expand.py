"""Expansion: a statement over lane axes as scalar and vector operations.

A value is expanded once for each assignment of its lanes, and memoised by (node, its lanes). So a
value that does not depend on a lane axis is computed once for all its lanes: this is broadcasting.
A load along the statement's vector axis is a vector load if its elements are contiguous, a scalar
to broadcast if it does not depend on the axis, and else a gather.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from workbench.base.dtypes import dtypes
from workbench.base.trace import derived_from
from workbench.ir.lower.lanes import At, narrow, starts, widened
from workbench.ir.lower.loads import Addresses, Loads
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Key = tuple[UOp, "UOp | None", tuple[tuple[UOp, int], ...]]
INT32 = 1 << 31


class Expander:
    """Expands values of one kernel. `widths` has the vector width of every lane axis by name;
    `depth` orders loops. If `all_narrow`, every index of the kernel fits in 32 bits; if `of_items`,
    the kernel is of one work-item."""

    def __init__(
        self,
        widths: Mapping[str, int],
        depth: Mapping[UOp, int],
        all_narrow: bool,
        of_items: bool = False,
    ):
        self.widths, self.all_narrow = widths, all_narrow
        self.addresses = Addresses(depth)
        self.loads = Loads(widths, self.addresses, of_items)
        self.memo: dict[Key, UOp] = {}

    def value(self, root: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Return `root` at `lanes`: a scalar, or the vector that begins there along the axis
        `vector`."""
        key = _key(root, vector, lanes)
        if key in self.memo:
            return self.memo[key]
        stop = frozenset({Ops.REDUCE, Ops.LOAD, Ops.WMMA, Ops.EXCHANGE})
        for node in root.toposort(lambda n: n.op not in stop):
            at = _key(node, vector, lanes)
            if at not in self.memo and node.op not in _NOT_VALUES:
                with derived_from(node):
                    self.memo[at] = self._expand(node, vector, lanes)
        return self.memo[key]

    def address(self, index: UOp, vector: UOp | None, lanes: At) -> tuple[UOp, int | None]:
        """Return (the scalar index at `lanes`, the stride along `vector`; None if not constant)."""
        return self.addresses.address(index, vector, lanes, self.value)

    def _expand(self, node: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Return `node` over its expanded sources, which are in the memo. `value` stores the result
        there by (node, vector axis, positions), with only the lanes that the node depends on."""
        if node.op is Ops.LOAD:
            return self.loads.load(node, vector, lanes, self.value)
        if node.op is Ops.REDUCE:
            return self._combine(node, vector, lanes)
        if node.op is Ops.WMMA:
            return self._product(node, vector, lanes)
        if node.op is Ops.EXCHANGE:
            return self._exchange(node, vector, lanes)
        if node.op is Ops.RANGE or node.dtype.kind == "index" and node.op in _SUMS:
            return self._index(node, vector, lanes)
        if not node.src or node.op is Ops.EXTERN:
            return node
        parts = [self.memo[_key(s, vector, lanes)] for s in node.src]
        if node.op is Ops.CAST and node.dtype is dtypes.index:
            return self._as_index(node, parts[0])
        remaining = _without_neutral(node, parts)
        if remaining is not None:
            return remaining
        lanes_wide = max(p.dtype.count for p in parts)
        if lanes_wide == 1:
            dtype = node.dtype if node.dtype.kind != "index" else parts[-1].dtype
            return _fold_condition(UOp(node.op, dtype, tuple(parts), node.arg))
        first = 1 if node.op is Ops.WHERE and parts[0].dtype.count == 1 else 0
        if node.op is not Ops.CAST:
            parts = parts[:first] + widened(parts[first:], lanes_wide)
        scalar = node.dtype if node.dtype.kind != "index" else parts[-1].dtype.scalar
        return _fold_condition(UOp(node.op, scalar.vec(lanes_wide), tuple(parts), node.arg))

    # indexes used as values: in a condition, or cast to a number

    def _index(self, node: UOp, vector: UOp | None, lanes: At) -> UOp:
        base, stride = self.address(node, vector, lanes)
        if vector is None or vector not in node.ranges:
            return base
        count = self.widths[vector.axis_name]
        if stride is None:
            each = [
                self.address(node, None, {**lanes, vector: lanes[vector] + i}) for i in range(count)
            ]
            fitting = [narrow(e) if self._fits(node) else e for e, _ in each]
            return UOp(Ops.STACK, fitting[0].dtype.vec(count), tuple(fitting))
        steps = tuple(i * stride for i in range(count))
        kind = dtypes.int32 if self._fits(node) else dtypes.index
        start = narrow(base) if kind is dtypes.int32 else base
        if base.is_const:
            return UOp(Ops.LANES, kind.vec(count), (), tuple(base.arg + s for s in steps))
        wide = UOp(Ops.BROADCAST, kind.vec(count), (start,))
        return wide + UOp(Ops.LANES, kind.vec(count), (), steps)

    def _as_index(self, node: UOp, part: UOp) -> UOp:
        """Return a number from memory as an index; its lanes are as wide as other index lanes."""
        is_narrow = part.dtype.count > 1 and self._fits(node)
        kind = (dtypes.int32 if is_narrow else dtypes.index).vec(part.dtype.count)
        return part if part.dtype is kind else part.cast(kind)

    def _fits(self, node: UOp) -> bool:
        """Whether the lanes of an index are 32 bits wide: its value and all indexes fit in them."""
        return -INT32 <= node.vmin and node.vmax < INT32 and self.all_narrow

    # tensor cores

    def _product(self, node: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Return the product of two tiles: all elements of it that a lane has, or one of them."""
        elements = node.elements
        if vector is not elements:
            whole = self.value(node, elements, {**lanes, elements: 0})
            return UOp(Ops.EXTRACT, node.dtype, (whole,), lanes[elements])
        a, b, _, *closes = node.src
        operands = []
        for source, fragment in ((a, node.arg.a), (b, node.arg.b)):
            if source.op is Ops.BITCAST:  # the instruction knows the format of the bits
                source = source.src[0]
            own = next((r for r in closes if r in source.ranges), None)
            position = lanes if own is None else {**lanes, own: 0}
            part, count = self.value(source, own, position), fragment.per_lane
            if part.dtype.count < count:  # a tile beyond the end of a padded sum is 0
                part = UOp(Ops.BROADCAST, part.dtype.vec(count), (part,))
            operands.append(part)
        dtype = node.dtype.vec(elements.extent)
        zero = UOp(Ops.BROADCAST, dtype, (node.like(0),))
        return UOp(Ops.WMMA, dtype, (*operands, zero), node.arg)

    def _exchange(self, node: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Return the fragment that the lanes of a warp make of the rows that each lane has read."""
        rows, elements, row = node.src
        if vector is not elements:
            whole = self.value(node, elements, {**lanes, elements: 0})
            return UOp(Ops.EXTRACT, node.dtype, (whole,), lanes[elements])
        if rows.op is Ops.BITCAST:
            rows = rows.src[0]
        whole = self.value(rows, row, {**lanes, row: 0})
        dtype = whole.dtype.scalar.vec(elements.extent)
        return UOp(Ops.EXCHANGE, dtype, (whole,), node.arg)

    # reductions over lanes

    def _combine(self, node: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Combine a value over lanes: along one vector axis by a tree, along others one by one."""
        own = node.src[1:]
        inner = self._own_vector(node, vector)
        scalar_lanes = [r for r in own if r is not inner]
        total: UOp | None = None
        for steps in product(*[range(r.extent) for r in scalar_lanes]):
            position = {**lanes, **dict(zip(scalar_lanes, steps, strict=True))}
            for start in starts(inner, self.widths):
                across = vector if inner is None else inner
                one = self.value(
                    node.src[0], across, position if inner is None else {**position, inner: start}
                )
                total = _rounded(one) if total is None else combine(node, node.arg, total, one)
        assert total is not None
        if inner is None:
            return total
        # a value without lanes, such as a constant condition, still counts once per lane
        (wide,) = widened([total], self.widths[inner.axis_name])
        return UOp(Ops.HREDUCE, node.dtype, (wide,), node.arg)

    def _own_vector(self, node: UOp, vector: UOp | None) -> UOp | None:
        """Return the lane axis along which a horizontal reduction reads vectors; None where the
        reduction depends on the axis `vector`, or reads no vectors."""
        if vector is not None and vector in node.ranges:
            return None
        for lane in node.src[1:]:
            is_wide = self.widths.get(lane.axis_name, 1) > 1
            if is_wide and self.loads.has_neighbours(node.src[0], lane):
                return lane
        return None


def combine(source: UOp, kind: Ops, total: UOp, one: UOp) -> UOp:
    """Return total (op) one, a step of the reduction `source`. A product that is not rounded yet is
    added by a multiply-add."""
    count = max(total.dtype.count, one.dtype.count)
    if kind is Ops.ADD and one.op is Ops.WMMA:
        with derived_from(source, one):  # its addend is 0 and is replaced by the total
            return UOp(Ops.WMMA, one.dtype, (*one.src[:2], total), one.arg)
    if kind is Ops.ADD and _is_product(one):
        with derived_from(source, one):
            a, b, addend = _widened([*one.src[:2], total], count)
            return UOp(Ops.FMA, addend.dtype, (a, b, addend))
    one, total = _widened([one, total], count)
    return UOp(kind, total.dtype, (total, one))


def _widened(parts: list[UOp], count: int) -> list[UOp]:
    return widened(parts, count) if count > 1 else parts


def _is_product(value: UOp) -> bool:
    """Whether a value is an FMA(a, b, -0.0): a product that the rule form-fma left unrounded."""
    if value.op is not Ops.FMA or not value.dtype.is_float:
        return False
    zero = value.src[2].src[0] if value.src[2].op is Ops.BROADCAST else value.src[2]
    return zero.is_const and zero.arg == 0.0 and math.copysign(1.0, zero.arg) < 0.0


def _rounded(one: UOp) -> UOp:
    """Return the first number of a sum, rounded if it is a product, as nothing is added to it."""
    if not _is_product(one):
        return one
    with derived_from(one):
        return UOp(Ops.MUL, one.dtype, one.src[:2])


def _key(node: UOp, vector: UOp | None, lanes: At) -> Key:
    """Return the key of the memo, with all lanes that `node` depends on. The ranges of the node
    decide which, not the caller: without one of them, all lanes along it would get one value."""
    own = tuple((r, lanes[r]) for r in lanes if r in node.ranges)
    return node, vector if vector in node.ranges else None, own


def _without_neutral(node: UOp, parts: list[UOp]) -> UOp | None:
    """Return a source of an AND or OR whose other source is its neutral element, a constant once
    lanes are known: `x & True` is x. None for other nodes."""
    if node.op not in (Ops.AND, Ops.OR) or not node.dtype.is_bool:
        return None
    neutral = node.op is Ops.AND
    first, second = parts
    if first.is_const and first.arg == neutral:
        return second
    return first if second.is_const and second.arg == neutral else None


def _fold_condition(node: UOp) -> UOp:
    """Return a condition that is constant once lanes are known as a CONST (29 < 100 is True), and a
    WHERE of such a condition as the side that it picks."""
    if node.op is Ops.WHERE and node.src[0].is_const:
        return node.src[1] if node.src[0].arg else node.src[2]
    if not node.dtype.is_bool:
        return node
    low, high = node.bounds
    return UOp.const(node.dtype.scalar, low) if low == high else node


_NOT_VALUES = frozenset({Ops.INDEX, Ops.DEFINE, Ops.PARAM, Ops.INVALID})
_SUMS = frozenset({Ops.ADD, Ops.MUL})
