"""Functions of the tensor level, expanded: each as EXP2, LOG2, SIN, COS and arithmetic.

EXP, TANH, POW and the like are ops in the tensor graph, and while scheduling decides what is
stored: the op table has their meaning on numpy, their words and their costs. In each kernel that
scheduling builds, this table replaces them by formulas, so that no later stage has them. To add a
function, add its row in the op table, its formula, and its row here. While a rule is switched off,
the kernel keeps the op, and no device compiles it.

Sections: Functions of the tensor level, expanded; An example graph for each function, with named
inputs.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.functions import formulas
from workbench.ir.functions.formulas import (
    copysign,
    erf,
    exp,
    log,
    magnitude,
    power,
    sigmoid,
    softplus,
    tanh,
)
from workbench.ir.functions.threefry import random_word
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import variable
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet

# --------------------------------------------------------------------------------------------------
# Functions of the tensor level, expanded.

x, y = var("x", "float"), var("y", "float")
WORDS = tuple([var(name, "integer") for name in ("a", "b", "c", "d", "second")])

# fmt: off
FUNCTION_RULES = RuleSet("expand-functions", [
    Rule("exp-formula",      op(Ops.EXP, x),     exp),
    Rule("log-formula",      op(Ops.LOG, x),     log),
    Rule("sigmoid-formula",  op(Ops.SIGMOID, x), sigmoid),
    Rule("softplus-formula", op(Ops.SOFTPLUS, x), softplus),
    Rule("tanh-formula",     op(Ops.TANH, x),    tanh),
    Rule("erf-formula",      op(Ops.ERF, x),     erf),
    Rule("tan-formula",      op(Ops.TAN, x),     formulas.tan),
    Rule("asin-formula",     op(Ops.ASIN, x),    formulas.asin),
    Rule("acos-formula",     op(Ops.ACOS, x),    formulas.acos),
    Rule("atan-formula",     op(Ops.ATAN, x),    formulas.atan),
    Rule("sinh-formula",     op(Ops.SINH, x),    formulas.sinh),
    Rule("cosh-formula",     op(Ops.COSH, x),    formulas.cosh),
    Rule("asinh-formula",    op(Ops.ASINH, x),   formulas.asinh),
    Rule("acosh-formula",    op(Ops.ACOSH, x),   formulas.acosh),
    Rule("atanh-formula",    op(Ops.ATANH, x),   formulas.atanh),
    Rule("abs-formula",      op(Ops.ABS, x),     magnitude),
    Rule("copysign-formula", op(Ops.COPYSIGN, x, y), copysign),
    Rule("pow-formula",      op(Ops.POW, x, y),  power),
    Rule("threefry-formula", op(Ops.THREEFRY, *WORDS), random_word),
])
# fmt: on
FUNCTIONS = frozenset(o for rule in FUNCTION_RULES.rules for o in rule.match.ops or ())
EXPAND_FUNCTIONS = Pass(
    "expand-functions",
    "Functions are arithmetic: EXP, TANH, POW and their like are their formulas.",
    FUNCTION_RULES,
)


# --------------------------------------------------------------------------------------------------
# An example graph for each function, with named inputs.


def _example(op: Ops) -> UOp:
    dtype, names = (dtypes.uint32, "abcde") if op is Ops.THREEFRY else (dtypes.float32, "xy")
    variables = [variable(dtype, name) for name in names]
    return UOp(op, dtype, tuple(variables[: OPS[op].arity]))


EXAMPLES: dict[str, UOp] = {
    rule.name: _example(op) for rule in FUNCTION_RULES.rules for op in rule.match.ops or ()
}
