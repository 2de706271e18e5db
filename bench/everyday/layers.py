"""Layers of models: attention, recurrence, losses and the like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everyday.case import Case, case, counting


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
        shapes = [(m, k), (n, k), (n,)]
        yield case(f"linear {name}", shapes, linear, F.linear)
        yield case(
            f"linear+relu {name}",
            shapes,
            lambda x, w, b: linear(x, w, b).relu(),
            lambda x, w, b: F.linear(x, w, b).relu(),
        )
        yield case(
            f"linear+gelu {name}",
            shapes,
            lambda x, w, b: linear(x, w, b).gelu(),
            lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
        )
    yield case(
        "linear+residual+layer norm 512x512",
        [(512, 512), (512, 512), (512,)],
        lambda x, w, b: (linear(x, w, b) + x).layernorm(),
        lambda x, w, b: F.layer_norm(F.linear(x, w, b) + x, (512,)),
    )
    yield case(
        "linear+softmax 512x512x100",
        [(512, 512), (100, 512), (100,)],
        lambda x, w, b: linear(x, w, b).softmax(-1),
        lambda x, w, b: F.linear(x, w, b).softmax(-1),
    )
    yield case(
        "MLP 128x784-512-10",
        [(128, 784), (512, 784), (512,), (10, 512), (10,)],
        lambda x, w, b, v, c: linear(linear(x, w, b).relu(), v, c),
        lambda x, w, b, v, c: F.linear(F.linear(x, w, b).relu(), v, c),
    )
    yield case(
        "transformer MLP 256x512-2048-512",
        [(256, 512), (2048, 512), (2048,), (512, 2048), (512,)],
        lambda x, w, b, v, c: linear(linear(x, w, b).gelu(), v, c) + x,
        lambda x, w, b, v, c: F.linear(F.gelu(F.linear(x, w, b), approximate="tanh"), v, c) + x,
    )
    yield case(
        "gated MLP 256x512-1024-512",
        [(256, 512), (1024, 512), (1024, 512), (512, 1024)],
        lambda x, w, v, o: (
            ((x @ w.transpose(0, 1)).silu() * (x @ v.transpose(0, 1))) @ o.transpose(0, 1)
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
        yield case(
            f"attention {b}x{h}x{n}x{d}",
            [(b, h, n, d)] * 3,
            _attention,
            F.scaled_dot_product_attention,
        )
    yield case(
        "causal attention 1x8x512x64",
        [(1, 8, 512, 64)] * 3,
        _causal,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    )
    yield case(
        "attention of one query 8x1x64 on 2048",
        [(8, 1, 64), (8, 2048, 64), (8, 2048, 64)],
        _attention,
        F.scaled_dot_product_attention,
    )
    yield case(
        "scores q k.T 8x512x64", [(8, 512, 64)] * 2, lambda q, k: q @ k.transpose(-1, -2) * 0.125
    )
    yield case(
        "softmax(s) v 8x512x512x64", [(8, 512, 512), (8, 512, 64)], lambda s, v: s.softmax(-1) @ v
    )
    yield case(
        "projected heads 512x512",
        [(512, 512), (512, 512)],
        lambda x, w: (x @ w.transpose(0, 1)).reshape(512, 8, 64).permute(1, 0, 2).contiguous(),
    )
    yield case(
        "lstm gates 64x256",
        [(64, 256), (64, 256), (64, 256), (1024, 256), (1024, 256)],
        _lstm,
        _lstm,
    )
    yield case(
        "adam step 1000000",
        [(10**6,)] * 4,
        lambda p, g, m, v: (
            p - 0.001 * (0.9 * m + 0.1 * g) / ((0.999 * (v * v) + 0.001 * g * g).sqrt() + 1e-8)
        ),
    )
    yield case(
        "mean squared error 1024x1024",
        [(1024, 1024)] * 2,
        lambda a, b: ((a - b) * (a - b)).mean(),
        F.mse_loss,
    )
    yield case(
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
