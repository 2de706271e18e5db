"""Lanes: one statement over lane axes becomes plain and vector operations.

A value is expanded per assignment of its lanes and remembered by (node, its own lanes): a value
that lacks a lane is made once for all of them, and that is all there is to broadcasting. Along
the statement's vector axis a load of neighbours is a vector load, a load that does not depend
on it is a scalar to broadcast, anything else is gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from workbench.dtypes import DType, dtypes
from workbench.ir.affine import from_terms, terms
from workbench.ir.lower.vectors import width
from workbench.ir.ops import Ops
from workbench.ir.rewrite import rewrite
from workbench.ir.rules.index import SIMPLIFY
from workbench.ir.uop import UOp, leaves, split_gate
from workbench.target import Target
from workbench.trace import Link, unobserved

Lanes = tuple[tuple[UOp, int], ...]
INT32 = 1 << 31


@dataclass(frozen=True, slots=True)
class Registers:
    """A register accumulator: its lane dimensions, and the one that is the vector (if any)."""

    name: str
    dtype: DType
    dims: tuple[UOp, ...]
    vector: UOp | None
    width: int

    def at(self, lanes: Mapping[UOp, int]) -> tuple[UOp, int]:
        """Return (REG, position in it) of one element."""
        flat, inner = 0, 0
        for dim in self.dims:
            value = lanes[dim]
            if dim is self.vector:
                inner = value % self.width
                value -= inner
            flat = flat * dim.extent + value
        return UOp(Ops.REG, self.dtype.vec(self.width), (), (self.name, flat)), inner


@dataclass(slots=True)
class Expander:
    """Expands values of one kernel. `depth` orders loops, so that sums hoist level by level."""

    target: Target
    widths: Mapping[str, int]
    depth: Mapping[UOp, int]
    registers: dict[UOp, Registers] = field(default_factory=dict)
    memo: dict[tuple[UOp, UOp | None, Lanes], UOp] = field(default_factory=dict)
    sums: dict[UOp, tuple[UOp, dict[UOp, int], dict[UOp, int], int]] = field(
        default_factory=dict
    )
    blocks: dict[tuple[UOp, UOp, Lanes], list[UOp]] = field(default_factory=dict)
    all_narrow: bool = True

    def value(self, root: UOp, vector: UOp | None, lanes: Mapping[UOp, int]) -> UOp:
        """Return `root` at `lanes`; along `vector` as many lanes as its width, from there on."""
        key = self._key(root, vector, lanes)
        if key in self.memo:
            return self.memo[key]
        stop = frozenset({Ops.REDUCE, Ops.LOAD})
        for node in root.toposort(lambda n: n.op not in stop):
            at = self._key(node, vector, lanes)
            if at not in self.memo and node.op not in _NOT_VALUES:
                self.memo[at] = self._expand(node, vector, lanes)
        return self.memo[key]

    def links(self) -> list[Link]:
        """Return which value of the tree each expanded value came from."""
        return [
            Link(made, source)
            for (source, _, _), made in self.memo.items()
            if made is not source
        ]

    def _key(
        self, node: UOp, vector: UOp | None, lanes: Mapping[UOp, int]
    ) -> tuple[UOp, UOp | None, Lanes]:
        own = tuple((r, lanes[r]) for r in lanes if r in node.ranges)
        return node, vector if vector in node.ranges else None, own

    def _expand(self, node: UOp, vector: UOp | None, lanes: Mapping[UOp, int]) -> UOp:
        if node.op is Ops.LOAD:
            return self._load(node, vector, lanes)
        if node.op is Ops.REDUCE:
            return self._combine(node, vector, lanes)
        if node.op is Ops.RANGE or node.dtype.kind == "index" and node.op in _SUMS:
            return self._index(node, vector, lanes)
        if not node.src:
            return node
        parts = [self.memo[self._key(s, vector, lanes)] for s in node.src]
        if node.op is Ops.CAST and node.dtype is dtypes.index:
            return self._as_index(node, parts[0])
        lanes_wide = max(p.dtype.count for p in parts)
        if lanes_wide == 1:
            dtype = node.dtype if node.dtype.kind != "index" else parts[-1].dtype
            return _known(UOp(node.op, dtype, tuple(parts), node.arg))
        first = 1 if node.op is Ops.WHERE and parts[0].dtype.count == 1 else 0
        if node.op is not Ops.CAST:
            parts = parts[:first] + self._same(parts[first:], lanes_wide)
        scalar = node.dtype if node.dtype.kind != "index" else parts[-1].dtype.scalar
        return _known(UOp(node.op, scalar.vec(lanes_wide), tuple(parts), node.arg))

    def _same(self, parts: list[UOp], count: int) -> list[UOp]:
        """Make operands equally wide; index scalars join narrow index lanes."""
        lane_types = {p.dtype.scalar for p in parts if p.dtype.count > 1}
        out = []
        for part in parts:
            if part.dtype.count == 1:
                if part.dtype.kind == "index" and dtypes.int32 in lane_types:
                    part = self._narrow(part)
                part = UOp(Ops.BROADCAST, part.dtype.vec(count), (part,))
            out.append(part)
        return out

    def _narrow(self, part: UOp) -> UOp:
        return (
            UOp.const(dtypes.int32, part.arg)
            if part.is_const
            else part.cast(dtypes.int32)
        )

    # index arithmetic

    def _as_index(self, node: UOp, part: UOp) -> UOp:
        """Return a number from memory as an index, its lanes as wide as other index lanes."""
        narrow = part.dtype.count > 1 and self._fits(node)
        kind = (dtypes.int32 if narrow else dtypes.index).vec(part.dtype.count)
        return part if part.dtype is kind else part.cast(kind)

    def address(
        self, index: UOp, vector: UOp | None, lanes: Mapping[UOp, int]
    ) -> tuple[UOp, int | None]:
        """Return (the scalar index at `lanes`, the stride along `vector`; None if not constant)."""
        base, strides, odd, constant = self._sum(index)
        for lane, k in strides.items():
            constant += k * lanes[lane]
        stride: int | None = 0 if vector is None else strides.get(vector, 0)
        if odd:
            if vector is not None and any(vector in atom.ranges for atom in odd):
                stride = None
            merged, rest = terms(base)
            for atom, k in odd.items():
                parts, more = terms(self._atom(atom, lanes) * k)
                for part, times in parts.items():
                    merged[part] = merged.get(part, 0) + times
                constant += more
            base = self._ordered(merged, rest)
        if base.is_const:
            return UOp.index(base.arg + constant), stride
        return base + constant if constant else base, stride

    def _sum(self, index: UOp) -> tuple[UOp, dict[UOp, int], dict[UOp, int], int]:
        """Split a sum into (loop part, stride per lane, atoms with lanes inside, constant)."""
        found = self.sums.get(index)
        if found is None:
            parts, constant = terms(index)
            strides = {
                a: k
                for a, k in parts.items()
                if a.op is Ops.RANGE and a.axis_kind.is_lane
            }
            odd = {
                a: k
                for a, k in parts.items()
                if a not in strides and (has_lanes(a) or reads_memory(a))
            }
            loops = {
                a: k for a, k in parts.items() if a not in strides and a not in odd
            }
            found = self.sums[index] = (self._ordered(loops, 0), strides, odd, constant)
        return found

    def _ordered(self, parts: Mapping[UOp, int], constant: int) -> UOp:
        """Return the sum, what changes in outer loops first: prefixes of it hoist."""
        deep = sorted(
            parts.items(),
            key=lambda p: max((self.depth.get(r, 0) for r in p[0].ranges), default=0),
        )
        return from_terms(dict(deep), constant, UOp.index(0))

    def _atom(self, node: UOp, lanes: Mapping[UOp, int]) -> UOp:
        """Return a part of a sum at `lanes`: read from memory, or as simple as it is there."""
        if reads_memory(node):
            return self.value(node, None, lanes)
        fixed = {r: UOp.index(lanes[r]) for r in node.ranges if r in lanes}
        with unobserved():
            return rewrite(node.substitute(fixed), SIMPLIFY)

    def _index(self, node: UOp, vector: UOp | None, lanes: Mapping[UOp, int]) -> UOp:
        """Expand an index used as a value (in a condition, or cast to a number)."""
        base, stride = self.address(node, vector, lanes)
        if vector is None or vector not in node.ranges:
            return base
        count = self.widths[vector.axis_name]
        if stride is None:
            each = [
                self.address(node, None, {**lanes, vector: lanes[vector] + i})[0]
                for i in range(count)
            ]
            if self._fits(node):
                each = [self._narrow(e) for e in each]
            return UOp(Ops.STACK, each[0].dtype.vec(count), tuple(each))
        steps = tuple(i * stride for i in range(count))
        kind = dtypes.int32 if self._fits(node) else dtypes.index
        start = self._narrow(base) if kind is dtypes.int32 else base
        if base.is_const:
            return UOp(
                Ops.LANES, kind.vec(count), (), tuple(base.arg + s for s in steps)
            )
        spread = UOp(Ops.BROADCAST, kind.vec(count), (start,))
        return spread + UOp(Ops.LANES, kind.vec(count), (), steps)

    def _fits(self, node: UOp) -> bool:
        """Whether index lanes may be 32 bits wide: decided once per value, all or none."""
        return -INT32 <= node.vmin and node.vmax < INT32 and self.all_narrow

    # loads

    def _load(self, node: UOp, vector: UOp | None, lanes: Mapping[UOp, int]) -> UOp:
        place = node.src[0]
        if place.src[0] in self.registers:
            return self._register(place, vector, lanes)
        index, gate = split_gate(self.flat(place))
        at, stride = self.address(index, vector, lanes)
        test = None if gate is None else self.value(gate, vector, lanes)
        if test is not None and test.is_const and not test.arg:
            return node.like(0)
        condition = () if test is None or test.is_const else (test,)
        if (
            vector is None
            or stride == 0
            and (gate is None or vector not in gate.ranges)
        ):
            return self._read(node, at, node.dtype, condition)
        count = self.widths[vector.axis_name]
        if stride == 1:
            wide = tuple(self._same(list(condition), count))
            return self._read(node, at, node.dtype.vec(count), wide)
        other = self._unit_lane(node, vector, lanes)
        if other is not None:
            return self._transposed(node, vector, other, lanes)
        each = [
            self.value(node, None, {**lanes, vector: lanes[vector] + i})
            for i in range(count)
        ]
        return UOp(Ops.STACK, node.dtype.vec(count), tuple(each))

    def _unit_lane(
        self, node: UOp, vector: UOp, lanes: Mapping[UOp, int]
    ) -> UOp | None:
        """Return another lane axis along which `node` loads neighbours, as wide as `vector`."""
        count = self.widths[vector.axis_name]
        strides = self._sum(split_gate(self.flat(node.src[0]))[0])[1]
        fits = count & (count - 1) == 0 and not node.dtype.is_bool
        for lane, stride in strides.items():
            if fits and stride == 1 and lane in lanes and lane is not vector:
                if self.widths[lane.axis_name] == count:
                    return lane
        return None

    def _transposed(
        self, node: UOp, vector: UOp, other: UOp, lanes: Mapping[UOp, int]
    ) -> UOp:
        """Load a square block of vectors along `other`, and return the one vector along `vector`
        that is asked for: interleaving the halves of the block log2(width) times turns it round."""
        count, at = self.widths[vector.axis_name], lanes[other]
        start = {**lanes, other: at - at % count}
        key = (node, vector, tuple((r, start[r]) for r in start if r in node.ranges))
        if key not in self.blocks:
            rows = [
                self.value(node, other, {**start, vector: lanes[vector] + i})
                for i in range(count)
            ]
            rows = self._same(rows, count)  # a row beyond a gate is one 0
            half = count // 2
            while half:
                pairs = zip(rows[: count // 2], rows[count // 2 :], strict=True)
                rows = [v for a, b in pairs for v in _interleaved(a, b)]
                half //= 2
            self.blocks[key] = rows
        return self.blocks[key][at % count]

    def _read(
        self, load: UOp, at: UOp, dtype: DType, condition: tuple[UOp, ...]
    ) -> UOp:
        address = UOp(Ops.INDEX, load.dtype, (load.src[0].src[0], at))
        return UOp(Ops.LOAD, dtype, (address, *condition), load.arg)

    def flat(self, place: UOp) -> UOp:
        """Return the one flat index of an INDEX."""
        if place.src[0].op is not Ops.DEFINE:
            return place.src[1]
        total = UOp.index(0)
        for extent, index in zip(place.src[0].arg.shape, place.src[1:], strict=True):
            total = total * extent + index
        return from_terms(*terms(total), UOp.index(0))

    def _register(
        self, place: UOp, vector: UOp | None, lanes: Mapping[UOp, int]
    ) -> UOp:
        """Read an accumulator: a whole register where the vectors agree, else lane by lane."""
        held = self.registers[place.src[0]]
        if vector is None or vector not in held.dims:
            return _lane(*held.at(lanes))
        count = self.widths[vector.axis_name]
        if held.vector is vector:
            return held.at(lanes)[0]
        each = [
            _lane(*held.at({**lanes, vector: lanes[vector] + i})) for i in range(count)
        ]
        return UOp(Ops.STACK, held.dtype.vec(count), tuple(each))

    def _combine(self, node: UOp, vector: UOp | None, lanes: Mapping[UOp, int]) -> UOp:
        """Combine a value over lanes: along a whole vector as a tree, over others in turn."""
        own = node.src[1:]
        inner = self._own_vector(node, vector)
        rest = [r for r in own if r is not inner]
        total: UOp | None = None
        for steps in product(*[range(r.extent) for r in rest]):
            here = {**lanes, **dict(zip(rest, steps, strict=True))}
            for start in self._starts(inner):
                across = vector if inner is None else inner
                one = self.value(
                    node.src[0],
                    across,
                    here if inner is None else {**here, inner: start},
                )
                total = one if total is None else combine(node.arg, total, one)
        assert total is not None
        if inner is not None and total.dtype.count > 1:
            return UOp(Ops.HREDUCE, node.dtype, (total,), node.arg)
        return total

    def _own_vector(self, node: UOp, vector: UOp | None) -> UOp | None:
        """Return the lane that a horizontal reduction takes as vectors: where nothing else is."""
        if vector is not None and vector in node.ranges:
            return None
        for lane in node.src[1:]:
            if self.widths.get(lane.axis_name, 1) > 1 and self._reads_units(
                node.src[0], lane
            ):
                return lane
        return None

    def _reads_units(self, value: UOp, lane: UOp) -> bool:
        for node in value.toposort():
            if node.op is Ops.LOAD and lane in node.ranges:
                held = self.registers.get(node.src[0].src[0])
                if held is not None:
                    return held.vector is lane
                return (
                    self._sum(split_gate(self.flat(node.src[0]))[0])[1].get(lane) == 1
                )
        return False

    def _starts(self, axis: UOp | None) -> range:
        return (
            range(1)
            if axis is None
            else range(0, axis.extent, self.widths[axis.axis_name])
        )

    def spread(self, axes: list[UOp], vector: UOp | None) -> Iterator[dict[UOp, int]]:
        """Yield lane assignments, the axis with most registers outermost: then the operands of the
        inner ones are few, and stay in registers."""
        steps = {a: self._starts(a) if a is vector else range(a.extent) for a in axes}
        ordered = sorted(axes, key=lambda a: (-len(steps[a]), a is vector))
        for values in product(*[steps[a] for a in ordered]):
            yield dict(zip(ordered, values, strict=True))


def _interleaved(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return the lanes of two vectors in turn: the first halves', and the second halves'."""
    count = a.dtype.count
    picks = [lane for i in range(count) for lane in (i, i + count)]
    return (
        UOp(Ops.SHUFFLE, a.dtype, (a, b), tuple(picks[:count])),
        UOp(Ops.SHUFFLE, a.dtype, (a, b), tuple(picks[count:])),
    )


def _known(node: UOp) -> UOp:
    """Return a condition that its lanes have settled as a constant: 29 < 100 is True."""
    if not node.dtype.is_bool:
        return node
    low, high = node.bounds
    return UOp.const(node.dtype.scalar, low) if low == high else node


def combine(kind: Ops, total: UOp, one: UOp) -> UOp:
    """Return total (op) one; a sum of float products is a fused multiply-add."""
    count = max(total.dtype.count, one.dtype.count)
    if (
        kind is Ops.ADD
        and one.op is Ops.MUL
        and one.dtype.is_float
        and one.dtype is total.dtype
    ):
        return UOp(Ops.FMA, total.dtype, (*one.src, total))
    if one.dtype.count < count:
        one = UOp(Ops.BROADCAST, one.dtype.vec(count), (one,))
    if total.dtype.count < count:
        total = UOp(Ops.BROADCAST, total.dtype.vec(count), (total,))
    return UOp(kind, total.dtype, (total, one))


def reads_memory(node: UOp) -> bool:
    """Whether an index is, or is made of, a number from memory."""
    return node.op is not Ops.RANGE and any(leaves([node], Ops.LOAD))


def has_lanes(node: UOp) -> bool:
    return any(r.axis_kind.is_lane for r in node.ranges)


def lane_widths(axes: list[UOp], itemsize: int, target: Target) -> dict[str, int]:
    """Return the vector width of every lane axis, one for the whole kernel."""
    widest = target.vector_width(itemsize)
    return {a.axis_name: width(a.extent, widest) for a in axes}


def _lane(register: UOp, position: int) -> UOp:
    if register.dtype.count == 1:
        return register
    return UOp(Ops.EXTRACT, register.dtype.scalar, (register,), position)


_NOT_VALUES = frozenset({Ops.INDEX, Ops.DEFINE, Ops.PARAM, Ops.INVALID})
_SUMS = frozenset({Ops.ADD, Ops.MUL})
