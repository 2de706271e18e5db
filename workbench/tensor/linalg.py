"""Linear algebra of small matrices: QR, SVD and Newton-Schulz orthogonalisation.

Sections: Newton-Schulz orthogonalisation; The QR decomposition, by reflections; The singular
value decomposition, by rotations of pairs of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar

from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import flag, listed, number, shape_error, short, whole
from workbench.tensor.operands.axes import iota

# --------------------------------------------------------------------------------------------------
# Newton-Schulz orthogonalisation: the matrix with the same singular vectors and singular values
# near 1, by a polynomial.

_MOST_STEPS = 100
"""The maximal number of steps, each of several kernels; singular values near 1 need about 5 steps,
others 20."""


class NewtonSchulz(Base):
    """newton_schulz."""

    __slots__ = ()

    def newton_schulz(self, steps: int, params: Sequence[float], eps: float = 1e-7) -> Self:
        """Return self over its Frobenius norm plus `eps`, with an odd polynomial applied `steps`
        times: the sum of params[i] * (X X^T) ** i X.

        Shapes: (.., m, n), each matrix on its own.
        Dtypes: integers and bools are taken as float32.
        Errors: ShapeError for fewer than two axes, more than 100 steps, or no `params`.
        Source: Kovarik 1970; Bjorck and Bowie 1971.
        """
        times = whole(steps, "newton_schulz: steps", 0)
        factors = [
            number(p, "newton_schulz: a number of params")
            for p in listed(params, "newton_schulz: params")
        ]
        small = number(eps, "newton_schulz: eps")
        if times > _MOST_STEPS:
            raise shape_error(
                f"newton_schulz: steps = {short(times)} is too large",
                f"it is {_MOST_STEPS} or less: each step is kernels of its own",
                "steps=5",
            )
        if self.ndim < 2 or not factors:
            raise shape_error(
                f"newton_schulz: shape {self.shape} and {len(factors)} params",
                "it needs matrices, which have two axes, and one number of params or more",
                "steps=5, params=(3.4445, -4.775, 2.0315)",
            )
        value = self._wide()
        value = value / (value.square().sum((-2, -1), keepdim=True).sqrt() + small)
        is_tall = self.shape[-2] > self.shape[-1]
        value = value.transpose(-1, -2) if is_tall else value
        for _ in range(times):
            value = value._odd_polynomial(factors)
        value = value.transpose(-1, -2) if is_tall else value
        return value.cast(self._fraction())

    def _odd_polynomial(self, factors: Sequence[float]) -> Self:
        """Return the sum of factors[i] * (X X^T) ** i X, by Horner's rule."""
        square = self.matmul(self.transpose(-1, -2)).contiguous()
        total, scale = self, factors[-1]
        for factor in reversed(factors[:-1]):
            total, scale = square.matmul(total) * scale + self * factor, 1
        return (total * scale).contiguous()


# --------------------------------------------------------------------------------------------------
# The QR decomposition, by reflections.


class QR(Base):
    """qr."""

    __slots__ = ()

    def qr(self) -> tuple[Self, Self]:
        """Return an orthogonal Q and an upper triangular R whose product is self.

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
        """Return the axis v and the factor of the reflection 1 - factor v v^T that makes column
        `step` of self 0 below row `step`. v is 1 in that row, and 0 above.

        Rewrite: x -> -sign(x[0]) |x|; the factor is 0 where all below is 0 already.
        """
        column = self[..., step : step + 1]
        # Division by the greatest element keeps squares finite, and changes neither v nor factor.
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
        """Return the unit matrix of `size` rows, in self's dtype."""
        row, column = self._count(size, (size, 1)), self._count(size, (size,))
        return row.eq(column).where(1.0, 0.0).cast(self.dtype)

    def _count(self, size: int, shape: tuple[int, ...]) -> Self:
        return self._with(reshaped(iota(size), shape))


# --------------------------------------------------------------------------------------------------
# The singular value decomposition, by rotations of pairs of columns.

T = TypeVar("T", bound=Base)


class SVD(QR):
    """svd."""

    __slots__ = ()

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """Return U, S and V^T: self is (U * S) @ V^T, U and V are orthogonal, and S is not negative
        and in falling order.

        Shapes: (.., m, n) -> (.., m, m), (.., k), (.., n, n), k the lesser of m and n; unless
        `full_matrices`, U is (.., m, k) and V^T (.., k, n).
        Dtypes: integers and bools are taken as float32.
        Errors: ShapeError for fewer than two axes.
        Source: Hestenes 1958; pairs in the order of a tournament, as Brent and Luk 1985.
        """
        is_full = flag(full_matrices, "svd: full_matrices")
        if self.ndim < 2:
            raise shape_error(
                f"svd: shape {self.shape} is not that of a matrix",
                "a matrix has two axes, and leading ones are a batch",
                "reshape(1, -1)",
            )
        kind, wide = self._fraction(), self._wide()
        is_wide = self.shape[-2] < self.shape[-1]
        left, sizes, right = (wide.transpose(-1, -2) if is_wide else wide)._tall_svd()
        if not is_full:
            left = left[..., : sizes.shape[-1]]
        if is_wide:
            left, right = right, left
        return left.cast(kind), sizes.cast(kind), right.transpose(-1, -2).cast(kind)

    def _tall_svd(self) -> tuple[Self, Self, Self]:
        """Return U, S and V of matrices with at least as many rows as columns.

        Rewrite: self P = Q R, where P puts columns in falling order of length; R^T W has orthogonal
        columns, with lengths S and directions V; then U = Q W. Source: Drmac and Veselic 2008: R^T
        needs the fewest rotations.
        """
        *lead, rows, columns = self.shape
        most = self.abs().max((-2, -1), keepdim=True)
        factor = most.eq(0).where(1.0, most)
        scaled = self / factor
        sorting = scaled.square().sum(-2)._falling()
        basis, upper = scaled.matmul(sorting).qr()
        lower = upper[..., :columns, :].transpose(-1, -2)
        unit = self._unit(columns).expand(*lead, columns, columns)
        both = lower.cat(unit, dim=-2)._rotated(columns)
        body, turns = both[..., :columns, :], both[..., columns:, :]
        squares = body.square().sum(-2)
        is_zero = squares.eq(0)
        lengths = is_zero.where(1.0, squares).sqrt()
        sizes = is_zero.where(0.0, lengths)
        order = sizes._falling()
        first = basis[..., :columns].matmul(turns.matmul(order))
        left = first.cat(basis[..., columns:], dim=-1) if rows > columns else first
        right = (body / lengths.unsqueeze(-2)).matmul(order)._basis()
        ordered = sizes.unsqueeze(-2).matmul(order) * factor
        return left, ordered.squeeze(-2), sorting.matmul(right)

    def _rotated(self, rows: int) -> Self:
        """Return self with all pairs of columns rotated repeatedly, until the first `rows` rows of
        the columns are orthogonal.

        Rotating every pair once roughly squares the cosines of the angles, when they are small.
        Triangles from `qr` took at most 2 + log2(columns) such sweeps in float64, up to 100
        columns, graded and singular ones too.
        """
        columns = self.shape[-1]
        value = self.pad((0, columns % 2)) if columns > 1 else self
        half = value.shape[-1] // 2
        times = 3 + (columns - 1).bit_length()
        for _ in range(times * (value.shape[-1] - 1)):
            left, right = value[..., :half], value[..., half:]
            slope = _slope(left[..., :rows, :], right[..., :rows, :])
            cosine = (slope.square() + 1).rsqrt()
            first = (left - right * slope) * cosine
            second = (left * slope + right) * cosine
            # The next pairs of the tournament: all columns but the first move on by one place.
            value = first[..., :1].cat(
                second[..., :1],
                first[..., 1 : half - 1],
                second[..., 1:],
                first[..., max(1, half - 1) :],
                dim=-1,
            )
            value = value.contiguous()
        return value[..., :columns]

    def _falling(self) -> Self:
        """Return matrices that put the elements along the last axis in falling order."""
        count = self.shape[-1]
        place = self._count(count, (count,))
        one, other = self.unsqueeze(-1), self.unsqueeze(-2)
        is_earlier = place.lt(place.unsqueeze(-1))
        is_before = other.gt(one) | (other.eq(one) & is_earlier)
        rank = is_before.sum(-1, keepdim=True, dtype=place.dtype)
        return rank.eq(place).where(1.0, 0.0).cast(self.dtype)

    def _basis(self) -> Self:
        """Return orthogonal matrices, from square ones with orthogonal columns of which some may be
        0: these are replaced."""
        basis, upper = self.qr()
        diagonal = (upper * self._unit(self.shape[-1])).sum(-2, keepdim=True)
        return basis * diagonal.lt(0).where(-1.0, 1.0)


def _slope(left: T, right: T) -> T:
    """Return the tangents of the angles that rotate pairs of columns to be orthogonal.

    Rewrite: t^2 + 2 z t - 1 = 0, z = (|r|^2 - |l|^2) / (2 l r); t is the root nearer to 0.
    """
    product = (left * right).sum(-2, keepdim=True)
    lengths = right.square().sum(-2, keepdim=True) - left.square().sum(-2, keepdim=True)
    is_done = product.eq(0)
    twice = is_done.where(1.0, product * 2)
    ratio = lengths / twice
    root = (ratio.square() + 1).sqrt()
    slope = ratio.lt(0).where(-1.0, 1.0) / (ratio.abs() + root)
    return is_done.where(0.0, slope).contiguous()
