"""Tensors made of numbers: no memory, and no kernel until they are stored."""

from __future__ import annotations

import math
from typing import Any, Self

from workbench.dtypes import Const, DType, dtypes
from workbench.ir.ops import Ops
from workbench.ir.shapes import Shape
from workbench.ir.uop import UOp
from workbench.tensor.axes import sizes
from workbench.tensor.base import canonical
from workbench.tensor.broadcast import cast_to, expanded, scalar_dtype
from workbench.tensor.casts import Casts
from workbench.tensor.literal import as_dtype
from workbench.tensor.refuse import shape_error


class Creation(Casts):
    """`Tensor.full`, `zeros`, `ones` and `arange`."""

    __slots__ = ()

    @classmethod
    def full(
        cls,
        shape: int | Shape | list[int],
        fill_value: Const,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """Return a tensor of `shape` with `fill_value` everywhere.

        Dtypes: that of the value, unless given.
        """
        size = sizes((shape,), "full")
        kind = scalar_dtype(fill_value) if dtype is None else as_dtype(dtype)
        return cls._constant(expanded(UOp.const(kind, fill_value), size), device)

    @classmethod
    def zeros(
        cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """Return zeros; float32 unless `dtype` is given."""
        size = sizes(shape, "zeros")
        return cls.full(size, 0, dtype or dtypes.default_float, device)

    @classmethod
    def ones(
        cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """Return ones; float32 unless `dtype` is given."""
        size = sizes(shape, "ones")
        return cls.full(size, 1, dtype or dtypes.default_float, device)

    @classmethod
    def arange(
        cls,
        start: float,
        stop: float | None = None,
        step: float = 1,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """Return start, start + step, ... below `stop`; of one number, 0 .. that number - 1.

        Dtypes: int32, or float32 if a number given is a float. Errors: ShapeError if `step`
        is 0.
        """
        if stop is None:
            start, stop = 0, start
        if step == 0:
            raise shape_error("cannot make a range", "its step is 0", "step=1")
        alone = [scalar_dtype(n) for n in (start, stop, step)]
        kind = max(alone, key=_rank) if dtype is None else as_dtype(dtype)
        count = max(0, math.ceil((stop - start) / step))
        if count == 0:
            return cls._constant(expanded(UOp.const(kind, 0), (0,)), device)
        value = cast_to(UOp(Ops.IOTA, dtypes.int32, (), count), kind)
        value = value if step == 1 else value * step
        return cls._constant(value if start == 0 else value + start, device)

    @classmethod
    def _constant(cls, value: UOp, device: str | None) -> Self:
        made = cls(value)
        made._device = None if device is None else canonical(device)
        return made


def _rank(dtype: DType) -> tuple[bool, int]:
    return dtype.is_float, dtype.bits
