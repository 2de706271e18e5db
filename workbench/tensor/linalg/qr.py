"""The QR decomposition, by reflections."""

from __future__ import annotations

from typing import Self

from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import shape_error


class QR(Base):
    """qr."""

    __slots__ = ()

    def qr(self) -> tuple[Self, Self]:
        """Return an orthogonal Q and an upper triangular R, of which self is the product.

        Shapes: (.., m, n) -> (.., m, m), (.., m, n). Dtypes: integers and bools are taken as
        float32.
        Errors: ShapeError for fewer than two axes.
        Source: Householder 1958; signs as LAPACK's.
        """
        if self.ndim < 2:
            raise shape_error(
                f"qr: shape {self.shape} is not that of a matrix",
                "a matrix has two axes, and leading ones are a batch",
                "reshape(1, -1)",
            )
        *lead, rows, columns = self.shape
        kind = self._fraction()
        upper = self._wide().contiguous()
        row, column = upper._count(rows, (rows, 1)), upper._count(columns, (columns,))
        orthogonal = upper._unit(rows).expand(*lead, rows, rows)
        for step in range(min(rows - 1, columns)):
            axis, factor = upper._reflection(row, step)
            product = (axis * upper).sum(-2, keepdim=True)
            upper = (upper - axis * (product * factor)).contiguous()
            column_sums = (orthogonal * axis.transpose(-1, -2)).sum(-1, keepdim=True)
            change = column_sums * factor * axis.transpose(-1, -2)
            orthogonal = (orthogonal - change).contiguous()
        upper = row.le(column).where(upper, 0.0)
        return orthogonal.cast(kind), upper.cast(kind)

    def _reflection(self, row: Self, step: int) -> tuple[Self, Self]:
        """Return the axis v of a reflection 1 - factor v v^T, and its factor, that makes column
        `step` of self 0 below row `step`. v is 1 there, and 0 above.

        Rewrite: x -> -sign(x[0]) |x|; nothing is to be done where all below is 0.
        """
        column = self[..., step : step + 1]
        # Divided by its greatest, no square overflows, and v and the factor stay.
        most = row.ge(step).where(column, 0.0).abs().max(-2, keepdim=True)
        column = column / most.eq(0).where(1.0, most)
        first = column[..., step : step + 1, :]
        below = row.gt(step).where(column, 0.0)
        rest = below.square().sum(-2, keepdim=True)
        is_done = rest.eq(0)
        length = is_done.where(1.0, first.square() + rest).sqrt()
        target = first.lt(0).where(length, length.neg())
        divisor = is_done.where(1.0, first - target)
        axis = row.eq(step).where(1.0, below / divisor)
        return axis, is_done.where(0.0, divisor / target.neg())

    def _unit(self, size: int) -> Self:
        """Return the unit matrix of self's dtype."""
        row, column = self._count(size, (size, 1)), self._count(size, (size,))
        return row.eq(column).where(1.0, 0.0).cast(self.dtype)

    def _count(self, size: int, shape: tuple[int, ...]) -> Self:
        return self._with(reshaped(numbered(size), shape))
