"""Diagonals of matrices, and the triangles beside them."""

from __future__ import annotations

from typing import Self

from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import padded, reshaped, shrunk
from workbench.tensor.operands.arguments import whole
from workbench.tensor.operands.axes import one_axis
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.numbered import numbered, position_dtype
from workbench.tensor.operands.refuse import axis_error, shape_error


class Diagonals(Base):
    """diag, diagonal, tril, triu."""

    __slots__ = ()

    def diag(self) -> Self:
        """Return the square matrix with this vector on its diagonal and 0 elsewhere.

        Rewrite: rows of the element and n zeros, end to end, cut to n: each begins one place later.
        Errors: ShapeError unless it has one axis.
        """
        if self.ndim != 1:
            raise shape_error(
                f"cannot make a diagonal matrix of shape {self.shape}",
                "it is made of a vector, a tensor of one axis",
                ".diagonal() for the diagonal of a matrix" if self.ndim > 1 else "",
            )
        size = self.shape[0]
        rows = padded(reshaped(self.uop, (size, 1)), ((0, 0), (0, size)))
        line = reshaped(rows, (size * (size + 1),))
        return self._with(reshaped(shrunk(line, ((0, size**2),)), (size, size)))

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """Return a view of the elements where the position along `dim2` is `offset` more than along
        `dim1`.

        Shapes: both axes go, and the diagonal is the last one; it has no elements where `offset` is
        outside the matrix. Errors: AxisError for fewer than two axes, or if they are the same.
        """
        row, column = (one_axis(dim, self.ndim, "diagonal") for dim in (dim1, dim2))
        if self.ndim < 2:
            raise axis_error(f"shape {self.shape} has no diagonal", "a matrix has two axes")
        if row == column:
            raise axis_error(
                f"diagonal: dim1={dim1} and dim2={dim2} are the same axis",
                "a diagonal runs along two",
            )
        lead = [i for i in range(self.ndim) if i not in (row, column)]
        matrix = self.permute(*lead, row, column).uop
        start = whole(offset, "diagonal: offset")
        return self._view(_diagonal(matrix, max(0, -start), max(0, start)))

    def tril(self, diagonal: int = 0) -> Self:
        """Return the last two axes up to a diagonal, 0 for the elements above it.

        `diagonal` counts from the main one, upwards. Errors: AxisError for fewer than two axes.
        """
        return self._triangle("tril", diagonal, True)

    def triu(self, diagonal: int = 0) -> Self:
        """Return the last two axes from a diagonal on, 0 for the elements below it, as `tril`."""
        return self._triangle("triu", diagonal, False)

    def _triangle(self, what: str, diagonal: int, is_lower: bool) -> Self:
        place = whole(diagonal, f"{what}: diagonal")
        if self.ndim < 2:
            raise axis_error(
                f"cannot {what} shape {self.shape}",
                "a matrix has two axes",
                "reshape, or unsqueeze(0) for a row",
            )
        shape = self.shape[-2:]
        wide = position_dtype(max(shape) + abs(place))
        row = expanded(reshaped(numbered(shape[0], wide), (shape[0], 1)), shape)
        column = expanded(numbered(shape[1], wide), shape)
        inside = column <= row + place if is_lower else row + place <= column
        return self._with(expanded(inside, self.shape).where(self.uop, self.uop.like(0)))


def _diagonal(matrix: UOp, row: int, column: int) -> UOp:
    """Return the diagonal of the last two axes from (row, column) on.

    Rewrite: a square with a column more, its rows end to end: the diagonal is a column.
    """
    *lead, height, width = matrix.shape
    size = max(0, min(height - row, width - column))
    whole = tuple((0, n) for n in lead)
    if not size:
        return reshaped(shrunk(matrix, (*whole, (0, 0), (0, 0))), (*lead, 0))
    square = shrunk(matrix, (*whole, (row, row + size), (column, column + size)))
    line = reshaped(square, (*lead, size * size))
    line = padded(line, (*((0, 0) for _ in lead), (0, size)))
    rows = reshaped(line, (*lead, size, size + 1))
    return reshaped(shrunk(rows, (*whole, (0, size), (0, 1))), (*lead, size))
