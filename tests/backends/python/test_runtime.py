"""The emulator on hand-built statement trees, against numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from workbench.backends.python.python_device import EmulatorProgram, render
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp, gated

F32 = dtypes.float32
PIECES = [1 << 20, 64, 1]  # lanes at once: everything, pieces, one by one


@dataclass
class Memory:
    array: Any


def g(size: int, name: str) -> UOp:
    return UOp.range(size, name, AxisType.GLOBAL)


def r(size: int, name: str) -> UOp:
    return UOp.range(size, name, AxisType.REDUCE)


def u(size: int, name: str) -> UOp:
    return UOp.range(size, name, AxisType.UPCAST)


def n(size: int, name: str) -> UOp:
    return UOp.range(size, name, AxisType.UNROLL)


def l(size: int, name: str) -> UOp:  # noqa: E743  (the letter of LOCAL axes)
    return UOp.range(size, name, AxisType.LOCAL)


def fill(size: int, name: str) -> UOp:
    return UOp.range(size, name, AxisType.FILL)


def param(slot: int, size: int, dtype: DType = F32) -> UOp:
    return UOp(Ops.PARAM, dtype, (), (slot, size))


def define(name: str, *shape: int, dtype: DType = F32, space: str = "scratch") -> UOp:
    return UOp(Ops.DEFINE, dtype, (), Storage(name, shape, space))


def at(buffer: UOp, *indexes: UOp) -> UOp:
    return UOp(Ops.INDEX, buffer.dtype, (buffer, *indexes))


def load(buffer: UOp, *indexes: UOp) -> UOp:
    return UOp(Ops.LOAD, buffer.dtype, (at(buffer, *indexes),))


def store(target: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (target, value))


def accumulate(target: UOp, value: UOp, op: Ops = Ops.ADD) -> UOp:
    return UOp(Ops.ACCUMULATE, dtypes.void, (target, value), (op, None))


def reduce(op: Ops, value: UOp, *lanes: UOp) -> UOp:
    return UOp(Ops.REDUCE, value.dtype, (value, *lanes), op)


def loops(ranges: list[UOp], *children: UOp, chunked: bool = False) -> UOp:
    for i, axis in reversed(list(enumerate(ranges))):
        arg = "chunked" if chunked and i == 0 else None
        children = (UOp(Ops.LOOP, dtypes.void, (axis, *children), arg),)
    return children[0]


def block(*children: UOp, name: str = "kernel") -> UOp:
    return UOp(Ops.BLOCK, dtypes.void, children, KernelInfo(name, ()))


def run(tree: UOp, *arrays: Any, lanes: int = 1 << 20) -> None:
    EmulatorProgram(render(tree), lanes)([Memory(a) for a in arrays])


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def matmul(rows: int, inner: int, columns: int) -> UOp:
    g0, g1, r0 = g(rows, "g0"), g(columns, "g1"), r(inner, "r0")
    s = define("s", space="register")
    a, b = param(1, rows * inner), param(2, inner * columns)
    product = load(a, g0 * inner + r0) * load(b, r0 * columns + g1)
    return block(
        loops(
            [g0, g1],
            store(at(s), UOp.const(F32, 0.0)),
            loops([r0], accumulate(at(s), product)),
            store(at(param(0, rows * columns), g0 * columns + g1), load(s)),
            chunked=True,
        )
    )


@pytest.mark.parametrize("lanes", PIECES)
@pytest.mark.parametrize("shape", [(4, 5, 6), (7, 13, 1), (1, 1, 1), (17, 3, 19)])
def test_matmul(shape: tuple[int, int, int], lanes: int) -> None:
    rows, inner, columns = shape
    a, b = normal(rows, inner), normal(inner, columns)
    out = np.zeros(rows * columns, np.float32)
    run(matmul(*shape), out, a.ravel(), b.ravel(), lanes=lanes)
    np.testing.assert_allclose(out.reshape(rows, columns), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", PIECES)
def test_matmul_with_lanes(lanes: int) -> None:
    """Two UPCAST axes make a register tile; UNROLL lanes add into it."""
    rows, inner, columns = 6, 8, 15
    g0, g1, r0 = g(3, "g0"), g(5, "g1"), r(2, "r0")
    u0, u1, n0 = u(3, "u0"), u(2, "u1"), n(4, "n0")
    i, j, k = g0 * 2 + u1, g1 * 3 + u0, r0 * 4 + n0
    s = define("s", 2, 3, space="register")
    product = load(param(1, 48), i * inner + k) * load(param(2, 120), k * columns + j)
    tree = block(
        loops(
            [g0, g1],
            store(at(s, u1, u0), UOp.const(F32, 0.0)),
            loops([r0], accumulate(at(s, u1, u0), product)),
            store(at(param(0, 90), i * columns + j), load(s, u1, u0)),
        )
    )
    a, b = normal(rows, inner), normal(inner, columns)
    out = np.zeros(90, np.float32)
    run(tree, out, a.ravel(), b.ravel(), lanes=lanes)
    np.testing.assert_allclose(out.reshape(6, 15), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", PIECES)
def test_work_groups_share_staged_tiles(lanes: int) -> None:
    """Fissioned loops: an accumulator per work-item, tiles filled once per work-group."""
    size, tile, groups = 12, 4, 3
    g0, g1, r0, r1 = g(groups, "g0"), g(groups, "g1"), r(groups, "r0"), r(tile, "r1")
    l0, l1 = l(tile, "l0"), l(tile, "l1")
    f = [fill(tile, name) for name in ("a0", "a1", "b0", "b1")]
    s, left, right = (define(name, tile, tile) for name in ("s", "a", "b"))
    a, b = param(1, size * size), param(2, size * size)
    from_a = load(a, (g0 * tile + f[0]) * size + r0 * tile + f[1])
    from_b = load(b, (r0 * tile + f[2]) * size + g1 * tile + f[3])
    product = load(left, l0, r1) * load(right, r1, l1)
    target = at(param(0, size * size), (g0 * tile + l0) * size + g1 * tile + l1)
    tree = block(
        loops(
            [g0, g1],
            loops([l0, l1], store(at(s, l0, l1), UOp.const(F32, 0.0))),
            loops(
                [r0],
                loops([f[0], f[1]], store(at(left, f[0], f[1]), from_a)),
                loops([f[2], f[3]], store(at(right, f[2], f[3]), from_b)),
                loops([l0, l1], loops([r1], accumulate(at(s, l0, l1), product))),
            ),
            loops([l0, l1], store(target, load(s, l0, l1))),
        )
    )
    x, y = normal(size, size), normal(size, size)
    out = np.zeros(size * size, np.float32)
    run(tree, out, x.ravel(), y.ravel(), lanes=lanes)
    np.testing.assert_allclose(out.reshape(size, size), x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", PIECES)
def test_storage_is_reached_in_any_order(lanes: int) -> None:
    """A tile read backwards, transposed, at a computed and at a sequential place."""
    g0, f0, f1 = g(3, "g0"), fill(4, "f0"), fill(4, "f1")
    l0, l1, r0 = l(4, "l0"), l(4, "l1"), r(4, "r0")
    tile, s = define("tile", 4, 4), define("s", 4, 4)
    source, out = param(1, 48), param(0, 48)
    backwards = load(tile, l1, l0 * -1 + 3)
    along = load(tile, r0, r0) + load(tile, UOp.index(2), l1)
    tree = block(
        loops(
            [g0],
            loops([f0, f1], store(at(tile, f0, f1), load(source, g0 * 16 + f0 * 4 + f1))),
            loops([l0, l1], store(at(s, l0, l1), backwards)),
            loops([r0], loops([l0, l1], accumulate(at(s, l0, l1), along))),
            loops([l0, l1], store(at(out, g0 * 16 + l0 * 4 + l1), load(s, l0, l1))),
        )
    )
    x = normal(3, 4, 4)
    actual = np.zeros(48, np.float32)
    run(tree, actual, x.ravel(), lanes=lanes)
    trace = np.trace(x, axis1=1, axis2=2)[:, None, None]
    want = x.transpose(0, 2, 1)[:, ::-1] + trace + 4 * x[:, 2][:, None, :]
    np.testing.assert_allclose(actual.reshape(3, 4, 4), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", PIECES)
def test_softmax_row(lanes: int) -> None:
    rows, columns = 5, 7
    g0, k = g(rows, "g0"), UOp.range(columns, "k", AxisType.LOOP)
    r0, r1, j = r(columns, "r0"), r(columns, "r1"), fill(columns, "j")
    x, y = param(1, rows * columns), param(0, rows * columns)
    m, s = define("m", space="register"), define("s", space="register")
    e = define("e", columns)
    shifted = load(x, g0 * columns + j) - load(m)
    tree = block(
        loops(
            [g0],
            store(at(m), UOp.const(F32, -np.inf)),
            loops([r0], accumulate(at(m), load(x, g0 * columns + r0), Ops.MAX)),
            loops([j], store(at(e, j), (shifted * 1.4426950408889634).alu(Ops.EXP2))),
            store(at(s), UOp.const(F32, 0.0)),
            loops([r1], accumulate(at(s), load(e, r1))),
            loops([k], store(at(y, g0 * columns + k), load(e, k).alu(Ops.FDIV, load(s)))),
        )
    )
    data = normal(rows, columns)
    out = np.zeros(rows * columns, np.float32)
    run(tree, out, data.ravel(), lanes=lanes)
    want = np.exp(data) / np.exp(data).sum(1, keepdims=True)
    np.testing.assert_allclose(out.reshape(rows, columns), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "want"), [(Ops.ADD, np.sum), (Ops.MUL, np.prod), (Ops.MAX, np.max), (Ops.MIN, np.min)]
)
def test_lanes_are_reduced(op: Ops, want: Any) -> None:
    g0, n0, n1 = g(3, "g0"), n(4, "n0"), n(2, "n1")
    value = load(param(1, 24), g0 * 8 + n0 * 2 + n1)
    tree = block(loops([g0], store(at(param(0, 3), g0), reduce(op, value, n0, n1))))
    data, out = normal(3, 8), np.zeros(3, np.float32)
    run(tree, out, data.ravel())
    np.testing.assert_allclose(out, want(data, axis=1), rtol=1e-5)


def test_a_reduction_over_lanes_repeats_what_does_not_depend_on_them() -> None:
    g0, n0 = g(3, "g0"), n(4, "n0")
    value = reduce(Ops.ADD, load(param(1, 3), g0), n0)
    tree = block(loops([g0], store(at(param(0, 3), g0), value)))
    data, out = normal(3), np.zeros(3, np.float32)
    run(tree, out, data)
    np.testing.assert_allclose(out, 4 * data)


def test_gated_loads_give_zero_and_gated_stores_touch_nothing() -> None:
    g0 = g(6, "g0")
    inside = UOp.index(0).alu(Ops.CMPLT, g0) & (g0 < 5)
    value = load(param(1, 4), gated(g0 + -1, inside)) + 1.0
    tree = block(loops([g0], store(at(param(0, 4), gated(g0, g0 < 4)), value)))
    data, out = normal(4), np.full(4, 9, np.float32)
    run(tree, out, data)
    np.testing.assert_array_equal(out, 1 + np.concatenate([[0], data[:3]]).astype("f4"))
    closed = block(loops([g0], store(at(param(0, 4), gated(g0 + 99, g0 < 0)), value)))
    run(closed, out, data)
    np.testing.assert_array_equal(out, 1 + np.concatenate([[0], data[:3]]).astype("f4"))


def test_gather_with_an_index_from_memory() -> None:
    g0 = g(5, "g0")
    chosen = load(param(2, 5, dtypes.int32), g0).cast(dtypes.index)
    inside = (chosen < 4) & UOp.index(0).alu(Ops.CMPLE, chosen)
    value = load(param(1, 4), gated(chosen, inside))
    tree = block(loops([g0], store(at(param(0, 5), g0), value)))
    data, out = normal(4), np.full(5, 9, np.float32)
    run(tree, out, data, np.array([3, -1, 0, 4, 2], np.int32))
    np.testing.assert_array_equal(out, [data[3], 0, data[0], 0, data[2]])


@pytest.mark.parametrize("lanes", PIECES)
def test_an_index_out_of_bounds_names_kernel_buffer_index_and_position(lanes: int) -> None:
    g0, u0 = g(4, "g0"), u(3, "u0")
    reads = store(at(param(0, 12), g0 * 3 + u0), load(param(1, 11), g0 * 3 + u0))
    with pytest.raises(WorkbenchError) as caught:
        run(
            block(loops([g0], reads), name="copy_12"),
            *(np.zeros(12, np.float32), np.zeros(11, np.float32)),
            lanes=lanes,
        )
    assert str(caught.value).splitlines() == [
        "kernel copy_12 reads outside PARAM 1",
        "  because  the index is 11, and PARAM 1 has 11 elements of float32 there",
        "  where    g0 = 3, u0 = 2",
    ]


def test_negative_indexes_and_stores_are_checked_too() -> None:
    g0, r0 = g(4, "g0"), r(2, "r0")
    one = UOp.const(F32, 1.0)
    writes = loops([r0], loops([g0], store(at(param(0, 4), g0 * 2 + r0 * -1), one)))
    with pytest.raises(WorkbenchError, match="writes outside PARAM 0"):
        run(block(writes), np.zeros(4, np.float32))
    tile = define("tile", 3)
    reaches = loops([r0], loops([g0], store(at(tile, g0), one)))
    with pytest.raises(WorkbenchError, match="reaches outside tile(.|\n)*where    g0 = 3"):
        run(block(reaches))


def test_unwritten_storage_shows() -> None:
    g0 = g(4, "g0")
    tree = block(loops([g0], store(at(param(0, 4), g0), load(define("s")))))
    out = np.zeros(4, np.float32)
    run(tree, out)
    assert np.isnan(out).all()


def test_casts_saturate_and_integers_wrap() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2.9, -2.9, 2147483648], "f4")
    g0 = g(8, "g0")
    value = load(param(1, 8), g0).cast(dtypes.int32)
    out = np.zeros(8, np.int32)
    target = at(param(0, 8, dtypes.int32), g0)
    run(block(loops([g0], store(target, value))), out, values)
    top, low = 2**31 - 1, -(2**31)
    np.testing.assert_array_equal(out, [0, top, low, top, low, 2, -2, top])
    run(block(loops([g0], store(target, value + value))), out, values)
    np.testing.assert_array_equal(out, [0, -2, 0, -2, 0, 4, -4, -2])


def test_bits_and_axes_as_values() -> None:
    g0 = g(5, "g0")
    value = (g0.cast(F32) + 1.0).bitcast(dtypes.uint32)
    out = np.zeros(5, np.uint32)
    run(block(loops([g0], store(at(param(0, 5, dtypes.uint32), g0), value))), out)
    np.testing.assert_array_equal(out, np.arange(1, 6, dtype="f4").view("u4"))


def test_a_kernel_without_loops() -> None:
    zero = UOp.index(0)
    value = load(param(1, 1), zero) * 2.0
    out = np.zeros(1, np.float32)
    run(block(store(at(param(0, 1), zero), value)), out, np.array([21], np.float32))
    assert out[0] == 42


def test_deep_expressions_do_not_recurse() -> None:
    g0 = g(3, "g0")
    value = load(param(1, 3), g0)
    for _ in range(5000):
        value = value + 1.0
    out = np.zeros(3, np.float32)
    run(block(loops([g0], store(at(param(0, 3), g0), value))), out, np.zeros(3, np.float32))
    np.testing.assert_array_equal(out, 5000)


def test_a_bound_program_runs_again() -> None:
    a, b, out = normal(16), normal(16), Memory(np.zeros(16, np.float32))
    again = EmulatorProgram(render(matmul(4, 4, 4))).bind([out, Memory(a), Memory(b)])
    for _ in range(2):
        again()
        want = a.reshape(4, 4) @ b.reshape(4, 4)
        np.testing.assert_allclose(out.array.reshape(4, 4), want, rtol=1e-5, atol=1e-5)
        a *= 2


def test_the_source_is_the_tree_to_read() -> None:
    source = render(matmul(4, 5, 6))
    assert source.name == "kernel" and source.language == "workbench IR"
    assert source.params == ((F32, 24), (F32, 20), (F32, 30))
    assert source.launch.steps is None and source.scratch_bytes == 0
    assert "for r0 in 5" in source.text
    unused = render(block(store(at(param(1, 1), UOp.index(0)), UOp.const(F32, 1.0))))
    assert unused.params == ((dtypes.void, 0), (F32, 1))


def test_what_cannot_run_says_so() -> None:
    source = render(matmul(2, 2, 2))
    four = Memory(np.zeros(4, np.float32))
    with pytest.raises(DeviceError, match="takes 3 buffers, not 2"):
        EmulatorProgram(source)([four, four])
    with pytest.raises(DeviceError, match="buffer 1 is 3 x float32"):
        EmulatorProgram(source)([four, Memory(np.zeros(3, np.float32)), four])
    with pytest.raises(DeviceError, match="buffer 2 is 4 x float64"):
        EmulatorProgram(source)([four, four, Memory(np.zeros(4))])
    with pytest.raises(CompileError, match="CONST is not a statement"):
        EmulatorProgram(render(block(UOp.index(1))))
    stray = store(at(param(0, 4), g(4, "g0")), UOp.const(F32, 1.0))
    with pytest.raises(WorkbenchError, match="axis g0 is used outside its loop"):
        EmulatorProgram(render(block(stray)))([four])
