"""Bounds: the least and greatest value a node can take, by interval arithmetic.

Each op of index arithmetic has a rule here; others get their dtype's range. A bound that could
overflow the dtype is widened to the dtype's range, because the value then wraps.

Index rules remove gates and choose 32-bit indexes by these bounds. So a bound that is too narrow
causes an access outside of a buffer; one that is too wide only leaves a gate in place. In doubt an
op has no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from workbench.ir.node.ops import COMPARE, Ops

Bounds = tuple[Any, Any]  # (least, greatest); infinite only where an op does not wrap
Node = Any  # a UOp: uop.py imports this file, not the other way round


def bounds_of(node: Node) -> Bounds:
    """Return (vmin, vmax) of `node`, whose sources have their bounds already (`uop.derive`).

    Every value that the node can take is between the two, at any position of its ranges and for any
    content of memory. NaN is outside of all bounds, so they decide no comparison of floats.
    """
    full: Bounds = (node.dtype.min, node.dtype.max) if node.dtype.bits else (0, 0)
    op = node.op
    if op is Ops.CONST:
        return full if node.arg != node.arg else (node.arg, node.arg)  # NaN: full
    if op is Ops.VAR:
        least, greatest = node.limits
        return least, greatest
    if op is Ops.RANGE:
        return 0, max(0, node.src[0].vmax - 1)  # one of size 0 has no value at all
    if op is Ops.WHERE:
        return _where(node)
    if op is Ops.LANES:
        return min(node.arg), max(node.arg)
    if op is Ops.BROADCAST:
        inner: Bounds = node.src[0].bounds
        return inner
    if op in COMPARE:
        return _compare(node)
    if op in (Ops.AND, Ops.OR) and node.dtype.is_bool:
        (a, b), (c, d) = node.src[0].bounds, node.src[1].bounds  # False < True
        return (a and c, b and d) if op is Ops.AND else (a or c, b or d)
    if op is Ops.CAST:
        return _cast(node, full)
    if node.dtype.is_int and op is Ops.SHR:
        return _shr(node.src[0].bounds, node.src[1].bounds, node.dtype.bits)
    if node.dtype.is_int and op in _INTEGER:
        lo, hi = unwrapped_bounds(node)  # full where the result could wrap
        return (lo, hi) if full[0] <= lo and hi <= full[1] else full
    return full


def unwrapped_bounds(node: Node) -> Bounds:
    """Return the bounds of an op on integers as if it did not wrap; (-inf, inf) for an op without a
    rule."""
    if node.op not in _INTEGER:
        return _ANY
    bounds: Bounds = _INTEGER[node.op](*[s.bounds for s in node.src])
    return bounds


def _where(node: Node) -> Bounds:
    condition, yes, no = node.src
    a: Bounds = yes.bounds
    b: Bounds = no.bounds
    if no.op is Ops.INVALID or condition.bounds[0]:  # INVALID is never read
        return a
    if not condition.bounds[1]:
        return b
    return min(a[0], b[0]), max(a[1], b[1])


def _compare(node: Node) -> Bounds:
    a, b = node.src
    if a.dtype.is_float:  # NaN makes every comparison but != false
        return False, True
    (al, ah), (bl, bh) = a.bounds, b.bounds
    if node.op is Ops.CMPLT:
        return ah < bl, al < bh
    if node.op is Ops.CMPLE:
        return ah <= bl, al <= bh
    equal, different = al == ah == bl == bh, ah < bl or bh < al
    return (equal, not different) if node.op is Ops.CMPEQ else (different, not equal)


def _cast(node: Node, full: Bounds) -> Bounds:
    source = node.src[0]
    if not (node.dtype.is_int and (source.dtype.is_int or source.dtype.is_bool)):
        return full
    lo, hi = int(source.vmin), int(source.vmax)
    return (lo, hi) if full[0] <= lo and hi <= full[1] else full


def _mul(a: Bounds, b: Bounds) -> Bounds:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _idiv(a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0 <= b[1]:
        return _ANY
    corners = [x // y for x in a for y in b]
    return min(corners), max(corners)


def _mod(a: Bounds, b: Bounds) -> Bounds:
    if b[0] != b[1] or b[0] <= 0:
        return _ANY
    if a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    return 0, b[0] - 1


def _shr(a: Bounds, b: Bounds, bits: int) -> Bounds:
    """A shift by `bits` or more, or by less than 0, gives 0 and not the sign."""
    if b[1] < 0 or b[0] >= bits:
        return 0, 0
    steps = max(b[0], 0), min(b[1], bits - 1)
    corners = [int(x) >> int(by) for x in a for by in steps]
    if steps != b:
        corners.append(0)
    return min(corners), max(corners)


def _truncated_div(a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0 <= b[1]:
        return _ANY
    corners = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return min(corners), max(corners)


def _truncated_mod(a: Bounds, b: Bounds) -> Bounds:
    """The result has the sign of a; its magnitude is at most abs(a), and below abs(b)."""
    if b[0] <= 0 <= b[1]:
        return _ANY
    if a[0] >= 0 and b[0] == b[1] > 0:
        return _mod(a, b)
    most = max(abs(bound) for bound in b) - 1
    return max(min(a[0], 0), -most), min(max(a[1], 0), most)


_ANY: Bounds = (-math.inf, math.inf)
_INTEGER: dict[Ops, Callable[..., Bounds]] = {
    Ops.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Ops.MUL: _mul,
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Ops.NEG: lambda a: (-a[1], -a[0]),
    Ops.CDIV: _truncated_div,
    Ops.CMOD: _truncated_mod,
    Ops.AND: lambda a, b: (0, b[1]) if b[0] == b[1] and b[0] >= 0 else _ANY,
}
