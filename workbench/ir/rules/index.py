"""Index rules: arithmetic of ranges and constants. Every rule is exact on all points.

Sums are kept flat, one term per atom, constants last. A division or modulo by a positive constant
loses the terms that it divides evenly, and terms that are too small to change the result. Source of
the ideas: Halide's and tinygrad's simplifiers.
"""

from __future__ import annotations

import math

from workbench.ir.node import construct
from workbench.ir.node.exact_range import from_terms, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.patterns import Pat, const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.rules.values import VALUE_RULES

i, j, c, d = var("i", "index"), var("j", "index"), const("c"), const("d")
cond = var("cond", "bool")


def gather_terms(n: UOp) -> UOp | None:
    """Add up the coefficients of equal terms: 2*g0 + g0 is 3*g0."""
    parts, constant = terms(n)
    count, stack = 0, [n]
    while stack:
        part = stack.pop()
        if part.op is Ops.ADD:
            stack.extend(part.src)
        else:
            count += 1
    if len(parts) + (constant != 0) >= count and _constant_last(n):
        return None
    return from_terms(parts, constant, n)


def _constant_last(n: UOp) -> bool:
    return not any(part.op is Ops.ADD and part.src[1].op is Ops.CONST for part in n.src[:1])


def div_terms(i: UOp, c: UOp) -> UOp | None:
    """(c*a + b) // c is a + b//c; where 0 <= b < c, it is a."""
    inside, rest = _split(i, c.arg)
    if inside is None:
        return None
    quotient = rest // c.arg if not _fits(rest, c.arg) else None
    return inside if quotient is None else inside + quotient


def mod_terms(i: UOp, c: UOp) -> UOp | None:
    """(c*a + b) % c is b % c; where 0 <= b < c, it is b."""
    inside, rest = _split(i, c.arg)
    if inside is None:
        return i if _fits(i, c.arg) else None
    return rest if _fits(rest, c.arg) else rest % int(c.arg)


def _split(node: UOp, by: int) -> tuple[UOp | None, UOp]:
    """Return (a, b) with node == by*a + b; a is None where that splits off nothing useful."""
    parts, constant = terms(node)
    even = {atom: k // by for atom, k in parts.items() if k % by == 0}
    odd = {atom: k for atom, k in parts.items() if k % by}
    whole, left = divmod(constant, by)
    if not even and not whole:
        return None, node
    if not even and odd and not _fits(from_terms(odd, left, node), by):
        return None, node  # moving out a constant alone gains nothing
    return from_terms(even, whole, node), from_terms(odd, left, node)


def _fits(rest: UOp, by: int) -> bool:
    return 0 <= rest.vmin and rest.vmax < by


def mod_congruent(i: UOp, c: UOp) -> UOp | None:
    """(10*a + b) % 9 is (a + b) % 9, and a + b where that stays below 9."""
    division = _congruent(i, int(c.arg))
    return None if division is None else division[1]


def div_congruent(i: UOp, c: UOp) -> UOp | None:
    """(10*a + b) // 9 is a + (a + b)//9, and a where a + b stays below 9."""
    division = _congruent(i, int(c.arg))
    return None if division is None else division[0]


def _congruent(node: UOp, by: int) -> tuple[UOp, UOp] | None:
    """Return (quotient, remainder) if the sum stays within one period of `by` after its
    coefficients are reduced modulo `by`, to 0 .. by-1 or to the nearest residues; else None."""
    parts, constant = terms(node)
    for nearest in (False, True):
        residues = {a: k % by for a, k in parts.items()}
        if nearest:
            residues = {a: k - by if 2 * k > by else k for a, k in residues.items()}
        rest = from_terms({a: k for a, k in residues.items() if k}, constant, node)
        period = int(rest.vmin) // by
        if period != int(rest.vmax) // by:
            continue
        wholes = {a: (k - residues[a]) // by for a, k in parts.items()}
        quotient = from_terms({a: k for a, k in wholes.items() if k}, period, node)
        return quotient, from_terms(*terms(rest + -period * by), node)
    return None


def div_common(i: UOp, c: UOp) -> UOp | None:
    """(g*a + b) // (g*d) is (a + b//g) // d, where g divides all coefficients."""
    parts = _reduced(i, c)
    if parts is None:
        return None
    reduced, factor, _ = parts
    return reduced // (int(c.arg) // factor)


def mod_common(i: UOp, c: UOp) -> UOp | None:
    """(g*a + b) % (g*d) is g*((a + b//g) % d) + b%g, where g divides all coefficients."""
    parts = _reduced(i, c)
    if parts is None:
        return None
    reduced, factor, rest = parts
    return (reduced % (int(c.arg) // factor)) * factor + rest


def _reduced(i: UOp, c: UOp) -> tuple[UOp, int, int] | None:
    """Return a + b//g, g and b%g of g*a + b, for the greatest g that divides c and all
    coefficients; None if it is 1 or c."""
    parts, constant = terms(i)
    factor = math.gcd(c.arg, *parts.values())
    if factor <= 1 or factor == c.arg:
        return None
    quotients = {a: k // factor for a, k in parts.items()}
    return from_terms(quotients, constant // factor, i), factor, constant % factor


def distribute(i: UOp, c: UOp, d: UOp) -> UOp:
    """(i + c) * d is i*d + c*d."""
    return i * d + int(c.arg) * int(d.arg)


def div_div(i: UOp, c: UOp, d: UOp) -> UOp:
    """(i // c) // d is i // (c*d)."""
    return i // (int(c.arg) * int(d.arg))


def positive(c: UOp) -> bool:
    """Whether a divisor is more than 1: another rule divides by 1."""
    return bool(c.arg > 1)


def are_one(c: UOp, d: UOp) -> bool:
    """Whether dividing by c and then by d is dividing by c*d: d > 0, and c*d does not wrap. A
    negative c is left alone, as all negative divisors are."""
    return bool(c.arg > 0 and d.arg > 0 and c.arg * d.arg <= c.dtype.max)


def divides(c: UOp, d: UOp) -> bool:
    """Whether d divides c, and both are positive."""
    return bool(d.arg > 0 and c.arg > 0 and c.arg % d.arg == 0)


def rejoin(n: UOp) -> UOp | None:
    """c*(i//c) + i%c is i, wherever the two stand in the sum."""
    parts, constant = terms(n)
    for atom, k in parts.items():
        if atom.op is not Ops.MOD or atom.src[1].op is not Ops.CONST:
            continue
        inner, by = atom.src
        quotient = _quotient(inner, by.arg)
        if parts.get(quotient) == k * by.arg:
            coefficients: dict[UOp, int] = {}
            for part, factor in parts.items():
                if part is not quotient:  # i may stand in the sum by itself as well
                    whole = inner if part is atom else part
                    coefficients[whole] = coefficients.get(whole, 0) + factor
            return from_terms(coefficients, constant, n)
    return None


def _quotient(node: UOp, by: int) -> UOp:
    """Return node // by, as div-div leaves it."""
    quotient = node // by
    if node.op is Ops.IDIV and node.src[1].op is Ops.CONST:
        x, inner, outer = *node.src, quotient.src[1]
        return div_div(x, inner, outer) if are_one(inner, outer) else quotient
    return quotient


def less_than(i: UOp, c: UOp) -> UOp | None:
    """k*i + d < c loses the constant d and the common factor k."""
    parts, constant = terms(i)
    if not parts:
        return None
    factor = math.gcd(*parts.values())
    limit = -((constant - c.arg) // factor)  # ceil((c - constant) / factor)
    if constant == 0 and factor == 1:
        return None
    return from_terms({a: k // factor for a, k in parts.items()}, 0, i) < int(limit)


def negated_less(i: UOp, c: UOp) -> UOp | None:
    """-i < c is -c < i."""
    parts, constant = terms(i)
    if constant or not parts or any(k > 0 for k in parts.values()):
        return None
    return UOp.index(-c.arg) < from_terms({a: -k for a, k in parts.items()}, 0, i)


def greater_than(c: UOp, i: UOp) -> UOp | None:
    """c < k*i + d loses the constant d and the common factor k."""
    parts, constant = terms(i)
    if not parts:
        return None
    factor = math.gcd(*parts.values())
    if constant == 0 and factor == 1:
        return None
    limit = (c.arg - constant) // factor
    return UOp.index(limit) < from_terms({a: k // factor for a, k in parts.items()}, 0, i)


def at_most(i: UOp, j: UOp) -> UOp | None:
    """On integers i <= c is i < c+1, and c <= i is c-1 < i."""
    if j.op is Ops.CONST:
        return i < int(j.arg) + 1
    if i.op is Ops.CONST:
        return UOp.index(i.arg - 1) < j
    return None


def hidden_gate(cond: UOp, x: UOp, z: UOp) -> UOp | None:
    """A load whose gate includes the condition of a WHERE gives the 0 of the WHERE itself."""
    address = x.place.flat_index
    if z is not z.like(0) or address.op is not Ops.WHERE or address.src[2].op is not Ops.INVALID:
        return None
    return x if _implies(address.src[0], cond) else None


def _implies(strong: UOp, weak: UOp) -> bool:
    return set(conjuncts(weak)) <= set(conjuncts(strong))


def conjuncts(node: UOp) -> list[UOp]:
    """Return the parts of a chain of ANDs, each once, in order."""
    parts: dict[UOp, None] = {}
    stack = [node]
    while stack:
        part = stack.pop()
        if part.op is Ops.AND:
            stack.extend(reversed(part.src))
        else:
            parts[part] = None
    return list(parts)


def and_twice(n: UOp) -> UOp | None:
    """A repeated condition of an AND is dropped."""
    parts = conjuncts(n)
    count = sum(1 for _ in _leaves(n))
    if len(parts) == count:
        return None
    joined = parts[0]
    for part in parts[1:]:
        joined = joined & part
    return joined


def _leaves(node: UOp) -> list[UOp]:
    stack, out = [node], []
    while stack:
        part = stack.pop()
        if part.op is Ops.AND:
            stack.extend(part.src)
        else:
            out.append(part)
    return out


def zero(n: UOp) -> UOp:
    """A load that is never valid gives 0."""
    return n.like(0)


def reduce_independent(n: UOp) -> UOp | None:
    """A reduction over a range that its value does not depend on is a product, a power, or none."""
    value = n.src[0]
    axes = [r for r in n.src[1:] if r in value.ranges]
    times = math.prod(r.extent for r in n.src[1:] if r not in value.ranges)
    if times == 1 and len(axes) == len(n.src) - 1:
        return None
    if value.dtype.is_float and not math.isfinite(value.dtype.const(times)):
        return None  # this dtype cannot represent the count, though it may represent the sum
    if not value.dtype.is_bool and n.arg is Ops.ADD:
        value = value * times
    elif n.arg is Ops.MUL and not value.dtype.is_bool:
        value = _power(value, times)
    return construct.reduce(value, axes, n.combines)


def _power(value: UOp, exponent: int) -> UOp:
    """Return value ** exponent by squaring."""
    result: UOp | None = None
    while exponent:
        if exponent % 2:
            result = value if result is None else result * value
        exponent //= 2
        value = value * value
    assert result is not None
    return result


_load = op(Ops.LOAD, op(Ops.INDEX, var("buf"), var("at")), name="x")
_invalid_index = op(Ops.INDEX, var("buf"), Pat(Ops.INVALID))
_n_add = op(Ops.ADD, i, j, name="n")

# fmt: off
INDEX_RULES = RuleSet("index", [
    Rule("gather-terms",        _n_add, gather_terms),
    Rule("rejoin-div-mod",      _n_add, rejoin),
    Rule("distribute",          (i + c) * d, distribute),
    Rule("div-terms",           i // c, div_terms, where=positive),
    Rule("mod-terms",           i % c, mod_terms, where=positive),
    Rule("div-congruent",       i // c, div_congruent, where=positive),
    Rule("mod-congruent",       i % c, mod_congruent, where=positive),
    Rule("div-common-factor",   i // c, div_common, where=positive),
    Rule("mod-common-factor",   i % c, mod_common, where=positive),
    Rule("div-div",             (i // c) // d, div_div, where=are_one),
    Rule("mod-mod",             (i % c) % d, i % d, where=divides,
         doc="where d divides c, a remainder by c has the same remainder by d as i"),
    Rule("less-than",           i < c, less_than),
    Rule("negated-less",        i < c, negated_less),
    Rule("greater-than",        c < i, greater_than),
    Rule("at-most",             op(Ops.CMPLE, i, j), at_most),
    Rule("and-twice",           op(Ops.AND, cond, var("q", "bool"), name="n"), and_twice),
    Rule("reduce-independent",  Pat(Ops.REDUCE, None, name="n"), reduce_independent),
    Rule("load-invalid",        op(Ops.LOAD, _invalid_index, name="n"), zero),
    Rule("load-gate",           op(Ops.WHERE, cond, _load, const("z")), hidden_gate),
])
# fmt: on

SIMPLIFY = RuleSet("simplify", VALUE_RULES.rules + INDEX_RULES.rules)
"""The rules that run after scheduling, after each opt and before lowering."""

SIMPLIFY_INDEX = Pass(
    "simplify-index",
    "Indexes and conditions that arise in a larger pass are in their simplest form.",
    SIMPLIFY,
)
SIMPLIFY_AXES = Pass(
    "simplify-kernel",
    "Index expressions are in their simplest form after an opt or a merge of axes.",
    SIMPLIFY,
)
"""Simplifies a kernel whose axes changed: no reduction can collapse then."""
