"""Analyses of index expressions: affine terms, values, exact ranges, and the elements they touch.

Interval arithmetic ignores that `i // 8 * 8` and `i % 8` depend on the same `i`. The parts of a sum
that share no range are independent, so each is evaluated at every step of its own few ranges, and
the extremes add up.

Sections: Affine index expressions; The values of index expressions for all values of their
ranges, as numpy arrays; The exact least and greatest value of an index expression, where
interval bounds are too wide; The elements that one gated index touches while some ranges run, as
(stride, extent) pairs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.ir.meaning.evaluate import Array, constant, elementwise
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate

# --------------------------------------------------------------------------------------------------
# Affine index expressions: `4*g0 + u0 + 3` is the sum of {g0: 4, u0: 1} and 3.
#
# An atom is any node but a sum or a product with a constant: a RANGE, a division, a load.

Terms = dict[UOp, int]


def terms(node: UOp) -> tuple[Terms, int]:
    """Return ({atom: coefficient}, constant) of an integer expression, in order of appearance."""
    coefficients: Terms = {}
    constant = 0
    stack = [(node, 1)]
    sums = set()
    while stack:
        part, factor = stack.pop()
        if part.op is Ops.CONST:
            constant += part.arg * factor
        elif part.op is Ops.ADD:
            if part in sums:
                return _terms_of_shared(node)
            sums.add(part)
            stack.extend([(part.src[1], factor), (part.src[0], factor)])
        elif _is_multiple(part):
            stack.append((part.src[0], factor * part.src[1].arg))
        else:
            coefficients[part] = coefficients.get(part, 0) + factor
    return {atom: factor for atom, factor in coefficients.items() if factor}, constant


def _terms_of_shared(node: UOp) -> tuple[Terms, int]:
    """Return the terms of an expression in which sums are read several times. Each is taken apart
    once, when its factor is known: along the paths, n sums of a value and itself would take 2**n
    steps."""
    factors = dict.fromkeys(_summands(node), 0)
    factors[node], constant = 1, 0
    atoms = []
    for part in reversed(factors):
        factor = factors[part]
        if part.op is Ops.CONST:
            constant += part.arg * factor
        elif part.op is Ops.ADD:
            for operand in part.src:
                factors[operand] += factor
        elif _is_multiple(part):
            factors[part.src[0]] += factor * part.src[1].arg
        elif factor:
            atoms.append(part)
    return {atom: factors[atom] for atom in reversed(atoms)}, constant


def _summands(node: UOp) -> dict[UOp, None]:
    """Return the sums and products of an expression, each after its operands, and its atoms."""
    parts: dict[UOp, None] = {}
    stack = [(node, False)]
    while stack:
        part, is_left = stack.pop()
        if is_left:
            parts[part] = None
        elif part not in parts:
            inner = part.src[:1] if _is_multiple(part) else ()
            operands = part.src if part.op is Ops.ADD else inner
            stack.append((part, True))
            stack += [(operand, False) for operand in reversed(operands)]
    return parts


def _is_multiple(part: UOp) -> bool:
    return part.op is Ops.MUL and part.src[1].op is Ops.CONST


def row_major(indexes: Iterable[UOp], shape: Iterable[int]) -> UOp:
    """Return the flat index of an element in row-major memory of `shape`; it is valid where all of
    `indexes` are."""
    total, valid = UOp.index(0), UOp.const(dtypes.bool, True)
    for place, extent in zip(indexes, shape, strict=True):
        index, gate = split_gate(place)
        total = total * extent + index
        valid = valid if gate is None else gate if valid.is_const else valid & gate
    return gated(total, valid)


def from_terms(parts: Mapping[UOp, int], constant: int, zero: UOp) -> UOp:
    """Return the sum of `parts`, in their order, and the constant as a node; an empty sum has the
    dtype of `zero`."""
    total: UOp | None = None
    for atom, factor in parts.items():
        term = atom if factor == 1 else atom * factor
        total = term if total is None else total + term
    if total is None:
        return zero.like(constant)
    return total + constant if constant else total


_MOST_BITS = 64
"""Bits of an index: a divisor does not need more."""


def divisor(index: UOp) -> int:
    """Return a number that divides every value of `index`; 0 where all are 0."""
    divisors: dict[UOp, int] = {}
    for node in index.toposort():
        below = [divisors[s] for s in node.src]
        if node.op is Ops.CONST and node.dtype.is_int:  # a float may be infinite
            divisors[node] = abs(int(node.arg))
        elif node.op is Ops.ADD:
            divisors[node] = math.gcd(*below)
        elif node.op is Ops.MUL:
            product = below[0] * below[1]  # of squares of squares: of billions of digits
            divisors[node] = below[0] if product.bit_length() > _MOST_BITS else product
        elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
            divisors[node] = below[0] << min(max(0, int(node.src[1].arg)), _MOST_BITS)
        else:
            divisors[node] = 1
    return divisors[index]


# --------------------------------------------------------------------------------------------------
# The values of index expressions for all values of their ranges, as numpy arrays.

MOST_AXES = 16
"""Most ranges that are evaluated at once; numpy's limit of dimensions is higher."""


def index_values(
    roots: Sequence[UOp], axes: Sequence[UOp], most: int, others_stand: bool = False
) -> list[Array] | None:
    """Return the values of expressions at every step of `axes`: arrays that broadcast to the axes'
    extents. None for more than `most` steps or MOST_AXES axes, and for an expression that depends
    on memory, a float, or a range outside `axes` (with `others_stand`, such a range is 0)."""
    if len(axes) > MOST_AXES or math.prod(r.extent for r in axes) > most:
        return None
    values: dict[UOp, Array] = {}
    for node in UOp.sink(*roots).toposort():
        # A program may round a product and its sum once, numpy rounds twice. Truncated to an
        # index, the two floats may differ by a whole element.
        if node.dtype.is_float:
            return None
        if node.op is Ops.RANGE:
            if node not in axes and not others_stand:
                return None
            values[node] = _steps(node, axes)
        elif node.op is Ops.CONST:
            values[node] = constant(node, widen=False)
        elif node.is_elementwise:
            values[node] = elementwise(node, [values[s] for s in node.src], widen=False)
        elif node.op is not Ops.SINK:
            return None
    return [values[root] for root in roots]


def _steps(axis: UOp, axes: Sequence[UOp]) -> Array:
    if axis not in axes:
        return np.array(0, dtypes.index.numpy)
    shape = [1] * len(axes)
    shape[axes.index(axis)] = axis.extent
    return np.arange(axis.extent, dtype=dtypes.index.numpy).reshape(shape)


# --------------------------------------------------------------------------------------------------
# The exact least and greatest value of an index expression, where interval bounds are too wide.

_POINTS = 1 << 18
"""Most values of one independent part that are evaluated."""
TermList = list[tuple[UOp, int]]


def exact_range(index: UOp) -> tuple[int, int]:
    """Return the (least, greatest) value of an integer expression over all steps of its ranges.

    A part that has more than 2**18 steps, reads memory or has floats gets its interval bounds.
    """
    parts, low = terms(index)
    high = low
    for ranges, group in _groups(parts):
        least, greatest = _extremes(ranges, group)
        low, high = low + least, high + greatest
    return low, high


def _groups(parts: dict[UOp, int]) -> list[tuple[frozenset[UOp], TermList]]:
    """Return the terms grouped so that no two groups share a range."""
    groups: list[tuple[frozenset[UOp], TermList]] = []
    for atom, factor in parts.items():
        ranges, group = atom.ranges, [(atom, factor)]
        for other in [g for g in groups if g[0] & ranges]:
            groups.remove(other)
            ranges, group = ranges | other[0], other[1] + group
        groups.append((ranges, group))
    return groups


def _extremes(ranges: frozenset[UOp], group: TermList) -> tuple[int, int]:
    if len(group) > 1 or group[0][0].op is not Ops.RANGE:
        axes = sorted(ranges, key=lambda r: r.axis_name)
        total = _sums(axes, group)
        if total is not None and total.size:
            return int(total.min()), int(total.max())
    ends = [sorted((int(a.vmin) * factor, int(a.vmax) * factor)) for a, factor in group]
    return sum(e[0] for e in ends), sum(e[1] for e in ends)


def _sums(axes: list[UOp], group: TermList) -> Array | None:
    """Return the sum at every step of `axes`; None where its values cannot be enumerated."""
    values = index_values([atom for atom, _ in group], axes, _POINTS)
    if values is None:
        return None
    total: Array = np.zeros([1] * len(axes), np.int64)
    for value, (_, factor) in zip(values, group, strict=True):
        total = total + value * factor
    return total


# --------------------------------------------------------------------------------------------------
# The elements that one gated index touches while some ranges run, as (stride, extent) pairs.
#
# An index is a sum, and a gate a conjunction. Their parts that share no range are independent, so
# each is evaluated at every step of its own few ranges. A part whose values are at equal distances
# is one pair: `g0 + r0 - 1 where 0 < g0 + r0 < 65` touches 64 rows, not 66. Of other parts only the
# number of values is known. An index from memory counts as a different one at every point.

MOST_POINTS = 1 << 14
"""Most points of a part that are evaluated."""
Step = tuple[int, int]


class IndexSteps(NamedTuple):
    """An index as a sum: `start`, the terms in fixed ranges (`fixed`), i * stride with i below
    extent for each of `steps`, and parts that together have `others` values (at most that many, if
    not `exact`)."""

    steps: tuple[Step, ...]
    others: int
    exact: bool
    start: int
    fixed: frozenset[tuple[UOp, int]]


class _Part(NamedTuple):
    """Terms and gates of an index, and their moving ranges, which no other part depends on."""

    ranges: frozenset[UOp]
    terms: tuple[tuple[UOp, int], ...]
    gates: tuple[UOp, ...]


def index_steps(index: UOp, inside: Collection[UOp]) -> IndexSteps:
    """Return the elements that a flat index, gated or not, touches while the ranges `inside` run
    and all others are fixed."""
    plain, gate = split_gate(index)
    coefficients, start = terms(plain)
    moving = frozenset(inside)
    fixed = {a: k for a, k in coefficients.items() if a.ranges.isdisjoint(moving)}
    fixed = {a: k for a, k in fixed.items() if not loads(a)}
    gates, exact = _conditions(gate, moving)
    steps: list[Step] = []
    others = 1
    for part in _parts([p for p in coefficients.items() if p[0] not in fixed], gates, moving):
        values = _values(part)
        if values is None:
            others, exact = others * _most(part), False
            continue
        first, step, count = values
        start += first
        if step is None:
            others *= count
        elif count > 1:
            steps.append((step, count))
        elif not count:
            others = 0
    fixed_terms = frozenset(fixed.items())
    return IndexSteps(tuple(sorted(steps)), others, exact, start, fixed_terms)


def loads(node: UOp) -> bool:
    """Whether a value depends on memory."""
    return any(n.op is Ops.LOAD for n in node.toposort())


def _conditions(gate: UOp | None, moving: frozenset[UOp]) -> tuple[list[UOp], bool]:
    """Return the conditions of a gate that moving ranges alone decide, and whether these are all
    conditions; the others count as true."""
    conditions: list[UOp] = []
    exact, stack = True, [] if gate is None else [gate]
    while stack:
        part = stack.pop()
        if part.op is Ops.AND:
            stack.extend(part.src)
        elif part.ranges <= moving and not loads(part):
            conditions.append(part)
        else:
            exact = False
    return conditions, exact


def _parts(
    sums: Iterable[tuple[UOp, int]], gates: Iterable[UOp], moving: frozenset[UOp]
) -> list[_Part]:
    parts: list[_Part] = []
    single = [_Part(atom.ranges & moving, ((atom, k),), ()) for atom, k in sums]
    for part in [*single, *(_Part(gate.ranges, (), (gate,)) for gate in gates)]:
        for other in [p for p in parts if p.ranges & part.ranges]:
            parts.remove(other)
            part = _joined(other, part)
        parts.append(part)
    return parts


def _joined(one: _Part, other: _Part) -> _Part:
    ranges, gates = one.ranges | other.ranges, one.gates + other.gates
    return _Part(ranges, one.terms + other.terms, gates)


def _values(part: _Part) -> tuple[int, int | None, int] | None:
    """Return (least value, distance, number of values) of a part; the distance is None where it
    varies. None where the values cannot be enumerated."""
    narrowed = _narrowed(part)
    if narrowed is not None:
        return narrowed
    axes = sorted(part.ranges, key=lambda r: r.axis_name)
    roots = [*part.gates, *(atom for atom, _ in part.terms)]
    arrays = index_values(roots, axes, MOST_POINTS)
    if arrays is None:
        return None
    number = len(part.gates)
    valid = np.ones([r.extent for r in axes], bool)
    for gate in arrays[:number]:
        valid &= gate
    total = np.zeros(valid.shape, np.int64)
    for (_, factor), atom in zip(part.terms, arrays[number:], strict=True):
        total += factor * atom
    different = np.unique(total[valid])
    if different.size < 2:
        return int(different.sum()), 1, different.size
    gaps = np.diff(different)
    step = int(gaps[0]) if (gaps == gaps[0]).all() else None
    return int(different[0]), step, different.size


def _narrowed(part: _Part) -> tuple[int, int, int] | None:
    """Return what `_values` returns, for a part of one range, however long, whose gates compare it
    with constants; None for other parts."""
    if len(part.ranges) != 1:
        return None
    (axis,) = part.ranges
    low, high = 0, axis.extent
    for gate in part.gates:
        if gate.op is not Ops.CMPLT:
            return None
        left, right = gate.src
        if left is axis and right.op is Ops.CONST:
            high = min(high, int(right.arg))
        elif right is axis and left.op is Ops.CONST:
            low = max(low, int(left.arg) + 1)
        else:
            return None
    count = max(0, high - low)
    if not part.terms:
        return 0, 1, min(count, 1)
    if len(part.terms) > 1 or part.terms[0][0] is not axis:
        return None
    factor = part.terms[0][1]
    first = factor * (low if factor > 0 else high - 1)
    return first, abs(factor), count


def _most(part: _Part) -> int:
    """Return an upper bound of the number of distinct values of a part, by points and bounds."""
    points = math.prod(r.extent for r in part.ranges)
    if not part.terms:
        return 1
    span = sum(
        abs(factor) * (int(atom.bounds[1]) - int(atom.bounds[0])) for atom, factor in part.terms
    )
    return min(points, span + 1)
