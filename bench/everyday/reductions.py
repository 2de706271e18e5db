"""Reductions, and what is normed by them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from everyday.case import Case, at, by, case, over


def reductions() -> Iterator[Case]:
    shapes = ((2048, 1024), (128, 64, 96), (8, 64, 56, 56))
    for shape in shapes:
        axes = range(len(shape))
        groups = [g for n in range(1, len(shape) + 1) for g in combinations(axes, n)]
        for group in groups:
            yield case(f"sum {by(shape)} over {group}", [shape], over("sum", group))
            yield case(
                f"amax {by(shape)} over {group}", [shape], over("max", group), over("amax", group)
            )
    plain = {
        "mean": lambda x, a: x.mean(a),
        "var": lambda x, a: x.var(a),
        "std": lambda x, a: x.std(a),
    }
    for name, make in plain.items():
        for axis in (0, 1):
            yield case(f"{name} 2048x1024 over {axis}", [(2048, 1024)], at(make, axis))
    for axis in (0, 1, 2):
        yield case(f"argmax 128x64x96 over {axis}", [(128, 64, 96)], lambda x, a=axis: x.argmax(a))
    for shape, axis in (
        ((1024, 1024), 0),
        ((1024, 1024), 1),
        ((65536, 10), 1),
        ((10, 65536), 1),
        ((10, 65536), 0),
        ((1000, 1001), 1),
        ((4, 100003), 1),
    ):
        yield case(f"sum {by(shape)} over {axis} again", [shape], lambda x, a=axis: x.sum(a))
        yield case(f"argmax {by(shape)} over {axis}", [shape], lambda x, a=axis: x.argmax(a))
        yield case(f"prod {by(shape)} over {axis}", [shape], lambda x, a=axis: x.prod(a))
    for n in (10**5, 10**6, 1000003, 1 << 22):
        yield case(f"sum of {n}", [(n,)], lambda x: x.sum())
        yield case(f"max of {n}", [(n,)], lambda x: x.max())
        yield case(f"argmax of {n}", [(n,)], lambda x: x.argmax())
        yield case(f"mean of squares of {n}", [(n,)], lambda x: (x * x).mean())
    for kind in ("float64", "int32", "float16", "bool", "int64"):
        for axis in (0, 1):
            yield case(
                f"sum 2048x1024 {kind} over {axis}",
                [(2048, 1024, kind)],
                lambda x, a=axis: x.sum(a),
                lambda x, a=axis: x.sum(a, dtype=x.dtype if x.dtype.itemsize > 1 else None),
            )
    yield case("any 2048x1024 bool over 1", [(2048, 1024, "bool")], lambda x: x.any(1))
    yield case("count x>0 over 0", [(2048, 1024)], lambda x: (x > 0).sum(0))
    yield case("mean of abs difference", [(1024, 1024)] * 2, lambda a, b: (a - b).abs().mean())
    yield case("l2 norms of rows", [(2048, 1024)], lambda x: (x * x).sum(1).sqrt())
    yield case("l2 norms of columns", [(2048, 1024)], lambda x: (x * x).sum(0).sqrt())
    yield case("global average pool 8x512x14x14", [(8, 512, 14, 14)], lambda x: x.mean((2, 3)))
    yield case("global average pool 32x64x7x7", [(32, 512, 7, 7)], lambda x: x.mean((2, 3)))
    yield case("dot of 1000000", [(10**6,)] * 2, lambda a, b: (a * b).sum())
    yield case("dot (@) of 1000000", [(10**6,)] * 2, lambda a, b: a @ b)
    for axis in (0, 1):
        for name in ("cumsum", "cumprod"):
            yield case(
                f"{name} 1024x1024 over {axis}",
                [(1024, 1024)],
                lambda x, n=name, a=axis: getattr(x * 0.99, n)(a),
            )
    yield case("cumsum of 1000000", [(10**6,)], lambda x: x.cumsum(0))
    yield case("cumsum 64x128x256 over 1", [(64, 128, 256)], lambda x: x.cumsum(1))
    yield case("cummax 1024x1024 over 1", [(1024, 1024)], lambda x: x.cummax(1)[0])
    yield case(
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
        yield case(f"softmax {by(shape)}", [shape], lambda x: x.softmax(-1))
        yield case(f"log_softmax {by(shape)}", [shape], lambda x: x.log_softmax(-1))
        yield case(
            f"layer norm {by(shape)}",
            [shape],
            lambda x: x.layernorm(),
            lambda x: F.layer_norm(x, x.shape[-1:]),
        )
    for shape in ((1024, 1024), (64, 128, 256)):
        for axis in range(len(shape) - 1):
            yield case(f"softmax {by(shape)} over {axis}", [shape], lambda x, a=axis: x.softmax(a))
    yield case("softmax float64 1024x1024", [(1024, 1024, "float64")], lambda x: x.softmax(-1))
    yield case(
        "logsumexp 2048x1024", [(2048, 1024)], lambda x: x.logsumexp(1), lambda x: x.logsumexp(1)
    )
    yield case(
        "rms norm 2048x1024",
        [(2048, 1024), (1024,)],
        lambda x, w: x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    )
    yield case(
        "affine layer norm 512x768",
        [(512, 768), (768,), (768,)],
        lambda x, w, b: x.layernorm() * w + b,
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
    )
    yield case(
        "group norm 8x64x28x28 of 8",
        [(8, 64, 28, 28)],
        lambda x: x.reshape(8, 8, -1).layernorm().reshape(8, 64, 28, 28),
        lambda x: F.group_norm(x, 8),
    )
    yield case(
        "batch norm training 8x64x28x28",
        [(8, 64, 28, 28)],
        lambda x: (
            (x - x.mean((0, 2, 3), keepdim=True))
            * (x.var((0, 2, 3), keepdim=True, correction=0) + 1e-5).rsqrt()
        ),
        lambda x: F.batch_norm(x, None, None, training=True),
    )
    yield case(
        "normalized rows 2048x1024",
        [(2048, 1024)],
        lambda x: x / (x * x).sum(1, keepdim=True).sqrt(),
        lambda x: F.normalize(x),
    )
    yield case(
        "standardized columns 2048x1024", [(2048, 1024)], lambda x: (x - x.mean(0)) / x.std(0)
    )
    yield case(
        "cross entropy 2048x1000",
        [(2048, 1000), (2048, -1000)],
        lambda x, y: -x.log_softmax(-1).gather(1, y.reshape(-1, 1)).mean(),
        lambda x, y: F.cross_entropy(x, y),
    )
    yield case(
        "x minus its max, 2048x1024",
        [(2048, 1024)],
        lambda x: x - x.max(1, keepdim=True),
        lambda x: x - x.amax(1, keepdim=True),
    )
