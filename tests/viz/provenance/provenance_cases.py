"""Kernels whose instructions lead to the lines of a user, for the tests of provenance.

Each kernel is code of several lines, as a user writes it, with a word behind the lines that
the tests name. What an instruction is (a multiply-add, a square root) says which line it must
lead to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench import Device, Opt, OptOps, Tensor

RANDOM = np.random.default_rng(0)


def data(*shape: int) -> Tensor:
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def chain() -> Tensor:
    x, b = data(1024), data(1024)
    y = x * 3.0  # scale
    y = y + b  # shift
    y = y * y  # square
    y = y.sqrt()  # root
    return y.trunc()  # whole


def dense() -> Tensor:
    a, b, c = data(64, 64), data(64, 64), data(64)
    y = a @ b  # product
    y = y + c  # bias
    return y.relu()  # relu


def softmax() -> Tensor:
    x = data(32, 256)
    top = x.max(axis=1, keepdim=True)  # greatest
    y = x - top  # distance
    y = y.exp()  # exp
    total = y.sum(axis=1, keepdim=True)  # total
    return y / total  # share


def convolution() -> Tensor:
    x, w, b = data(1, 4, 16, 16), data(8, 4, 3, 3), data(8, 1, 1)
    x = x.pad(((0, 0), (0, 0), (1, 1), (1, 1)))  # border
    y = x.conv2d(w)  # window
    y = y + b  # bias
    return y.sqrt()  # root


def gathered() -> Tensor:
    table, weights = data(100, 32), data(16, 32)
    rows = Tensor(RANDOM.integers(0, 100, 16).astype(np.int32))  # rows
    y = table[rows]  # pick
    y = y * weights  # weigh
    return y.sum(axis=1)  # total


@dataclass(frozen=True)
class Case:
    """`opts` None: the default ones. `ir`, `c`: a pattern of lines of source, and the words of
    the user's lines that exactly those must lead to; `asm`: the same for x86 instructions."""

    make: Callable[[], Tensor]
    opts: tuple[Opt, ...] | None
    ir: dict[str, str]
    c: dict[str, str]
    asm: dict[str, str]


# two vectors of this machine side by side, so that an element of `a` is a variable of its own
TILE = (
    Opt(OptOps.UPCAST, "g1", 2 * Device["LLVM"].target.vector_width(4)),
    Opt(OptOps.UPCAST, "g0", 4),
    Opt(OptOps.SPLIT, "r0", 8),
    Opt(OptOps.STAGE, "r0", 2),
)
# fmt: off
CASES = {
    "chain": Case(
        chain, None,
        {r"fmul .*3\.0": "scale", r"fmul .* (%\w+), \1$": "square", r"fadd ": "shift",
         r"@llvm.sqrt": "root", r"@llvm.trunc": "whole"},
        {r"sqrt": "square root whole"},
        {r"vaddps": "shift", r"vmulps\s+(%\w+), \1,": "square", r"vsqrtps": "root",
         r"vround|vrndscale": "whole"},
    ),
    "dense": Case(
        dense, TILE,
        {r"fmuladd": "product", r"phi <": "product", r"fadd ": "bias", r"fcmp ": "relu",
         r"%p3_v\d+ = load": "DATA bias", r"store .*%Bs": "DATA product", r"store .*%p0": "relu"},
        {r"^acc.* = fma": "product", r"= \*\(.*&p3\[": "DATA bias"},
        {r"vfmadd": "product", r"vaddps": "bias", r"vmaxps": "relu"},
    ),
    "dense-auto": Case(
        dense, None,
        {r"fmuladd": "product", r"fadd ": "bias", r"fcmp ": "relu"},
        {r"^acc.* = fma": "product"},
        {r"vfmadd": "product", r"vaddps": "bias", r"vmaxps": "relu"},
    ),
    "softmax": Case(
        softmax, None,
        {r"fcmp ogt <.*%acc0": "greatest", r"@llvm.trunc|fmuladd|bitcast|shl ": "exp",
         r"fdiv ": "share"},
        {r"trunc": "exp"},
        {r"vfn?madd|vround|vrndscale|vpslld": "exp", r"vdivps": "share"},
    ),
    "convolution": Case(
        convolution, None,
        {r"fmuladd": "window", r"@llvm.sqrt": "root"},
        {r"sqrt": "bias root"},
        {r"vfmadd": "window", r"vsqrt.s": "root"},
    ),
    "gathered": Case(
        gathered, None,
        {r"= load i32": "rows pick", r"@llvm.masked.load": "DATA pick",
         r"fmul ": "weigh total",
         r"fadd ": "total"},
        {r"= p1\[g0\];": "rows pick"},
        {r"vmulps": "weigh total", r"vadd[ps]s": "total"},
    ),
}
# fmt: on
