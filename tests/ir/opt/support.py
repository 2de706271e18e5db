"""What the tests of opts share: three kernels, short forms, and a check of hints."""

from __future__ import annotations

import re
from typing import Any

from tests.tools.kernels import EXAMPLES, LLVM, matmul_bias_relu
from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.opt.opt import Opt, OptOps, axes

MATMUL = EXAMPLES["matmul_bias_relu"].graph  # g0 = 8, g1 = 16, r0 = 12
TILED = EXAMPLES["tiled_matmul"].graph
PRIME = matmul_bias_relu(7, 11, 13).graph


def opt(op: str, axis: Any = None, arg: Any = None) -> Opt:
    return Opt(OptOps[op], axis, arg)


def apply(graph: UOp, *opts: Opt, target: Target = LLVM) -> UOp:
    for each in opts:
        graph, _ = apply_opt(graph, each, target)
    return graph


def sizes(graph: UOp) -> dict[str, int]:
    return {a.name: a.size for a in axes(graph)}


def check_what_is_offered(graph: UOp, opt: Opt, hint: str, target: Target) -> None:
    """Fail unless the opts that a hint spells out are legal: UPCAST("g1", 4), PADTO("g1", 5)."""
    for op, name, amount in re.findall(r'([A-Z]+)\("(\w+)", (\d+)\)', hint):
        offered = Opt(OptOps[op], name, int(amount))
        assert why_not(graph, offered, target) is None, f"{opt}: {hint}"
