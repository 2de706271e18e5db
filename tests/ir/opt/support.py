"""What the tests of opts share: three kernels, and short forms."""

from __future__ import annotations

from typing import Any

from tests.kernels import EXAMPLES, LLVM, matmul_bias_relu
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps, axes
from workbench.ir.uop import UOp
from workbench.target import Target

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
