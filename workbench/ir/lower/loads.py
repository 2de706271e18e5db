"""Loads of lanes: a vector load of contiguous elements, a scalar load of a uniform element, an
in-register transpose of a square of vectors, or one load per lane. The lanes of a work-item are
separate values: it loads contiguous elements along any lane axis at once, and extracts each.

Sections: Addresses of lanes; Loads of lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.trace import derived_from
from workbench.ir.lower.lanes import At, Value, VectorRegisters, has_lanes, is_value, widened
from workbench.ir.node import construct
from workbench.ir.node.exact_range import from_terms, row_major, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate
from workbench.ir.rules.index import SIMPLIFY_INDEX

# --------------------------------------------------------------------------------------------------
# Addresses of lanes: an index as a sum that loops can hoist, and a stride along the vector.
#
# `64*g0 + 4*g1 + u0` at u0 = 3 is `64*g0 + 4*g1 + 3`; along u0 its stride is 1. An index that is
# not a sum of multiples of axes (a division with a lane inside, a number from memory) is computed
# for each position.


class Parts(NamedTuple):
    """An index as a sum: `base` has the terms that depend on loops alone, `strides` the factor of
    each lane axis, `odd` the factors of all other terms, with lanes inside or from memory."""

    base: UOp
    strides: dict[UOp, int]
    odd: dict[UOp, int]
    constant: int


@dataclass(slots=True)
class Addresses:
    """The indexes of one kernel. `depth` orders loops, so that sums can be hoisted level by
    level."""

    depth: Mapping[UOp, int]
    sums: dict[UOp, Parts] = field(default_factory=dict)

    def address(
        self, index: UOp, vector: UOp | None, lanes: At, value: Value
    ) -> tuple[UOp, int | None]:
        """Return (the scalar index at `lanes`, the stride along `vector`; None if not constant).
        `value` expands numbers from memory."""
        with derived_from(index):
            return self._address(index, vector, lanes, value)

    def _address(
        self, index: UOp, vector: UOp | None, lanes: At, value: Value
    ) -> tuple[UOp, int | None]:
        base, strides, odd, constant = self._parts(index)
        for lane, k in strides.items():
            constant += k * lanes[lane]
        stride: int | None = 0 if vector is None else strides.get(vector, 0)
        if odd:
            if vector is not None and any(vector in atom.ranges for atom in odd):
                stride = None
            merged, rest = terms(base)
            for atom, k in odd.items():
                parts, more = terms(_atom(atom, lanes, value) * k)
                for part, times in parts.items():
                    merged[part] = merged.get(part, 0) + times
                constant += more
            base = self._ordered(merged, rest)
        if base.is_const:
            return UOp.index(base.arg + constant), stride
        return base + constant if constant else base, stride

    def strides(self, place: UOp) -> dict[UOp, int]:
        """Return the stride of an INDEX along each lane axis where it has one."""
        return self._parts(split_gate(flat(place))[0]).strides

    def _parts(self, index: UOp) -> Parts:
        index_parts = self.sums.get(index)
        if index_parts is None:
            parts, constant = terms(index)
            strides = {a: k for a, k in parts.items() if a.op is Ops.RANGE and a.axis_kind.is_lane}
            odd = {
                a: k for a, k in parts.items() if a not in strides and (has_lanes(a) or is_value(a))
            }
            loops = {a: k for a, k in parts.items() if a not in strides and a not in odd}
            base = self._ordered(loops, 0)
            index_parts = self.sums[index] = Parts(base, strides, odd, constant)
        return index_parts

    def _ordered(self, parts: Mapping[UOp, int], constant: int) -> UOp:
        """Return the sum with the terms of outer loops first, so that prefixes of it can be
        hoisted."""
        deep = sorted(
            parts.items(), key=lambda p: max((self.depth.get(r, 0) for r in p[0].ranges), default=0)
        )
        return from_terms(dict(deep), constant, UOp.index(0))


def _atom(node: UOp, lanes: At, value: Value) -> UOp:
    """Return a term of a sum at `lanes`: expanded if it is read from memory, else simplified."""
    if is_value(node):
        return value(node, None, lanes)
    fixed = {r: UOp.index(lanes[r]) for r in node.ranges if r in lanes}
    expression: UOp = SIMPLIFY_INDEX(node.substitute(fixed))
    return expression


def flat(place: UOp) -> UOp:
    """Return the one flat index of an INDEX, valid where all of its indexes are."""
    if place.memory.op is not Ops.DEFINE:
        return place.flat_index
    with derived_from(*place.indexes):
        total = row_major(place.indexes, place.memory.memory_shape)
        index, gate = split_gate(total)
        whole = from_terms(*terms(index), UOp.index(0))
        return whole if gate is None else gated(whole, gate)


# --------------------------------------------------------------------------------------------------
# Loads of lanes.


@dataclass(slots=True)
class Loads:
    """Expands the loads of one kernel (`of_items`: of one work-item). The callable `value` expands
    gates and single lanes."""

    widths: Mapping[str, int]
    addresses: Addresses
    of_items: bool = False
    registers: dict[UOp, VectorRegisters] = field(default_factory=dict)
    blocks: dict[tuple[UOp, UOp, tuple[tuple[UOp, int], ...]], list[UOp]] = field(
        default_factory=dict
    )

    def load(self, node: UOp, vector: UOp | None, lanes: At, value: Value) -> UOp:
        """Return a LOAD at `lanes`: a scalar, or the vector that begins there along the axis
        `vector`. The first case that fits is taken:

            an accumulator              its register
            a false gate                0
            lanes of a work-item        an element of the vector along its neighbours
            stride 0, or no vector      a scalar
            stride 1                    a vector
            neighbours in part          vectors of 4 or 2, joined
            neighbours across           a square of vectors, transposed
            otherwise                   an element for each lane, stacked
        """
        place = node.src[0]
        if place.src[0] in self.registers:
            return self._register(place, vector, lanes)
        index, gate = split_gate(flat(place))
        at, stride = self.addresses.address(index, vector, lanes, value)
        test = None if gate is None else self._test(gate, vector, lanes, value)
        if test is not None and test.is_const and not test.arg:
            return node.like(0)
        condition = () if test is None or test.is_const else (test,)
        same = stride == 0 and (gate is None or vector not in gate.ranges)
        other = self._neighbours(node, vector, gate, lanes) if self.of_items else None
        if other is not None and (vector is None or same):
            start = lanes[other] - lanes[other] % self.widths[other.axis_name]
            whole = value(node, other, {**lanes, other: start})
            return UOp(Ops.EXTRACT, node.dtype, (whole,), lanes[other] - start)
        if vector is None or same:
            return _read(node, at, node.dtype, condition)
        count = self.widths[vector.axis_name]
        if stride == 1:
            wide = tuple(widened(list(condition), count))
            return _read(node, at, node.dtype.vec(count), wide)
        if stride is None and (gate is None or vector not in gate.ranges):
            blocks = self._blocks(node, vector, lanes, value, condition)
            if blocks is not None:
                return blocks
        other = self._unit_lane(node, vector, lanes)
        if other is not None:
            return self._transposed(node, vector, other, lanes, value)
        each = [value(node, None, {**lanes, vector: lanes[vector] + i}) for i in range(count)]
        return UOp(Ops.STACK, node.dtype.vec(count), tuple(each))

    def _test(self, gate: UOp, vector: UOp | None, lanes: At, value: Value) -> UOp:
        """Return the condition of a load. For a vector of a work-item it is a single condition, if
        all lanes have the same."""
        if self.of_items and vector is not None and vector in gate.ranges:
            first, count = lanes[vector], self.widths[vector.axis_name]
            tests = {
                SIMPLIFY_INDEX(gate.substitute({vector: UOp.index(first + i)}))
                for i in range(count)
            }
            if len(tests) == 1:
                return value(tests.pop(), None, lanes)
        return value(gate, vector, lanes)

    def _blocks(
        self, node: UOp, vector: UOp, lanes: At, value: Value, condition: tuple[UOp, ...]
    ) -> UOp | None:
        """Return a vector whose elements stand in memory in contiguous blocks, such as a lane's
        part of a tile: each block is one load. None where there are no such blocks."""
        count, first = self.widths[vector.axis_name], lanes[vector]
        index = split_gate(flat(node.place))[0]
        places = [
            self.addresses.address(index, None, {**lanes, vector: first + i}, value)[0]
            for i in range(count)
        ]
        size = block_size(places)
        if size == 1:
            return None
        dtype = node.dtype.vec(size)
        wide = tuple(widened(list(condition), size))
        blocks = [_read(node, at, dtype, wide) for at in places[::size]]
        each = [UOp(Ops.EXTRACT, node.dtype, (block,), i) for block in blocks for i in range(size)]
        return UOp(Ops.STACK, node.dtype.vec(count), tuple(each))

    def has_neighbours(self, value: UOp, lane: UOp) -> bool:
        """Whether the first load below `value` that depends on `lane` reads neighbours along it."""
        for node in value.toposort():
            if node.op is Ops.LOAD and lane in node.ranges:
                accumulator = self.registers.get(node.place.memory)
                if accumulator is not None:
                    return accumulator.vector is lane
                return self.addresses.strides(node.src[0]).get(lane) == 1
        return False

    def _register(self, place: UOp, vector: UOp | None, lanes: At) -> UOp:
        """Read an accumulator: a whole register if its vectors run along `vector`, else by
        lanes."""
        accumulator = self.registers[place.src[0]]
        if vector is None or vector not in accumulator.dims:
            return accumulator.element(lanes)
        if accumulator.vector is vector:
            return accumulator.at(lanes)[0]
        count = self.widths[vector.axis_name]
        each = [accumulator.element({**lanes, vector: lanes[vector] + i}) for i in range(count)]
        return UOp(Ops.STACK, accumulator.dtype.vec(count), tuple(each))

    def _neighbours(self, node: UOp, vector: UOp | None, gate: UOp | None, lanes: At) -> UOp | None:
        """Return a lane axis along which `node` loads contiguous elements under the same gate."""
        for lane, stride in self.addresses.strides(node.src[0]).items():
            is_wide = lane in lanes and self.widths[lane.axis_name] > 1
            if stride == 1 and is_wide and lane is not vector:
                return None if gate is not None and lane in gate.ranges else lane
        return None

    def _unit_lane(self, node: UOp, vector: UOp, lanes: At) -> UOp | None:
        """Return another lane axis along which `node` loads neighbours, as wide as `vector`."""
        count = self.widths[vector.axis_name]
        fits = count & (count - 1) == 0 and not node.dtype.is_bool
        for lane, stride in self.addresses.strides(node.src[0]).items():
            if fits and stride == 1 and lane in lanes and lane is not vector:
                if self.widths[lane.axis_name] == count:
                    return lane
        return None

    def _transposed(self, node: UOp, vector: UOp, other: UOp, lanes: At, value: Value) -> UOp:
        """Load a square block of vectors along `other`, and return its vector along `vector` at
        `lanes`: interleaving the halves of the block log2(width) times transposes it."""
        count, at = self.widths[vector.axis_name], lanes[other]
        start = {**lanes, other: at - at % count}
        key = (node, vector, tuple((r, start[r]) for r in start if r in node.ranges))
        if key not in self.blocks:
            rows = [value(node, other, {**start, vector: lanes[vector] + i}) for i in range(count)]
            rows = widened(rows, count)  # a row beyond a gate is one 0
            half = count // 2
            while half:
                pairs = zip(rows[: count // 2], rows[count // 2 :], strict=True)
                rows = [v for a, b in pairs for v in _interleaved(a, b)]
                half //= 2
            self.blocks[key] = rows
        return self.blocks[key][at % count]


def _read(load: UOp, at: UOp, dtype: DType, condition: tuple[UOp, ...]) -> UOp:
    address = construct.index(load.place.memory, at)
    return UOp(Ops.LOAD, dtype, (address, *condition), load.arg)


def block_size(places: list[UOp]) -> int:
    """Return the length of the blocks of contiguous elements: 4, 2 or 1, the same for all."""
    sums = [terms(place) for place in places]
    for size in (4, 2):
        begins = [sums[i - i % size] for i in range(len(sums))]
        if len(sums) % size == 0 and all(
            parts == begin and constant == more + i % size
            for i, ((parts, constant), (begin, more)) in enumerate(zip(sums, begins, strict=True))
        ):
            return size
    return 1


def _interleaved(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return the lanes of `a` and `b` in turn, as two vectors: of the first halves, and of the
    second halves."""
    count = a.dtype.count
    picks = [lane for i in range(count) for lane in (i, i + count)]
    return (
        UOp(Ops.SHUFFLE, a.dtype, (a, b), tuple(picks[:count])),
        UOp(Ops.SHUFFLE, a.dtype, (a, b), tuple(picks[count:])),
    )
