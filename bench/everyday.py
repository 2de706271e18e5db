"""Everyday expressions, as one sees them in the code of models, for Tensors and for torch's.

Each is a Case: what it is called, its inputs, and how either library says it. The sizes are such
that torch needs about 50 us or more for most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Make = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """An expression: `ours(*inputs)` on Tensors and `theirs(*inputs)` on torch's. An input is a
    shape, a type after it where it is not float32, or -N for whole numbers below N."""

    name: str
    inputs: tuple[tuple[Any, ...], ...]
    ours: Make
    theirs: Make


def cases() -> Iterator[Case]:
    """Yield all of them; a name says what it is and on which sizes."""
    for family in FAMILIES:
        yield from family()


def _case(name: str, inputs: Any, ours: Make, theirs: Make | None = None) -> Case:
    return Case(name, tuple(inputs), ours, theirs or ours)


def elementwise() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    unary: dict[str, tuple[Make, Make]] = {
        "neg": (lambda x: -x, lambda x: -x),
        "exp": (lambda x: x.exp(), lambda x: x.exp()),
        "log(abs+1)": (lambda x: (x.abs() + 1).log(),) * 2,
        "sqrt(abs)": (lambda x: x.abs().sqrt(),) * 2,
        "rsqrt(x*x+1)": (lambda x: (x * x + 1).rsqrt(),) * 2,
        "sin": (lambda x: x.sin(),) * 2,
        "cos": (lambda x: x.cos(),) * 2,
        "tan": (lambda x: x.tan(),) * 2,
        "atan": (lambda x: x.atan(),) * 2,
        "sinh": (lambda x: x.sinh(),) * 2,
        "tanh": (lambda x: x.tanh(),) * 2,
        "sigmoid": (lambda x: x.sigmoid(),) * 2,
        "relu": (lambda x: x.relu(),) * 2,
        "silu": (lambda x: x.silu(), F.silu),
        "gelu tanh": (lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh")),
        "elu": (lambda x: x.elu(), F.elu),
        "softplus": (lambda x: x.softplus(), F.softplus),
        "hardswish": (lambda x: x.hardswish(), F.hardswish),
        "leaky_relu": (lambda x: x.leaky_relu(), F.leaky_relu),
        "clip": (lambda x: x.clip(-1, 1),) * 2,
        "round": (lambda x: x.round(),) * 2,
        "floor": (lambda x: x.floor(),) * 2,
        "sign": (lambda x: x.sign(),) * 2,
        "abs": (lambda x: x.abs(),) * 2,
        "pow 3": (lambda x: x**3,) * 2,
        "pow 2.5 of abs": (lambda x: x.abs() ** 2.5,) * 2,
        "to int32": (lambda x: x.int(), lambda x: x.int()),
        "to float64": (lambda x: x.double(),) * 2,
        "to float16": (lambda x: x.half(),) * 2,
        "isnan": (lambda x: x.isnan(),) * 2,
        "x > 0": (lambda x: x > 0,) * 2,
    }
    for name, (ours, theirs) in unary.items():
        yield _case(f"{name} 1024x1024", [(1024, 1024)], ours, theirs)
    for name in ("exp", "sin", "tanh", "sigmoid", "relu", "gelu tanh", "log(abs+1)"):
        ours, theirs = unary[name]
        yield _case(
            f"{name} 1024x1024 float64", [(1024, 1024, "float64")], ours, theirs
        )
    for name in ("exp", "relu", "tanh", "neg"):
        ours, theirs = unary[name]
        yield _case(
            f"{name} 1024x1024 float16", [(1024, 1024, "float16")], ours, theirs
        )
    for name in ("exp", "relu"):
        ours, theirs = unary[name]
        for shape in (
            (1000, 1001),
            (1000003,),
            (64, 17, 31, 33),
            (300000, 3),
            (3, 300001),
        ):
            yield _case(f"{name} {_x(shape)}", [shape], ours, theirs)
    big = (1024, 1024)
    binary: dict[str, Make] = {
        "a+b": lambda a, b: a + b,
        "a*b": lambda a, b: a * b,
        "a/b": lambda a, b: a / b,
        "a<b": lambda a, b: a < b,
        "maximum": lambda a, b: a.maximum(b),
        "a*b+a": lambda a, b: a * b + a,
    }
    for name, make in binary.items():
        for kind in ("float32", "float64", "int32", "float16"):
            if kind == "int32" and name == "a/b":
                continue
            yield _case(f"{name} 1024x1024 {kind}", [(*big, kind)] * 2, make)
    yield _case(
        "a//b int32",
        [(*big, "int32")] * 2,
        lambda a, b: a // (b + 1),
        lambda a, b: torch.div(a, b + 1, rounding_mode="floor"),
    )
    yield _case("a%7 int32", [(*big, "int32")], lambda a: a % 7)
    yield _case("a//7 int32", [(*big, "int32")], lambda a: a // 7)
    yield _case("a%b int64", [(*big, "int64")] * 2, lambda a, b: a % (b + 1))
    yield _case("a&b int32", [(*big, "int32")] * 2, lambda a, b: a & b)
    yield _case("a&b bool", [(*big, "bool")] * 2, lambda a, b: a & b)
    yield _case("~a bool", [(*big, "bool")], lambda a: ~a, lambda a: ~a)
    yield _case("a<<2 int32", [(*big, "int32")], lambda a: a << 2)
    yield _case("int32 to float", [(*big, "int32")], lambda a: a.float())
    yield _case("uint8 to float / 255", [(*big, "uint8")], lambda a: a.float() / 255)
    yield _case("bool to float", [(*big, "bool")], lambda a: a.float())
    yield _case("int64 a+b", [(*big, "int64")] * 2, lambda a, b: a + b)
    yield _case(
        "where",
        [(*big, "bool"), big, big],
        lambda c, a, b: c.where(a, b),
        lambda c, a, b: torch.where(c, a, b),
    )
    yield _case(
        "where x>0",
        [big, big],
        lambda a, b: (a > 0).where(a, b),
        lambda a, b: torch.where(a > 0, a, b),
    )
    yield _case("a**b of abs", [big, big], lambda a, b: a.abs() ** b)


def broadcasts() -> Iterator[Case]:
    two = "2048x1024"
    yield _case(f"row added {two}", [(2048, 1024), (1024,)], lambda a, b: a + b)
    yield _case(f"column added {two}", [(2048, 1024), (2048, 1)], lambda a, b: a + b)
    yield _case(
        "channel scaled 8x64x56x56", [(8, 64, 56, 56), (64, 1, 1)], lambda a, b: a * b
    )
    yield _case(
        "channel last scaled 8x56x56x64", [(8, 56, 56, 64), (64,)], lambda a, b: a * b
    )
    yield _case(
        "batch norm inference 8x64x56x56",
        [(8, 64, 56, 56), (64, 1, 1), (64, 1, 1), (64, 1, 1)],
        lambda x, m, s, b: (x - m) * s + b,
    )
    yield _case(
        "middle axis added 64x128x256",
        [(64, 128, 256), (64, 1, 256)],
        lambda a, b: a + b,
    )
    for n, m in ((1024, 1024), (4096, 256), (256, 4096), (1000, 1001), (3000, 3)):
        yield _case(f"outer product {n}x{m}", [(n, 1), (1, m)], lambda a, b: a * b)
        yield _case(
            f"outer sum {n}x{m}",
            [(n,), (m,)],
            lambda a, b: a.reshape(-1, 1) + b.reshape(1, -1),
        )
    yield _case("outer matmul 1024x1x1024", [(1024, 1), (1, 1024)], lambda a, b: a @ b)
    yield _case("outer product 2048x2048", [(2048, 1), (1, 2048)], lambda a, b: a * b)
    yield _case(
        "batched outer 64x128x128", [(64, 128, 1), (64, 1, 128)], lambda a, b: a * b
    )
    yield _case(
        "distances 512x512x64",
        [(512, 1, 64), (1, 512, 64)],
        lambda a, b: ((a - b) * (a - b)).sum(-1),
    )
    yield _case(
        "distances 1000x1000x3",
        [(1000, 1, 3), (1, 1000, 3)],
        lambda a, b: ((a - b) * (a - b)).sum(-1),
    )
    yield _case(
        "expand 1x1024 to 1024x1024",
        [(1, 1024)],
        lambda a: a.expand(1024, 1024).contiguous(),
    )
    yield _case(
        "expand 1024x1 to 1024x1024",
        [(1024, 1)],
        lambda a: a.expand(1024, 1024).contiguous(),
    )
    yield _case(
        "table of positions 1000x64", [(1000, 1), (1, 64)], lambda p, f: (p * f).sin()
    )
    yield _case(
        "mask of distances 1024x1024",
        [(1024, 1), (1, 1024)],
        lambda a, b: (a - b).abs() < 0.5,
    )


def reductions() -> Iterator[Case]:
    shapes = ((2048, 1024), (128, 64, 96), (8, 64, 56, 56))
    for shape in shapes:
        axes = range(len(shape))
        groups = [g for n in range(1, len(shape) + 1) for g in combinations(axes, n)]
        for group in groups:
            yield _case(f"sum {_x(shape)} over {group}", [shape], _over("sum", group))
            yield _case(
                f"amax {_x(shape)} over {group}",
                [shape],
                _over("max", group),
                _over("amax", group),
            )
    plain = {
        "mean": lambda x, a: x.mean(a),
        "var": lambda x, a: x.var(a),
        "std": lambda x, a: x.std(a),
    }
    for name, make in plain.items():
        for axis in (0, 1):
            yield _case(
                f"{name} 2048x1024 over {axis}", [(2048, 1024)], _at(make, axis)
            )
    for axis in (0, 1, 2):
        yield _case(
            f"argmax 128x64x96 over {axis}",
            [(128, 64, 96)],
            lambda x, a=axis: x.argmax(a),
        )
    for shape, axis in (
        ((1024, 1024), 0),
        ((1024, 1024), 1),
        ((65536, 10), 1),
        ((10, 65536), 1),
        ((10, 65536), 0),
        ((1000, 1001), 1),
        ((4, 100003), 1),
    ):
        yield _case(
            f"sum {_x(shape)} over {axis} again", [shape], lambda x, a=axis: x.sum(a)
        )
        yield _case(
            f"argmax {_x(shape)} over {axis}", [shape], lambda x, a=axis: x.argmax(a)
        )
        yield _case(
            f"prod {_x(shape)} over {axis}", [shape], lambda x, a=axis: x.prod(a)
        )
    for n in (10**5, 10**6, 1000003, 1 << 22):
        yield _case(f"sum of {n}", [(n,)], lambda x: x.sum())
        yield _case(f"max of {n}", [(n,)], lambda x: x.max())
        yield _case(f"argmax of {n}", [(n,)], lambda x: x.argmax())
        yield _case(f"mean of squares of {n}", [(n,)], lambda x: (x * x).mean())
    for kind in ("float64", "int32", "float16", "bool", "int64"):
        for axis in (0, 1):
            yield _case(
                f"sum 2048x1024 {kind} over {axis}",
                [(2048, 1024, kind)],
                lambda x, a=axis: x.sum(a),
                lambda x, a=axis: x.sum(
                    a, dtype=x.dtype if x.dtype.itemsize > 1 else None
                ),
            )
    yield _case("any 2048x1024 bool over 1", [(2048, 1024, "bool")], lambda x: x.any(1))
    yield _case("count x>0 over 0", [(2048, 1024)], lambda x: (x > 0).sum(0))
    yield _case(
        "mean of abs difference", [(1024, 1024)] * 2, lambda a, b: (a - b).abs().mean()
    )
    yield _case("l2 norms of rows", [(2048, 1024)], lambda x: (x * x).sum(1).sqrt())
    yield _case("l2 norms of columns", [(2048, 1024)], lambda x: (x * x).sum(0).sqrt())
    yield _case(
        "global average pool 8x512x14x14", [(8, 512, 14, 14)], lambda x: x.mean((2, 3))
    )
    yield _case(
        "global average pool 32x64x7x7", [(32, 512, 7, 7)], lambda x: x.mean((2, 3))
    )
    yield _case("dot of 1000000", [(10**6,)] * 2, lambda a, b: (a * b).sum())
    yield _case("dot (@) of 1000000", [(10**6,)] * 2, lambda a, b: a @ b)
    for axis in (0, 1):
        for name in ("cumsum", "cumprod"):
            yield _case(
                f"{name} 1024x1024 over {axis}",
                [(1024, 1024)],
                lambda x, n=name, a=axis: getattr(x * 0.99, n)(a),
            )
    yield _case("cumsum of 1000000", [(10**6,)], lambda x: x.cumsum(0))
    yield _case("cumsum 64x128x256 over 1", [(64, 128, 256)], lambda x: x.cumsum(1))
    yield _case(
        "cummax 1024x1024 over 1",
        [(1024, 1024)],
        lambda x: x.cummax(1)[0],
    )
    yield _case(
        "cumsum int32 1024x1024",
        [(1024, 1024, "int32")],
        lambda x: x.cumsum(1),
        lambda x: x.cumsum(1, dtype=x.dtype),
    )


def norms() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    for shape in (
        (2048, 1024),
        (1024, 50),
        (64, 12, 128, 128),
        (16384, 64),
        (128, 32000),
        (1000, 1001),
    ):
        yield _case(f"softmax {_x(shape)}", [shape], lambda x: x.softmax(-1))
        yield _case(f"log_softmax {_x(shape)}", [shape], lambda x: x.log_softmax(-1))
        yield _case(
            f"layer norm {_x(shape)}",
            [shape],
            lambda x: x.layernorm(),
            lambda x: F.layer_norm(x, x.shape[-1:]),
        )
    for shape in ((1024, 1024), (64, 128, 256)):
        for axis in range(len(shape) - 1):
            yield _case(
                f"softmax {_x(shape)} over {axis}",
                [shape],
                lambda x, a=axis: x.softmax(a),
            )
    yield _case(
        "softmax float64 1024x1024", [(1024, 1024, "float64")], lambda x: x.softmax(-1)
    )
    yield _case(
        "logsumexp 2048x1024",
        [(2048, 1024)],
        lambda x: x.logsumexp(1),
        lambda x: x.logsumexp(1),
    )
    yield _case(
        "rms norm 2048x1024",
        [(2048, 1024), (1024,)],
        lambda x, w: x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    )
    yield _case(
        "affine layer norm 512x768",
        [(512, 768), (768,), (768,)],
        lambda x, w, b: x.layernorm() * w + b,
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
    )
    yield _case(
        "group norm 8x64x28x28 of 8",
        [(8, 64, 28, 28)],
        lambda x: x.reshape(8, 8, -1).layernorm().reshape(8, 64, 28, 28),
        lambda x: F.group_norm(x, 8),
    )
    yield _case(
        "batch norm training 8x64x28x28",
        [(8, 64, 28, 28)],
        lambda x: (
            (x - x.mean((0, 2, 3), keepdim=True))
            * (x.var((0, 2, 3), keepdim=True, correction=0) + 1e-5).rsqrt()
        ),
        lambda x: F.batch_norm(x, None, None, training=True),
    )
    yield _case(
        "normalized rows 2048x1024",
        [(2048, 1024)],
        lambda x: x / (x * x).sum(1, keepdim=True).sqrt(),
        lambda x: F.normalize(x),
    )
    yield _case(
        "standardized columns 2048x1024",
        [(2048, 1024)],
        lambda x: (x - x.mean(0)) / x.std(0),
    )
    yield _case(
        "cross entropy 2048x1000",
        [(2048, 1000), (2048, -1000)],
        lambda x, y: -x.log_softmax(-1).gather(1, y.reshape(-1, 1)).mean(),
        lambda x, y: F.cross_entropy(x, y),
    )
    yield _case(
        "x minus its max, 2048x1024",
        [(2048, 1024)],
        lambda x: x - x.max(1, keepdim=True),
        lambda x: x - x.amax(1, keepdim=True),
    )


def movement() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    big = (1024, 1024)
    for kind in ("float32", "float64", "int32", "float16", "bool", "uint8"):
        yield _case(
            f"transpose 1024x1024 {kind}",
            [(*big, kind)],
            lambda x: x.permute(1, 0).contiguous(),
        )
    yield _case(
        "transpose 1000x1001", [(1000, 1001)], lambda x: x.permute(1, 0).contiguous()
    )
    yield _case(
        "transpose 100000x10", [(100000, 10)], lambda x: x.permute(1, 0).contiguous()
    )
    yield _case(
        "transpose 10x100000", [(10, 100000)], lambda x: x.permute(1, 0).contiguous()
    )
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        yield _case(
            f"permute 128x96x80 {order}",
            [(128, 96, 80)],
            lambda x, o=order: x.permute(*o).contiguous(),
        )
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2)):
        yield _case(
            f"permute 8x64x56x56 {order}",
            [(8, 64, 56, 56)],
            lambda x, o=order: x.permute(*o).contiguous(),
        )
    yield _case("a + b.T 1024", [big, big], lambda a, b: a + b.permute(1, 0))
    yield _case(
        "heads split 8x512x8x64",
        [(8, 512, 512)],
        lambda x: x.reshape(8, 512, 8, 64).permute(0, 2, 1, 3).contiguous(),
    )
    for axis in (0, 1):
        yield _case(
            f"cat 1024x1024 twice on {axis}",
            [big, big],
            lambda a, b, d=axis: a.cat(b, dim=d),
            lambda a, b, d=axis: torch.cat([a, b], d),
        )
        yield _case(
            f"stack 1024x1024 twice on {axis}",
            [big, big],
            lambda a, b, d=axis: a.stack(b, dim=d),
            lambda a, b, d=axis: torch.stack([a, b], d),
        )
    yield _case(
        "stack last 1024x1024",
        [big, big],
        lambda a, b: a.stack(b, dim=2),
        lambda a, b: torch.stack([a, b], 2),
    )
    yield _case(
        "cat of 8 of 1024x100 on 1",
        [(1024, 100)] * 8,
        lambda *a: a[0].cat(*a[1:], dim=1),
        lambda *a: torch.cat(a, 1),
    )
    yield _case(
        "cat 4x64x56x56 on channels",
        [(4, 64, 56, 56)] * 2,
        lambda a, b: a.cat(b, dim=1),
        lambda a, b: torch.cat([a, b], 1),
    )
    for pads in ((1, 1), (0, 3), (8, 8), (1, 1, 1, 1), (2, 3, 4, 5)):
        yield _case(
            f"pad 1024x1024 {pads}",
            [big],
            lambda x, p=pads: x.pad(p),
            lambda x, p=pads: F.pad(x, p),
        )
    yield _case(
        "pad 8x64x56x56 (1,1,1,1)",
        [(8, 64, 56, 56)],
        lambda x: x.pad((1, 1, 1, 1)),
        lambda x: F.pad(x, (1, 1, 1, 1)),
    )
    for axes in ((0,), (1,), (0, 1)):
        yield _case(
            f"flip 1024x1024 {axes}",
            [big],
            lambda x, a=axes: x.flip(a).contiguous(),
            lambda x, a=axes: x.flip(a),
        )
    yield _case("slice ::2 of rows", [(2048, 1024)], lambda x: x[::2].contiguous())
    yield _case(
        "slice ::2 of columns", [(1024, 2048)], lambda x: x[:, ::2].contiguous()
    )
    yield _case(
        "slice ::3 of columns", [(1024, 3072)], lambda x: x[:, ::3].contiguous()
    )
    yield _case("slice 1:-1 both", [(1026, 1026)], lambda x: x[1:-1, 1:-1].contiguous())
    yield _case(
        "difference along columns", [(1024, 1025)], lambda x: x[:, 1:] - x[:, :-1]
    )
    yield _case("difference along rows", [(1025, 1024)], lambda x: x[1:] - x[:-1])
    yield _case(
        "even minus odd columns", [(1024, 2048)], lambda x: x[:, ::2] - x[:, 1::2]
    )
    yield _case(
        "rotate halves 8x8x512x64",
        [(8, 8, 512, 64)] * 3,
        lambda x, c, s: x * c + (-x[..., 32:]).cat(x[..., :32], dim=-1) * s,
        lambda x, c, s: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s,
    )
    yield _case(
        "repeat 256x256 4x4", [(256, 256)], lambda x: x.repeat(4, 4).contiguous()
    )
    yield _case(
        "repeat_interleave 256x1024 by 4",
        [(256, 1024)],
        lambda x: x.repeat_interleave(4, 1).contiguous(),
        lambda x: x.repeat_interleave(4, 1),
    )
    yield _case(
        "upsample nearest 8x64x28x28",
        [(8, 64, 28, 28)],
        lambda x: (
            x.reshape(8, 64, 28, 1, 28, 1)
            .expand(8, 64, 28, 2, 28, 2)
            .reshape(8, 64, 56, 56)
            .contiguous()
        ),
        lambda x: F.interpolate(x, scale_factor=2),
    )
    yield _case(
        "pixel shuffle 8x64x28x28",
        [(8, 64, 28, 28)],
        lambda x: (
            x.reshape(8, 16, 2, 2, 28, 28)
            .permute(0, 1, 4, 2, 5, 3)
            .reshape(8, 16, 56, 56)
            .contiguous()
        ),
        lambda x: F.pixel_shuffle(x, 2),
    )
    yield _case(
        "patches 16 of 8x3x224x224",
        [(8, 3, 224, 224)],
        lambda x: (
            x.reshape(8, 3, 14, 16, 14, 16)
            .permute(0, 2, 4, 1, 3, 5)
            .reshape(8, 196, 768)
            .contiguous()
        ),
    )
    yield _case(
        "upper triangle mask 1024",
        [big],
        lambda x: (counting(1024).reshape(-1, 1) <= counting(1024)).where(x, 0.0),
        lambda x: x.triu(),
    )


def counting(n: int) -> Any:
    from workbench import Tensor

    return Tensor.arange(n)


def gathers() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    for words, width, n in (
        (4096, 64, 8192),
        (32000, 512, 1024),
        (1000, 16, 65536),
        (32000, 768, 2048),
    ):
        yield _case(
            f"embedding {words}x{width} of {n}",
            [(words, width), (n, -words)],
            lambda t, i: t[i],
            lambda t, i: F.embedding(i, t),
        )
    yield _case(
        "gather columns 1024x1024",
        [(1024, 1024), (1024, 1024, -1024)],
        lambda x, i: x.gather(1, i),
    )
    yield _case(
        "gather rows 1024x1024",
        [(1024, 1024), (1024, 1024, -1024)],
        lambda x, i: x.gather(0, i),
    )
    yield _case("take 1000000 of 4096", [(4096,), (10**6, -4096)], lambda x, i: x[i])
    yield _case(
        "columns chosen 1024x1024", [(1024, 1024), (1024, -1024)], lambda x, i: x[:, i]
    )
    yield _case(
        "one element a row 65536x64",
        [(65536, 64), (65536, 1, -64)],
        lambda x, i: x.gather(1, i),
    )
    yield _case(
        "one-hot 8192 of 128",
        [(8192, -128)],
        lambda i: i.one_hot(128),
        lambda i: F.one_hot(i, 128),
    )
    yield _case(
        "one-hot product 2048x512x64",
        [(2048, -512), (512, 64)],
        lambda i, w: i.one_hot(512).float() @ w,
        lambda i, w: F.one_hot(i, 512).float() @ w,
    )
    yield _case(
        "masked fill 1024x1024",
        [(1024, 1024), (1024, 1024, "bool")],
        lambda x, m: m.where(0.0, x),
        lambda x, m: x.masked_fill(m, 0.0),
    )
    yield _case(
        "arange plus 1024x1024",
        [(1024, 1024)],
        lambda x: x + counting(1024),
        lambda x: x + torch.arange(1024),
    )
    yield _case(
        "full 1024x1024",
        [(1,)],
        lambda x: x.expand(1024 * 1024).contiguous(),
        lambda x: x.expand(1024 * 1024).contiguous(),
    )
    yield _case(
        "bag of words 512x16 of 1000x256",
        [(1000, 256), (512, 16, -1000)],
        lambda t, i: t[i].sum(1),
        lambda t, i: F.embedding_bag(i, t, mode="sum"),
    )


def products() -> Iterator[Case]:
    sizes = (
        (64, 64, 64),
        (128, 128, 128),
        (256, 256, 256),
        (512, 512, 512),
        (1024, 1024, 1024),
        (768, 768, 768),
        (100, 100, 100),
        (127, 129, 131),
        (255, 257, 253),
        (511, 513, 509),
        (1000, 1000, 1000),
        (384, 2048, 96),
        (4096, 64, 64),
        (64, 4096, 64),
        (64, 64, 4096),
        (10000, 3, 64),
        (8192, 16, 16),
        (16, 16, 8192),
        (16, 8192, 16),
        (32, 512, 2048),
        (8, 1024, 1024),
        (4, 4096, 1024),
        (2, 1024, 1024),
        (3, 1000, 1000),
        (1, 4096, 4096),
        (1024, 1024, 8),
        (1024, 1024, 3),
        (1024, 1024, 1),
        (2048, 512, 10),
        (512, 768, 3072),
        (512, 3072, 768),
        (197, 768, 768),
        (1024, 7, 1024),
        (1000, 31, 1000),
        (2048, 2048, 17),
    )
    for m, k, n in sizes:
        name = f"{m}x{k}x{n}"
        yield _case(f"matmul NN {name}", [(m, k), (k, n)], lambda a, b: a @ b)
        yield _case(
            f"matmul NT {name}", [(m, k), (n, k)], lambda a, b: a @ b.transpose(0, 1)
        )
        yield _case(
            f"matmul TN {name}", [(k, m), (k, n)], lambda a, b: a.transpose(0, 1) @ b
        )
    for m, k, n in ((512, 512, 512), (255, 257, 253), (8, 1024, 1024)):
        yield _case(
            f"matmul TT {m}x{k}x{n}",
            [(k, m), (n, k)],
            lambda a, b: a.transpose(0, 1) @ b.transpose(0, 1),
        )
    for m, k, n in ((256, 256, 256), (512, 512, 512), (127, 129, 131), (8, 1024, 1024)):
        yield _case(
            f"matmul float64 {m}x{k}x{n}",
            [(m, k, "float64"), (k, n, "float64")],
            lambda a, b: a @ b,
        )
    yield _case("matmul int32 256", [(256, 256, "int32")] * 2, lambda a, b: a @ b)
    yield _case("matmul float16 256", [(256, 256, "float16")] * 2, lambda a, b: a @ b)
    for b, m, k, n in (
        (64, 32, 32, 32),
        (8, 512, 64, 512),
        (96, 128, 64, 128),
        (96, 128, 128, 64),
        (1024, 8, 8, 8),
        (16, 127, 63, 65),
        (256, 1, 64, 64),
        (512, 4, 4, 4),
        (96, 1, 64, 512),
        (32, 100, 100, 100),
    ):
        name = f"{b}x{m}x{k}x{n}"
        yield _case(f"batched NN {name}", [(b, m, k), (b, k, n)], lambda x, y: x @ y)
        yield _case(
            f"batched NT {name}",
            [(b, m, k), (b, n, k)],
            lambda x, y: x @ y.transpose(-1, -2),
        )
        yield _case(
            f"batched TN {name}",
            [(b, k, m), (b, k, n)],
            lambda x, y: x.transpose(-1, -2) @ y,
        )
    yield _case(
        "batched by one 32x128x256 @ 256x256",
        [(32, 128, 256), (256, 256)],
        lambda x, w: x @ w,
    )
    yield _case(
        "batched by one, NT 32x128x256",
        [(32, 128, 256), (256, 256)],
        lambda x, w: x @ w.transpose(0, 1),
    )
    for m, n in (
        (1024, 1024),
        (4096, 4096),
        (1000, 3001),
        (100000, 16),
        (16, 100000),
        (2048, 512),
    ):
        yield _case(f"matvec {m}x{n}", [(m, n), (n,)], lambda a, x: a @ x)
        yield _case(f"vecmat {m}x{n}", [(m,), (m, n)], lambda x, a: x @ a)
    yield _case(
        "vector @ batch 64x128x256", [(64, 128, 256), (256,)], lambda a, x: a @ x
    )
    yield _case(
        "bilinear x A y 512", [(512,), (512, 512), (512,)], lambda x, a, y: x @ a @ y
    )
    yield _case("gram x.T x 4096x128", [(4096, 128)], lambda x: x.transpose(0, 1) @ x)
    yield _case("gram x x.T 128x4096", [(128, 4096)], lambda x: x @ x.transpose(0, 1))
    yield _case(
        "cosines 512x256",
        [(512, 256)] * 2,
        lambda a, b: (
            (a / (a * a).sum(1, keepdim=True).sqrt())
            @ (b / (b * b).sum(1, keepdim=True).sqrt()).transpose(0, 1)
        ),
    )
    yield _case(
        "squared distances by product 512x64",
        [(512, 64)] * 2,
        lambda a, b: (
            (a * a).sum(1, keepdim=True) + (b * b).sum(1) - 2 * (a @ b.transpose(0, 1))
        ),
    )


def layers() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    linear = lambda x, w, b: x @ w.transpose(0, 1) + b  # noqa: E731
    for m, k, n in (
        (512, 512, 512),
        (64, 784, 512),
        (128, 1024, 10),
        (1, 768, 3072),
        (256, 768, 3072),
    ):
        name = f"{m}x{k}x{n}"
        given = [(m, k), (n, k), (n,)]
        yield _case(f"linear {name}", given, linear, F.linear)
        yield _case(
            f"linear+relu {name}",
            given,
            lambda x, w, b: linear(x, w, b).relu(),
            lambda x, w, b: F.linear(x, w, b).relu(),
        )
        yield _case(
            f"linear+gelu {name}",
            given,
            lambda x, w, b: linear(x, w, b).gelu(),
            lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
        )
    yield _case(
        "linear+residual+layer norm 512x512",
        [(512, 512), (512, 512), (512,)],
        lambda x, w, b: (linear(x, w, b) + x).layernorm(),
        lambda x, w, b: F.layer_norm(F.linear(x, w, b) + x, (512,)),
    )
    yield _case(
        "linear+softmax 512x512x100",
        [(512, 512), (100, 512), (100,)],
        lambda x, w, b: linear(x, w, b).softmax(-1),
        lambda x, w, b: F.linear(x, w, b).softmax(-1),
    )
    yield _case(
        "MLP 128x784-512-10",
        [(128, 784), (512, 784), (512,), (10, 512), (10,)],
        lambda x, w, b, v, c: linear(linear(x, w, b).relu(), v, c),
        lambda x, w, b, v, c: F.linear(F.linear(x, w, b).relu(), v, c),
    )
    yield _case(
        "transformer MLP 256x512-2048-512",
        [(256, 512), (2048, 512), (2048,), (512, 2048), (512,)],
        lambda x, w, b, v, c: linear(linear(x, w, b).gelu(), v, c) + x,
        lambda x, w, b, v, c: (
            F.linear(F.gelu(F.linear(x, w, b), approximate="tanh"), v, c) + x
        ),
    )
    yield _case(
        "gated MLP 256x512-1024-512",
        [(256, 512), (1024, 512), (1024, 512), (512, 1024)],
        lambda x, w, v, o: (
            ((x @ w.transpose(0, 1)).silu() * (x @ v.transpose(0, 1)))
            @ o.transpose(0, 1)
        ),
        lambda x, w, v, o: F.linear(F.silu(F.linear(x, w)) * F.linear(x, v), o),
    )
    for b, h, n, d in (
        (1, 8, 512, 64),
        (8, 8, 128, 64),
        (1, 1, 1024, 64),
        (2, 12, 197, 64),
        (1, 8, 1, 64),
    ):
        yield _case(
            f"attention {b}x{h}x{n}x{d}",
            [(b, h, n, d)] * 3,
            _attention,
            F.scaled_dot_product_attention,
        )
    yield _case(
        "causal attention 1x8x512x64",
        [(1, 8, 512, 64)] * 3,
        _causal,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    )
    yield _case(
        "attention of one query 8x1x64 on 2048",
        [(8, 1, 64), (8, 2048, 64), (8, 2048, 64)],
        _attention,
        F.scaled_dot_product_attention,
    )
    yield _case(
        "scores q k.T 8x512x64",
        [(8, 512, 64)] * 2,
        lambda q, k: q @ k.transpose(-1, -2) * 0.125,
    )
    yield _case(
        "softmax(s) v 8x512x512x64",
        [(8, 512, 512), (8, 512, 64)],
        lambda s, v: s.softmax(-1) @ v,
    )
    yield _case(
        "projected heads 512x512",
        [(512, 512), (512, 512)],
        lambda x, w: (
            (x @ w.transpose(0, 1)).reshape(512, 8, 64).permute(1, 0, 2).contiguous()
        ),
    )
    yield _case(
        "lstm gates 64x256",
        [(64, 256), (64, 256), (64, 256), (1024, 256), (1024, 256)],
        _lstm,
        _lstm,
    )
    yield _case(
        "adam step 1000000",
        [(10**6,)] * 4,
        lambda p, g, m, v: (
            p
            - 0.001
            * (0.9 * m + 0.1 * g)
            / ((0.999 * (v * v) + 0.001 * g * g).sqrt() + 1e-8)
        ),
    )
    yield _case(
        "mean squared error 1024x1024",
        [(1024, 1024)] * 2,
        lambda a, b: ((a - b) * (a - b)).mean(),
        F.mse_loss,
    )
    yield _case(
        "binary cross entropy 1024x1024",
        [(1024, 1024)] * 2,
        lambda x, y: (x.relu() - x * y + (1 + (-x.abs()).exp()).log()).mean(),
        F.binary_cross_entropy_with_logits,
    )


def _attention(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5)).softmax(-1) @ v


def _causal(q: Any, k: Any, v: Any) -> Any:
    n = q.shape[-2]
    mask = counting(n).reshape(-1, 1) >= counting(n)
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5)
    return mask.where(scores, -1e9).softmax(-1) @ v


def _lstm(x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
    gates = x @ w.transpose(0, 1) + h @ u.transpose(0, 1)
    i, f, g, o = (gates[:, 256 * n : 256 * (n + 1)] for n in range(4))
    return o.sigmoid() * (f.sigmoid() * c + i.sigmoid() * g.tanh()).tanh()


def convolutions() -> Iterator[Case]:
    # batch, in, side, out, kernel, stride, padding, dilation, groups
    table = (
        (1, 3, 224, 64, 7, 2, 3, 1, 1), (4, 3, 224, 64, 7, 2, 3, 1, 1),
        (1, 3, 224, 32, 3, 2, 1, 1, 1), (1, 3, 224, 64, 3, 1, 1, 1, 1),
        (1, 3, 224, 768, 16, 16, 0, 1, 1), (1, 3, 224, 96, 4, 4, 0, 1, 1),
        (1, 3, 227, 64, 11, 4, 0, 1, 1),
        (4, 64, 56, 64, 3, 1, 1, 1, 1), (1, 64, 56, 64, 3, 1, 1, 1, 1),
        (1, 64, 56, 128, 3, 2, 1, 1, 1), (4, 64, 56, 64, 3, 2, 1, 1, 1),
        (1, 128, 28, 128, 3, 1, 1, 1, 1), (1, 128, 28, 256, 3, 2, 1, 1, 1),
        (1, 256, 14, 256, 3, 1, 1, 1, 1), (1, 256, 14, 512, 3, 2, 1, 1, 1),
        (1, 512, 7, 512, 3, 1, 1, 1, 1), (8, 512, 7, 512, 3, 1, 1, 1, 1),
        (1, 64, 56, 256, 1, 1, 0, 1, 1), (1, 256, 56, 64, 1, 1, 0, 1, 1),
        (1, 512, 7, 2048, 1, 1, 0, 1, 1), (1, 1024, 14, 256, 1, 1, 0, 1, 1),
        (1, 256, 56, 512, 1, 2, 0, 1, 1), (1, 64, 56, 128, 1, 2, 0, 1, 1), (8, 16, 31, 24, 1, 1, 0, 1, 1),
        (1, 32, 56, 32, 5, 1, 2, 1, 1), (1, 16, 112, 16, 5, 1, 2, 1, 1), (1, 32, 28, 64, 5, 2, 2, 1, 1),
        (1, 64, 28, 64, 3, 1, 2, 2, 1), (1, 64, 28, 64, 3, 1, 4, 4, 1),
        (1, 64, 56, 64, 3, 1, 1, 1, 4), (1, 128, 28, 128, 3, 1, 1, 1, 32),
        (1, 32, 112, 32, 3, 1, 1, 1, 32), (1, 32, 112, 32, 3, 2, 1, 1, 32),
        (1, 96, 56, 96, 7, 1, 3, 1, 96), (1, 240, 14, 240, 5, 1, 2, 1, 240),
        (8, 64, 28, 64, 3, 1, 1, 1, 64), (4, 1, 28, 32, 3, 1, 0, 1, 1), (64, 1, 28, 8, 5, 1, 0, 1, 1),
        (64, 1, 28, 6, 5, 1, 2, 1, 1), (64, 6, 14, 16, 5, 1, 0, 1, 1), (32, 3, 32, 16, 3, 1, 1, 1, 1),
        (32, 16, 32, 16, 3, 1, 1, 1, 1), (32, 32, 16, 64, 3, 2, 1, 1, 1),
        (1, 1, 512, 1, 3, 1, 1, 1, 1), (1, 1, 512, 1, 11, 1, 5, 1, 1), (1, 3, 512, 3, 9, 1, 4, 1, 3),
        (1, 64, 57, 63, 3, 1, 1, 1, 1), (1, 33, 29, 31, 3, 2, 1, 1, 1), (3, 17, 41, 19, 3, 1, 0, 1, 1),
        (1, 13, 37, 7, 5, 2, 1, 1, 1), (16, 8, 13, 8, 3, 1, 1, 1, 1), (1, 64, 112, 3, 3, 1, 1, 1, 1),
        (1, 16, 128, 1, 3, 1, 1, 1, 1), (1, 4, 128, 8, 3, 1, 1, 1, 1), (1, 128, 7, 128, 7, 1, 0, 1, 1),
    )  # fmt: skip
    import torch

    F = torch.nn.functional
    for b, c, side, o, k, s, p, d, g in table:
        extra = "".join(
            f" {word} {n}"
            for word, n, plain in (
                ("stride", s, 1),
                ("padding", p, 0),
                ("dilation", d, 1),
                ("groups", g, 1),
            )
            if n != plain
        )
        how = {"stride": s, "padding": p, "dilation": d, "groups": g}
        yield _case(
            f"conv {k}x{k} {b}x{c}x{side}x{side} to {o}{extra}",
            [(b, c, side, side), (o, c // g, k, k)],
            lambda x, w, how=how: x.conv2d(w, **how),
            lambda x, w, how=how: F.conv2d(x, w, **how),
        )
    yield _case(
        "conv 3x3 float64 1x32x28x28",
        [(1, 32, 28, 28, "float64"), (32, 32, 3, 3, "float64")],
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv2d(x, w, padding=1),
    )
    yield _case(
        "conv1d 8x64x1000 to 64 of 5",
        [(8, 64, 1000), (64, 64, 5)],
        lambda x, w: x.conv2d(w, padding=2),
        lambda x, w: F.conv1d(x, w, padding=2),
    )
    yield _case(
        "conv1d 8x1x16000 to 64 of 25 stride 4",
        [(8, 1, 16000), (64, 1, 25)],
        lambda x, w: x.conv2d(w, stride=4),
        lambda x, w: F.conv1d(x, w, stride=4),
    )
    yield _case(
        "conv1d 1x512x128 depthwise 4",
        [(8, 512, 128), (512, 1, 4)],
        lambda x, w: x.conv2d(w, padding=(3, 0), groups=512),
        lambda x, w: F.conv1d(F.pad(x, (3, 0)), w, groups=512),
    )
    yield _case(
        "conv3d 1x8x16x28x28 to 8 of 3",
        [(1, 8, 16, 28, 28), (8, 8, 3, 3, 3)],
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv3d(x, w, padding=1),
    )
    yield _case(
        "conv 1x7 1x64x28x28",
        [(1, 64, 28, 28), (64, 64, 1, 7)],
        lambda x, w: x.conv2d(w, padding=(3, 3, 0, 0)),
        lambda x, w: F.conv2d(x, w, padding=(0, 3)),
    )
    yield _case(
        "conv 7x1 1x64x28x28",
        [(1, 64, 28, 28), (64, 64, 7, 1)],
        lambda x, w: x.conv2d(w, padding=(0, 0, 3, 3)),
        lambda x, w: F.conv2d(x, w, padding=(3, 0)),
    )
    both = [(4, 16, 56, 56), (32, 16, 3, 3), (32,), (32, 32, 3, 3), (32,)]
    yield _case(
        "conv-relu-conv 4x16x56x56-32-32",
        both,
        lambda x, w, b, v, c: x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1),
        lambda x, w, b, v, c: F.conv2d(
            F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1
        ),
    )
    more = [(1, 64, 56, 56), (64, 64, 3, 3), (64,), (64, 64, 3, 3), (64,)]
    yield _case(
        "conv-relu-conv 1x64x56x56",
        more,
        lambda x, w, b, v, c: x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1),
        lambda x, w, b, v, c: F.conv2d(
            F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1
        ),
    )
    yield _case(
        "residual block 1x64x56x56",
        more,
        lambda x, w, b, v, c: (
            x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1) + x
        ).relu(),
        lambda x, w, b, v, c: (
            F.conv2d(F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1) + x
        ).relu(),
    )
    yield _case(
        "conv+bias+relu 4x64x56x56",
        [(4, 64, 56, 56), (64, 64, 3, 3), (64,)],
        lambda x, w, b: x.conv2d(w, b, padding=1).relu(),
        lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(),
    )
    yield _case(
        "conv+relu+max pool 8x3x64x64-16",
        [(8, 3, 64, 64), (16, 3, 3, 3), (16,)],
        lambda x, w, b: x.conv2d(w, b, padding=1).relu().max_pool2d(2),
        lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b, padding=1).relu(), 2),
    )
    yield _case(
        "separable 1x64x56x56",
        [(1, 64, 56, 56), (64, 1, 3, 3), (128, 64, 1, 1)],
        lambda x, w, v: x.conv2d(w, padding=1, groups=64).relu().conv2d(v),
        lambda x, w, v: F.conv2d(F.conv2d(x, w, padding=1, groups=64).relu(), v),
    )


def pooling() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    table = (
        (8, 64, 56, 2, 2, 0),
        (1, 64, 112, 3, 2, 1),
        (8, 64, 28, 3, 1, 1),
        (8, 64, 57, 3, 2, 0),
        (8, 16, 28, 7, 7, 0),
        (4, 32, 64, 5, 1, 2),
        (8, 64, 56, 3, 3, 0),
        (1, 3, 224, 4, 4, 0),
    )
    for b, c, side, k, s, p in table:
        name = f"{k} stride {s} padding {p} of {b}x{c}x{side}x{side}"
        yield _case(
            f"max pool {name}",
            [(b, c, side, side)],
            lambda x, k=k, s=s, p=p: x.max_pool2d(k, stride=s, padding=p),
            lambda x, k=k, s=s, p=p: F.max_pool2d(x, k, stride=s, padding=p),
        )
        yield _case(
            f"avg pool {name}",
            [(b, c, side, side)],
            lambda x, k=k, s=s, p=p: x.avg_pool2d(k, stride=s, padding=p),
            lambda x, k=k, s=s, p=p: F.avg_pool2d(x, k, stride=s, padding=p),
        )
    yield _case(
        "max pool float64 8x64x56x56",
        [(8, 64, 56, 56, "float64")],
        lambda x: x.max_pool2d(2),
        lambda x: F.max_pool2d(x, 2),
    )


def _x(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _over(name: str, axes: tuple[int, ...]) -> Make:
    return lambda x: getattr(x, name)(axes)


def _at(make: Make, axis: int) -> Make:
    return lambda x: make(x, axis)


FAMILIES = (
    convolutions, products, layers, reductions, norms, movement, gathers, broadcasts, elementwise,
    pooling,
)  # fmt: skip
