"""Convolution and pooling as loops over windows: slow, and plainly right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.tensor.agree import Array

Pairs = Sequence[tuple[int, int]]


def conv(
    x: Array, w: Array, stride: Sequence[int], dilation: Sequence[int], pads: Pairs, groups: int
) -> Array:
    """Return the convolution in float64, by the definition."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    axes = len(pads)
    sizes = w.shape[2:]
    outs = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded.shape[2:], sizes, stride, dilation, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *outs))
    depth, per_group = w.shape[1], w.shape[0] // groups
    for at in product(*map(range, outs)):
        for tap in product(*map(range, sizes)):
            place = tuple(at[i] * stride[i] + tap[i] * dilation[i] for i in range(axes))
            column = padded[(..., *place)]
            for g in range(groups):
                rows = slice(g * per_group, (g + 1) * per_group)
                part = column[:, g * depth : (g + 1) * depth]
                result[(slice(None), rows, *at)] += part @ w[(rows, ..., *tap)].T
    return result


def pool(
    x: Array,
    combine: Callable[[Array], Any],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Pairs,
    fill: float,
    ceil: bool = False,
) -> Array:
    """Return `combine` of each window's elements (last axis); `fill` stands for padding."""
    axes = len(kernel)
    lead, shape = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
    rows = [
        list(_starts(n, k, s, d, pad, ceil))
        for n, k, s, d, pad in zip(shape, kernel, stride, dilation, pads, strict=True)
    ]
    dtype = np.asarray(combine(np.ones((1, 1), x.dtype))).dtype
    result = np.zeros((*lead, *map(len, rows)), dtype)
    for at in product(*(range(len(r)) for r in rows)):
        window = []
        for tap in product(*map(range, kernel)):
            place = [rows[i][at[i]] + tap[i] * dilation[i] for i in range(axes)]
            inside = all(0 <= p < n for p, n in zip(place, shape, strict=True))
            window.append(x[(..., *place)] if inside else np.full(lead, fill, x.dtype))
        result[(..., *at)] = combine(np.stack(window, -1))
    return result


def _starts(n: int, k: int, s: int, d: int, pad: tuple[int, int], ceil: bool) -> Iterator[int]:
    """Yield where windows begin: all that end in the padded axis; with `ceil`, all that begin
    before the padding at the end and that a step of `s` reaches from one that ends in it."""
    room = n + sum(pad) - d * (k - 1) - 1
    for i in range(n + sum(pad) + 1):
        if i * s <= room or (ceil and (i - 1) * s < room and i * s < n + pad[0]):
            yield i * s - pad[0]
