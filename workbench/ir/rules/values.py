"""Value rules: identities of elementwise ops that hold at every IR level.

The right side is never dearer than the left. Constants stand on the right (one rule moves them), so
the other rows need one pattern each. Float rows keep NaN and infinity: x * 0 stays.
"""

from __future__ import annotations

import numpy as np

from workbench.ir.meaning.values import cast_elementwise as elementwise
from workbench.ir.node.ops import ELEMENTWISE, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, const, literal, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet

x, y, c = var("x"), var("y"), const("c")
c1, c2 = const("c1"), const("c2")
b = var("b", "bool")
xi, xe = var("x", "integer"), var("x", "exact")

_COMMUTATIVE = tuple(op for op, row in OPS.items() if row.is_commutative)
_FOLDS = tuple(sorted((o for o in ELEMENTWISE if OPS[o].python), key=lambda o: o.value))


def fold(n: UOp) -> UOp | None:
    """Compute an op on constants, with the semantics of the op table."""
    if not all(s.op is Ops.CONST for s in n.src) or n.dtype.count > 1:
        return None
    if n.op is Ops.FMA and n.dtype.is_float:  # numpy rounds it twice
        return None
    meaning = OPS[n.op].python
    assert meaning is not None
    values = [np.asarray(s.arg, s.dtype.numpy) for s in n.src]
    sources = [s.dtype for s in n.src]
    with np.errstate(all="ignore"):  # ml_dtypes warns of the greater of NaN and a number
        return n.like(elementwise(meaning, sources, n.dtype, values).item())


def fold_cast(n: UOp, c: UOp) -> UOp:
    """Convert the constant; float to int saturates."""
    return n.like(c.arg)


def swap(n: UOp, c: UOp, y: UOp) -> UOp | None:
    """Move a constant to the right."""
    return None if y.op is Ops.CONST else UOp(n.op, n.dtype, (y, c))


def fold_bounds(n: UOp) -> UOp | None:
    """Replace an integer or bool value that its bounds pin to one point."""
    lo, hi = n.bounds
    return n.like(lo) if lo == hi else None


def pick(n: UOp, x: UOp, y: UOp) -> UOp | None:
    """Drop the side of a max or min that is never the result, by its bounds."""
    low, high = (y, x) if n.op is Ops.MAX else (x, y)
    if high.vmin >= low.vmax:
        return x
    return y if (low.vmin >= high.vmax) else None


def added(x: UOp, c1: UOp, c2: UOp) -> UOp:
    """(x + c1) + c2 is x + (c1 + c2), exact where sums wrap."""
    return x + (int(c1.arg) + int(c2.arg))


def multiplied(x: UOp, c1: UOp, c2: UOp) -> UOp:
    """(x * c1) * c2 is x * (c1 * c2), exact where products wrap."""
    return x * (int(c1.arg) * int(c2.arg))


def pick_branch(c: UOp, x: UOp, y: UOp) -> UOp:
    """A condition that is known chooses its branch."""
    return x if c.arg else y


def zero(x: UOp) -> UOp:
    """x * 0 is 0."""
    return x.like(0)


def is_minus_one(x: UOp, c: UOp) -> bool:
    """Whether x * c negates; in index arithmetic the product is the canonical form."""
    return x.dtype.kind not in ("index", "bool") and bool(c.arg == -1)


def exact_power_of_two(c: UOp) -> bool:
    """Whether a float is a power of two, of either sign: products with it are exact."""
    return bool(c.arg != 0 and np.isfinite(c.arg) and abs(np.frexp(c.arg)[0]) == 0.5)


def divide_exactly(x: UOp, c: UOp) -> UOp:
    """x / 2**k is x * 2**-k, bit for bit."""
    return x * (1.0 / float(c.arg))


def inverse_is_normal(c: UOp) -> bool:
    """Whether 1/c is a power of two that is a normal number of the dtype."""
    if not exact_power_of_two(c) or not 2.0**-100 < abs(c.arg) < 2.0**100:
        return False
    return bool(c.dtype.const(1.0 / c.arg) == 1.0 / c.arg)  # float16 may lack it


def widens(x: UOp, n: UOp, m: UOp) -> bool:
    """Whether every value of x's dtype passes through m's dtype unchanged."""
    if x.dtype.is_bool:
        return True
    if not (x.dtype.is_int and m.dtype.is_int):
        return False
    return m.dtype.min <= x.vmin and x.vmax <= m.dtype.max


def recast(x: UOp, n: UOp) -> UOp:
    """A cast through a type that loses nothing is one cast."""
    return x.cast(n.dtype)


def is_condition(n: UOp) -> bool:
    """Whether a node is a bool."""
    return n.dtype.is_bool


def same_dtype(n: UOp, x: UOp) -> bool:
    """Whether a cast changes nothing."""
    return n.dtype is x.dtype


def is_value(y: UOp) -> bool:
    """Whether a branch is a value: INVALID marks an index outside of its memory."""
    return y.op is not Ops.INVALID


def _any(ops: tuple[Ops, ...] | Ops, *src: Pat) -> Pat:
    return Pat(ops, src or None, name="n")


_BOUNDED = (
    Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ,
    Ops.CMPNE, Ops.AND, Ops.OR, Ops.CAST, Ops.RANGE,
)  # fmt: skip


def is_exact(n: UOp) -> bool:
    """Whether numpy's answer is the machine's bit for bit, which floats do not guarantee."""
    return n.dtype.kind != "float"


_choice = op(Ops.WHERE, b, True, False, name="n")
_cast = Pat(Ops.CAST, (x,), name="m")

# fmt: off
VALUE_RULES = RuleSet("simplify-values", [
    Rule("fold-constants",      _any(_FOLDS), fold),
    Rule("fold-cast",           Pat(Ops.CAST, (c,), name="n"), fold_cast),
    Rule("fold-known",          _any(_BOUNDED), fold_bounds, where=is_exact),
    Rule("constant-right",      _any(_COMMUTATIVE, c, y), swap),
    Rule("add-zero",            x + 0, x,
         doc="adding 0 changes nothing"),
    Rule("mul-one",             x * 1, x,
         doc="a product with 1 is the other factor"),
    Rule("mul-zero",            xe * 0, zero, doc="exact types only: 0 * nan is nan"),
    Rule("mul-minus-one",       x * c, -x, where=is_minus_one,
         doc="a product with -1 is a change of sign"),
    Rule("neg-index",           -var("x", "index"), x * -1,
         doc="in index arithmetic a sign is a factor, which sums can gather"),
    Rule("neg-neg",             op(Ops.NEG, -x), x,
         doc="two changes of sign are none"),
    Rule("not-not",             ~(~x), x,
         doc="not not b is b"),
    Rule("div-one",             x / 1.0, x,
         doc="dividing by 1 changes nothing"),
    Rule("div-power-of-two",    x / c, divide_exactly, where=inverse_is_normal),
    Rule("idiv-one",            x // 1, x,
         doc="dividing by 1 changes nothing"),
    Rule("add-constants",       (xi + c1) + c2, added),
    Rule("mul-constants",       (xi * c1) * c2, multiplied),
    Rule("and-self",            x & x, x,
         doc="x & x is x"),
    Rule("or-self",             x | x, x,
         doc="x | x is x"),
    Rule("or-zero",             xi | 0, xi,
         doc="an OR with 0 changes nothing"),
    Rule("xor-zero",            op(Ops.XOR, xe, 0), xe,
         doc="an XOR with 0 changes nothing"),
    Rule("xor-self",            op(Ops.XOR, xe, xe), zero,
         doc="every bit of x ^ x is 0"),
    Rule("shift-zero",          Pat((Ops.SHL, Ops.SHR), (xi, literal(0))), xi,
         doc="a shift by 0 bits changes nothing"),
    Rule("minus-self",          xi + -xi, zero,
         doc="x - x is 0 for integers; for floats it may be NaN"),
    Rule("and-true",            b & True, b,
         doc="an AND with True is the other side"),
    Rule("or-false",            b | False, b,
         doc="an OR with False is the other side"),
    Rule("not-equal-true",      op(Ops.CMPNE, b, True), ~b,
         doc="b != True is not b"),
    Rule("not-equal-false",     op(Ops.CMPNE, b, False), b,
         doc="b != False is b"),
    Rule("equal-true",          op(Ops.CMPEQ, b, True), b,
         doc="b == True is b"),
    Rule("equal-false",         op(Ops.CMPEQ, b, False), ~b,
         doc="b == False is not b"),
    Rule("where-itself",        _choice, b, where=is_condition,
         doc="a choice of True where b holds, else False, is b"),
    Rule("where-same",          b.where(x, x), x,
         doc="a choice between equal values is the value"),
    Rule("where-known",         op(Ops.WHERE, c, x, y), pick_branch),
    Rule("where-not",           op(Ops.WHERE, ~b, x, y), b.where(y, x), where=is_value,
         doc="a choice by not b is a choice by b, its branches swapped"),
    Rule("where-nested",        b.where(b.where(x, var("z")), y), b.where(x, y),
         doc="inside of the branch that is chosen where b holds, b holds"),
    Rule("max-min-self",        Pat((Ops.MAX, Ops.MIN), (x, x)), x,
         doc="the maximum of x and x is x, and so is the minimum"),
    Rule("max-min-bounded",     Pat((Ops.MAX, Ops.MIN), (xi, y), name="n"), pick),
    Rule("cast-same",           Pat((Ops.CAST, Ops.BITCAST), (x,), name="n"), x, where=same_dtype,
         doc="a cast to the dtype that a value has changes nothing"),
    Rule("cast-widened",        Pat(Ops.CAST, (_cast,), name="n"), recast, where=widens),
])
# fmt: on
