"""Matrix products, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.models.torch.operators.reductions import vector_norm
from workbench.models.torch.table import row, whole_row
from workbench.tensor.operands.arguments import dtype_error
from workbench.tensor.tensor import Tensor


@row("mm", "bmm", "mv", "dot", "matmul")
def product(x: Tensor, y: Tensor) -> Tensor:
    _check_dtypes(x, y)
    return x @ y


def _check_dtypes(x: Tensor, y: Tensor) -> None:
    """Errors: DTypeError for operands of two dtypes, which PyTorch refuses; its export does not."""
    if x.dtype is not y.dtype:
        what = f"cannot multiply {x.dtype} by {y.dtype}"
        raise dtype_error(what, "PyTorch multiplies values of one dtype", f"x.cast('{y.dtype}')")


@row("addmm", "baddbmm", "addmv")
def add_product(bias: Tensor, x: Tensor, y: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * bias + alpha * (x @ y); with beta = 0 what `bias` holds does not count."""
    scaled = product(x, y) if alpha == 1 else product(x, y) * alpha
    if beta == 0:
        return scaled
    return scaled + (bias if beta == 1 else bias * beta)


@row("addbmm")
def add_products(
    bias: Tensor, x: Tensor, y: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * bias + alpha * the sum of x[n] @ y[n]."""
    total = product(x, y).sum(0) * alpha
    return total if beta == 0 else total + bias * beta


@row("convolution")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    _check_dtypes(x, weight)
    axes = weight.ndim - 2
    single = x.ndim == weight.ndim - 1
    x = x.unsqueeze(0) if single else x
    each = [_each(n, axes) for n in (stride, padding, dilation)]
    common = {"groups": groups, "stride": each[0], "padding": each[1], "dilation": each[2]}
    if transposed:
        more = _each(output_padding, axes)
        y = x.conv_transpose2d(weight, bias, output_padding=more, **common)  # type: ignore[arg-type]
    else:
        y = x.conv2d(weight, bias, **common)  # type: ignore[arg-type]
    return y.squeeze(0) if single else y


def _each(numbers: Sequence[int], axes: int) -> tuple[int, ...]:
    return tuple(numbers) * axes if len(numbers) == 1 else tuple(numbers)


@whole_row("scaled_dot_product_attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if scale is not None:
        query = query * (scale * math.sqrt(query.shape[-1]))
    return query.scaled_dot_product_attention(
        key, value, attn_mask, dropout_p, is_causal, enable_gqa
    )


@row("_trilinear")
def trilinear(
    x: Tensor,
    y: Tensor,
    z: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The product of three tensors with axes of length 1 put in, summed over `sumdim`."""
    for axis in expand1:
        x = x.unsqueeze(axis)
    for axis in expand2:
        y = y.unsqueeze(axis)
    for axis in expand3:
        z = z.unsqueeze(axis)
    return (x * y * z).sum(tuple(sumdim))


@row("_cdist_forward")
def cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    return vector_norm(apart, p, -1)


@row("_pdist_forward")
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    n = x.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if not pairs:
        return Tensor.zeros(0, dtype=x.dtype)
    first, second = (Tensor(list(side)) for side in zip(*pairs, strict=True))
    return vector_norm(x[first] - x[second], p, -1)
