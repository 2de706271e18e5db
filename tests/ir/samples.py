"""Graphs of every level that several tests look at, and short ways to build more, with data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support import count
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp, gated
from workbench.ir.rewriting.example_graphs import at as at
from workbench.ir.rewriting.example_graphs import axis, load, param, reduced, tensor

Array = np.ndarray[Any, np.dtype[Any]]
F, V = dtypes.float32, dtypes.void
RNG = np.random.default_rng(0)


def store(target: UOp, value: UOp, arg: object = None) -> UOp:
    return UOp(Ops.STORE, V, (target, value), arg)


def stage(name: str, shape: tuple[int, ...], value: UOp, *indexes: UOp) -> UOp:
    return UOp(Ops.STAGE, value.dtype, (value, *indexes), (name, shape))


def kernel(order: str, *parts: tuple[UOp, UOp, str]) -> UOp:
    """Return the kernel that stores each (target, value) and closes the axes named."""
    ends = []
    for target, value, closes in parts:
        stores = store(target, value)
        ranges = {r.axis_name: r for r in stores.ranges}
        ends.append(UOp(Ops.END, V, (stores, *[ranges[n] for n in closes.split()])))
    return UOp.sink(*ends, arg=KernelInfo("sample", tuple(order.split())))


def matmul(rows: int, inner: int, columns: int) -> UOp:
    g0, g1, r0 = axis("g0", rows), axis("g1", columns), axis("r0", inner)
    a, b = (
        load(param(1, rows * inner), g0 * inner + r0),
        load(param(2, inner * columns), r0 * columns + g1),
    )
    total = reduced(Ops.ADD, a * b, r0) + load(param(3, columns), g1)
    value = total.alu(Ops.MAX, total.like(0))
    return kernel("g0 g1 r0", (at(param(0, rows * columns), g0 * columns + g1), value, "g0 g1"))


def tiled_matmul() -> UOp:
    """8 x 8 x 8 with work-groups of 4 x 4, and both factors staged."""
    g0, g1, r0 = axis("g0", 2), axis("g1", 2), axis("r0", 2)
    l0, l1, r1 = axis("l0", 4), axis("l1", 4), axis("r1", 4)
    a0, a1, b0, b1 = axis("a_f0", 4), axis("a_f1", 4), axis("b_f0", 4), axis("b_f1", 4)
    a = stage("As", (4, 4), load(param(1, 64), (g0 * 4 + a0) * 8 + (r0 * 4 + a1)), a0, a1)
    b = stage("Bs", (4, 4), load(param(2, 64), (r0 * 4 + b0) * 8 + (g1 * 4 + b1)), b0, b1)
    total = reduced(Ops.ADD, at(a, l0, r1) * at(b, r1, l1), r0, r1)
    target = at(param(0, 64), (g0 * 4 + l0) * 8 + (g1 * 4 + l1))
    order = "g0 g1 r0 a_f0 a_f1 b_f0 b_f1 l0 l1 r1"
    return kernel(order, (target, total, "g0 g1 l0 l1"))


def softmax(rows: int, columns: int) -> UOp:
    """One kernel, its row of exponentials staged (exp2 for exp)."""
    g0, r0, r1 = axis("g0", rows), axis("r0", columns), axis("r1", columns)
    j, k = axis("f0", columns), axis("i0", columns)
    x = param(1, rows * columns)
    greatest = reduced(Ops.MAX, load(x, g0 * columns + r0), r0)
    e = stage("e", (columns,), (load(x, g0 * columns + j) - greatest).alu(Ops.EXP2), j)
    value = at(e, k).alu(Ops.FDIV, reduced(Ops.ADD, at(e, r1), r1))
    return kernel(
        "g0 r0 f0 r1 i0", (at(param(0, rows * columns), g0 * columns + k), value, "g0 i0")
    )


def padded_sum(size: int) -> UOp:
    """Three neighbours added, with zeros beyond the ends; the target is guarded too."""
    g0, r0 = axis("g0", size + 2), axis("r0", 3)
    place = g0 + r0 - 1
    inside = (place >= 0) & (place < size)
    value = reduced(Ops.ADD, load(param(1, size), gated(place, inside)), r0)
    return kernel("g0 r0", (at(param(0, size), gated(g0, g0 < size)), value, "g0"))


def define(name: str, *shape: int, space: str = "register") -> UOp:
    return UOp(Ops.DEFINE, F, (), Storage(name, shape, space))


def loop(over: UOp, *children: UOp, arg: str | None = None) -> UOp:
    return UOp(Ops.LOOP, V, (over, *children), arg)


def block(*children: UOp) -> UOp:
    return UOp(Ops.BLOCK, V, children, KernelInfo("sample", ("g0", "r0")))


def tree() -> UOp:
    """Rows of eight lanes, each the sum of sixteen products: a statement tree."""
    g0, r0, u0, n0 = axis("g0", 4), axis("r0", 8), axis("u0", 8), axis("n0", 2)
    acc = define("acc", 8)
    product = load(param(1, 64), g0 * 16 + r0 * 2 + n0) * load(
        param(2, 128), (r0 * 2 + n0) * 8 + u0
    )
    step = UOp(Ops.ACCUMULATE, V, (at(acc, u0), product), (Ops.ADD, "u0"))
    return block(loop(g0, store(at(acc, u0), UOp.const(F, 0.0), "u0"), loop(r0, step),
        store(at(param(0, 32), g0 * 8 + u0), load(acc, u0) * 2.0, "u0"),
        arg="chunked"))  # fmt: skip


def program() -> tuple[UOp, ...]:
    """out[g0] = the sum of eight-lane sums of a row: a linear program."""
    g0, r0, wide = axis("g0", 4), axis("r0", 2), F.vec(8)
    head = UOp(Ops.BLOCK, V, (), KernelInfo("sample", ("g0", "r0")))
    sums = UOp(Ops.REG, wide, (), ("sums", 0))
    zero = UOp(Ops.LANES, wide, (), (0.0,) * 7 + (-0.0,))
    row, part = g0 * 16, r0 * 8
    place = row + part
    address = at(param(1, 64), place)
    lanes = UOp(Ops.LOAD, wide, (address,))
    total = sums + lanes
    result = UOp(Ops.HREDUCE, F, (sums,), Ops.ADD)
    target = at(param(0, 4), g0)
    return (head, loop(g0, arg="chunked"), UOp(Ops.SET, V, (sums, zero)), row, loop(r0), part,
        place, address, lanes, total, UOp(Ops.SET, V, (sums, total)), UOp(Ops.ENDLOOP, V, (r0,)),
        result, target, store(target, result), UOp(Ops.ENDLOOP, V, (g0,)))  # fmt: skip


def buffer(uid: int, *shape: int, dtype: DType = F) -> UOp:
    return UOp(Ops.BUFFER, dtype, (), (uid, "NPY", shape))


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def pooled() -> UOp:
    """The greatest of each row of a padded, flipped, transposed matrix, doubled."""
    x = tensor(Ops.PERMUTE, buffer(1, 3, 4), (1, 0))
    x = tensor(Ops.FLIP, tensor(Ops.PAD, x, ((1, 0), (0, 2))), (1,))
    x = tensor(Ops.SHRINK, tensor(Ops.RESHAPE, x, (25,)), ((1, 25),))
    x = tensor(Ops.REDUCE_AXIS, tensor(Ops.RESHAPE, x, (6, 4)), (Ops.MAX, (1,)))
    return tensor(Ops.EXPAND, x * 2.0, (2, 6, 3))


def chain(length: int) -> UOp:
    """A sum so long that any recursion would overflow."""
    g0 = axis("g0", 10)
    node = g0
    for i in range(length):
        node = node + g0 if i % 2 else node + 1
    return node


KERNELS = {
    "matmul": matmul(3, 5, 4), "tiled_matmul": tiled_matmul(), "softmax": softmax(3, 7),
    "padded_sum": padded_sum(9),
}  # fmt: skip
DEEP = count(20_000, 5)
"""Far deeper than Python's stack."""
