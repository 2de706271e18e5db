"""Graphs that break one rule each, by level and rule, and the good ones that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.ir.samples import (
    F,
    V,
    at,
    axis,
    block,
    buffer,
    define,
    kernel,
    load,
    loop,
    param,
    reduced,
    stage,
    store,
    tensor,
)  # fmt: skip
from workbench.base.dtypes import dtypes
from workbench.ir.node.construct import special, warp_shuffle, when
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp, gated, invalid
from workbench.ir.node.views import WrittenCode
from workbench.ir.text.printer import to_text

Ir = UOp | Sequence[UOp]
H = dtypes.float16
g0, g1, r0, u0 = axis("g0", 4), axis("g1", 4), axis("r0", 4), axis("u0", 4)
t0, t1 = axis("t0", 2), axis("t1", 2)
one, half = UOp.const(F, 1.0), UOp.const(dtypes.float64, 0.5)
x = load(param(1, 4), g0)
out = at(param(0, 4), g0)
COPY = to_text(kernel("g0", (out, x, "g0")))


def sink(value: UOp, closes: str = "g0", order: str = "g0", target: UOp = out) -> UOp:
    return kernel(order, (target, value, closes))


def statements(*children: UOp) -> UOp:
    return block(loop(g0, *children))


def bad(op: Ops, dtype: Any, *src: UOp, arg: object = None) -> UOp:
    return UOp(op, dtype, src, arg)


b = buffer(1, 3, 4)
TENSOR: dict[str, list[Callable[[], UOp]]] = {
    "op-of-level": [lambda: param(0, 4), lambda: b.alu(Ops.CDIV, b)],
    "source-count": [lambda: bad(Ops.ADD, F, b), lambda: bad(Ops.EXP2, F, b, b)],
    "dtype": [
        lambda: bad(Ops.ADD, F, b, half),
        lambda: bad(Ops.NEG, dtypes.int32, b),
        lambda: bad(Ops.CMPLT, F, b, b),
        lambda: bad(Ops.CMPLT, dtypes.bool, b, half),
        lambda: bad(Ops.IDIV, F, b, b),
        lambda: bad(Ops.EXP2, dtypes.int32, UOp.const(dtypes.int32, 1)),
        lambda: bad(Ops.AND, F, b, b),
        lambda: bad(Ops.WHERE, F, b, b, b),
        lambda: bad(Ops.WHERE, F, b < b, b, half),
        lambda: bad(Ops.CAST, V, b),
        lambda: bad(Ops.BITCAST, dtypes.float64, b),
        lambda: bad(Ops.BITCAST, dtypes.bool, buffer(1, 3, dtype=dtypes.uint8)),
        lambda: bad(Ops.BUFFER, V, arg=(1, "NPY", ())),
        lambda: bad(Ops.SINK, F, b),
    ],
    "scalar": [lambda: UOp.const(F.vec(4), 1.0)],
    "sign-of-bool": [lambda: -(b < b)],
    "bits-of-float": [lambda: b.alu(Ops.NOT)],
    "buffer": [lambda: bad(Ops.BUFFER, F, arg=(1, "NPY", (3, -1))), lambda: bad(Ops.BUFFER, F)],
    "iota": [lambda: bad(Ops.IOTA, F, arg=3), lambda: bad(Ops.IOTA, dtypes.int32, arg=-3)],
    "operands": [lambda: b + buffer(2, 4, 3)],
    "reshape": [lambda: tensor(Ops.RESHAPE, b, (3, 5)), lambda: tensor(Ops.RESHAPE, b, (-3, -4))],
    "permute": [lambda: tensor(Ops.PERMUTE, b, (0, 0)), lambda: tensor(Ops.PERMUTE, b, (0,))],
    "expand": [lambda: tensor(Ops.EXPAND, b, (6, 4)), lambda: tensor(Ops.EXPAND, b, (4,))],
    "shrink": [
        lambda: tensor(Ops.SHRINK, b, ((0, 4), (0, 4))),
        lambda: tensor(Ops.SHRINK, b, ((2, 1), (0, 4))),
        lambda: tensor(Ops.SHRINK, b, ((0, 3),)),
    ],
    "pad": [lambda: tensor(Ops.PAD, b, ((-1, 0), (0, 0))), lambda: tensor(Ops.PAD, b, (1, 1))],
    "flip": [lambda: tensor(Ops.FLIP, b, (2,)), lambda: tensor(Ops.FLIP, b, (0, 0))],
    "reduce-axis": [
        lambda: bad(Ops.REDUCE_AXIS, H, b.cast(H), arg=(Ops.ADD, (0,))),
        lambda: tensor(Ops.REDUCE_AXIS, b, (Ops.ADD, (2,))),
        lambda: tensor(Ops.REDUCE_AXIS, b, (Ops.XOR, (0,))),
        lambda: tensor(Ops.REDUCE_AXIS, b, (0,)),
    ],
    "copy": [lambda: tensor(Ops.COPY, b, None)],
    "contiguous": [
        lambda: tensor(Ops.CONTIGUOUS, b, "UPCAST"),
        lambda: tensor(Ops.CONTIGUOUS, b, (("UPCAST", "g0"),)),
        lambda: tensor(Ops.CONTIGUOUS, b, (("UPCAST", "g0", 1.5),)),
    ],
    "custom": [
        lambda: tensor(Ops.CUSTOM, buffer(1, 4), ("copy", "SINK")),
        lambda: tensor(Ops.CUSTOM, buffer(1, 4), ("copy", 1, ((4,),), COPY)),
        lambda: tensor(Ops.CUSTOM, buffer(1, 4), ("copy", 0, ((4,),), "SINK")),
        lambda: tensor(Ops.CUSTOM, buffer(1, 5), ("copy", 0, ((4,),), COPY)),
        lambda: tensor(Ops.CUSTOM, buffer(1, 4), ("copy", 0, ((2, 3),), COPY)),
        lambda: tensor(Ops.CUSTOM, buffer(1, 4), ("copy", 0, ((4,), (4,)), COPY)),
        lambda: tensor(Ops.CUSTOM, buffer(1, 4).cast(dtypes.float64), ("copy", 0, ((4,),), COPY)),
    ],
    "range": [],
}
KERNEL: dict[str, list[Callable[[], UOp]]] = {
    "root": [lambda: x],
    "op-of-level": [lambda: sink(load(define("acc", 4), g0))],
    "range": [
        lambda: sink(x + bad(Ops.RANGE, dtypes.index, UOp.index(2), arg=("g0", "global")).cast(F)),
        lambda: sink(
            x + bad(Ops.RANGE, dtypes.index, g0, arg=("g1", AxisType.LOOP)).cast(F), "g0 g1"
        ),
        lambda: sink(x + UOp.range(-1, "g1", AxisType.LOOP).cast(F), "g0 g1"),
    ],
    "param": [lambda: sink(load(bad(Ops.PARAM, F, arg=(1, -4)), g0))],
    "dtype": [lambda: sink(bad(Ops.LOAD, dtypes.float64, at(param(1, 4), g0)))],
    "index": [
        lambda: sink(load(param(1, 4), g0, g0)),
        lambda: sink(load(x, g0)),
        lambda: sink(load(param(1, 4), g0.cast(dtypes.int32))),
        lambda: sink(at(stage("s", (4, 4), x, g1, r0), g0), order="g0 g1 r0"),
    ],
    "in-bounds": [
        lambda: sink(load(param(1, 4), g0 + 1)),
        lambda: sink(one, target=at(param(0, 4), g0 - 1)),
        lambda: sink(load(param(1, 29), g0 * 7 // 4 * 4 + g0 * 7 % 4 + 8)),
        lambda: sink(load(param(1, 4), x.cast(dtypes.index))),
        lambda: sink(at(stage("s", (3,), load(param(1, 4), r0), r0), g0.like(0)), order="g0 r0"),
        lambda: sink(at(stage("s", (4,), load(param(1, 4), r0), r0), g0 * 2), order="g0 r0"),
        lambda: sink(one, target=at(param(0, 0), gated(g0, g0 < 3))),
        lambda: sink(load(param(1, 0), gated(g0, x < 3))),
    ],
    "load": [
        lambda: sink(bad(Ops.LOAD, F, at(param(1, 4), g0), one)),
        lambda: sink(bad(Ops.LOAD, F, x)),
    ],
    "guarded": [
        lambda: sink(invalid().cast(F)),
        lambda: sink(load(param(1, 9), gated(g0, g0 < 2) + 1)),
        lambda: sink(load(param(1, 9), (g0 < 2).where(invalid(), g0))),
        lambda: sink(load(param(1, 9), gated(gated(g0, g0 < 2), g0 < 3))),
    ],
    "reduce": [
        lambda: sink(reduced(Ops.MAX, x.cast(dtypes.bfloat16), r0).cast(F), order="g0 r0"),
        lambda: sink(reduced(Ops.XOR, x, r0), order="g0 r0"),
        lambda: sink(reduced(Ops.ADD, x, r0, r0), order="g0 r0"),
        lambda: sink(bad(Ops.REDUCE, F, x, r0 + 1, arg=Ops.ADD), order="g0 r0"),
    ],
    "code": [
        lambda: sink(UOp(Ops.EXTERN, F, (param(1, 4),), ("C", "f"))),
        lambda: sink(UOp(Ops.EXTERN, F, (x,), WrittenCode("C", "f"))),
        lambda: sink(UOp(Ops.EXTERN, F, (param(1, 4),), WrittenCode("C", "f", (1,)))),
        lambda: sink(UOp(Ops.EXTERN, F, (param(1, 4), param(2, 5)), WrittenCode("C", "f", (0,)))),
    ],
    "stage": [
        lambda: sink(at(bad(Ops.STAGE, F, x, g0, arg=("s",)), g0)),
        lambda: sink(at(stage("s", (4, 4), x, g1), g0, g0), order="g0 g1"),
    ],
    "store": [lambda: sink(one, target=at(stage("s", (4,), x, g0), g0)), lambda: sink(half)],
    "end": [
        lambda: UOp.sink(bad(Ops.END, V, out), arg=KernelInfo("k", ("g0",))),
        lambda: UOp.sink(bad(Ops.END, V, store(out, x), g0 + 1), arg=KernelInfo("k", ("g0",))),
    ],
    "end-closes": [lambda: sink(x + g1.cast(F), order="g0 g1")],
    "sink": [lambda: UOp.sink(*sink(x).src), lambda: UOp.sink(x, arg=KernelInfo("k", ("g0",)))],
    "axis-names": [lambda: sink(reduced(Ops.ADD, x, axis("g0", 5)))],
    "loop-order": [
        lambda: sink(x, order=""),
        lambda: sink(x, order="g0 g0"),
        lambda: sink(x, order="g0 g1"),
        lambda: sink(reduced(Ops.ADD, x, u0), order="g0 u0"),
    ],
    "one-thread": [lambda: sink(x + (t0 + t1).cast(F), "g0 t0 t1", "t0 t1 g0")],
    "slots": [lambda: sink(x + load(param(1, 5), g0))],
    "stage-names": [
        lambda: sink(at(stage("s", (4,), x, g0), g0) + at(stage("s", (4,), x + x, g0), g0))
    ],
    "no-race": [
        lambda: sink(load(param(0, 4), g0)),
        lambda: sink(load(param(0, 4), -g0 + 3)),
        lambda: sink(load(UOp(Ops.AFTER, F, (param(0, 4),)), g0 * -1 + 3)),  # of nothing
    ],
    "few-lanes": [
        lambda: sink(
            reduced(Ops.ADD, load(param(1, 1 << 20), axis("n0", 1 << 20)), axis("n0", 1 << 20))
        )
    ],
}
acc = define("acc", 4)
LOWERED: dict[str, list[Callable[[], UOp]]] = {
    "root": [lambda: sink(x)],
    "op-of-level": [lambda: statements(store(out, at(stage("s", (4,), x, g0), g0)))],
    "define": [
        lambda: statements(store(at(bad(Ops.DEFINE, F, arg=("acc", 4)), g0), x)),
        lambda: statements(store(at(bad(Ops.DEFINE, F, arg=Storage("a", (4,), "heap")), g0), x)),
    ],
    "lane-reduce": [lambda: statements(store(out, reduced(Ops.ADD, x, r0)))],
    "write": [
        lambda: statements(store(x, x)),
        lambda: statements(store(out, half)),
        lambda: statements(store(out, x, "u0")),
        lambda: statements(store(out, x, "g0")),
    ],
    "barrier": [lambda: block(bad(Ops.BARRIER, V, arg="all"), loop(g0, store(out, x)))],
    "accumulate": [
        lambda: statements(bad(Ops.ACCUMULATE, V, at(acc, g0), x, arg=Ops.ADD)),
        lambda: statements(bad(Ops.ACCUMULATE, V, at(acc, g0), x, arg=(Ops.XOR, None))),
        lambda: statements(bad(Ops.ACCUMULATE, V, out, x, arg=(Ops.ADD, None))),
        lambda: statements(bad(Ops.ACCUMULATE, V, at(acc, g0), x, arg=(Ops.ADD, "u0"))),
    ],
    "statements": [
        lambda: statements(x),
        lambda: block(bad(Ops.LOOP, V, store(out, x))),
        lambda: block(loop(u0, store(at(param(0, 4), u0), one))),
        lambda: UOp(Ops.BLOCK, V, (), None),
    ],
    "loops": [
        lambda: block(store(out, x)),
        lambda: block(loop(g1, store(at(param(0, 4), g1), one)), store(at(param(0, 4), g1), one)),
        lambda: block(loop(g0, loop(g0, store(out, x)))),
        lambda: block(loop(g1, loop(g0, store(out, x), arg="chunked"))),
        lambda: block(loop(g0, store(out, x), arg="chunked"), loop(g1, arg="chunked")),
        lambda: block(loop(g0, store(out, x), arg="spread")),
    ],
    "slots": [lambda: statements(store(out, x), store(at(param(0, 5), g0), x))],
    "arrays": [
        lambda: statements(
            store(at(define("a", 4), g0), x), store(out, load(define("a", 5), g0))
        )
    ],
    "shuffle": [
        lambda: statements(store(out, bad(Ops.WARP_SHUFFLE, F, x, arg=0))),
        lambda: statements(store(out, bad(Ops.WARP_SHUFFLE, F, x, arg="up"))),
    ],
    "special": [
        lambda: block(bad(Ops.SPECIAL, V, g0, arg="item"), store(out, x)),
        lambda: block(bad(Ops.SPECIAL, V, one, arg=("item", 0)), store(out, x)),
    ],
    "specials": [
        lambda: block(loop(g1, store(at(param(0, 4), g1), one)), special(g0, "item", 0)),
        lambda: block(special(g0, "item", 0), special(g1, "item", 0), store(out, x)),
    ],
}  # fmt: skip
LOWERED["statements"] += [
    lambda: block(special(g0, "item", 0), bad(Ops.IF, V, one, store(out, x))),
    lambda: block(special(g0, "item", 0), when(g0 < 2, [UOp(Ops.BARRIER, V, ())])),
    lambda: block(special(g0, "item", 0), when(g0 < 2, [store(out, warp_shuffle(x, 1))])),
]
LOWERED["in-bounds"] = [
    lambda: block(special(g0, "item", 0), when(g0 < 3, [store(at(param(0, 2), g0), one)]))
]
