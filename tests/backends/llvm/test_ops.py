"""Each elementwise op, cast and lane op in machine code, against the op table's meaning."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from tests.backends.linear import (
    Array,
    at,
    begin,
    broadcast,
    constant_lanes,
    each,
    elementwise,
    end,
    load_from,
    param,
    poisoned,
    program_of,
    run,
    source_of,
    store,
)
from tests.support import ROOT, by_rows
from workbench.backends.device import Device
from workbench.backends.llvm_ir.instructions import SUPPORTED, constant
from workbench.backends.native.jit import host
from workbench.base.dtypes import Const, DType, dtypes, saturate
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import CASTS, COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp

FLOATS = (dtypes.float32, dtypes.float64)
SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
INTEGERS = SIGNED + UNSIGNED
ALL = (*FLOATS, *INTEGERS, dtypes.bool)
_DIVISIONS = (Ops.CDIV, Ops.CMOD)  # may trap: tested in a process of their own
_BITS = (Ops.AND, Ops.OR, Ops.XOR)


def domain(op: Ops) -> Sequence[DType]:
    """Return the dtypes that `op` is defined for."""
    if OPS[op].dtype == "float":
        return FLOATS
    if op in (*_DIVISIONS, Ops.SHL, Ops.SHR):
        return INTEGERS
    if op is Ops.NEG:
        return FLOATS + INTEGERS
    return INTEGERS + (dtypes.bool,) if op in (*_BITS, Ops.NOT) else ALL


def edges(dtype: DType) -> list[Const]:
    """Return values at which an implementation is likely to be wrong."""
    if dtype.is_bool:
        return [False, True]
    if dtype.is_float:
        tiny, huge = (1e-45, 3e38) if dtype.bits == 32 else (5e-324, 1e308)
        special = [math.nan, math.inf, -math.inf, tiny, -tiny, huge, -huge]
        return [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, *special]
    low, high = int(dtype.min), int(dtype.max)
    return [low, low + 1, -1 if low else 3, 0, 1, 2, 7, high - 1, high]


def pairs(op: Ops, dtype: DType) -> list[Array]:
    """Return arrays of arguments that pair every edge with every other."""
    values = np.array(edges(dtype), dtype.numpy)
    grids = np.meshgrid(*[values] * (OPS[op].arity or 1))
    columns = [grid.reshape(-1) for grid in grids]
    if op in (Ops.SHL, Ops.SHR):
        keep = (columns[1] >= 0) & (columns[1] < dtype.bits)
        columns = [c[keep] for c in columns]
    if op in _DIVISIONS:
        columns = [c[columns[1] != 0] for c in columns]
    short = -columns[0].size % 16
    return [np.concatenate([c, np.resize(c, short)]) for c in columns]


def check(op: Ops, dtype: DType, lanes: int) -> None:
    """Compare one op on one dtype with the table."""
    meaning = OPS[op].python
    assert meaning is not None
    if op is Ops.WHERE:
        sources: Sequence[DType] = (dtypes.bool, dtype, dtype)
        data = pairs(Ops.FMA, dtype)
        data[0] = np.arange(data[0].size) % 3 == 0
    else:
        sources = (dtype,) * (OPS[op].arity or 1)
        data = pairs(op, dtype)
    result = dtypes.bool if op in COMPARE else dtype
    size = data[0].size
    kernel = elementwise(op, result, sources, size, lanes)
    actual = run(kernel, poisoned(size, result), *data)
    want = np.asarray(meaning(*data)).astype(result.numpy)
    if op is Ops.FMA and dtype.is_float:  # rounded once here, twice in the table
        rows = np.isfinite(want) & np.isfinite(actual)
        np.testing.assert_allclose(actual[rows], want[rows], rtol=1e-6, atol=1e-44)
        return
    np.testing.assert_array_equal(actual, want)
    if op is Ops.NEG and dtype.is_float:
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(want))


_OPS = sorted(SUPPORTED - CASTS - set(_DIVISIONS), key=lambda op: op.name)


@by_rows("lanes", [1, 8, 16])
@by_rows("op", _OPS, ids=lambda op: op.name)
def test_op_means_what_the_table_says(op: Ops, lanes: int) -> None:
    for dtype in domain(op):
        check(op, dtype, lanes)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainder_of_all_quotients(dtype: DType, lanes: int) -> None:
    """Also of those that overflow, in some lanes of a vector or in all."""
    rng, bits = np.random.default_rng(0), np.dtype(f"u{dtype.itemsize}")
    some = rng.integers(0, np.iinfo(bits).max, (2, 4000), bits).view(dtype.numpy)
    info = np.finfo(dtype.numpy)
    top = np.full(16, info.max) * (1 - rng.random(16)), info.tiny * rng.random(16)
    a, b = np.concatenate([some, np.array(top).astype(dtype.numpy)], axis=1)
    kernel = elementwise(Ops.FMOD, dtype, [dtype] * 2, a.size, lanes)
    actual, want = (run(kernel, poisoned(a.size, dtype), a, b), OPS[Ops.FMOD].python(a, b))  # type: ignore[misc]
    np.testing.assert_array_equal(actual, want)
    numbers = want == want
    assert (np.signbit(actual) == np.signbit(want))[numbers].all()


@pytest.mark.parametrize("op", _DIVISIONS, ids=lambda op: op.name)
def test_division_never_traps(op: Ops) -> None:
    script = (
        "from tests.backends.llvm.test_ops import *\n"
        f"for dtype in INTEGERS:\n for lanes in (1, 8): check({op!r}, dtype, lanes)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", ALL, ids=str)
def test_cast(source: DType, lanes: int) -> None:
    data = pairs(Ops.CAST, source)
    for result in ALL:
        kernel = elementwise(Ops.CAST, result, [source], data[0].size, lanes)
        actual = run(kernel, poisoned(data[0].size, result), data[0])
        np.testing.assert_array_equal(actual, converted(data[0], source, result))


def converted(values: Array, source: DType, result: DType) -> Array:
    """Return what a cast means: float to integer truncates and saturates."""
    if source.is_float and result.is_int:
        return np.array([saturate(float(v), result) for v in values], result.numpy)
    with np.errstate(all="ignore"):
        return values.astype(result.numpy)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (dtypes.float32, dtypes.int32),
        (dtypes.uint64, dtypes.float64),
        (dtypes.int16, dtypes.uint16),
        (dtypes.bool, dtypes.uint8),
        (dtypes.uint8, dtypes.bool),
    ],
    ids=str,
)
def test_bitcast(source: DType, result: DType) -> None:
    data = pairs(Ops.CAST, source)[0]
    if result.is_bool:
        data = data % 2
    kernel = elementwise(Ops.BITCAST, result, [source], data.size, 8)
    actual = run(kernel, poisoned(data.size, result), data)
    assert actual.tobytes() == data.view(result.numpy).tobytes()


@by_rows("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN], ids=lambda o: o.name)
@by_rows("lanes", [2, 3, 5, 8, 12, 24, 32])
def test_lanes_combine(op: Ops, lanes: int) -> None:
    for dtype in (dtypes.float32, dtypes.int32, dtypes.uint8, dtypes.bool):
        data = np.arange(1, lanes + 1).astype(dtype.numpy)
        data[0] = 0 if op is Ops.MIN else 1
        value = load_from(at(param(1, dtype, lanes), 0), lanes)
        whole = UOp(Ops.HREDUCE, dtype, (value,), op)
        kernel = source_of(store(at(param(0, dtype, 1), 0), whole))
        want = data[:1]
        for lane in range(1, lanes):
            want = np.asarray(OPS[op].python(want, data[lane : lane + 1]))  # type: ignore[misc]
        actual = run(kernel, poisoned(1, dtype), data)
        np.testing.assert_allclose(actual, want.astype(dtype.numpy), rtol=1e-5)


def test_combined_maximum_is_nan_wherever_a_nan_is() -> None:
    value = load_from(at(param(1, dtypes.float32, 8), 0), 8)
    whole = UOp(Ops.HREDUCE, dtypes.float32, (value,), Ops.MAX)
    kernel = source_of(store(at(param(0, dtypes.float32, 1), 0), whole))
    for lane in range(8):
        data = np.arange(8, dtype=np.float32)
        data[lane] = np.nan
        assert np.isnan(run(kernel, poisoned(1), data))


def test_stack_broadcast_extract_and_lanes() -> None:
    f = dtypes.float32
    x = load_from(at(param(1, f, 4), 0), 4)
    picked = [UOp(Ops.EXTRACT, f, (x,), lane) for lane in (2, 0, 3, 1)]
    turned = UOp(Ops.STACK, f.vec(4), tuple(picked))
    third = broadcast(picked[2], 4)
    value = turned + third + constant_lanes(f, 10.0, 20.0, 30.0, 40.0)
    kernel = source_of(store(at(param(0, f, 4), 0), value))
    actual = run(kernel, poisoned(4), np.array([1, 2, 3, 4], np.float32))
    assert actual.tolist() == [3 + 4 + 10, 1 + 4 + 20, 4 + 4 + 30, 2 + 4 + 40]


@pytest.mark.parametrize("result", INTEGERS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("source", FLOATS, ids=lambda dtype: dtype.name)
def test_a_vector_of_floats_becomes_integers_whole(source: DType, result: DType) -> None:
    """LLVM takes its own saturating conversion apart into lanes."""
    cast = elementwise(Ops.CAST, result, [source], 64, 8)
    if Device.DEFAULT == "LLVM":
        assert ".sat." not in cast.text
    special = [3.7, -3.7, -0.5, np.nan, np.inf, -np.inf, 1e30, -1e30]
    limits = [float(n) + d for n in (result.min, result.max) for d in (-1, -0.5, 0, 1)]
    data = np.resize(np.array([*special, *limits], source.numpy), 64)
    actual = run(cast, poisoned(64, result), data)
    np.testing.assert_array_equal(actual, cast_array(data, source, result))


@pytest.mark.parametrize("op", [Ops.MAX, Ops.MIN], ids=lambda op: op.name)
def test_extreme_with_a_constant_is_one_instruction_and_keeps_nan(op: Ops) -> None:
    f = dtypes.float32
    x = load_from(at(param(1, f, 8), 0), 8)
    value = UOp(op, f.vec(8), (x, UOp.const(f.vec(8), 1.5)))
    statement = store(at(param(0, f, 8), 0), value)
    data = np.array([np.nan, np.inf, -np.inf, 0, 1, 2, -0.0, 1.5], np.float32)
    actual = run(source_of(statement), poisoned(8), data)
    np.testing.assert_array_equal(actual, OPS[op].python(data, np.float32(1.5)))  # type: ignore[misc]
    assembly = program_of(statement).assembly
    if "vmovups" in assembly:
        assert f"v{op.name.lower()}ps" in assembly
        assert "cmpunord" not in assembly and "blend" not in assembly


def test_fused_multiply_add_is_fused() -> None:
    kernel = elementwise(Ops.FMA, dtypes.float32, [dtypes.float32] * 3, 8, 8)
    a = np.full(8, 1 + 2**-12, np.float32)
    actual = run(kernel, poisoned(8), a, a, np.full(8, -1, np.float32))
    exact = np.float32((1 + 2**-12) ** 2 - 1)
    if "+fma" in host().features.split(","):
        assert set(actual) == {exact}
    else:
        assert set(actual) <= {exact, a[0] * a[0] - np.float32(1)}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_constants_are_exact(dtype: DType) -> None:
    values = [*edges(dtype), 0.1, 1 / 3, 1e-5, 1e22, 123456.789, 2.0**-100, 1e7]
    statements = [
        store(at(param(0, dtype, len(values)), n), UOp.const(dtype, v))
        for n, v in enumerate(values)
    ]
    actual = run(source_of(*statements), poisoned(len(values), dtype))
    assert actual.tobytes() == np.array(values, dtype.numpy).tobytes()


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, dtypes.float32, "1.0"),
        (1e-05, dtypes.float64, "1.0e-05"),
        (0.1, dtypes.float32, "0x3FB99999A0000000"),
        (math.inf, dtypes.float32, "0x7FF0000000000000"),
        (-0.0, dtypes.float32.vec(4), "splat (float -0.0)"),
        (0.0, dtypes.float32.vec(4), "zeroinitializer"),
        (True, dtypes.bool, "true"),
        (200, dtypes.int8, "-56"),
    ],
)
def test_constant_text(value: Const, dtype: DType, text: str) -> None:
    assert constant(value, dtype) == text


def test_scalar_constants_widen_beside_vectors() -> None:
    over, index = each(16, 8)
    x = load_from(at(param(1, dtypes.int32, 16), index), 8)
    doubled = UOp(Ops.MUL, dtypes.int32.vec(8), (UOp.const(dtypes.int32, 2), x))
    small = UOp(Ops.CMPLT, dtypes.bool.vec(8), (x, UOp.const(dtypes.int32, 5)))
    value = UOp(Ops.WHERE, doubled.dtype, (small, doubled, UOp.const(dtypes.int32, -1)))
    out = store(at(param(0, dtypes.int32, 16), index), value)
    data = np.arange(16, dtype=np.int32)
    actual = run(source_of(begin(over), out, end(over)), poisoned(16, dtypes.int32), data)
    np.testing.assert_array_equal(actual, np.where(data < 5, 2 * data, -1))
