"""Constants and memory in the shape of another tensor, on its device."""

from __future__ import annotations

from typing import Any, Self

from workbench.base.dtypes import Const, DType
from workbench.tensor.creation.creation import Creation
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.axes import sizes


class Likes(Creation):
    """const_like, full_like, zeros_like, ones_like, empty_like; const, invalids.

    Dtypes: this tensor's, unless `dtype` is given. Its device, unless `device` is.
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

        It is a constant, which needs no memory; `buffer` is there for tinygrad's calls.
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
