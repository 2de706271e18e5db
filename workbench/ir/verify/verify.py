"""Verification: every IR level has a table of rules, checked between stages.

    verify(sink, "kernel")     # raises VerifyError naming the rule, the node and why

The tables are in tensor.py, kernel.py (kernel and lowered) and linear.py; rules of all levels come
from the op table (rows.py).

Sections: Guarded indexes; Verification.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal

import numpy as np

from workbench.base.errors import VerifyError
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.text.printer import brief
from workbench.ir.verify.kernel import KERNEL, LOWERED
from workbench.ir.verify.linear import LINEAR, verify_linear
from workbench.ir.verify.rows import Spec, Table, require
from workbench.ir.verify.tensor import TENSOR

# --------------------------------------------------------------------------------------------------
# Guarded indexes: in an IF, an index may be out of bounds where the condition is false.

_POINTS = 1 << 18
"""Most positions of an index that are tried."""
NO_BOUNDS: Table = {
    op: tuple(spec for spec in specs if spec.name != "in-bounds") for op, specs in LOWERED.items()
}
"""The rules of the lowered level for these indexes: `check_guarded` checks their bounds."""


def guarded_indexes(block: UOp) -> dict[UOp, list[UOp]]:
    """Return the INDEXes that stand only in IFs of a tree, each with the conditions there."""
    inside: dict[UOp, list[UOp]] = {}
    outside: set[UOp] = set()
    pending: list[tuple[UOp, tuple[UOp, ...]]] = [(n, ()) for n in block.src]
    while pending:
        node, conditions = pending.pop()
        if node.op is Ops.IF:
            more = (*conditions, node.condition)
            pending += [(child, more) for child in node.body]
        elif node.op is Ops.LOOP:
            pending += [(child, conditions) for child in node.body]
        else:
            for index in (n for n in node.toposort() if n.op is Ops.INDEX):
                if conditions:
                    inside.setdefault(index, []).append(_all(conditions))
                else:
                    outside.add(index)
    return {n: where for n, where in inside.items() if n not in outside}


def check_guarded(guarded: dict[UOp, list[UOp]]) -> None:
    """Raise VerifyError for an index that leaves its memory where its conditions hold. An index
    with too many positions, or one that depends on memory, is not checked."""
    for index, where in guarded.items():
        for condition in dict.fromkeys(where):
            _check(index, condition)


def _all(conditions: tuple[UOp, ...]) -> UOp:
    condition = conditions[0]
    for another in conditions[1:]:
        condition = condition & another
    return condition


def _check(index: UOp, condition: UOp) -> None:
    sizes = index.memory.param.memory_shape
    for part, size in zip(index.indexes, sizes, strict=True):
        position, gate = split_gate(part)
        if gate is not None or position.op is Ops.INVALID:
            continue
        axes = sorted(UOp.sink(position, condition).ranges, key=lambda r: r.axis_name)
        values = index_values([position, condition], axes, _POINTS)
        if values is not None:
            at, holds = values
            if np.any(holds & ((at < 0) | (at >= size))):
                what = f"in-bounds: an index leaves its {size} elements"
                because = "the condition of the IF around it holds there"
                error = VerifyError(what, because, where=brief(index))
                error.node = index
                raise error


# --------------------------------------------------------------------------------------------------
# Verification.

__all__ = ["LEVELS", "Level", "Spec", "verify"]

Level = Literal["tensor", "kernel", "lowered", "linear"]
LEVELS: dict[Level, Table] = {
    "tensor": TENSOR,
    "kernel": KERNEL,
    "lowered": LOWERED,
    "linear": LINEAR,
}
_ROOTS = {"kernel": Ops.SINK, "lowered": Ops.BLOCK}


def verify(
    ir: UOp | Sequence[UOp], level: Level, bounds: bool = True, in_bounds: Set[UOp] = frozenset()
) -> None:
    """Check `ir`, a graph or a linear program, against every rule of `level`. Without `bounds`, the
    indexes of a lowered tree are not compared with the sizes of memory, and those `in_bounds` are
    not. Those of its kernel can be in bounds for a reason that no longer shows: x % 10 is below 10,
    a sum that computes it is not.

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
    is_lowered = level == "lowered"
    guarded = guarded_indexes(ir) if is_lowered and bounds else {}
    for node in ir.toposort():
        is_free = node in guarded or node in in_bounds or (is_lowered and not bounds)
        require(node, NO_BOUNDS if is_free else table)
    check_guarded({node: where for node, where in guarded.items() if node not in in_bounds})
