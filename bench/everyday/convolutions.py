"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator

from everyday.case import Case, case


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
        yield case(
            f"conv {k}x{k} {b}x{c}x{side}x{side} to {o}{extra}",
            [(b, c, side, side), (o, c // g, k, k)],
            lambda x, w, how=how: x.conv2d(w, **how),
            lambda x, w, how=how: F.conv2d(x, w, **how),
        )
    yield case(
        "conv 3x3 float64 1x32x28x28",
        [(1, 32, 28, 28, "float64"), (32, 32, 3, 3, "float64")],
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv2d(x, w, padding=1),
    )
    yield case(
        "conv1d 8x64x1000 to 64 of 5",
        [(8, 64, 1000), (64, 64, 5)],
        lambda x, w: x.conv2d(w, padding=2),
        lambda x, w: F.conv1d(x, w, padding=2),
    )
    yield case(
        "conv1d 8x1x16000 to 64 of 25 stride 4",
        [(8, 1, 16000), (64, 1, 25)],
        lambda x, w: x.conv2d(w, stride=4),
        lambda x, w: F.conv1d(x, w, stride=4),
    )
    yield case(
        "conv1d 1x512x128 depthwise 4",
        [(8, 512, 128), (512, 1, 4)],
        lambda x, w: x.conv2d(w, padding=(3, 0), groups=512),
        lambda x, w: F.conv1d(F.pad(x, (3, 0)), w, groups=512),
    )
    yield case(
        "conv3d 1x8x16x28x28 to 8 of 3",
        [(1, 8, 16, 28, 28), (8, 8, 3, 3, 3)],
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv3d(x, w, padding=1),
    )
    yield case(
        "conv 1x7 1x64x28x28",
        [(1, 64, 28, 28), (64, 64, 1, 7)],
        lambda x, w: x.conv2d(w, padding=(3, 3, 0, 0)),
        lambda x, w: F.conv2d(x, w, padding=(0, 3)),
    )
    yield case(
        "conv 7x1 1x64x28x28",
        [(1, 64, 28, 28), (64, 64, 7, 1)],
        lambda x, w: x.conv2d(w, padding=(0, 0, 3, 3)),
        lambda x, w: F.conv2d(x, w, padding=(3, 0)),
    )
    both = [(4, 16, 56, 56), (32, 16, 3, 3), (32,), (32, 32, 3, 3), (32,)]
    yield case(
        "conv-relu-conv 4x16x56x56-32-32",
        both,
        lambda x, w, b, v, c: x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1),
        lambda x, w, b, v, c: F.conv2d(F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1),
    )
    more = [(1, 64, 56, 56), (64, 64, 3, 3), (64,), (64, 64, 3, 3), (64,)]
    yield case(
        "conv-relu-conv 1x64x56x56",
        more,
        lambda x, w, b, v, c: x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1),
        lambda x, w, b, v, c: F.conv2d(F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1),
    )
    yield case(
        "residual block 1x64x56x56",
        more,
        lambda x, w, b, v, c: (x.conv2d(w, b, padding=1).relu().conv2d(v, c, padding=1) + x).relu(),
        lambda x, w, b, v, c: (
            F.conv2d(F.conv2d(x, w, b, padding=1).relu(), v, c, padding=1) + x
        ).relu(),
    )
    yield case(
        "conv+bias+relu 4x64x56x56",
        [(4, 64, 56, 56), (64, 64, 3, 3), (64,)],
        lambda x, w, b: x.conv2d(w, b, padding=1).relu(),
        lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(),
    )
    yield case(
        "conv+relu+max pool 8x3x64x64-16",
        [(8, 3, 64, 64), (16, 3, 3, 3), (16,)],
        lambda x, w, b: x.conv2d(w, b, padding=1).relu().max_pool2d(2),
        lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b, padding=1).relu(), 2),
    )
    yield case(
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
        yield case(
            f"max pool {name}",
            [(b, c, side, side)],
            lambda x, k=k, s=s, p=p: x.max_pool2d(k, stride=s, padding=p),
            lambda x, k=k, s=s, p=p: F.max_pool2d(x, k, stride=s, padding=p),
        )
        yield case(
            f"avg pool {name}",
            [(b, c, side, side)],
            lambda x, k=k, s=s, p=p: x.avg_pool2d(k, stride=s, padding=p),
            lambda x, k=k, s=s, p=p: F.avg_pool2d(x, k, stride=s, padding=p),
        )
    yield case(
        "max pool float64 8x64x56x56",
        [(8, 64, 56, 56, "float64")],
        lambda x: x.max_pool2d(2),
        lambda x: F.max_pool2d(x, 2),
    )
