"""sort, argsort, topk: positions in the order of the values, and the values at these positions."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import flag, short, whole
from workbench.tensor.operands.axes import one_axis
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.sorting.keys import keys_of, packed, positions
from workbench.tensor.sorting.network import first_in_order, in_order


class Sorting(Base):
    """sort, argsort, topk.

    Equal values stay in their order, whichever the direction. NaN is the greatest value, and -0.0
    equals 0.0, as in torch. Positions are int32.
    """

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """Return the values along axis `dim` in order, and the positions they come from.

        Errors: AxisError if there is no such axis.
        """
        index = self._positions_in_order("sort", dim, descending)
        return self.gather(dim, index), index

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """Return the positions that put axis `dim` in order, as `sort` does."""
        return self._positions_in_order("argsort", dim, descending)

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """Return the `k` largest values (or least) along axis `dim`, in order, and their
        positions; they are in order also where `sorted_` is False.

        Errors: ShapeError if `k` is negative, or larger than the axis.
        """
        flag(sorted_, "topk: sorted_")
        is_largest = flag(largest, "topk: largest")
        axis = one_axis(dim, self.ndim, "topk")
        number, size = whole(k, "topk: k", 0), self.shape[axis] if self.ndim else 1
        if number > size:
            raise shape_error(
                f"cannot take the {short(number)} {'largest' if is_largest else 'least'} values"
                f" along axis {axis} of shape {self.shape}",
                f"the axis has {size} elements",
                f"topk({size}, {dim})",
            )
        index = self._positions_in_order("topk", dim, is_largest, number)
        return self.gather(dim, index), index

    def _positions_in_order(
        self, what: str, dim: int, descending: bool, number: int | None = None
    ) -> Self:
        """Return the positions of the first `number` values (None: all), in order."""
        axis = one_axis(dim, self.ndim, what)
        reverse = flag(descending, f"{what}: descending")
        if not self.ndim:
            return self.full((), 0, dtypes.int32, self._device)
        last = self.transpose(axis, -1)
        *lead, size = last.shape
        count = size if number is None else number
        shape = (*lead, count)
        if 0 in (*shape, size):
            index = self.full(shape, 0, dtypes.int32, self._device)
        else:
            rows = last.reshape(-1, size)
            index = rows._row_positions(reverse, count).reshape(shape)
        return index.transpose(axis, -1)

    def _row_positions(self, descending: bool, number: int) -> Self:
        """Return the positions of the `number` first elements of each row in order.

        Keys of two halves are sorted by the lower one, and then, in that order, by the upper.
        """
        key, *upper = keys_of(self.uop, descending)
        if not upper:
            return self._with(positions(first_in_order(packed(key), number)))
        by_lower = self._with(positions(in_order(packed(key))))
        key = self._with(upper[0]).gather(1, by_lower).uop
        by_upper = self._with(positions(first_in_order(packed(key), number)))
        return by_lower.gather(1, by_upper)
