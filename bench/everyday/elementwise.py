"""Elementwise expressions, and those of operands that are broadcast."""

from __future__ import annotations

from collections.abc import Iterator

from everyday.case import Case, Make, by, case


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
        "erf": (lambda x: x.erf(),) * 2,
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
        yield case(f"{name} 1024x1024", [(1024, 1024)], ours, theirs)
    for name in ("exp", "sin", "tanh", "sigmoid", "relu", "gelu tanh", "log(abs+1)"):
        ours, theirs = unary[name]
        yield case(f"{name} 1024x1024 float64", [(1024, 1024, "float64")], ours, theirs)
    for name in ("exp", "relu", "tanh", "neg"):
        ours, theirs = unary[name]
        yield case(f"{name} 1024x1024 float16", [(1024, 1024, "float16")], ours, theirs)
    for name in ("exp", "relu"):
        ours, theirs = unary[name]
        for shape in ((1000, 1001), (1000003,), (64, 17, 31, 33), (300000, 3), (3, 300001)):
            yield case(f"{name} {by(shape)}", [shape], ours, theirs)
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
            yield case(f"{name} 1024x1024 {kind}", [(*big, kind)] * 2, make)
    yield case(
        "a//b int32",
        [(*big, "int32")] * 2,
        lambda a, b: a // (b + 1),
        lambda a, b: torch.div(a, b + 1, rounding_mode="floor"),
    )
    yield case("a%7 int32", [(*big, "int32")], lambda a: a % 7)
    yield case("a//7 int32", [(*big, "int32")], lambda a: a // 7)
    yield case("a%b int64", [(*big, "int64")] * 2, lambda a, b: a % (b + 1))
    yield case("a&b int32", [(*big, "int32")] * 2, lambda a, b: a & b)
    yield case("a&b bool", [(*big, "bool")] * 2, lambda a, b: a & b)
    yield case("~a bool", [(*big, "bool")], lambda a: ~a, lambda a: ~a)
    yield case("a<<2 int32", [(*big, "int32")], lambda a: a << 2)
    yield case("int32 to float", [(*big, "int32")], lambda a: a.float())
    yield case("uint8 to float / 255", [(*big, "uint8")], lambda a: a.float() / 255)
    yield case("bool to float", [(*big, "bool")], lambda a: a.float())
    yield case("int64 a+b", [(*big, "int64")] * 2, lambda a, b: a + b)
    yield case(
        "where",
        [(*big, "bool"), big, big],
        lambda c, a, b: c.where(a, b),
        lambda c, a, b: torch.where(c, a, b),
    )
    yield case(
        "where x>0",
        [big, big],
        lambda a, b: (a > 0).where(a, b),
        lambda a, b: torch.where(a > 0, a, b),
    )
    yield case("a**b of abs", [big, big], lambda a, b: a.abs() ** b)


def broadcasts() -> Iterator[Case]:
    two = "2048x1024"
    yield case(f"row added {two}", [(2048, 1024), (1024,)], lambda a, b: a + b)
    yield case(f"column added {two}", [(2048, 1024), (2048, 1)], lambda a, b: a + b)
    yield case("channel scaled 8x64x56x56", [(8, 64, 56, 56), (64, 1, 1)], lambda a, b: a * b)
    yield case("channel last scaled 8x56x56x64", [(8, 56, 56, 64), (64,)], lambda a, b: a * b)
    yield case(
        "batch norm inference 8x64x56x56",
        [(8, 64, 56, 56), (64, 1, 1), (64, 1, 1), (64, 1, 1)],
        lambda x, m, s, b: (x - m) * s + b,
    )
    yield case("middle axis added 64x128x256", [(64, 128, 256), (64, 1, 256)], lambda a, b: a + b)
    for n, m in ((1024, 1024), (4096, 256), (256, 4096), (1000, 1001), (3000, 3)):
        yield case(f"outer product {n}x{m}", [(n, 1), (1, m)], lambda a, b: a * b)
        yield case(
            f"outer sum {n}x{m}", [(n,), (m,)], lambda a, b: a.reshape(-1, 1) + b.reshape(1, -1)
        )
    yield case("outer matmul 1024x1x1024", [(1024, 1), (1, 1024)], lambda a, b: a @ b)
    yield case("outer product 2048x2048", [(2048, 1), (1, 2048)], lambda a, b: a * b)
    yield case("batched outer 64x128x128", [(64, 128, 1), (64, 1, 128)], lambda a, b: a * b)
    yield case(
        "distances 512x512x64",
        [(512, 1, 64), (1, 512, 64)],
        lambda a, b: ((a - b) * (a - b)).sum(-1),
    )
    yield case(
        "distances 1000x1000x3",
        [(1000, 1, 3), (1, 1000, 3)],
        lambda a, b: ((a - b) * (a - b)).sum(-1),
    )
    yield case(
        "expand 1x1024 to 1024x1024", [(1, 1024)], lambda a: a.expand(1024, 1024).contiguous()
    )
    yield case(
        "expand 1024x1 to 1024x1024", [(1024, 1)], lambda a: a.expand(1024, 1024).contiguous()
    )
    yield case("table of positions 1000x64", [(1000, 1), (1, 64)], lambda p, f: (p * f).sin())
    yield case(
        "mask of distances 1024x1024", [(1024, 1), (1, 1024)], lambda a, b: (a - b).abs() < 0.5
    )
