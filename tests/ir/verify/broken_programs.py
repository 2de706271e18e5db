"""Linear programs that break one rule each, by rule, and the good one that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.ir import samples
from tests.ir.samples import F, V, at, axis, loop, param, stage, store
from tests.ir.verify.broken_graphs import Ir, bad, half, one, x
from tests.tools.tensor_cores import core_named
from workbench.base.dtypes import dtypes
from workbench.ir.node.construct import special, warp_shuffle
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def in_branch(step: UOp) -> tuple[UOp, ...]:
    """Return the sample program with a step in an IF."""
    return added(UOp(Ops.IF, V, (TRUE,)), step, UOp(Ops.ENDIF, V, (TRUE,)))


good = samples.program()
vector = good[8]
register = good[2].src[0]


def changed(place: int, *steps: UOp) -> tuple[UOp, ...]:
    """Return the sample program with one step replaced."""
    return (*good[:place], *steps, *good[place + 1 :])


def added(*steps: UOp) -> tuple[UOp, ...]:
    """Return the sample program with steps added inside its inner loop, behind the sum."""
    return (*good[:11], *steps, *good[11:])


TRUE = UOp.const(dtypes.bool, True)
CORE = core_named("apple7", "8x8x8 float32 -> float32")
PAIR = F.vec(2)
pair = bad(Ops.BROADCAST, PAIR, one)


def product(*src: UOp, dtype: Any = PAIR, core: Any = CORE) -> Ir:
    """Return a program with a WMMA, whose fragments have two elements each."""
    return added(pair, bad(Ops.WMMA, dtype, *src, arg=core))


def exchanged(*src: UOp, dtype: Any = PAIR, layouts: Any = (CORE.a, CORE.a)) -> Ir:
    """Return a program with an EXCHANGE of fragments of two elements."""
    return added(pair, bad(Ops.EXCHANGE, dtype, *src, arg=layouts))


LINEAR: dict[str, list[Callable[[], Ir]]] = {
    "root": [lambda: x],
    "op-of-level": [lambda: added(stage("s", (4,), one, axis("r0", 2)))],
    "dtype": [
        lambda: added(vector + UOp.const(F, 1.0)),
        lambda: added(bad(Ops.BROADCAST, F.vec(4), vector)),
        lambda: added(bad(Ops.BROADCAST, F, one)),
        lambda: added(bad(Ops.STACK, F.vec(3), one, one)),
        lambda: added(bad(Ops.STACK, F.vec(2), one, half)),
        lambda: added(bad(Ops.EXTRACT, F, vector, arg=8)),
        lambda: added(bad(Ops.EXTRACT, F, one, arg=0)),
        lambda: added(bad(Ops.HREDUCE, F, vector, arg=Ops.XOR)),
        lambda: added(bad(Ops.LOAD, dtypes.float64.vec(8), good[7])),
        lambda: product(pair, pair, pair, core=None),
        lambda: product(pair, pair),
        lambda: product(pair, pair, pair, dtype=dtypes.float64.vec(2)),
        lambda: product(pair, half, pair),
        lambda: product(pair, pair, pair, core=CORE._replace(m=16)),
        lambda: exchanged(pair, layouts=None),
        lambda: exchanged(pair, layouts=(CORE.a, CORE.b)),
        lambda: exchanged(pair, dtype=dtypes.float64.vec(2)),
    ],
    "wmma": [
        lambda: product(pair, one, pair),
        lambda: product(pair, pair, one),
        lambda: product(pair, pair, pair, pair),
        lambda: product(pair, pair, pair, dtype=F.vec(4)),
    ],
    "exchange": [
        lambda: exchanged(pair, dtype=F.vec(4)),
        lambda: exchanged(one),
        lambda: exchanged(pair, pair),
    ],
    "param": [lambda: changed(7, at(bad(Ops.PARAM, F, arg=3), good[6]))],
    "define": [lambda: added(bad(Ops.DEFINE, F, arg="acc"))],
    "index": [
        lambda: added(at(param(1, 64), UOp.index(0), UOp.index(0))),
        lambda: added(at(vector, UOp.index(0))),
        lambda: added(at(param(1, 64), UOp.const(dtypes.int32, 0))),
    ],
    "load": [
        lambda: added(bad(Ops.LOAD, F, register)),
        lambda: added(bad(Ops.LOAD, F.vec(8), good[7], UOp.const(dtypes.bool.vec(4), True))),
    ],
    "store": [lambda: added(store(register, vector)), lambda: added(store(good[7], half))],
    "set": [
        lambda: added(bad(Ops.SET, V, vector, vector)),
        lambda: added(bad(Ops.SET, V, register, one)),
    ],
    "register": [lambda: added(bad(Ops.SET, V, bad(Ops.REG, F, arg="s"), one))],
    "lanes": [lambda: added(vector + bad(Ops.LANES, F.vec(8), arg=(1.0, 2.0)))],
    "loop": [
        lambda: changed(1, loop(good[1].src[0], arg="spread")),
    ],
    "special": [lambda: added(bad(Ops.SPECIAL, V, axis("l0", 4), arg="item"))],
    "if": [lambda: added(bad(Ops.IF, V, one))],
    "barrier": [lambda: added(bad(Ops.BARRIER, V, arg="all"))],
    "divergence": [
        lambda: in_branch(UOp(Ops.BARRIER, V, ())),
        lambda: in_branch(warp_shuffle(one, 1)),
    ],
    "shuffle": [lambda: added(bad(Ops.WARP_SHUFFLE, F, one, arg=0))],
    "partners": [
        lambda: added(special(axis("l0", 12), "item", 0), warp_shuffle(one, 4)),
        lambda: added(warp_shuffle(one, 1)),
    ],
    "block": [lambda: changed(0, UOp(Ops.BLOCK, V, (), "sample"))],
    "first-step": [lambda: (), lambda: good[1:], lambda: added(good[0])],
    "order": [
        lambda: (*good[:5], good[6], good[5], *good[7:]),
        lambda: changed(12, bad(Ops.HREDUCE, F, vector, arg=Ops.ADD)),  # made in a closed loop
    ],
    "once": [lambda: added(vector)],
    "nesting": [
        lambda: good[:-1],
        lambda: added(UOp(Ops.IF, V, (TRUE,))),
        lambda: added(UOp(Ops.ENDIF, V, (TRUE,))),
        lambda: added(good[1]),
        lambda: (*good[:11], good[-1], good[11], *good[12:-1]),
    ],
    "open-range": [lambda: added(axis("g1", 4) * 2)],
    "set-first": [lambda: (*good[:2], *good[3:])],
}  # fmt: skip
