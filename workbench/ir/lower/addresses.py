"""Addresses of lanes: an index as a sum that loops can hoist, and a stride along the vector.

`64*g0 + 4*g1 + u0` at u0 = 3 is `64*g0 + 4*g1 + 3`; along u0 its stride is 1. An index
that is not a plain sum of axes (a division with a lane inside, a number from memory) is computed
for each place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.base.trace import derived_from
from workbench.ir.lower.lanes import At, Value, has_lanes, is_value
from workbench.ir.node.affine import from_terms, row_major, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate
from workbench.ir.rules.index import SIMPLIFY_INDEX


class Parts(NamedTuple):
    """An index as a sum: the terms that depend on loops alone, the factor of each lane axis, the
    atoms with lanes inside and their factors, and the constant."""

    base: UOp
    strides: dict[UOp, int]
    odd: dict[UOp, int]
    constant: int


@dataclass(slots=True)
class Addresses:
    """Indexes of one kernel. `depth` orders loops, so that sums hoist level by level."""

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
    """Return a term of a sum at `lanes`: read from memory, or simplified for these lanes."""
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
