"""Creation of tensors: constants, ranges and uninitialised memory.

Sections: Constants, ranges and uninitialised memory; The same in the shape of another tensor, on
its device.
"""

from __future__ import annotations

import math
from itertools import count as counter
from typing import Any, Self

from workbench.backends.device import Device
from workbench.base.dtypes import Const, DType, dtypes
from workbench.ir.node import construct
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base, canonical
from workbench.tensor.files import is_file, new_file
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import dtype_error, number, shape_error, whole
from workbench.tensor.operands.axes import iota, position_dtype, sizes
from workbench.tensor.operands.broadcast import (
    cast_to,
    constant,
    expanded,
    scalar_dtype,
    wide_dtype,
)
from workbench.tensor.operands.literal import as_dtype

# --------------------------------------------------------------------------------------------------
# Constants, ranges and uninitialised memory. Numbers are computed where they are read: they need no
# memory and no kernel until they are stored.

_uids = counter()


class Creation(Base):
    """`Tensor.full`, `zeros`, `ones`, `empty`, `arange`, `linspace`, `eye`."""

    __slots__ = ()

    @classmethod
    def full(
        cls,
        shape: int | Shape | list[int],
        fill_value: Const,
        dtype: DType | str | None = None,
        device: str | None = None,
        buffer: bool = True,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return a tensor of `shape` with `fill_value` everywhere.

        It is a constant, which needs no memory; `buffer`, an argument of tinygrad's, is ignored.

        Dtypes: that of the value, unless given; a float is truncated to an integer type.
        Errors: DTypeError for an int out of range of the type.
        """
        size, value = sizes((shape,), "full"), number(fill_value, "full: fill_value")
        kind = scalar_dtype(value) if dtype is None else as_dtype(dtype)
        return cls._constant(
            expanded(constant(kind, value, "fill a tensor"), size), device
        )._leaf_if(requires_grad)

    @classmethod
    def zeros(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return zeros; float32 unless `dtype` is given."""
        size = sizes(shape, "zeros")
        kind = dtypes.default_float if dtype is None else dtype
        return cls.full(size, 0, kind, device)._leaf_if(requires_grad)

    @classmethod
    def ones(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return ones; float32 unless `dtype` is given."""
        size = sizes(shape, "ones")
        kind = dtypes.default_float if dtype is None else dtype
        return cls.full(size, 1, kind, device)._leaf_if(requires_grad)

    @classmethod
    def arange(
        cls,
        start: float,
        stop: float | None = None,
        step: float = 1,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return start, start + step, .. up to, but not including, `stop`; `arange(n)` is 0 ..
        n - 1.

        Dtypes: int32 (int64 where one of the integers needs it), or float32 if an argument is a
        float. Errors: ShapeError for a `step` of 0, or numbers that are not finite; DTypeError if
        an integer is out of range of `dtype`.
        """
        if stop is None:
            start, stop = 0, start
        start, stop = number(start, "arange: start"), number(stop, "arange: stop")
        step = number(step, "arange: step")
        natural = max(map(scalar_dtype, (start, stop, step)), key=_rank)
        kind = natural if dtype is None else as_dtype(dtype)
        count = _steps(start, stop, step)
        if count and kind.is_int:
            for end in (start, start + (count - 1) * step):
                constant(kind, int(end), "make a range")
        # Fractions are added up before they are truncated to an integer type.
        exact = natural if natural.is_float and not kind.is_float else wide_dtype(kind)
        value = iota(count, exact)
        if step < 0 and exact.is_float:  # 0 times a negative float would be -0.0
            value, step = cast_to(iota(count) * -1, exact), -step
        value = value if step == 1 else value * step
        value = value if start == 0 else value + start
        return cls._constant(cast_to(value, kind), device)._leaf_if(requires_grad)

    @classmethod
    def linspace(
        cls,
        start: float,
        stop: float,
        steps: int,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `steps` numbers evenly spaced from `start` to `stop`, both included.

        Dtypes: float32 unless given; integers are truncated. Errors: ShapeError for negative
        `steps`, DTypeError for bool.
        """
        count = whole(steps, "linspace: steps", 0)
        start, stop = number(start, "linspace: start"), number(stop, "linspace: stop")
        kind = dtypes.default_float if dtype is None else as_dtype(dtype)
        if kind.is_bool:
            raise dtype_error(
                "linspace: dtype=bool does not fit",
                "a bool has two values, and none is evenly spaced between them",
                'dtype="int32", or != 0 on the numbers',
            )
        exact = wide_dtype(kind) if kind.is_float else dtypes.default_float
        place = iota(count, exact)
        gap = (stop - start) / max(1, count - 1)
        # Counted from the nearer end, so that both ends are exact.
        first, last = place * gap + start, (place + (1.0 - count)) * gap + stop
        value = (place < count / 2).where(first, last) if count > 1 else place + start
        return cls._constant(cast_to(value, kind), device)._leaf_if(requires_grad)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `n` rows and `m` (or `n`) columns with 1 where their numbers are equal, else 0.

        Dtypes: float32 unless given.
        """
        rows = whole(n, "eye: n", 0)
        columns = rows if m is None else whole(m, "eye: m", 0)
        kind = dtypes.default_float if dtype is None else as_dtype(dtype)
        shape = rows, columns
        wide = position_dtype(max(shape))
        row = expanded(reshaped(iota(rows, wide), (rows, 1)), shape)
        column = expanded(reshaped(iota(columns, wide), (1, columns)), shape)
        diagonal = row.eq(column)
        return cls._constant(cast_to(diagonal, kind), device)._leaf_if(requires_grad)

    @classmethod
    def empty(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return uninitialised memory; float32 unless `dtype` is given.

        It needs no kernel. It is for outputs of kernels that users write, and for operands of
        kernels that are inspected, not run. On the device of a file it is that file.
        """
        size = sizes(shape, "empty")
        kind = dtypes.default_float if dtype is None else as_dtype(dtype)
        if 0 in size:
            return cls.full(size, 0, kind, device)._leaf_if(requires_grad)
        place = canonical(Device.DEFAULT if device is None else device)
        if is_file(place):
            return cls._on(new_file(place, kind, size), place)._leaf_if(requires_grad)
        memory = construct.empty(kind, next(_uids), place, size)
        tensor = cls._of_value(memory)
        tensor._device = place
        return tensor._leaf_if(requires_grad)

    @classmethod
    def _constant(cls, value: UOp, device: str | None) -> Self:
        tensor = cls._of_value(value)
        tensor._device = None if device is None else canonical(device)
        return tensor


def _steps(start: float, stop: float, step: float) -> int:
    """Return the number of elements of a range; exact for integers of any size."""
    if step == 0:
        raise shape_error("cannot make a range", "its step is 0", "step=1")
    if not all(map(math.isfinite, (start, stop, step, (stop - start) / step))):
        raise shape_error(
            f"cannot make a range from {start} to {stop} by {step}",
            "its ends and its step are finite numbers",
            "arange(0, 10, 2)",
        )
    if all(isinstance(n, int) for n in (start, stop, step)):
        # Not the length of a range(), which Python does not give from 2**63 on.
        return max(0, -((int(start) - int(stop)) // int(step)))
    return max(0, math.ceil((stop - start) / step))


def _rank(dtype: DType) -> tuple[bool, int]:
    return dtype.is_float, dtype.bits


# --------------------------------------------------------------------------------------------------
# The same in the shape of another tensor, on its device.


class Likes(Creation):
    """const_like, full_like, zeros_like, ones_like, empty_like; const, invalids.

    Dtypes: this tensor's, unless `dtype` is given. The device is this tensor's, unless given.
    """

    __slots__ = ()

    @classmethod
    def const(
        cls, b: Const, dtype: DType | str | None = None, *, requires_grad: bool | None = None
    ) -> Self:
        """Return the number `b` as a tensor without axes. Dtypes: as `full`."""
        return cls.full((), number(b, "const: b"), dtype)._leaf_if(requires_grad)

    @classmethod
    def invalids(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `empty(*shape)`. Also known as: tinygrad invalids."""
        return cls.empty(sizes(shape, "invalids"), dtype=dtype, device=device)._leaf_if(
            requires_grad
        )

    def const_like(
        self, b: Const, dtype: DType | str | None = None, *, requires_grad: bool | None = None
    ) -> Self:
        """Return the number `b` in this tensor's shape."""
        return self.full_like(number(b, "const_like: b"), dtype)._leaf_if(requires_grad)

    def full_like(
        self,
        fill_value: Const,
        dtype: DType | str | None = None,
        device: str | None = None,
        buffer: bool = True,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `fill_value` in this tensor's shape.

        It is a constant, which needs no memory; `buffer`, an argument of tinygrad's, is ignored.
        """
        kind = self.dtype if dtype is None else dtype
        place = self._device if device is None else device
        value = number(fill_value, "full_like: fill_value")
        return self.full(self.shape, value, kind, place)._leaf_if(requires_grad)

    def zeros_like(
        self,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return zeros in this tensor's shape."""
        return self.full_like(0, dtype, device)._leaf_if(requires_grad)

    def ones_like(
        self,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return ones in this tensor's shape."""
        return self.full_like(1, dtype, device)._leaf_if(requires_grad)

    def empty_like(
        self,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return uninitialised memory in this tensor's shape."""
        kind = self.dtype if dtype is None else dtype
        place = self._device if device is None else device
        return self.empty(self.shape, dtype=kind, device=place)._leaf_if(requires_grad)
