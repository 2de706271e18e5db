"""UOp: equal nodes are one object, whatever makes them; and depth is no limit."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import struct
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.ir import samples
from tests.ir.samples import DEEP, F, axis, chain, param, reduced
from workbench.backends.device import Device
from workbench.base.dtypes import dtypes
from workbench.ir.node import uop
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, closed, gated, invalid, leaves, split_gate


def test_equal_nodes_are_one_object() -> None:
    assert axis("g0", 4) + 1 is axis("g0", 4) + 1
    assert axis("g0", 4) is not axis("g0", 5) and axis("g0", 4) is not axis("g1", 4)
    assert samples.matmul(2, 2, 2) is samples.matmul(2, 2, 2)


def test_constants_are_told_apart_by_their_bits() -> None:
    zero, minus = UOp.const(F, 0.0), UOp.const(F, -0.0)
    assert zero is not minus and math.copysign(1, minus.arg) == -1
    assert UOp.const(F, math.nan) is UOp.const(F, float("nan"))
    payload = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
    assert UOp.const(F, math.nan) is not UOp.const(F, payload)
    assert UOp.const(F, 1) is UOp.const(F, 1.0) and type(UOp.const(F, 1).arg) is float
    assert UOp.const(F, 0.1) is UOp.const(F, 0.1 + 1e-12)  # one float32
    assert UOp.const(dtypes.int8, 300) is UOp.const(dtypes.int8, 44)
    assert UOp.const(dtypes.bool, 1).arg is True and UOp.const(dtypes.int32, True).arg == 1
    lanes = [UOp(Ops.LANES, F.vec(2), (), (v, math.nan)) for v in (0.0, -0.0, 0.0)]
    assert lanes[0] is not lanes[1] and lanes[0] is lanes[2]


def test_nodes_do_not_change() -> None:
    node = axis("g0", 4)
    for field in ("arg", "src", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(node, field, None)
    assert node.replace(arg=("g1", AxisType.LOOP)).axis_name == "g1"
    assert copy.copy(node) is node and copy.deepcopy(node) is node


def test_threads_make_one_object() -> None:
    start, names = threading.Barrier(8), [f"i{n}" for n in range(1000)]

    def make(_: int) -> list[UOp]:
        start.wait()
        return [axis(name, 7) * 3 + axis(name, 7) for name in names]

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change places in the middle of everything
    try:
        with ThreadPoolExecutor(8) as pool:
            node_lists = list(pool.map(make, range(8)))
    finally:
        sys.setswitchinterval(usual)
    for nodes in zip(*node_lists, strict=True):
        assert all(n is nodes[0] for n in nodes)


@pytest.mark.parametrize("name", samples.KERNELS)
def test_pickling_gives_the_same_object(name: str) -> None:
    sink = samples.KERNELS[name]
    assert pickle.loads(pickle.dumps(sink)) is sink
    for value in (-0.0, math.nan, math.inf):
        assert pickle.loads(pickle.dumps(UOp.const(F, value))) is UOp.const(F, value)


def test_nodes_that_nobody_holds_die() -> None:
    gc.collect()
    before = set(uop._nodes)
    node = (axis("g8", 31) * 17 + 3).cast(F)
    assert set(uop._nodes) - before
    assert node.bounds and node.ranges and node.shape == ()
    watch = weakref.ref(node)
    del node
    gc.collect()  # a RANGE is among its own ranges
    assert watch() is None and not set(uop._nodes) - before


def test_a_deep_graph() -> None:
    deep = chain(DEEP)
    g0 = axis("g0", 10)
    assert deep.shape == () and deep.bounds == (DEEP // 2, DEEP // 2 + 9 * (DEEP // 2 + 1))
    assert deep.ranges == {g0} and len(deep.toposort()) == DEEP + 4 - 1
    assert deep.substitute({g0: UOp.index(2)}).bounds == (DEEP // 2 + 2 * (DEEP // 2 + 1),) * 2
    watch = weakref.ref(deep.src[0].src[0])
    del deep
    gc.collect()
    assert watch() is None


def test_sources_come_first_and_once() -> None:
    for sink in samples.KERNELS.values():
        order = list(sink.toposort())
        place = {n: i for i, n in enumerate(order)}
        assert len(place) == len(order) and order[-1] is sink
        assert all(place[s] < place[n] for n in order for s in n.src)
    whole = sink.toposort()
    gate = sink.toposort(lambda n: n.op is not Ops.END)
    assert list(gate) == [*sink.src, sink] and len(whole) > 2


def test_the_nodes_of_a_kernel_are_stored_until_it_dies() -> None:
    kernel = UOp.sink((axis("g8", 31) * 17 + 3).cast(F))
    nodes = kernel.toposort()
    assert [*nodes][-1] is kernel and [*nodes] == [*kernel.toposort(lambda _: True)]
    nodes.clear()  # each caller has its own
    assert len(kernel.toposort()) > 1
    watch = weakref.ref(kernel.src[0])
    del kernel
    gc.collect()
    assert watch() is None


def test_ranges_are_what_is_open() -> None:
    g0, r0, f0 = axis("g0", 2), axis("r0", 3), axis("f0", 4)
    value = samples.load(param(1, 99), g0 * 12 + r0 * 4 + f0)
    assert value.ranges == {g0, r0, f0}
    assert reduced(Ops.ADD, value, r0).ranges == {g0, f0}
    staged = samples.stage("s", (4,), value, f0)
    assert staged.ranges == {g0, r0} and closed(staged) == (f0,)
    assert samples.at(staged, r0).ranges == {g0, r0}
    for sink in samples.KERNELS.values():
        assert sink.ranges == frozenset()


def test_substitution_keeps_lists_of_ranges() -> None:
    r0, n0 = axis("r0", 12), axis("n0", 4)
    value = reduced(Ops.ADD, samples.load(param(1, 12), r0), r0)
    outer = axis("r1", 3)
    split = value.substitute({r0: outer * 4 + n0})
    assert split.src[1:] == (n0, outer) and split.ranges == frozenset()
    assert value.substitute({r0: UOp.index(3)}).src[1:] == ()
    assert value.substitute({axis("r9", 2): n0}) is value


def test_substitution_is_once_and_together() -> None:
    a, b = axis("g0", 4), axis("g1", 4)
    assert (a + b * 2).substitute({a: b, b: a}) is b + a * 2


def test_gates() -> None:
    i = axis("g0", 9)
    valid = i < 4
    assert split_gate(gated(i, valid)) == (i, valid) and split_gate(i) == (i, None)
    assert gated(i, UOp.const(dtypes.bool, True)) is i
    assert gated(i, UOp.const(dtypes.bool, False)) is invalid()


def test_leaves_of_several_roots() -> None:
    sinks = list(samples.KERNELS.values())
    params = list(leaves(sinks, Ops.PARAM))
    assert len(params) == len(set(params)) and set(params) >= set(leaves(sinks[:1], Ops.PARAM))


def test_operators_are_the_ops_that_people_mean() -> None:
    """A constant stands on the right; one that is subtracted is added with its sign turned."""
    x, n = UOp(Ops.VAR, F, (), ("x", 0, 9)), UOp(Ops.VAR, dtypes.int32, (), ("n", 0, 9))
    y = x.like(3.0)
    assert x - 1.0 is x.alu(Ops.ADD, x.like(-1.0)) and n - 1 is n + -1
    assert 1.0 - x is (-x).alu(Ops.ADD, x.like(1.0)) and 1 - n is n * -1 + 1
    assert x - x is x + -x and n - n is n + n * -1
    small = UOp(Ops.VAR, dtypes.uint8, (), ("u", 0, 9))
    assert (small - 1).src[1].arg == 255
    assert 2.0 * x is x * 2.0 and 2.0 + x is x + 2.0
    assert x / y is x.alu(Ops.FDIV, y) and 2.0 / x is x.like(2.0).alu(Ops.FDIV, x)
    assert 1.0 / x is x.alu(Ops.RECIP) is x.recip()
    assert x.max(3.0) is x.alu(Ops.MAX, y) and x.min(y) is x.alu(Ops.MIN, y)
    assert n ^ 3 is n.alu(Ops.XOR, n.like(3)) and ~n is n.alu(Ops.NOT)
    assert n << 3 is n.alu(Ops.SHL, n.like(3)) and n >> n is n.alu(Ops.SHR, n)
    assert x.sqrt() is x.alu(Ops.SQRT) and x.trunc() is x.alu(Ops.TRUNC)
    assert x.exp2() is x.alu(Ops.EXP2) and x.log2() is x.alu(Ops.LOG2)
    assert x.sin() is x.alu(Ops.SIN) and x.cos() is x.alu(Ops.COS)


def test_equality_of_nodes_is_identity() -> None:
    """Nodes are keys and members; that their values are equal is a node too, of type bool."""
    x, y = UOp(Ops.VAR, F, (), ("x", 0, 9)), UOp(Ops.VAR, F, (), ("y", 0, 9))
    assert (x == y) is False and (x != y) is True and x in {x: 1} and y not in [x]
    assert x.eq(y) is x.alu(Ops.CMPEQ, y) and x.eq(1.0).dtype is dtypes.bool
    assert x.ne(y) is x.alu(Ops.CMPNE, y)


def test_the_ranges_of_a_product_of_tiles_in_lanes() -> None:
    """Its third operand is added: neither it nor another source is an axis of the product."""
    core = Device["CUDA:H100"].target.tensor_cores[0]
    row = axis("g0", 4).cast(core.operand)
    a, b = (UOp(Ops.BROADCAST, core.operand.vec(f.per_lane), (row,)) for f in (core.a, core.b))
    lanes = core.accumulator.vec(core.c.per_lane)
    added = UOp(Ops.BROADCAST, lanes, (UOp.const(core.accumulator, 0.0),))
    assert UOp(Ops.WMMA, lanes, (a, b, added), core).ranges == {axis("g0", 4)}
