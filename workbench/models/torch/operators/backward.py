"""Gradients of operators that ATen has as operators of their own: of a forward, by autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from workbench.models.torch.operators.pooling import adaptive_avg_pool, avg_pool
from workbench.models.torch.operators.products import convolution
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor


@row("convolution_backward")
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        options = stride, padding, dilation, transposed, output_padding, groups
        return convolution(x, weight, None, *options)

    of_x, of_weight = through(forward, grad, x, weight)
    of_bias = grad.sum((0, *range(2, grad.ndim)))
    each = of_x, of_weight, of_bias
    return tuple(g if wanted else None for g, wanted in zip(each, output_mask, strict=True))


@row("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(grad: Tensor, x: Tensor, *options: object) -> Tensor:
    return through(lambda x: avg_pool(x, *options), grad, x)[0]  # type: ignore[arg-type]


@row("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(grad: Tensor, x: Tensor) -> Tensor:
    sizes = grad.shape[-2:] if x.ndim < 5 else grad.shape[-3:]
    return through(lambda x: adaptive_avg_pool(x, sizes), grad, x)[0]


@row("max_pool2d_with_indices_backward", "adaptive_max_pool2d_backward")
def max_pool2d_backward(grad: Tensor, x: Tensor, *options: Any) -> Tensor:
    return _at_positions(grad, x, options[-1], 2)


@row("max_pool3d_with_indices_backward", "adaptive_max_pool3d_backward")
def max_pool3d_backward(grad: Tensor, x: Tensor, *options: Any) -> Tensor:
    return _at_positions(grad, x, options[-1], 3)


def _at_positions(grad: Tensor, x: Tensor, indices: Tensor, axes: int) -> Tensor:
    """Return the gradient of `x` for that of its elements at `indices`, counted through its last
    `axes`; each element has the sum of its."""
    lead = x.ndim - axes
    flat = Tensor.zeros(*x.shape[:lead], math.prod(x.shape[lead:]), dtype=grad.dtype)
    places, values = (t.reshape((*t.shape[:lead], -1)) for t in (indices, grad))
    return flat.scatter_reduce(lead, places, values, "sum").reshape(x.shape)


def through(forward: Callable[..., Tensor], grad: Tensor, *values: Tensor) -> list[Tensor]:
    """Return the gradients of `values` for that of their `forward`."""
    leaves = [v.detach().requires_grad_() for v in values]
    return forward(*leaves).gradient(*leaves, gradient=grad)
