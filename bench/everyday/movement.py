"""What moves elements: views, joins, pads, gathers."""

from __future__ import annotations

from collections.abc import Iterator

from everyday.case import Case, case, counting


def movement() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    big = (1024, 1024)
    for kind in ("float32", "float64", "int32", "float16", "bool", "uint8"):
        yield case(
            f"transpose 1024x1024 {kind}", [(*big, kind)], lambda x: x.permute(1, 0).contiguous()
        )
    yield case("transpose 1000x1001", [(1000, 1001)], lambda x: x.permute(1, 0).contiguous())
    yield case("transpose 100000x10", [(100000, 10)], lambda x: x.permute(1, 0).contiguous())
    yield case("transpose 10x100000", [(10, 100000)], lambda x: x.permute(1, 0).contiguous())
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        yield case(
            f"permute 128x96x80 {order}",
            [(128, 96, 80)],
            lambda x, o=order: x.permute(*o).contiguous(),
        )
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2)):
        yield case(
            f"permute 8x64x56x56 {order}",
            [(8, 64, 56, 56)],
            lambda x, o=order: x.permute(*o).contiguous(),
        )
    yield case("a + b.T 1024", [big, big], lambda a, b: a + b.permute(1, 0))
    yield case(
        "heads split 8x512x8x64",
        [(8, 512, 512)],
        lambda x: x.reshape(8, 512, 8, 64).permute(0, 2, 1, 3).contiguous(),
    )
    for axis in (0, 1):
        yield case(
            f"cat 1024x1024 twice on {axis}",
            [big, big],
            lambda a, b, d=axis: a.cat(b, dim=d),
            lambda a, b, d=axis: torch.cat([a, b], d),
        )
        yield case(
            f"stack 1024x1024 twice on {axis}",
            [big, big],
            lambda a, b, d=axis: a.stack(b, dim=d),
            lambda a, b, d=axis: torch.stack([a, b], d),
        )
    yield case(
        "stack last 1024x1024",
        [big, big],
        lambda a, b: a.stack(b, dim=2),
        lambda a, b: torch.stack([a, b], 2),
    )
    yield case(
        "cat of 8 of 1024x100 on 1",
        [(1024, 100)] * 8,
        lambda *a: a[0].cat(*a[1:], dim=1),
        lambda *a: torch.cat(a, 1),
    )
    yield case(
        "cat 4x64x56x56 on channels",
        [(4, 64, 56, 56)] * 2,
        lambda a, b: a.cat(b, dim=1),
        lambda a, b: torch.cat([a, b], 1),
    )
    for pads in ((1, 1), (0, 3), (8, 8), (1, 1, 1, 1), (2, 3, 4, 5)):
        yield case(
            f"pad 1024x1024 {pads}",
            [big],
            lambda x, p=pads: x.pad(p),
            lambda x, p=pads: F.pad(x, p),
        )
    yield case(
        "pad 8x64x56x56 (1,1,1,1)",
        [(8, 64, 56, 56)],
        lambda x: x.pad((1, 1, 1, 1)),
        lambda x: F.pad(x, (1, 1, 1, 1)),
    )
    for axes in ((0,), (1,), (0, 1)):
        yield case(
            f"flip 1024x1024 {axes}",
            [big],
            lambda x, a=axes: x.flip(a).contiguous(),
            lambda x, a=axes: x.flip(a),
        )
    yield case("slice ::2 of rows", [(2048, 1024)], lambda x: x[::2].contiguous())
    yield case("slice ::2 of columns", [(1024, 2048)], lambda x: x[:, ::2].contiguous())
    yield case("slice ::3 of columns", [(1024, 3072)], lambda x: x[:, ::3].contiguous())
    yield case("slice 1:-1 both", [(1026, 1026)], lambda x: x[1:-1, 1:-1].contiguous())
    yield case("difference along columns", [(1024, 1025)], lambda x: x[:, 1:] - x[:, :-1])
    yield case("difference along rows", [(1025, 1024)], lambda x: x[1:] - x[:-1])
    yield case("even minus odd columns", [(1024, 2048)], lambda x: x[:, ::2] - x[:, 1::2])
    yield case(
        "rotate halves 8x8x512x64",
        [(8, 8, 512, 64)] * 3,
        lambda x, c, s: x * c + (-x[..., 32:]).cat(x[..., :32], dim=-1) * s,
        lambda x, c, s: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s,
    )
    yield case("repeat 256x256 4x4", [(256, 256)], lambda x: x.repeat(4, 4).contiguous())
    yield case(
        "repeat_interleave 256x1024 by 4",
        [(256, 1024)],
        lambda x: x.repeat_interleave(4, 1).contiguous(),
        lambda x: x.repeat_interleave(4, 1),
    )
    yield case(
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
    yield case(
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
    yield case(
        "patches 16 of 8x3x224x224",
        [(8, 3, 224, 224)],
        lambda x: (
            x.reshape(8, 3, 14, 16, 14, 16)
            .permute(0, 2, 4, 1, 3, 5)
            .reshape(8, 196, 768)
            .contiguous()
        ),
    )
    yield case(
        "upper triangle mask 1024",
        [big],
        lambda x: (counting(1024).reshape(-1, 1) <= counting(1024)).where(x, 0.0),
        lambda x: x.triu(),
    )


def gathers() -> Iterator[Case]:
    import torch

    F = torch.nn.functional
    for words, width, n in (
        (4096, 64, 8192),
        (32000, 512, 1024),
        (1000, 16, 65536),
        (32000, 768, 2048),
    ):
        yield case(
            f"embedding {words}x{width} of {n}",
            [(words, width), (n, -words)],
            lambda t, i: t[i],
            lambda t, i: F.embedding(i, t),
        )
    yield case(
        "gather columns 1024x1024", [(1024, 1024), (1024, 1024, -1024)], lambda x, i: x.gather(1, i)
    )
    yield case(
        "gather rows 1024x1024", [(1024, 1024), (1024, 1024, -1024)], lambda x, i: x.gather(0, i)
    )
    yield case("take 1000000 of 4096", [(4096,), (10**6, -4096)], lambda x, i: x[i])
    yield case("columns chosen 1024x1024", [(1024, 1024), (1024, -1024)], lambda x, i: x[:, i])
    yield case(
        "one element a row 65536x64", [(65536, 64), (65536, 1, -64)], lambda x, i: x.gather(1, i)
    )
    yield case(
        "one-hot 8192 of 128", [(8192, -128)], lambda i: i.one_hot(128), lambda i: F.one_hot(i, 128)
    )
    yield case(
        "one-hot product 2048x512x64",
        [(2048, -512), (512, 64)],
        lambda i, w: i.one_hot(512).float() @ w,
        lambda i, w: F.one_hot(i, 512).float() @ w,
    )
    yield case(
        "masked fill 1024x1024",
        [(1024, 1024), (1024, 1024, "bool")],
        lambda x, m: m.where(0.0, x),
        lambda x, m: x.masked_fill(m, 0.0),
    )
    yield case(
        "arange plus 1024x1024",
        [(1024, 1024)],
        lambda x: x + counting(1024),
        lambda x: x + torch.arange(1024),
    )
    yield case(
        "full 1024x1024",
        [(1,)],
        lambda x: x.expand(1024 * 1024).contiguous(),
        lambda x: x.expand(1024 * 1024).contiguous(),
    )
    yield case(
        "bag of words 512x16 of 1000x256",
        [(1000, 256), (512, 16, -1000)],
        lambda t, i: t[i].sum(1),
        lambda t, i: F.embedding_bag(i, t, mode="sum"),
    )
