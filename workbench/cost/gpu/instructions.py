"""The instructions that operations become in machine code.

Source of the counts: the SASS of NVRTC 13.5 for sm_90, on the way that ordinary numbers take. A
division is an approximate reciprocal, five multiply-adds and a check; very large and very small
numbers take another way, which is a call. GPUs of other makers are taken to be alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.ir.node.affine import terms
from workbench.ir.node.ops import CASTS, ELEMENTWISE, OPS, Ops
from workbench.ir.node.uop import UOp

SPECIAL_FUNCTION = "special function"
"""The kind of operations that few lanes have: approximate reciprocals, roots, powers of 2, and
conversions between floats and integers."""
INTEGER = "int32"
"""The kind of operations on integers, conditions and bits."""
MOST_BYTES = 16
"""Bytes that a work-item loads or stores in one instruction."""


class Instructions(NamedTuple):
    """The instructions of an operation on a value: multiply-adds and the like of its dtype, those
    on integers and conditions, special functions, and jumps and checks, which only take a turn."""

    floats: int
    integers: int
    special: int
    others: int = 0

    @property
    def total(self) -> int:
        return sum(self)


FUNCTIONS: Mapping[Ops, Instructions] = {
    Ops.FDIV: Instructions(5, 0, 1, 4),
    Ops.RECIP: Instructions(3, 3, 1, 3),
    Ops.SQRT: Instructions(5, 2, 1, 3),
    Ops.EXP2: Instructions(2, 1, 1),
    Ops.LOG2: Instructions(17, 9, 1),
    Ops.SIN: Instructions(11, 9, 1, 4),
    Ops.COS: Instructions(11, 10, 1, 4),
    Ops.TRUNC: Instructions(0, 0, 1),
}
"""By operation, on float32: all others are one instruction, or as many as they have slots."""


def instructions_of(node: UOp) -> Instructions:
    """Return the instructions of an operation for one lane of its value."""
    of_function = FUNCTIONS.get(node.op)
    if of_function is not None:
        return of_function
    slots = 1 if node.op in (Ops.MAX, Ops.MIN) else max(1, OPS[node.op].slots)
    is_float = node.dtype.is_float or node.dtype.is_bool and node.src[0].dtype.is_float
    return Instructions(slots, 0, 0) if is_float else Instructions(0, slots, 0)


def computes(node: UOp, in_loop: bool = False) -> bool:
    """Whether a node takes instructions, beside those that access memory. In a loop, a sum of
    steps is an address that is known before it, plus a constant in the instruction that uses it:
    compilers unroll loops."""
    if node.dtype.kind == "index":
        if node.op not in ELEMENTWISE or node.src[-1].op is Ops.CONST:
            return False  # addresses have room for a constant
        return not (in_loop and _is_sum_of_steps(node))
    return node.op in ELEMENTWISE and node.op not in CASTS or node.op is Ops.HREDUCE


def _is_sum_of_steps(index: UOp) -> bool:
    parts, _ = terms(index)
    return all(part.op is Ops.RANGE for part in parts)


def merged_loads(node: UOp, loops: Sequence[UOp]) -> int:
    """Return how many steps of the innermost of `loops` read an array of the group with one
    instruction: compilers unroll the loop, and know where their own arrays begin. 1 for others."""
    if node.op is not Ops.LOAD or not loops or not _is_shared(node.place.param):
        return 1
    item_bytes = node.dtype.itemsize
    steps, axis = MOST_BYTES // item_bytes, loops[-1]
    parts, constant = terms(node.place.src[1])
    if steps < 2 or parts.get(axis) != node.dtype.count or axis.extent % steps:
        return 1
    whole = steps * node.dtype.count
    others = [factor for part, factor in parts.items() if part is not axis]
    while steps > 1 and any(factor % whole for factor in (*others, constant)):
        steps, whole = steps // 2, whole // 2
    return steps


def _is_shared(memory: UOp) -> bool:
    return memory.op is Ops.DEFINE and memory.space == "shared"
