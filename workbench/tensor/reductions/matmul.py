"""Matrix products: a broadcast multiplication and a sum, which scheduling fuses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from workbench.base.dtypes import DType, promote
from workbench.base.words import type_name
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import flag, short
from workbench.tensor.operands.broadcast import wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.refuse import dtype_error, shape_error
from workbench.tensor.reductions.reduce import modular_dtype


class Matmul(Base):
    """`@`, `matmul`, `dot` and `linear`."""

    __slots__ = ()

    def matmul(self, x: Operand, reverse: bool = False, dtype: DType | str | None = None) -> Self:
        """Return the matrix product self @ x (`reverse`: x @ self).

        Shapes: (..., m, k) @ (..., k, n) -> (..., m, n), leading axes broadcast; a vector is a row
        on the left and a column on the right, and its axis is absent from the result.
        Dtypes: operands promote, and integers wrap; low-precision floats are multiplied and summed
        in float32, and the result is cast back; with `dtype` the operands are cast before, and the
        result has it.
        Errors: ShapeError if the inner sizes differ or an operand is a scalar.
        """
        other = self._matrix(x)
        if flag(reverse, "reverse"):
            return other.dot(self, dtype)
        return self.dot(other, dtype)

    def dot(self, w: Operand, dtype: DType | str | None = None) -> Self:
        """Return self @ w (see `matmul`)."""
        other = self._matrix(w)
        _check(self.shape, other.shape)
        kind = promote(self.dtype, other.dtype) if dtype is None else as_dtype(dtype)
        left = self.unsqueeze(0) if self.ndim == 1 else self
        right = other.unsqueeze(1) if other.ndim == 1 else other
        left, right = (
            t.cast(wide_dtype(t.dtype if dtype is None else kind)) for t in (left, right)
        )
        products = left.unsqueeze(-2) * right.transpose(-1, -2).unsqueeze(-3)
        output = products.sum(-1, dtype=modular_dtype(kind)).cast(kind)
        if self.ndim == 1:
            output = output.squeeze(-2)
        return output.squeeze(-1) if other.ndim == 1 else output

    def linear(
        self, weight: Self, bias: Self | None = None, dtype: DType | str | None = None
    ) -> Self:
        """Return self @ `weight` + `bias`; a `weight` of one axis is a factor of the last one.

        Shapes: (.., in) with (in, out) -> (.., out). Dtypes: with `dtype` all are cast to it first.
        """
        value, kernel = self, self._matrix(weight)
        offset = None if bias is None else self._lift(bias, "add")
        if dtype is not None:
            value, kernel = value.cast(dtype), kernel.cast(dtype)
            offset = None if offset is None else offset.cast(dtype)
        output = value * kernel if kernel.ndim == 1 else value.dot(kernel)
        return output if offset is None else output + offset

    def __matmul__(self, x: Operand) -> Self:
        return self.matmul(x)

    def __rmatmul__(self, x: Operand) -> Self:
        return self.matmul(x, reverse=True)

    def _matrix(self, operand: Operand) -> Self:
        if not isinstance(operand, Base | np.ndarray):
            raise dtype_error(
                f"cannot multiply a matrix and {type_name(type(operand))} {short(operand)}",
                "a matrix product is of two tensors",
                "* to scale, or Tensor(...) of a list",
            )
        return self._lift(operand, "multiply")


def _check(a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
    if not a or not b:
        raise shape_error(
            f"cannot multiply matrices of shapes {a} and {b}",
            "a scalar is not a matrix",
            "* to scale",
        )
    inner = -2 if len(b) > 1 else -1
    if a[-1] != b[inner]:
        fits = len(b) > 1 and a[-1] == b[-1]
        raise shape_error(
            f"cannot multiply matrices of shapes {a} and {b}",
            f"the last axis of the left one has {a[-1]} elements,"
            f" and axis {inner} of the right one {b[inner]}",
            "transpose the right one: a @ b.transpose(-1, -2)" if fits else "",
        )
