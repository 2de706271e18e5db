"""Examples of the value rules, checked by tests: expressions and their results."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import axis, variable

F = dtypes.float32
INT = dtypes.int32
B = dtypes.bool
x, y, z = (variable(F, name) for name in "xyz")
i, small = variable(INT, "i"), variable(dtypes.int8, "i")
p, here = variable(B, "p"), axis("g0", 64)


def minus(node: UOp) -> UOp:
    return node.alu(Ops.NEG)


def against(op: Ops, b: UOp, constant: bool) -> UOp:
    return b.alu(op, b.like(constant))


EXAMPLES: dict[str, list[tuple[UOp, UOp]]] = {
    # rule, expression, what it becomes
    "fold-constants": [(UOp.const(INT, 7) // -2, UOp.const(INT, -4))],
    "fold-cast": [(UOp.const(F, 1e20).cast(INT), UOp.const(INT, 2**31 - 1))],
    "fold-known": [((here // 64) + 1, UOp.index(1))],
    "constant-right": [(i.like(3) + i, i + 3)],
    "add-zero": [(x + 0.0, x)],
    "mul-one": [(x * 1.0, x)],
    "mul-zero": [(p * False, UOp.const(B, False))],
    "mul-minus-one": [(x * -1.0, -x)],
    "neg-index": [(-here, here * -1)],
    "neg-neg": [(minus(minus(x)), x)],
    "not-not": [(p.alu(Ops.NOT).alu(Ops.NOT), p)],
    "div-one": [(x.alu(Ops.FDIV, x.like(1.0)), x)],
    "div-power-of-two": [(x.alu(Ops.FDIV, x.like(-8.0)), x * -0.125)],
    "idiv-one": [(i // 1, i)],
    "add-constants": [((i + 3) + 4, i + 7)],
    "mul-constants": [((i * 3) * 4, i * 12)],
    "and-self": [(i & i, i)],
    "or-self": [(i | i, i)],
    "or-zero": [(i | 0, i)],
    "xor-zero": [(p.alu(Ops.XOR, p.like(False)), p)],
    "xor-self": [(i.alu(Ops.XOR, i), i.like(0))],
    "shift-zero": [(i.alu(Ops.SHL, i.like(0)), i)],
    "minus-self": [(i + minus(i), i.like(0))],
    "and-true": [(p & True, p)],
    "or-false": [(p | False, p)],
    "not-equal-true": [(against(Ops.CMPNE, p, True), p.alu(Ops.NOT))],
    "not-equal-false": [(against(Ops.CMPNE, p, False), p)],
    "equal-true": [(against(Ops.CMPEQ, p, True), p)],
    "equal-false": [(against(Ops.CMPEQ, p, False), p.alu(Ops.NOT))],
    "where-itself": [(p.where(p.like(True), p.like(False)), p)],
    "where-same": [(p.where(x, x), x)],
    "where-known": [(p.like(True).where(x, y), x)],
    "where-not": [(p.alu(Ops.NOT).where(x, y), p.where(y, x))],
    "where-nested": [(p.where(p.where(x, z), y), p.where(x, y))],
    "max-min-self": [(x.alu(Ops.MAX, x), x)],
    "max-min-bounded": [((i % 4).alu(Ops.MAX, i.like(-1)), i % 4)],
    "cast-same": [(UOp(Ops.CAST, F, (x,)), x)],
    "cast-widened": [(small.cast(INT).cast(F), small.cast(F))],
}
