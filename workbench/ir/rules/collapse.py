"""Collapse of reductions: sums under a mask that their range decides, computed without a loop.

    REDUCE(add, where(i == r, x[r], 0), r)   is  where(0 <= i < n, x[i], 0)
    REDUCE(add, where(r < k, x, 0), r)       is  x * clamp(k, 0, n)

The first rule turns indexing by a tensor, written as a masked sum, into a load at an index from
memory; its gate stays, so that an index outside gives 0. The second rule counts. Source of the
idea: tinygrad's reduce collapse.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.base.dtypes import dtypes
from workbench.ir.node import construct
from workbench.ir.node.exact_range import from_terms, terms
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp, gated, split_gate
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.patterns import Pat
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.rules.index import SIMPLIFY, conjuncts

ZERO = UOp.index(0)
INFINITE_BOUND = 1 << 62


def one_position(n: UOp) -> UOp | None:
    """A sum over a range under a mask that holds at one position is the element there."""
    for axis in n.src[1:]:
        mask, value = _masked(n.src[0])
        for part in mask:
            at = _solved(part, axis)
            if at is None:
                continue
            valid = (UOp.index(-1) < at) & (at < axis.extent)
            element = _placed(value, axis, at, valid)
            rest = [_placed(m, axis, at, valid) for m in mask if m is not part]
            if element is None or None in rest:
                continue
            condition = _all([valid, *[m for m in rest if m is not None]])
            return _reduced(n, axis, condition.where(element, n.like(0)))
    return None


def counted(n: UOp) -> UOp | None:
    """A sum of one value over the positions between two bounds is the value times their count."""
    for axis in n.src[1:]:
        mask, value = _masked(n.src[0])
        of_axis = [m for m in mask if axis in m.ranges]
        bounds = [_bound(m, axis) for m in of_axis]
        if not of_axis or axis in value.ranges or None in bounds:
            continue
        low, high = ZERO, UOp.index(axis.extent)
        for bound in bounds:
            assert bound is not None
            low = low if bound[0] is None else low.max(bound[0])
            high = high if bound[1] is None else high.min(bound[1])
        count = (high - low).max(ZERO)
        total = value * count.cast(n.dtype)
        conditions = [m for m in mask if m not in of_axis]
        if n.dtype.is_float:  # 0 times infinity is not 0
            conditions.append(ZERO < count)
        if conditions:
            total = _all(conditions).where(total, n.like(0))
        return _reduced(n, axis, total)
    return None


def _masked(value: UOp) -> tuple[list[UOp], UOp]:
    """Return (conditions, value): the value is summed where all of them hold, 0 elsewhere."""
    mask: list[UOp] = []
    while True:
        if value.op is Ops.WHERE and value.src[2] is value.like(0):
            mask += conjuncts(value.src[0])
            value = value.src[1]
        elif value.op is Ops.CAST and value.src[0].dtype.is_bool:
            mask += conjuncts(value.src[0])
            value = value.like(1)
        elif value.op is Ops.CAST:  # of a low-precision float: 0 stays 0
            inner, masked_value = _masked(value.src[0])
            return mask + inner, masked_value.cast(value.dtype) if inner else value
        else:
            return mask, value


def _as_index(node: UOp, axis: UOp, other: UOp) -> UOp | None:
    """Return `node`, an integer that is compared with `other`, as an index; None where that may
    not be exact."""
    if node.dtype is dtypes.index:
        return node
    if node.is_const:
        return UOp.index(max(-INFINITE_BOUND, min(INFINITE_BOUND, int(node.arg))))
    if node.op is Ops.CAST and node.src[0].dtype is dtypes.index:
        inner = node.src[0]
        exact = node.dtype.min <= inner.vmin and inner.vmax <= node.dtype.max
        return inner if exact else None
    return None if axis in node.ranges else _clamped_near(node, other).cast(dtypes.index)


def _clamped_near(node: UOp, other: UOp) -> UOp:
    """Return an integer that compares with `other` as `node` does: `node`, if it has at most 32
    bits, else clamped to just beyond the bounds of `other`."""
    least, most = node.dtype.min, node.dtype.max
    if most <= dtypes.int32.max:
        return node
    if least < other.vmin:
        node = node.max(node.like(int(other.vmin) - 1))
    if other.vmax < most:
        node = node.min(node.like(int(other.vmax) + 1))
    return node


def _difference(part: UOp, axis: UOp) -> tuple[int, UOp] | None:
    """Return (k, d), k 1 or -1, if the sides of a comparison differ by k*axis - d; else None."""
    if part.op not in COMPARE or not part.src[0].dtype.is_int:
        return None
    a, b = part.src
    left, right = _as_index(a, axis, b), _as_index(b, axis, a)
    if left is None or right is None:
        return None
    ends = [end for s in (left, right) if axis in s.ranges for end in s.bounds]
    if any(abs(int(end)) >= INFINITE_BOUND for end in ends):
        return None
    coefficients, constant = terms(left + right * -1)
    k = coefficients.pop(axis, 0)
    if k not in (1, -1) or any(axis in atom.ranges for atom in coefficients):
        return None
    return k, from_terms({a: -f for a, f in coefficients.items()}, -constant, ZERO)


def _solved(part: UOp, axis: UOp) -> UOp | None:
    """Return the one position of `axis` at which an equality holds, or None."""
    difference = _difference(part, axis) if part.op is Ops.CMPEQ else None
    return None if difference is None else difference[1] * difference[0]


def _bound(part: UOp, axis: UOp) -> tuple[UOp | None, UOp | None] | None:
    """Return (low, high) of low <= axis < high where `part` is equivalent to that, else None."""
    negated = part.op is Ops.NOT
    part = part.src[0] if negated else part
    difference = _difference(part, axis) if part.op in (Ops.CMPLT, Ops.CMPLE) else None
    if difference is None:
        return None
    k, limit = difference
    equal = part.op is Ops.CMPLE
    if k == 1:  # axis < limit, or axis <= limit
        high = limit + int(equal)
        return (high, None) if negated else (None, high)
    low = limit * -1 + int(not equal)  # -axis < limit
    return (None, low) if negated else (low, None)


def _placed(value: UOp, axis: UOp, at: UOp, valid: UOp) -> UOp | None:
    """Return `value` at position `at` of `axis`, its loads gated by `valid`; None for other loads
    than from flat memory."""
    if axis not in value.ranges:
        return value
    loads = [n for n in value.toposort() if n.op is Ops.LOAD and axis in n.ranges]
    changes: dict[UOp, UOp] = {}
    for load in loads:  # a load inside an index comes before the load that it indexes
        target, indices = load.place.memory, load.place.indexes
        if target.op is not Ops.PARAM or len(indices) != 1:
            return None
        index, gate = split_gate(indices[0].substitute(changes))
        gate = valid if gate is None else gate & valid
        address = load.place.replace(src=(target, gated(index, gate)))
        changes[load] = load.replace(src=(address, *load.src[1:]))
    return value.substitute(changes).substitute({axis: at})


def _all(conditions: Iterable[UOp]) -> UOp:
    first, *rest = conditions
    for condition in rest:
        first = first & condition
    return first


def _reduced(n: UOp, axis: UOp, value: UOp) -> UOp:
    """Return `value` summed over the ranges of `n` other than `axis`."""
    others = tuple(r for r in n.src[1:] if r is not axis)
    return construct.reduce(value, others, n.combines)


def is_sum(n: UOp) -> bool:
    """Whether a reduction adds numbers up."""
    return n.arg is Ops.ADD and not n.dtype.is_bool


_sum = Pat(Ops.REDUCE, None, name="n")

COLLAPSE_RULES = RuleSet(
    "collapse",
    [
        Rule("sum-one-position", _sum, one_position, where=is_sum),
        Rule("sum-counted", _sum, counted, where=is_sum),
    ],
)

KERNEL_RULES = RuleSet("simplify-kernel", SIMPLIFY.rules + COLLAPSE_RULES.rules)
SIMPLIFY_KERNEL = Pass(
    "simplify-kernel", "Values and index expressions are in their simplest form.", KERNEL_RULES
)
"""The rules for every kernel that scheduling builds."""
