"""What is constructed by the names of its parts is read by the same names, and verifies."""

from __future__ import annotations

import pytest

from workbench.base.dtypes import dtypes
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify

F32 = dtypes.float32
I0 = UOp.range(4, "g0", AxisType.GLOBAL)
R0 = UOp.range(8, "r0", AxisType.REDUCE)


def test_memory() -> None:
    buffer = construct.buffer(F32, "b1", "LLVM", (2, 3))
    assert (buffer.name, buffer.device, buffer.buffer_shape) == ("b1", "LLVM", (2, 3))
    param = construct.param(F32, 3, 40)
    assert (param.slot, param.length, param.memory_shape) == (3, 40, (40,))
    stage = construct.stage(R0.cast(F32), [R0], "row0", (8,))
    assert (stage.name, stage.memory_shape, stage.src[1:]) == ("row0", (8,), (R0,))
    define = construct.define(F32, "acc0", (2, 4), "scratch")
    assert (define.name, define.memory_shape) == ("acc0", (2, 4))
    assert define.space == "scratch"
    register = construct.register(F32.vec(4), "acc0", 8)
    assert (register.name, register.first_lane) == ("acc0", 8)


def test_statements() -> None:
    memory = construct.define(F32, "t", (4, 8), "scratch")
    place = construct.index(memory, I0, R0)
    assert (place.memory, place.indexes, place.param) == (memory, (I0, R0), memory)
    store = construct.store(place, construct.load(place), "u0")
    assert (store.place, store.value.place, store.vector) == (place, place, "u0")
    total = construct.accumulate(place, store.value, Ops.MAX, None)
    assert (total.place, total.value) == (place, store.value)
    assert (total.combines, total.vector) == (Ops.MAX, None)
    assert construct.running(place) is not construct.load(place)


def test_reductions() -> None:
    total = construct.reduce(R0.cast(F32), [R0], Ops.ADD)
    assert total.combines is Ops.ADD and total.src[1:] == (R0,)
    assert construct.reduce(I0, [], Ops.ADD) is I0
    value = construct.buffer(F32, "b", "LLVM", (2, 3))
    row = construct.reduce_axis(value, (1,), Ops.MAX)
    assert (row.combines, row.reduced_axes, row.shape) == (Ops.MAX, (1,), (2, 1))


@pytest.mark.parametrize("order", [("g0", "r0"), ("r0", "g0")])
def test_a_kernel_in_any_order(order: tuple[str, ...]) -> None:
    """It is one that verifies, and that text parses back to."""
    value = construct.load(construct.index(construct.param(F32, 1, 32), I0 * 8 + R0))
    place = construct.index(construct.param(F32, 0, 4), I0)
    store = construct.store(place, construct.reduce(value, [R0], Ops.ADD))
    end = construct.end(store, [I0])
    assert end.store is store
    kernel = UOp.sink(end, arg=KernelInfo("k", ("g0", "r0")))
    ordered = construct.in_order(kernel, order)
    assert ordered.arg == KernelInfo("k", order) and ordered.src is kernel.src
    verify(ordered, "kernel")
    assert parse(to_text(ordered)) is ordered
