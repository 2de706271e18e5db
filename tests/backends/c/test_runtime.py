"""The C device: the same answers as LLVM's to the last bit, and what compilers are made to do."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.backends.linear import (
    Array,
    at,
    buffer_of,
    elementwise,
    load,
    load_from,
    param,
    poisoned,
    run,
    source_of,
    store,
)

# What pytest finds here by these names runs on the device C.
from tests.backends.llvm.test_ops import (  # noqa: F401
    _DIVISIONS,
    _OPS,
    ALL,
    domain,
    pairs,
    test_bitcast,
    test_combined_maximum_is_nan_wherever_a_nan_is,
    test_constants_are_exact,
    test_fused_multiply_add_is_fused,
    test_scalar_constants_widen_beside_vectors,
    test_stack_broadcast_extract_and_lanes,
)
from tests.backends.llvm.test_render import (  # noqa: F401
    fence,
    test_a_false_condition_touches_no_memory,
    test_a_loop_that_comes_twice_and_one_after_it,
    test_a_slot_that_is_never_touched_is_void,
    test_bool_memory_is_a_byte_that_is_zero_or_one,
    test_masked_lanes_touch_no_memory,
    test_matmul,
    test_names_that_clash_or_are_odd,
    test_registers_of_nested_loops,
    test_scratch_on_the_stack_and_from_the_pool,
    test_slices_together_are_the_whole,
)
from tests.support import LONG, ROOT
from tests.tools.compiler import needs_c
from workbench import Context, Tensor, explore
from workbench.backends.c import c_device as compiler
from workbench.backends.c.c_device import CProgram, compile_many, find_compiler, one_text
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.program.text import Source
from workbench.base.cache import cache_folder
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import install_command
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp

F = dtypes.float32
pytestmark = needs_c


@pytest.fixture(autouse=True)
def on_c() -> Iterator[None]:
    with Context(DEV="C"):
        yield


def add(size: int = 16) -> Source:
    return elementwise(Ops.ADD, F, [F, F], size, 8)


# the same as LLVM


def _operands(op: Ops, dtype: DType) -> tuple[list[DType], list[Array]]:
    if op is not Ops.WHERE:
        return [dtype] * (OPS[op].arity or 1), pairs(op, dtype)
    data = pairs(Ops.FMA, dtype)
    data[0] = np.arange(data[0].size) % 3 == 0
    return [dtypes.bool, dtype, dtype], data


@pytest.mark.parametrize("op", [*_OPS, *_DIVISIONS], ids=lambda op: op.name)
def test_op_is_the_same_as_llvms(op: Ops) -> None:
    jobs = []
    for dtype in domain(op):
        sources, data = _operands(op, dtype)
        result = dtypes.bool if op in COMPARE else dtype
        widths = (1, 8, 16) if LONG else (1, 16) if dtype is F else (16,)
        jobs += [(result, op, sources, data, lanes) for lanes in widths]
    _same_on_both(jobs)


@pytest.mark.parametrize("source", ALL, ids=str)
def test_cast_is_the_same_as_llvms(source: DType) -> None:
    data = pairs(Ops.CAST, source)
    widths = product(ALL, (1, 8))
    _same_on_both([(result, Ops.CAST, [source], data, n) for result, n in widths])


def _same_on_both(jobs: list[tuple[DType, Ops, list[DType], list[Array], int]]) -> None:
    """Compare kernels, each with its number of lanes; the C compiler is called once."""
    kernels = {}
    for device in ("C", "LLVM"):
        with Context(DEV=device):
            kernels[device] = [
                elementwise(op, result, sources, data[0].size, lanes)
                for result, op, sources, data, lanes in jobs
            ]
    compile_many(kernels["C"])
    for (result, op, sources, data, _), c, llvm in zip(
        jobs, kernels["C"], kernels["LLVM"], strict=True
    ):
        actual, want = (run(s, poisoned(data[0].size, result), *data) for s in (c, llvm))
        what = f"{op.name} {sources} -> {result}\n{c.text}"
        np.testing.assert_array_equal(actual, want, what)
        if result.is_float:
            numbers = ~np.isnan(want)
            np.testing.assert_array_equal(
                np.signbit(actual[numbers]), np.signbit(want[numbers]), what
            )


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN], ids=str)
def test_lanes_combine_in_the_same_order(op: Ops) -> None:
    """Halves with each other, then halves of that: so float sums are the same to the bit."""
    jobs = []
    for lanes in (2, 4, 8, 16, 32):
        for dtype in (F, dtypes.float64, dtypes.int32, dtypes.uint8, dtypes.bool):
            data = np.random.default_rng(lanes).standard_normal(lanes) * 4
            value = load_from(at(param(1, dtype, lanes), 0), lanes)
            whole = UOp(Ops.HREDUCE, dtype, (value,), op)
            statement = store(at(param(0, dtype, 1), 0), whole)
            with Context(DEV="LLVM"):
                want = source_of(statement)
            with np.errstate(all="ignore"):
                jobs.append((source_of(statement), want, data.astype(dtype.numpy), dtype))
    compile_many([job[0] for job in jobs])
    for c, llvm, data, dtype in jobs:
        actual, want = (run(s, poisoned(1, dtype), data).tobytes() for s in (c, llvm))
        assert actual == want


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", [F, dtypes.int8, dtypes.bool], ids=str)
def test_stores_behind_a_condition(dtype: DType, lanes: int) -> None:
    where = load_from(at(param(1, dtypes.bool, lanes), 0), lanes)
    value = load_from(at(param(2, dtype, lanes), 0), lanes)
    target = at(param(0, dtype, lanes), 0)
    statement = UOp(Ops.STORE, dtypes.void, (target, value, where))
    data = (np.arange(lanes) % 2 == 0).astype(dtype.numpy)
    for test in (np.arange(lanes) % 3 == 0, np.arange(lanes) % 3 != 0):
        before = np.zeros(lanes, dtype.numpy)
        actual = run(source_of(statement), before, test, data)
        np.testing.assert_array_equal(actual, np.where(test, data, before))


# loading and launching


def test_nothing_is_compiled_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_compiler", lambda: None)
    program = load(add(size=24))
    assert isinstance(program, CProgram) and not program.is_compiled
    buffers = [Buffer("C", F, 24) for _ in range(3)]
    with pytest.raises(DeviceError, match=re.escape(install_command("c"))):
        program(buffers)
    with pytest.raises(DeviceError, match="needs a C compiler"):
        _ = program.assembly


def test_without_a_compiler_the_source_can_be_read() -> None:
    script = (
        "from workbench import Device, Tensor, explore\n"
        "from workbench.backends.c import c_device as compiler\n"
        "compiler.zig_command = lambda: ()\n"
        "kernel = explore(Tensor([1.0, 2.0]) * 3).kernels[0]\n"
        "assert not Device.available('C')\n"
        "print(kernel.compile('C').source)"
    )
    env = {**os.environ, "PATH": "", "CC": "", "DEV": "LLVM"}
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert "* 3.0f" in process.stdout, process.stderr


def test_a_compiler_error_says_what_the_compiler_said() -> None:
    program = CProgram(Source("k", "C", "void k(void) { nonsense; }\n", ()))
    with pytest.raises(CompileError, match="nonsense") as caught:
        program([])
    assert caught.value.stage == "c"


def test_a_kernel_that_is_refused_among_many_is_the_one_named() -> None:
    bad = Source("bad", "C", "void bad(void **args, long lo, long hi) { wrong; }\n", ())
    with pytest.raises(CompileError, match="wrong") as caught:
        compile_many([add(40), bad, add(48)])
    assert "wrong" in str(caught.value.last_good) and "v0" not in str(caught.value)


def test_what_the_process_lacks_is_an_error() -> None:
    text = "void nowhere_2(void);\nvoid k(void) { nowhere_2(); }\n"
    with pytest.raises(CompileError):
        CProgram(Source("k", "C", text, ()))([])


def test_many_kernels_of_one_name_share_a_text() -> None:
    sources = [add(8 * n) for n in range(1, 6)]
    text, names = one_text([*sources, sources[0]])
    assert len(set(names)) == 6 and text.count("typedef float f32x8") == 1
    for n, program in enumerate(compile_many(sources), 1):
        data = np.arange(8 * n, dtype=np.float32)
        out = buffer_of(poisoned(8 * n))
        program([out, buffer_of(data), buffer_of(data)])
        np.testing.assert_array_equal(out.array, 2 * data)


def test_the_same_text_is_the_same_program() -> None:
    assert load(add()) is load(add()) is compile_many([add(), add()])[1]


def test_assembly_is_text() -> None:
    assembly = load(add()).assembly
    assert "ret" in assembly and "k:" in assembly


def test_a_second_session_finds_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dataclasses.replace(add(), text=add().text + "// found again\n")
    size = [buffer_of(np.ones(16, np.float32)) for _ in range(3)]
    CProgram(source)(size)

    def never(*given: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compiler.Compiler, "compile", never)
    CProgram(source)(size)


def test_a_damaged_object_is_compiled_again() -> None:
    source = dataclasses.replace(add(), text=add().text + "// damaged\n")
    before = set(_objects())
    data = [buffer_of(np.ones(16, np.float32)) for _ in range(3)]
    CProgram(source)(data)
    (path,) = set(_objects()) - before
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.warns(RuntimeWarning, match="damaged"):
        CProgram(source)(data)
    assert data[0].array.tolist() == [2.0] * 16
    assert path.read_bytes() == whole


def _objects() -> list[Path]:
    return list((cache_folder() / "objects").iterdir())


# finding a compiler


def _fake(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return str(path)


def test_cc_of_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = _fake(tmp_path, "gcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    c_compiler = find_compiler()
    assert c_compiler is not None and c_compiler.command == (gcc,)
    own = _fake(tmp_path, "mine")
    monkeypatch.setenv("CC", f"{own} -m64")
    c_compiler = find_compiler()
    assert c_compiler is not None and c_compiler.command == (own, "-m64")


def test_a_cc_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", 'gcc "-m64')
    assert not Device.available("C")
    with pytest.raises(DeviceError, match=r"\$CC cannot be read") as caught:
        find_compiler()
    assert "no closing quotation" in caught.value.because


def test_tcc_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").symlink_to(_fake(tmp_path, "tcc"))
    clang = _fake(tmp_path, "clang")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "tcc")
    c_compiler = find_compiler()
    assert c_compiler is not None and c_compiler.command == (clang,)


def test_ziglang_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    c_compiler = find_compiler()
    assert c_compiler is not None and c_compiler.is_zig and c_compiler.command[-1] == "cc"
    source = elementwise(Ops.MAX, F, [F, F], 16, 8)
    data = np.arange(16, dtype=np.float32)
    data[3] = np.nan
    actual = run(source, poisoned(16), data, data[::-1].copy())
    np.testing.assert_array_equal(actual, np.maximum(data, data[::-1]))


def test_a_compiler_that_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", _fake(tmp_path, "cc"))
    with pytest.raises(CompileError, match="wrote no output"):
        CProgram(dataclasses.replace(add(), text="// nothing\n"))(
            [Buffer("C", F, 16) for _ in range(3)]
        )


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint32"])
def test_an_integer_has_no_negative_zero(kind: str) -> None:
    """Not in a value, and not in a compiler that sees a float become an integer and back."""
    values = np.array([-0.4, 0.3, 2.5, -0.0, 0.0], np.float32)
    with Context(DEV="C"):
        whole = Tensor(values).realize().cast(kind).cast("float32")
        (answer,) = explore(1.0 / whole).kernels[0].run("C")
    assert np.asarray(answer).tolist() == [np.inf, np.inf, 0.5, np.inf, np.inf]
