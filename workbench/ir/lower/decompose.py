"""Decomposition: operations that no machine has as one instruction, by operations that every
machine has.

EXP2, LOG2, SIN and COS become branch-free polynomials (`math.py`), so they vectorise like any other
arithmetic. IDIV, MOD and shifts get the guards that their definitions need, as few as the bounds
allow. None of this loops or calls a library.

A product that is summed over ranges becomes a multiply-add, and no other product does: any other
value is rounded when it is computed, the same in each kernel that computes it.
"""

from __future__ import annotations

from workbench.base.trace import derived_from
from workbench.ir.lower.math import cos, exp2, log2, shr, sin
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, is_off, require_on


def both_nonnegative(x: UOp, y: UOp) -> bool:
    """Whether, by their bounds, x is not negative and y is positive."""
    return x.vmin >= 0 and y.vmin > 0


def is_power_of_two(c: UOp) -> bool:
    """Whether a constant is 1, 2, 4, ..."""
    return int(c.arg) > 0 and int(c.arg) & (int(c.arg) - 1) == 0


def shift_for_div(x: UOp, c: UOp) -> UOp:
    """x // 2**k is x >> k: an arithmetic shift floors."""
    return shr(x, int(c.arg).bit_length() - 1)


def mask_for_mod(x: UOp, c: UOp) -> UOp:
    """x % 2**k is the low k bits, for negative x too."""
    return x & (int(c.arg) - 1)


def floor_div(x: UOp, y: UOp) -> UOp:
    """Return x // y: a division by a safe divisor, corrected from truncation to floor, with the
    results for the divisors 0 and -1 selected. Guards that the bounds make needless are left
    out."""
    safe = _safe_divisor(x, y)
    quotient = x.alu(Ops.CDIV, safe)
    if _rest_sign_may_differ(x, y):
        down = _differs(x.alu(Ops.CMOD, safe), safe)
        quotient = quotient + down.where(x.like(-1), x.like(0))
    if _overflows(x, y):
        quotient = y.eq(-1).where(-x, quotient)
    return _zero_if_by_zero(y, quotient)


def floor_mod(x: UOp, y: UOp) -> UOp:
    """Return x % y: the remainder of a truncated division, corrected to the divisor's sign."""
    safe = _safe_divisor(x, y)
    rest = x.alu(Ops.CMOD, safe)
    if _rest_sign_may_differ(x, y):
        rest = rest + _differs(rest, safe).where(safe, x.like(0))
    return _zero_if_by_zero(y, rest)


def _rest_sign_may_differ(x: UOp, y: UOp) -> bool:
    return (x.vmin < 0 or y.vmin < 0) and not (x.vmax <= 0 and y.vmax <= 0)


def _differs(rest: UOp, divisor: UOp) -> UOp:
    """Whether the remainder is not 0 and its sign is not the divisor's."""
    if divisor.vmin > 0:
        return rest < 0
    signs_differ = (rest ^ divisor) < 0
    return signs_differ & rest.ne(0)


def _overflows(x: UOp, y: UOp) -> bool:
    """Whether x // y may be the one quotient that does not fit: the least integer by -1."""
    return y.vmin <= -1 <= y.vmax and bool(x.vmin == x.dtype.min)


def _safe_divisor(x: UOp, y: UOp) -> UOp:
    unsafe: UOp | None = None
    if y.vmin <= 0 <= y.vmax:
        unsafe = y.eq(0)
    if _overflows(x, y):
        minus = y.eq(-1)
        unsafe = minus if unsafe is None else unsafe | minus
    return y if unsafe is None else unsafe.where(y.like(1), y)


def _zero_if_by_zero(y: UOp, value: UOp) -> UOp:
    if not y.vmin <= 0 <= y.vmax:
        return value
    return y.eq(0).where(value.like(0), value)


def may_exceed_width(y: UOp) -> bool:
    """Whether a shift may be negative or by the width in bits or more: there machines disagree."""
    return y.vmin < 0 or y.vmax >= y.dtype.bits


def guard_shift(n: UOp, x: UOp, y: UOp) -> UOp:
    """Shift by an amount clamped to below the width; where clamping changed it, the result is 0."""
    amount = y.max(0).min(y.dtype.bits - 1)
    return y.eq(amount).where(x.alu(n.op, amount), n.like(0))


def sums_products(n: UOp) -> bool:
    """Whether a node adds up products of floats, over loops or lanes."""
    product = _addend(n)
    return n.combines is Ops.ADD and product.op is Ops.MUL and product.dtype.is_float


def fuse_product(n: UOp) -> UOp:
    """Leave the rounding of the product to the sum. The product becomes FMA(a, b, -0.0), which is
    a * b rounded once; a step of the sum replaces it by FMA(a, b, total)."""
    product = _addend(n)
    with derived_from(product):
        exact = UOp(Ops.FMA, product.dtype, (*product.src, product.like(-0.0)))
    return n.replace(src=tuple(exact if s is product else s for s in n.src))


def _addend(n: UOp) -> UOp:
    """Return the value that an ACCUMULATE or a REDUCE combines."""
    return n.src[n.op is Ops.ACCUMULATE]


x, y, k = var("x", "integer"), var("y", "integer"), const("c", "integer")
xf = var("x", "float")

# fmt: off
GUARD_SHIFT = Rule("guard-shift", Pat((Ops.SHL, Ops.SHR), (x, y), name="n"), guard_shift,
                   where=may_exceed_width)
_FUNCTION_RULES = (
    Rule("exp2-polynomial",   op(Ops.EXP2, xf), exp2),
    Rule("log2-polynomial",   op(Ops.LOG2, xf), log2),
    Rule("sin-polynomial",    op(Ops.SIN, xf), sin),
    Rule("cos-polynomial",    op(Ops.COS, xf), cos),
)
INTEGER_RULES = RuleSet("decompose", [
    Rule("idiv-by-shift",     x // k, shift_for_div, where=is_power_of_two),
    Rule("mod-by-mask",       x % k, mask_for_mod, where=is_power_of_two),
    Rule("idiv-nonnegative",  x // y, op(Ops.CDIV, x, y), where=both_nonnegative,
         doc="where nothing is negative, floor is truncation"),
    Rule("mod-nonnegative",   x % y, op(Ops.CMOD, x, y), where=both_nonnegative,
         doc="where nothing is negative, the rest has the sign of the divisor"),
    Rule("idiv-floor",        x // y, floor_div),
    Rule("mod-floor",         x % y, floor_mod),
    GUARD_SHIFT,
    Rule("form-fma",          Pat((Ops.ACCUMULATE, Ops.REDUCE), None, name="n"), fuse_product,
         where=sums_products),
])
# fmt: on
"""The rules for a language that has functions, such as exp2."""
DECOMPOSE_RULES = RuleSet("decompose", [*_FUNCTION_RULES, *INTEGER_RULES.rules])


def require_guards(tree: UOp) -> None:
    """Check that no shift of a decomposed tree may be by its width or more: each processor has a
    result of its own for it. Errors: WorkbenchError while the rule that guards it is off."""
    if is_off(GUARD_SHIFT) and any(GUARD_SHIFT.matcher(n) is not None for n in tree.toposort()):
        require_on("compute a shift by any amount", [GUARD_SHIFT])
