"""Example graphs: one for each rule of decomposition and of low-precision types. Tests evaluate
both sides of each rule on them."""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import at, axis, load, param, variable

x, y = variable(dtypes.float32), variable(dtypes.float32, "y")
i, j = variable(dtypes.int32, "i"), variable(dtypes.int32, "j")
wide, few = variable(dtypes.float64), variable(dtypes.int32, "i", lo=0, hi=9)

EXAMPLES: dict[str, UOp] = {
    "exp2-polynomial": x.alu(Ops.EXP2),
    "log2-polynomial": wide.alu(Ops.LOG2),
    "sin-polynomial": x.alu(Ops.SIN),
    "cos-polynomial": wide.alu(Ops.COS),
    "idiv-by-shift": i // 8,
    "mod-by-mask": i % 8,
    "idiv-nonnegative": few // 3,
    "mod-nonnegative": few % 3,
    "idiv-floor": i // j,
    "mod-floor": i % j,
    "guard-shift": i.alu(Ops.SHL, j),
    "form-fma": construct.reduce(x * y, [axis("u0", 4)], Ops.ADD),
}


def as_type(op: Ops, value: UOp, dtype: DType) -> UOp:
    """Return a CAST or BITCAST that nothing has simplified."""
    return UOp(op, dtype, (value,))


def memory_of(dtype: DType) -> dict[str, UOp]:
    """Return the examples of the rules that remove a dtype."""
    word = dtypes.uint8 if dtype.bits == 8 else dtypes.uint16
    bits, g0 = variable(word, "bits"), axis("g0", 64)
    value = as_type(Ops.BITCAST, bits, dtype)
    place = at(param(0, 64, dtype), g0)
    return {
        f"load-{dtype}": load(param(1, 64, dtype), g0),
        f"widen-{dtype}": as_type(Ops.CAST, value, dtypes.float32),
        f"round-{dtype}": as_type(Ops.CAST, x, dtype),
        f"store-{dtype}": UOp(Ops.STORE, dtypes.void, (place, value)),
    }


h, k = variable(dtypes.float16, "h"), variable(dtypes.float16, "k")
LOW_PRECISION_EXAMPLES: dict[str, UOp] = {
    "fold-small-cast": as_type(Ops.CAST, UOp.const(dtypes.float16, 0.5), dtypes.float32),
    "fold-small-bits": as_type(Ops.BITCAST, UOp.const(dtypes.float16, 0.5), dtypes.uint16),
    "compute-wide": h + k,
    "cast-to-small": as_type(Ops.CAST, i, dtypes.float16),
    "cast-from-small": as_type(Ops.CAST, h, dtypes.float64),
    "bits-of-bits": as_type(Ops.BITCAST, as_type(Ops.BITCAST, x, dtypes.uint32), dtypes.int32),
    **memory_of(dtypes.bfloat16),
    **memory_of(dtypes.fp8e4m3),
    **memory_of(dtypes.fp8e5m2),
    **memory_of(dtypes.float16),
}  # fmt: skip
