"""The singular value decomposition, by rotations of pairs of columns."""

from __future__ import annotations

from typing import Self, TypeVar

from workbench.tensor.base import Base
from workbench.tensor.linalg.qr import QR
from workbench.tensor.operands.arguments import flag
from workbench.tensor.operands.refuse import shape_error

T = TypeVar("T", bound=Base)


class SVD(QR):
    """svd."""

    __slots__ = ()

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """Return U, S and V^T: self is (U * S) @ V^T, U and V are orthogonal, and S is not negative
        and falls.

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

        Rewrite: self P = Q R, columns in falling order of length; R^T W has orthogonal columns,
        whose lengths are S and whose directions V; then U = Q W. Source: Drmac and Veselic 2008:
        R^T needs the fewest rotations.
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
        """Return self, each pair of columns rotated, again and again, until the first `rows` of all
        columns are orthogonal.

        Rotating every pair once about squares the cosines of the angles, when these are small.
        For triangles from `qr` this took at most 2 + log2(columns) times in float64, up to 100
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
        """Return orthogonal matrices with the columns of square ones, of which some may be 0: in
        the place of these are others."""
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
