"""Products of matrices, and of batches of them."""

from __future__ import annotations

from collections.abc import Iterator

from everyday.case import Case, case


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
        yield case(f"matmul NN {name}", [(m, k), (k, n)], lambda a, b: a @ b)
        yield case(f"matmul NT {name}", [(m, k), (n, k)], lambda a, b: a @ b.transpose(0, 1))
        yield case(f"matmul TN {name}", [(k, m), (k, n)], lambda a, b: a.transpose(0, 1) @ b)
    for m, k, n in ((512, 512, 512), (255, 257, 253), (8, 1024, 1024)):
        yield case(
            f"matmul TT {m}x{k}x{n}",
            [(k, m), (n, k)],
            lambda a, b: a.transpose(0, 1) @ b.transpose(0, 1),
        )
    for m, k, n in ((256, 256, 256), (512, 512, 512), (127, 129, 131), (8, 1024, 1024)):
        yield case(
            f"matmul float64 {m}x{k}x{n}",
            [(m, k, "float64"), (k, n, "float64")],
            lambda a, b: a @ b,
        )
    yield case("matmul int32 256", [(256, 256, "int32")] * 2, lambda a, b: a @ b)
    yield case("matmul float16 256", [(256, 256, "float16")] * 2, lambda a, b: a @ b)
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
        yield case(f"batched NN {name}", [(b, m, k), (b, k, n)], lambda x, y: x @ y)
        yield case(
            f"batched NT {name}", [(b, m, k), (b, n, k)], lambda x, y: x @ y.transpose(-1, -2)
        )
        yield case(
            f"batched TN {name}", [(b, k, m), (b, k, n)], lambda x, y: x.transpose(-1, -2) @ y
        )
    yield case(
        "batched by one 32x128x256 @ 256x256", [(32, 128, 256), (256, 256)], lambda x, w: x @ w
    )
    yield case(
        "batched by one, NT 32x128x256",
        [(32, 128, 256), (256, 256)],
        lambda x, w: x @ w.transpose(0, 1),
    )
    for m, n in ((1024, 1024), (4096, 4096), (1000, 3001), (100000, 16), (16, 100000), (2048, 512)):
        yield case(f"matvec {m}x{n}", [(m, n), (n,)], lambda a, x: a @ x)
        yield case(f"vecmat {m}x{n}", [(m,), (m, n)], lambda x, a: x @ a)
    yield case("vector @ batch 64x128x256", [(64, 128, 256), (256,)], lambda a, x: a @ x)
    yield case("bilinear x A y 512", [(512,), (512, 512), (512,)], lambda x, a, y: x @ a @ y)
    yield case("gram x.T x 4096x128", [(4096, 128)], lambda x: x.transpose(0, 1) @ x)
    yield case("gram x x.T 128x4096", [(128, 4096)], lambda x: x @ x.transpose(0, 1))
    yield case(
        "cosines 512x256",
        [(512, 256)] * 2,
        lambda a, b: (
            (a / (a * a).sum(1, keepdim=True).sqrt())
            @ (b / (b * b).sum(1, keepdim=True).sqrt()).transpose(0, 1)
        ),
    )
    yield case(
        "squared distances by product 512x64",
        [(512, 64)] * 2,
        lambda a, b: (a * a).sum(1, keepdim=True) + (b * b).sum(1) - 2 * (a @ b.transpose(0, 1)),
    )
