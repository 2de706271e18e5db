"""The LLVM renderer: what the text says, and that programs of loops compute what they say."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest

from tests.backends.linear import (
    TARGET,
    Array,
    at,
    axis,
    begin,
    broadcast,
    buffer_of,
    constant_lanes,
    each,
    end,
    is_c,
    load,
    load_from,
    param,
    poisoned,
    program,
    put,
    register,
    render,
    run,
    scratch,
    source_of,
    store,
)
from tests.support import ROOT
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

F = dtypes.float32
GOLDEN = ROOT / "tests" / "backends" / "golden"


def matmul(n: int, rows: int = 2, lanes: int = 8) -> list[UOp]:
    """Return the statements of relu(a @ b), `rows` x `lanes` results at a time."""
    g0, g1 = axis("g0", n // rows), axis("g1", n // lanes)
    r0 = axis("r0", n, AxisType.REDUCE)
    out, a, b = (param(slot, F, n * n) for slot in range(3))
    sums = [register("s", F.vec(lanes), row * lanes) for row in range(rows)]
    zero = UOp.const(F.vec(lanes), 0.0)
    inner = []
    for row, total in enumerate(sums):
        left = broadcast(load_from(at(a, g0 * (rows * n) + r0 + row * n)), lanes)
        right = load_from(at(b, r0 * n + g1 * lanes), lanes)
        inner.append(put(total, UOp(Ops.FMA, total.dtype, (left, right, total))))
    stores = [
        store(
            at(out, g0 * (rows * n) + g1 * lanes + row * n),
            UOp(Ops.MAX, total.dtype, (total, zero)),
        )
        for row, total in enumerate(sums)
    ]
    start = [put(total, zero) for total in sums]
    return [
        begin(g0, "chunked"), begin(g1), *start, begin(r0), *inner, end(r0), *stores,
        end(g1), end(g0),
    ]  # fmt: skip


def test_golden_matmul(request: pytest.FixtureRequest) -> None:
    text = source_of(*matmul(16), name="matmul_relu").text
    assert text.count("\n") <= 80
    assert text == (GOLDEN / "matmul_relu.ll").read_text(encoding="utf-8")


def test_text_is_the_same_every_time() -> None:
    assert source_of(*matmul(16)).text == source_of(*matmul(16)).text


def test_source_says_what_a_runtime_needs() -> None:
    source = source_of(*matmul(16), name="mm")
    assert (source.name, source.language) == ("mm", "LLVM IR")
    assert source.params == ((F, 256),) * 3
    assert (source.launch.steps, source.scratch_bytes) == (8, 0)
    assert str(source) == source.text


def test_matmul() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    actual = run(source_of(*matmul(32)), poisoned(1024).reshape(32, 32), a, b)
    np.testing.assert_allclose(actual, np.maximum(a @ b, 0), atol=1e-5)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 3])
def test_vector_add(lanes: int) -> None:
    size = 96
    over, index = each(size, lanes)
    a, b = (load_from(at(param(slot, F, size), index), lanes) for slot in (1, 2))
    source = source_of(
        begin(over, "chunked"), store(at(param(0, F, size), index), a + b), end(over)
    )
    x, y = np.arange(size, dtype=np.float32), np.ones(size, np.float32)
    np.testing.assert_array_equal(run(source, poisoned(size), x, y), x + 1)


def test_slices_together_are_the_whole() -> None:
    over, index = each(40, 4)
    value = load_from(at(param(1, F, 40), index), 4) + load_from(at(param(1, F, 40), index), 4)
    source = source_of(begin(over, "chunked"), store(at(param(0, F, 40), index), value), end(over))
    program = load(source)
    data = np.arange(40, dtype=np.float32)
    buffers = [buffer_of(poisoned(40)), buffer_of(data)]
    pointers = (ctypes.c_uint64 * 2)(*[b.address for b in buffers])
    for low, high in ((3, 3), (5, 2), (7, 10), (0, 4), (4, 7)):
        program._kernel(ctypes.addressof(pointers), low, high)
        if (low, high) == (7, 10):
            assert buffers[0].array[:28].tolist() == [77] * 28
    np.testing.assert_array_equal(buffers[0].array, 2 * data)


def test_registers_of_nested_loops() -> None:
    """total[i] = sum over j of (sum over k of x[i, j, k]) squared, and a running count."""
    ni, nj, nk = 3, 4, 5
    i, j = axis("g0", ni), axis("r0", nj, AxisType.REDUCE)
    k = axis("r1", nk, AxisType.REDUCE)
    outer, inner, steps = (register("a", F), register("b", F), register("n", dtypes.int32))
    x = load_from(at(param(1, F, ni * nj * nk), i * (nj * nk) + j * nk + k))
    zero, one = UOp.const(F, 0.0), UOp.const(dtypes.int32, 1)
    source = source_of(
        put(steps, UOp.const(dtypes.int32, 0)),
        begin(i, "chunked"),
        put(outer, zero),
        begin(j),
        put(inner, zero),
        begin(k),
        put(inner, inner + x),
        put(steps, steps + one),
        end(k),
        put(outer, outer + inner * inner),
        end(j),
        store(at(param(0, F, ni), i), outer),
        store(at(param(2, dtypes.int32, ni), i), steps),
        end(i),
    )
    data = np.arange(ni * nj * nk, dtype=np.float32).reshape(ni, nj, nk)
    buffers = [buffer_of(poisoned(ni)), buffer_of(data), Buffer("LLVM", dtypes.int32, ni)]
    load(source).bind(buffers)()
    np.testing.assert_array_equal(buffers[0].array, (data.sum(2) ** 2).sum(1))
    if is_c(source):
        return
    assert source.text.count("phi <") == 0
    # `a` and `b` start anew in each step of g0 and r0: only where they go round is a phi.
    phis = [line.split()[0] for line in source.text.splitlines() if "phi float" in line]
    assert phis == ["%a_0", "%b_0"]


def test_a_loop_that_comes_twice_and_one_after_it() -> None:
    """Two loops over one axis; what the first left in a register is read by the second."""
    over = axis("r0", 6, AxisType.REDUCE)
    total = register("s", F)
    value = load_from(at(param(1, F, 6), over))
    source = source_of(
        put(total, UOp.const(F, 0.0)),
        begin(over),
        put(total, total + value),
        end(over),
        begin(over),
        store(at(param(0, F, 6), over), value * total),
        end(over),
    )
    data = np.arange(6, dtype=np.float32)
    actual = run(source, poisoned(6), data)
    np.testing.assert_array_equal(actual, data * data.sum())
    assert is_c(source) or "for_r0:" in source.text and "for_r0.2:" in source.text
    assert source.launch.steps is None


@pytest.mark.parametrize("stack_bytes", [0, 64 << 10])
def test_scratch_on_the_stack_and_from_the_pool(stack_bytes: int) -> None:
    """Reverse by way of two arrays in scratch memory, one of bools."""
    size = 24
    fill, drain = axis("f0", size, AxisType.FILL), axis("g0", size)
    storage, flags = scratch("kept", F, 4, 6), scratch("flags", dtypes.bool, size)
    x = load_from(at(param(1, F, size), fill))
    after = UOp(Ops.AFTER, F, (storage, store(at(storage, fill), x)))
    back = at(after, drain * -1 + (size - 1))
    flag = load_from(at(flags, drain * -1 + (size - 1)))
    value = flag.where(load_from(back), UOp.const(F, -1.0))
    linear = program(
        begin(fill),
        store(at(storage, fill), x),
        store(at(flags, fill), UOp.const(F, 5.0) < x),
        end(fill),
        begin(drain),
        store(at(param(0, F, size), drain), value),
        end(drain),
    )
    source = render(linear, Target("LLVM", stack_bytes=stack_bytes))
    assert source.scratch_bytes == (0 if stack_bytes else 128 + 64)
    assert is_c(source) or ("alloca" in source.text) == bool(stack_bytes)
    data = np.arange(size, dtype=np.float32)
    want = np.where(data > 5, data, -1)[::-1]
    np.testing.assert_array_equal(run(source, poisoned(size), data), want)


def test_scratch_is_aligned_where_that_can_be_proved() -> None:
    over = axis("g0", 4)
    storage = scratch("kept", F, 64)
    even, odd = (load_from(at(storage, over * 16 + 8), 8), load_from(at(storage, over * 3), 8))
    source = source_of(
        store(at(storage, 0), UOp.const(F, 1.0)),
        begin(over),
        store(at(param(0, F, 32), over * 8), even + odd),
        end(over),
    )
    loads = [line for line in source.text.splitlines() if "load <8" in line]
    assert [line.rsplit("align ")[1] for line in loads] == ["32", "4"]


@pytest.fixture
def fence() -> Iterator[Array]:
    """A page of floats between two pages that cannot be touched."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    protect = libc.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(start, page, 0) == 0 and protect(start + 2 * page, page, 0) == 0
    yield np.frombuffer(memory, np.uint8)[page : 2 * page]
    assert protect(start, 3 * page, 3) == 0


class Fenced:
    """A stand-in for a Buffer whose memory is chosen by the test."""

    def __init__(self, array: Array):
        self.array, self.size = array, array.size
        self.dtype = dtypes.from_numpy(array.dtype)
        self.address = int(array.ctypes.data)


needs_mprotect = pytest.mark.skipif(os.name != "posix", reason="mprotect is POSIX")


@needs_mprotect
@pytest.mark.parametrize("dtype", [F, dtypes.float64, dtypes.int8, dtypes.bool], ids=str)
@pytest.mark.parametrize("size", [1, 5, 13])
def test_masked_lanes_touch_no_memory(fence: Array, dtype: DType, size: int) -> None:
    """out[i] = in[i - 3] where that is inside, eight lanes at a time, beside a fence."""
    lanes, shift, total = 8, -3, 24
    over, index = each(total, lanes)
    numbers = broadcast(index, lanes) + constant_lanes(dtypes.index, *range(shift, lanes + shift))
    bound = UOp.const(dtypes.index.vec(lanes), size)
    inside = (UOp.const(bound.dtype, -1) < numbers) & (numbers < bound)
    value = load_from(at(param(1, dtype, size), index + shift), lanes, inside)
    source = source_of(
        begin(over, "chunked"), store(at(param(0, dtype, total), index), value), end(over)
    )
    assert is_c(source) or "masked.load" in source.text
    for end_of_page in (False, True):
        view = fence.view(dtype.numpy)
        data = view[-size:] if end_of_page else view[:size]
        data[:] = np.arange(1, size + 1)
        out = buffer_of(poisoned(total, dtype))
        load(source)([out, Fenced(data)])  # type: ignore[list-item]
        want = np.zeros(total, dtype.numpy)
        want[-shift : size - shift] = data
        np.testing.assert_array_equal(out.array, want)


@needs_mprotect
@pytest.mark.parametrize("lanes", [1, 4, 32])
def test_a_false_condition_touches_no_memory(fence: Array, lanes: int) -> None:
    """The first and last steps lie on the forbidden pages; no branch, but no access either."""
    total = 6 * lanes
    over, index = each(total, lanes)
    inside = (UOp.index(0) < over) & (over < UOp.index(5))
    place = param(1, F, 4 * lanes)
    value = load_from(at(place, index + -lanes), lanes, inside)
    source = source_of(
        begin(over, "chunked"), store(at(param(0, F, total), index), value), end(over)
    )
    if not is_c(source):
        assert "select i1" in source.text and source.text.count("br i1") == 2
    for end_of_page in (False, True):
        view = fence.view(np.float32)
        data = view[-4 * lanes :] if end_of_page else view[: 4 * lanes]
        data[:] = np.arange(1, 4 * lanes + 1)
        out = buffer_of(poisoned(total))
        load(source)([out, Fenced(data)])  # type: ignore[list-item]
        want = np.concatenate([np.zeros(lanes), data, np.zeros(lanes)])
        np.testing.assert_array_equal(out.array, want)


def test_bool_memory_is_a_byte_that_is_zero_or_one() -> None:
    over, index = each(16, 8)
    x = load_from(at(param(1, dtypes.bool, 16), index), 8)
    flipped = x.alu(Ops.NOT)
    source = source_of(begin(over), store(at(param(0, dtypes.bool, 16), index), flipped), end(over))
    data = np.array([0, 1, 2, 255] * 4, np.uint8).view(np.bool_)
    out = Buffer("LLVM", dtypes.bool, 16)
    operand = Buffer("LLVM", dtypes.bool, 16)
    operand.array.view(np.uint8)[:] = data.view(np.uint8)
    load(source)([out, operand])
    assert out.array.view(np.uint8).tolist() == [1, 0, 0, 0] * 4


def test_constant_offsets_share_an_address() -> None:
    over, index = each(32, 4)
    x = param(1, F, 32)
    near = [load_from(at(x, index + n)) for n in (0, 1, 2)]
    source = source_of(
        begin(over), store(at(param(0, F, 8), over), near[0] + near[1] + near[2]), end(over)
    )
    text = source.text
    assert "add i64 %idx0" not in text
    assert text.count("ptr %p1, i64 %idx0") == 1
    assert "ptr %p1_at0, i64 1" in text and "ptr %p1_at0, i64 2" in text


def test_an_address_that_may_be_outside_promises_nothing() -> None:
    over, index = each(8)
    inside = UOp.index(0) < over
    value = load_from(at(param(1, F, 8), index + -1), 1, inside)
    text = source_of(begin(over), store(at(param(0, F, 8), index), value), end(over)).text
    assert "getelementptr float, ptr %p1_at0, i64 -1" in text


def test_names_that_clash_or_are_odd() -> None:
    over = axis("t0", 4)
    storage = scratch("p0", F, 4)
    value = load_from(at(param(1, F, 4), over))
    source = source_of(
        begin(over),
        store(at(storage, over), value),
        store(at(param(0, F, 4), over), load_from(at(storage, over)) + value),
        end(over),
        name='odd "näme"\n\\ 1',
    )
    data = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(source, poisoned(4), data), 2 * data)


def test_a_slot_that_is_never_touched_is_void() -> None:
    statement = store(at(param(2, F, 1), 0), UOp.const(F, 3.0))
    source = source_of(statement)
    assert source.params == ((dtypes.void, 0), (dtypes.void, 0), (F, 1))
    buffers = [Buffer("LLVM", F, 1) for _ in range(3)]
    load(source)(buffers)
    assert buffers[2].array[0] == 3


def test_an_op_without_an_instruction_is_told() -> None:
    value = load_from(at(param(1, F, 1), 0)).alu(Ops.EXP2)
    with pytest.raises(CompileError, match="no instruction for EXP2"):
        source_of(store(at(param(0, F, 1), 0), value))


def test_a_register_without_a_value_is_told() -> None:
    with pytest.raises(CompileError, match="before it has a value"):
        source_of(store(at(param(0, F, 1), 0), register("s", F)))


def test_loops_must_end_in_order() -> None:
    a, b = axis("g0", 2), axis("g1", 2)
    with pytest.raises(CompileError, match="the loop over g1 is not the one that ends"):
        source_of(begin(a), begin(b), end(a), end(b))


def test_inner_loop_of_a_matmul_is_vector_multiply_adds() -> None:
    assembly = load(source_of(*matmul(64))).assembly
    if "vfmadd" not in assembly:
        pytest.skip("no FMA instructions on this machine")
    blocks = assembly.split(".LBB0_")
    inner = max(blocks, key=lambda block: block.count("vfmadd"))
    assert inner.count("vfmadd") == 2 and "ps" in inner
    assert TARGET.vector_bytes != 32 or "ymm" in inner
    assert "rsp" not in inner, "nothing is spilled"
