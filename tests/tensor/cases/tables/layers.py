"""Products, convolution, pooling and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import FLOATS, Case, case, mask, values

F = torch.nn.functional
INF = float("inf")
WIDE = ("float32", "float64")
CONV: dict[int, Callable[..., Any]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED: dict[int, Callable[..., Any]] = {
    1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d,
}  # fmt: skip


def conv(x: Any, w: Any, b: Any = None, **options: Any) -> Case:
    """Return a row of conv2d with PyTorch's options."""
    offset = [] if b is None else [b]
    return case(
        "conv2d", lambda x, w, *b: x.conv2d(w, *b, **options), x, w, *offset,
        torch=lambda x, w, *b: CONV[x.ndim - 2](x, w, *b, **options), dtypes=WIDE, ulps=32,
    )  # fmt: skip


def transposed(x: Any, w: Any, b: Any = None, **options: Any) -> Case:
    """Return a row of conv_transpose2d with PyTorch's options."""
    offset = [] if b is None else [b]
    return case(
        "conv_transpose2d", lambda x, w, *b: x.conv_transpose2d(w, *b, **options), x, w, *offset,
        torch=lambda x, w, *b: TRANSPOSED[x.ndim - 2](x, w, *b, **options), dtypes=WIDE, ulps=32,
    )  # fmt: skip


def pooled(shape: Any, kernel: Any, **options: Any) -> list[Case]:
    """Return rows of max_pool2d, with its places, and of its inverse."""
    padding = options.get("padding", 0)
    rest = {k: v for k, v in options.items() if k != "padding"}
    own = {"stride": kernel, "dilation": 1, "ceil_mode": False, **rest}
    sizes = (own["stride"], padding, own["dilation"], own["ceil_mode"])
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    places = case(
        "max_pool2d",
        lambda x: x.max_pool2d(size, return_indices=True, **options),
        shape,
        torch=lambda x: F.max_pool2d(x, kernel, *sizes, return_indices=True),
        dtypes=(*WIDE, "float16"),
        ulps=0,
    )
    if own["dilation"] != 1 or own["ceil_mode"]:
        return [places]
    back = case(
        "max_unpool2d",
        lambda x: x.max_pool2d(size, return_indices=True, **options)[0].max_unpool2d(
            x.max_pool2d(size, return_indices=True, **options)[1],
            size,
            output_size=x.shape[-2:],
            **options,
        ),
        shape,
        torch=lambda x: F.max_unpool2d(
            *F.max_pool2d(x, kernel, *sizes, return_indices=True), kernel, *sizes[:2],
            output_size=x.shape[-2:],
        ),
        dtypes=WIDE,
        ulps=0,
        has_gradient=own["stride"] == kernel,  # torch counts a value of several windows often
    )  # fmt: skip
    return [places, back]


def averaged(shape: Any, kernel: Any, **options: Any) -> Case:
    """Return a row of avg_pool2d with PyTorch's options."""
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    return case(
        "avg_pool2d", lambda x: x.avg_pool2d(size, **options), shape,
        torch=lambda x: F.avg_pool2d(x, kernel, **options), dtypes=WIDE, ulps=8,
    )  # fmt: skip


def attention(*operands: Any, **options: Any) -> Case:
    """Return a row of scaled_dot_product_attention with PyTorch's options."""
    return case(
        "scaled_dot_product_attention",
        lambda q, k, v, *m: q.scaled_dot_product_attention(k, v, *m, **options),
        *operands,
        torch=lambda q, k, v, *m: F.scaled_dot_product_attention(q, k, v, *m, **options),
        dtypes=FLOATS,
        ulps=16,
    )


HEADS: Any = ((2, 6, 5, 8), (2, 6, 7, 8), (2, 6, 7, 3))
FEW: Any = ((2, 6, 5, 8), (2, 2, 5, 8), (2, 2, 5, 4))

# fmt: off
CASES = [
    *(case("dot", lambda a, b: a.dot(b), a, b, torch=torch.matmul,
           dtypes=(*FLOATS, "int32"), ulps=16)
      for a, b in (((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 4)), ((3, 5), (5, 4)),
                   ((2, 3, 5), (5, 4)), ((2, 1, 3, 5), (4, 5, 2)), ((0, 5), (5, 4)),
                   ((3, 0), (0, 4)))),
    case("matmul", lambda a, b: a.matmul(b, reverse=True), (5, 4), (3, 5),
         torch=lambda a, b: b @ a, ulps=16),
    case("matmul", lambda a, b: a.matmul(b, dtype="float32"), (3, 5), (5, 4),
         torch=lambda a, b: a.float() @ b.float(), dtypes=("float16", "bfloat16"), ulps=16),
    case("linear", lambda x, w, b: x.linear(w, b), (2, 3, 5), (5, 4), (4,),
         torch=lambda x, w, b: F.linear(x, w.T, b), dtypes=WIDE, ulps=16),
    case("linear", lambda x, w: x.linear(w), (3, 5), (5, 4), torch=lambda x, w: x @ w, ulps=16),
    case("linear", lambda x, w, b: x.linear(w, b), (3, 5), (5,), (5,),
         torch=lambda x, w, b: x * w + b),
    case("linear", lambda x, w: x.linear(w, dtype="float64"), (3, 5), (5, 4),
         torch=lambda x, w: x.double() @ w.double(), dtypes=("float32", "int32")),
    conv((2, 4, 7, 6), (6, 4, 3, 3)),
    conv((2, 4, 7, 6), (6, 4, 3, 2), (6,), stride=2, padding=1),
    conv((2, 4, 7, 6), (6, 2, 3, 2), (6,), groups=2, dilation=(2, 1), padding=(2, 1)),
    conv((2, 4, 7, 6), (4, 1, 3, 3), groups=4, stride=(2, 3)),
    conv((2, 4, 9), (6, 4, 3), (6,), stride=2, padding=2, dilation=2),
    conv((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), stride=(1, 2, 1), padding=1),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), (3,)),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), stride=2),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), (6,), stride=2, padding=1, output_padding=1, groups=2),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), (3,), stride=(2, 3), padding=(1, 0),
               output_padding=(1, 2)),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), (3,), stride=2, padding=3, output_padding=1, dilation=2),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), stride=3, padding=4, output_padding=2, groups=2),
    transposed((2, 4, 5, 6), (4, 3, 3, 2), padding=2, output_padding=2, dilation=3),
    transposed((2, 4, 5), (4, 3, 3), (3,), stride=2),
    transposed((1, 2, 3, 4, 3), (2, 3, 2, 2, 2), stride=2, padding=1),
    *pooled((2, 3, 8, 9), 2),
    *pooled((2, 3, 9, 8), 3, stride=2, padding=1),
    *pooled((2, 3, 9, 8), (2, 3), stride=1),
    *pooled((2, 3, 9, 8), 3, stride=2, padding=1, ceil_mode=True),
    *pooled((2, 3, 9, 8), 3, stride=2, dilation=2, padding=1, ceil_mode=True),
    case("max_pool2d", lambda x: x.max_pool2d(return_indices=True),
         values([[1, 1, 2, 3], [1, 1, 3, 3], [0, 5, 5, 0], [5, 0, 0, 5]]),
         torch=lambda x: [t[0] for t in F.max_pool2d(x[None], 2, return_indices=True)],
         has_gradient=False),
    case("max_pool2d", lambda x: x.max_pool2d(3, padding=1), (2, 7, 7),
         torch=lambda x: F.max_pool2d(x, 3, padding=1), dtypes=FLOATS, ulps=0),
    averaged((2, 3, 8, 9), 2),
    averaged((2, 3, 9, 8), 3, stride=2, padding=1),
    averaged((2, 3, 9, 8), 3, stride=2, padding=1, count_include_pad=False),
    averaged((2, 3, 9, 8), (3, 2), stride=2, padding=1, ceil_mode=True),
    averaged((2, 3, 9, 8), 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    attention(*HEADS),
    attention(*HEADS, is_causal=True),
    attention((5, 8), (5, 8), (5, 8), is_causal=True),
    attention(*HEADS, mask((2, 1, 5, 7))),
    attention(*HEADS, (5, 7)),
    attention(*HEADS, values([[0.0], [-INF], [1.0], [0.0], [2.0]])),
    attention(*FEW, enable_gqa=True),
    attention(*FEW, enable_gqa=True, is_causal=True),
    attention((1, 3, 4), (1, 0, 4), (1, 0, 5)),
]
# fmt: on
