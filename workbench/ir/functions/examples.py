"""An example graph for each function, with named inputs."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.functions.expand import FUNCTION_RULES
from workbench.ir.node.ops import OPS
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import variable

X_Y = [variable(dtypes.float32, name) for name in "xy"]
EXAMPLES: dict[str, UOp] = {
    rule.name: UOp(op, dtypes.float32, tuple(X_Y[: OPS[op].arity]))
    for rule in FUNCTION_RULES.rules
    for op in rule.match.ops or ()
}
