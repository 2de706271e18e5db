"""Verification: every IR level has a table of rules, checked between stages.

    verify(sink, "kernel")     # raises VerifyError naming the rule, the node and why

The tables are in tensor.py, kernel.py (kernel and lowered) and linear.py; rules of all levels come
from the op table (rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from workbench.base.errors import VerifyError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import brief
from workbench.ir.verify.guarded import IN_IF, check_guarded, guarded_indexes
from workbench.ir.verify.kernel import KERNEL, LOWERED
from workbench.ir.verify.linear import LINEAR, verify_linear
from workbench.ir.verify.rows import Spec, Table, require
from workbench.ir.verify.tensor import TENSOR

__all__ = ["LEVELS", "Level", "Spec", "verify"]

Level = Literal["tensor", "kernel", "lowered", "linear"]
LEVELS: dict[Level, Table] = {
    "tensor": TENSOR,
    "kernel": KERNEL,
    "lowered": LOWERED,
    "linear": LINEAR,
}
_ROOTS = {"kernel": Ops.SINK, "lowered": Ops.BLOCK}


def verify(ir: UOp | Sequence[UOp], level: Level) -> None:
    """Check `ir`, a graph or a linear program, against every rule of `level`.

    Errors: VerifyError with the first rule that a node breaks; sources are checked first.
    """
    if not isinstance(ir, UOp):
        if level != "linear":
            raise VerifyError(f"a program of steps is not of level {level}")
        verify_linear(ir)
        return
    root = _ROOTS.get(level, ir.op)
    if level == "linear" or ir.op is not root:
        expected = "a tuple of steps" if level == "linear" else root.name
        raise VerifyError(f"root: level {level} has {expected} as its root", where=brief(ir))
    table = LEVELS[level]
    guarded = guarded_indexes(ir) if level == "lowered" else {}
    for node in ir.toposort():
        require(node, IN_IF if node in guarded else table)
    check_guarded(guarded)
