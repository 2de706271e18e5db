"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.onnx.operators.movement import padded
from workbench.models.onnx.table import row
from workbench.tensor.tensor import Tensor


@row("MatMul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


@row("Gemm", since=7)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """alpha * (a @ b) + beta * c, with `a` and `b` transposed or not."""
    y = (a.T if transA else a) @ (b.T if transB else b)
    y = y if alpha == 1 else (y * alpha).cast(a.dtype)
    if c is None:
        return y
    return y + (c if beta == 1 else (c * beta).cast(a.dtype))


@row("Einsum", since=12)
def einsum(*inputs: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation, *inputs)


@dataclass(frozen=True, slots=True)
class Windows:
    """The attributes of operators that move windows over pictures."""

    auto_pad: str = "NOTSET"
    dilations: Sequence[int] | None = None
    kernel_shape: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None

    def steps(self, rank: int) -> tuple[int, ...]:
        return tuple(self.strides or (1,) * rank)

    def gaps(self, rank: int) -> tuple[int, ...]:
        return tuple(self.dilations or (1,) * rank)

    def sides(self, shape: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """Return the elements put before each axis, and then those after each."""
        rank = len(shape)
        if self.auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
            raise ModelError("cannot pad windows", f"there is no auto_pad {self.auto_pad!r}")
        if self.auto_pad == "NOTSET":
            return list(self.pads or (0,) * (2 * rank))
        if self.auto_pad == "VALID":
            return [0] * (2 * rank)
        before, after = [], []
        for n, k, s, d in zip(shape, kernel, self.steps(rank), self.gaps(rank), strict=True):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            less, more = total // 2, total - total // 2
            before.append(less if self.auto_pad == "SAME_UPPER" else more)
            after.append(more if self.auto_pad == "SAME_UPPER" else less)
        return before + after

    def padding(self, shape: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Return the elements before and after each axis, from the last axis on, as PyTorch has
        them."""
        rank, sides = len(shape), self.sides(shape, kernel)
        return tuple(n for a in range(rank)[::-1] for n in (sides[a], sides[a + rank]))


@row("Conv", shared=Windows)
def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, group: int = 1, **options: Any
) -> Tensor:
    windows, rank = Windows(**options), x.ndim - 2
    padding = windows.padding(x.shape[2:], weight.shape[2:])
    if min(padding, default=0) < 0:
        raise ModelError("cannot convolve", f"a padding is negative: {padding}")
    return x.conv2d(weight, bias, group, windows.steps(rank), windows.gaps(rank), padding)


@row("ConvTranspose", shared=Windows)
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    group: int = 1,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    **options: Any,
) -> Tensor:
    """The transposed convolution: all of it, then cut and grown to the shape that is asked for."""
    windows, kernel, rank = Windows(**options), weight.shape[2:], x.ndim - 2
    steps, gaps = windows.steps(rank), windows.gaps(rank)
    more = list(output_padding or (0,) * rank)
    sizes = [
        (n - 1) * s + (k - 1) * d + 1
        for n, k, s, d in zip(x.shape[2:], kernel, steps, gaps, strict=True)
    ]
    before, after = [0] * rank, [0] * rank
    if output_shape is None and windows.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [n * s for n, s in zip(x.shape[2:], steps, strict=True)]
    if output_shape is not None:
        for a, wanted in enumerate(list(output_shape)[-rank:]):
            total = sizes[a] + more[a] - wanted
            half = total // 2 if total > 0 else 0
            before[a] = half if windows.auto_pad == "SAME_UPPER" else max(0, total) - half
            after[a] = total - before[a]
    elif windows.pads is not None and windows.auto_pad != "VALID":
        before, after = list(windows.pads[:rank]), list(windows.pads[rank:])
    y = x.conv_transpose2d(weight, None, group, steps, gaps)
    # First grown, then cut: what is cut off at the end may be more than there was.
    y = padded(y, [0] * rank + more, range(2, 2 + rank), "constant")
    y = padded(y, [-n for n in (*before, *after)], range(2, 2 + rank), "constant")
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * rank)


@row("Det", since=11)
def determinant(x: Tensor) -> Tensor:
    """The determinant by the rows' expansion, of matrices of up to 4 rows."""
    size = x.shape[-1]
    if size > 4:
        raise ModelError("cannot compute a determinant", f"{size} rows are more than 4")
    if size == 1:
        return x[..., 0, 0]
    total = None
    for column in range(size):
        others = [n for n in range(size) if n != column]
        minor = determinant(x[..., 1:, :][..., Tensor(others, dtype=dtypes.int64)])
        term = x[..., 0, column] * minor
        total = term if total is None else total + term if column % 2 == 0 else total - term
    assert total is not None
    return total
