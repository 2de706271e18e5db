"""The gradient of sliding windows (convolution, pooling), which `tensor/movement/windows.py` makes.

Windows are copies of an axis, end to end, cut into rows that are longer than the axis by a shift:
column p of row j is element p + j * shift. By the rules of the single ops, a kernel would search
every copy for an element. By the rule of this file it adds one number for each row: the adjoint of
a convolution is a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from workbench.ir.gradient.rules import reshaped, summed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class Rows(NamedTuple):
    """Rows of an axis of `source`, which has `length` elements there. There are `size` rows; each
    begins `shift` elements later than the row above, and the first `columns` of each are kept. Row
    j is at position j of `axis`."""

    source: UOp
    axis: int
    length: int
    size: int
    shift: int
    columns: int


def rows_of(node: UOp, source: Callable[[UOp], UOp]) -> Rows | None:
    """Return the rows whose first columns `node`, a SHRINK, keeps; None for any other node.
    `source` returns the value that a movement op reads."""
    if node.op is not Ops.SHRINK or (rows := source(node)).op is not Ops.RESHAPE:
        return None
    cut = source(rows)
    line = source(cut) if cut.op is Ops.SHRINK else cut
    if line.op is not Ops.RESHAPE or (copies := source(line)).op is not Ops.EXPAND:
        return None
    one = copies.src[0].shape
    wide = [i for i, (a, b) in enumerate(zip(one, copies.shape, strict=False)) if a != b]
    if len(wide) != 1 or len(one) != len(copies.shape) or wide[0] + 1 >= len(one):
        return None
    (axis,) = wide
    before, length, after = one[:axis], one[axis + 1], one[axis + 2 :]
    number = copies.shape[axis] * length
    if len(rows.shape) != len(one) or line.shape != (*before, number, *after):
        return None
    size, width = rows.shape[axis : axis + 2]
    columns = node.shape[axis + 1]
    whole = (*before, size, columns, *after)
    is_skewed = (
        rows.shape == (*before, size, width, *after)
        and cut.shape == (*before, size * width, *after)
        and all(lo == 0 for lo, _ in (*node.arg, *_box(cut)))
        and node.shape == whole
        and columns + (size - 1) * (width - length) <= length < width
    )
    if not is_skewed:
        return None
    return Rows(source(copies), axis, length, size, width - length, columns)


def source_gradient(g: UOp, rows: Rows) -> UOp:
    """Return the gradient of the source of `rows`; `g` is the gradient of the rows.

    Rewrite: the rows are put in reverse order and padded in front. Then element i is the sum over
    the rows of column i + row * shift: in rows cut longer by the shift, these are one column.
    """
    axis, shift, size = rows.axis, rows.shift, rows.size
    before, after = g.shape[:axis], g.shape[axis + 2 :]
    offset = (size - 1) * shift
    width = rows.length + offset
    g = UOp(Ops.FLIP, g.dtype, (g,), (axis,))
    g = _padded(g, axis + 1, offset, rows.length - rows.columns)
    g = _padded(reshaped(g, (*before, size * width, *after)), axis, 0, size * shift)
    g = reshaped(g, (*before, size, width + shift, *after))
    box = [(0, n) for n in g.shape]
    box[axis + 1] = (0, rows.length)
    g = UOp(Ops.SHRINK, g.dtype, (g,), tuple(box))
    return reshaped(summed(g, (axis,)), rows.source.shape)


def _box(node: UOp) -> tuple[tuple[int, int], ...]:
    return node.arg if node.op is Ops.SHRINK else ()


def _padded(value: UOp, axis: int, before: int, after: int) -> UOp:
    if not before and not after:
        return value
    box = tuple((before, after) if i == axis else (0, 0) for i in range(len(value.shape)))
    return UOp(Ops.PAD, value.dtype, (value,), box)
