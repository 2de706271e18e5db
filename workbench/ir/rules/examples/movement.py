"""Examples of the movement rules, checked by tests: graphs and their results."""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import buffer, tensor

F = dtypes.float32
INT = dtypes.int32
B = dtypes.bool
x = buffer(1, 3, 4)
empty = buffer(2, 3, 0)
half = buffer(3, 3, 4, dtype=dtypes.float16)
narrow = buffer(4, 3, 4, dtype=dtypes.int8)


def filled(value: float, *shape: int, dtype: DType = F) -> UOp:
    return tensor(Ops.EXPAND, UOp.const(dtype, value), shape)


def reduced(op: Ops, source: UOp, *axes: int) -> UOp:
    return tensor(Ops.REDUCE_AXIS, source, (op, axes))


mask = tensor(Ops.PAD, filled(True, 3, 1, dtype=B), ((0, 3), (0, 0)))
joined = tensor(Ops.EXPAND, mask, (6, 4)).where(
    tensor(Ops.PAD, x, ((0, 3), (0, 0))), UOp.const(F, 7)
)
transposed = tensor(Ops.PERMUTE, x, (1, 0))
row = tensor(Ops.RESHAPE, x, (1, 12))


def joined_rows(left: UOp, right: UOp) -> UOp:
    """Return what `cat` makes of two values of 4 columns."""
    first, second = left.shape[0], right.shape[0]
    inside = tensor(Ops.PAD, filled(True, first, 1, dtype=B), ((0, second), (0, 0)))
    return tensor(Ops.EXPAND, inside, (first + second, 4)).where(
        tensor(Ops.PAD, left, ((0, second), (0, 0))), tensor(Ops.PAD, right, ((first, 0), (0, 0)))
    )


def rows(low: int, high: int, source: UOp = x) -> UOp:
    return tensor(Ops.SHRINK, source, ((low, high), (0, 4)))


def repeated_rows(source: UOp) -> UOp:
    """Return 3 rows of 4 columns, and the same 3 rows after them."""
    twice = tensor(Ops.RESHAPE, source, (1, 3, 4))
    return tensor(Ops.RESHAPE, tensor(Ops.EXPAND, twice, (2, 3, 4)), (6, 4))


def rolled(rows_on: int, source: UOp) -> UOp:
    """Return 3 rows of 4 columns, rolled by `rows_on` rows."""
    return rows(3 - rows_on, 6 - rows_on, repeated_rows(source))


around = tensor(
    Ops.PERMUTE, tensor(Ops.PAD, x, ((1, 2), (0, 3))), (1, 0)
)  # and so x is columns 1 to 4
pairs = tensor(Ops.RESHAPE, x, (6, 2))
sliced = tensor(Ops.PAD, tensor(Ops.SHRINK, tensor(Ops.RESHAPE, x, (12,)), ((1, 12),)), ((0, 1),))
even, odd = (
    tensor(Ops.SHRINK, each, ((0, 6), (0, 1)))
    for each in (pairs, tensor(Ops.RESHAPE, sliced, (6, 2)))
)
is_even = tensor(Ops.PAD, filled(True, 1, 1, dtype=B), ((0, 0), (0, 1)))

EXAMPLES: dict[str, list[tuple[UOp, UOp]]] = {
    "empty-is-constant": [
        (empty * 2.0, filled(0, 3, 0)),
        (tensor(Ops.RESHAPE, empty, (0, 5)), filled(0, 0, 5)),
        (tensor(Ops.SHRINK, x, ((1, 1), (0, 4))), filled(0, 0, 4)),
        (reduced(Ops.ADD, empty, 1), filled(0, 3, 1)),
        (reduced(Ops.MAX, empty, 1), filled(float("-inf"), 3, 1)),
        (reduced(Ops.MUL, empty, 1), filled(1, 3, 1)),
    ],
    "moves-nothing": [
        (tensor(Ops.RESHAPE, x, (3, 4)), x),
        (tensor(Ops.PERMUTE, x, (0, 1)), x),
        (tensor(Ops.EXPAND, x, (3, 4)), x),
        (tensor(Ops.SHRINK, x, ((0, 3), (0, 4))), x),
        (tensor(Ops.PAD, x, ((0, 0), (0, 0))), x),
        (tensor(Ops.FLIP, tensor(Ops.RESHAPE, x, (1, 12)), (0,)), tensor(Ops.RESHAPE, x, (1, 12))),
    ],
    "pad-of-cast": [
        (
            tensor(Ops.PAD, half.cast(F), ((1, 0), (0, 2))),
            tensor(Ops.PAD, half, ((1, 0), (0, 2))).cast(F),
        ),
        (
            tensor(Ops.PAD, tensor(Ops.FLIP, narrow.cast(INT), (1,)), ((0, 0), (3, 0))),
            tensor(Ops.PAD, tensor(Ops.FLIP, narrow, (1,)), ((0, 0), (3, 0))).cast(INT),
        ),
    ],
    "reshape-reshape": [
        (
            tensor(Ops.RESHAPE, tensor(Ops.RESHAPE, x, (12,)), (2, 6)),
            tensor(Ops.RESHAPE, x, (2, 6)),
        ),
        (tensor(Ops.RESHAPE, tensor(Ops.RESHAPE, x, (12,)), (3, 4)), x),
    ],
    "movement-undone": [
        (tensor(Ops.PERMUTE, transposed, (1, 0)), x),
        (tensor(Ops.FLIP, tensor(Ops.FLIP, x, (0,)), (0,)), x),
        (tensor(Ops.PERMUTE, row, (1, 0)), tensor(Ops.RESHAPE, x, (12, 1))),
        (
            tensor(
                Ops.PERMUTE,
                tensor(
                    Ops.RESHAPE,
                    tensor(Ops.PERMUTE, tensor(Ops.RESHAPE, x, (3, 2, 2)), (1, 2, 0)),
                    (1, 4, 3),
                ),
                (2, 0, 1),
            ),
            tensor(Ops.RESHAPE, x, (3, 1, 4)),
        ),
        (
            tensor(
                Ops.SHRINK,
                tensor(Ops.EXPAND, tensor(Ops.RESHAPE, x, (1, 3, 4)), (5, 3, 4)),
                ((1, 2), (0, 3), (0, 4)),
            ),
            tensor(Ops.RESHAPE, x, (1, 3, 4)),
        ),
    ],
    "move-constant": [
        (tensor(Ops.PERMUTE, filled(2, 3, 4), (1, 0)), filled(2, 4, 3)),
        (tensor(Ops.RESHAPE, filled(2, 3, 4), (12,)), filled(2, 12)),
        (tensor(Ops.SHRINK, filled(2, 3, 4), ((0, 2), (1, 3))), filled(2, 2, 2)),
        (tensor(Ops.FLIP, filled(2, 3, 4), (0,)), filled(2, 3, 4)),
        (tensor(Ops.EXPAND, filled(2, 3, 1), (3, 5)), filled(2, 3, 5)),
        (tensor(Ops.RESHAPE, filled(2, 1, 1), ()), UOp.const(F, 2)),
    ],
    "bare-constants": [
        (x * filled(2, 3, 4), x * 2.0),
        (filled(2, 3, 4) + filled(3, 3, 4), filled(5, 3, 4)),
        (filled(1, 3, 4).alu(Ops.EXP2), filled(2, 3, 4)),
        (x * filled(1, 3, 4), x),
    ],
    "reduce-constant": [
        (reduced(Ops.ADD, filled(2, 3, 4), 0, 1), filled(24, 1, 1)),
        (reduced(Ops.ADD, filled(2, 3, 4), 1), filled(8, 3, 1)),
        (reduced(Ops.MUL, filled(2, 3, 4), 1), filled(16, 3, 1)),
        (reduced(Ops.MAX, filled(-2, 3, 4), 0), filled(-2, 1, 4)),
        (reduced(Ops.MIN, filled(-2, 3, 4), 0), filled(-2, 1, 4)),
        (reduced(Ops.ADD, filled(2**30, 3, 4, dtype=INT), 1), filled(0, 3, 1, dtype=INT)),
        (reduced(Ops.MUL, filled(3, 50, dtype=INT), 0), filled(3**50, 1, dtype=INT)),
        (reduced(Ops.ADD, filled(True, 5, dtype=B), 0), filled(True, 1, dtype=B)),
        (reduced(Ops.MUL, filled(False, 5, dtype=B), 0), filled(False, 1, dtype=B)),
        (reduced(Ops.MUL, filled(10, 40), 0), filled(float("inf"), 1)),
    ],
    "contiguous-buffer": [
        (tensor(Ops.CONTIGUOUS, x, None), x),
        (
            tensor(Ops.CONTIGUOUS, tensor(Ops.CONTIGUOUS, x + 1.0, None), None),
            tensor(Ops.CONTIGUOUS, x + 1.0, None),
        ),
    ],
    "piece-of-pad": [
        (
            tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 3))), ((2, 4), (1, 4))),
            tensor(Ops.SHRINK, x, ((1, 3), (1, 4))),
        ),
        (tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 0))), ((1, 4), (0, 4))), x),
        (
            tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 3))), ((0, 5), (4, 6))),
            filled(0, 5, 2),
        ),
    ],
    "piece-of-choice": [
        (tensor(Ops.SHRINK, joined, ((0, 3), (1, 4))), tensor(Ops.SHRINK, x, ((0, 3), (1, 4)))),
        (tensor(Ops.SHRINK, joined, ((3, 6), (0, 4))), filled(7, 3, 4)),
    ],
    "pieces-joined": [
        (joined_rows(rows(0, 2), rows(2, 3)), x),
        (joined_rows(rows(0, 1), joined_rows(rows(1, 2), rows(2, 3))), x),
        (joined_rows(rows(1, 2), rows(2, 3)), rows(1, 3)),
        (
            joined_rows(tensor(Ops.FLIP, rows(2, 3), (0, 1)), tensor(Ops.FLIP, rows(0, 2), (0, 1))),
            tensor(Ops.FLIP, x, (0, 1)),
        ),
    ],
    "pieces-undone": [
        (rolled(1, rolled(2, x)), x),
        (rows(0, 3, repeated_rows(x)), x),
        (tensor(Ops.PERMUTE, tensor(Ops.SHRINK, around, ((0, 4), (1, 4))), (1, 0)), x),
        (
            tensor(Ops.EXPAND, is_even, (6, 2)).where(
                tensor(Ops.PAD, even, ((0, 0), (0, 1))), tensor(Ops.PAD, odd, ((0, 0), (1, 0)))
            ),
            pairs,
        ),
    ],
    "reduce-nothing": [
        (reduced(Ops.ADD, tensor(Ops.RESHAPE, x, (1, 12)), 0), tensor(Ops.RESHAPE, x, (1, 12)))
    ],
}
