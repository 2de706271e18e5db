"""Loading and launching: what is refused, what is shared, and how launches are cut."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.backends.linear import (
    at,
    axis,
    begin,
    buffer_of,
    elementwise,
    end,
    load_from,
    param,
    poisoned,
    put,
    register,
    run,
    source_of,
    store,
)
from tests.support import ROOT, calls_of
from workbench.backends.llvm.llvm_device import LLVMProgram, load
from workbench.backends.memory import Buffer
from workbench.backends.native import jit
from workbench.backends.native import program as native_program
from workbench.backends.program.text import Source
from workbench.base.cache import cache_folder, key_of
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

F = dtypes.float32


def add(size: int = 16) -> Source:
    return elementwise(Ops.ADD, F, [F, F], size, 8)


def counting(steps: int, work: int) -> Source:
    """Return a kernel whose every step takes about `work` multiply-adds in a row."""
    g0, r0 = axis("g0", steps), axis("r0", work, AxisType.REDUCE)
    total, half = register("s", F), load_from(at(param(1, F, 1), 0))
    return source_of(
        begin(g0, "chunked"),
        put(total, half),
        begin(r0),
        put(total, UOp(Ops.FMA, F, (total, half, half))),
        end(r0),
        store(at(param(0, F, steps), g0), total),
        end(g0),
        name="counting",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("define void @k(ptr %args", "expected"),
        ("define void @k() {\n  %x = add i64 %y, 1\n  ret void\n}", "undefined value"),
        ("define void @k() {\n  %x = add float 1.0, 1.0\n  ret void\n}", "operand type"),
        ("define i32 @k() {\n  ret void\n}", ""),
        ("define void @other() {\n  ret void\n}", "k"),
        ("declare void @nowhere_1()\ndefine void @k() {\n  call void @nowhere_1()\n"
         "  ret void\n}", ""),
        ('define void @k() {\n  call void asm "bad", ""()\n  ret void\n}', "asm"),
        ("define i32 @k() {\n  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
         "  ret i32 %x\n}\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "nvvm"),
        ("", "k"),
    ],
)  # fmt: skip
def test_what_llvm_refuses_is_an_error_and_not_the_end(text: str, because: str) -> None:
    with pytest.raises(CompileError) as caught:
        LLVMProgram(Source("k", "LLVM IR", text, ()))
    assert caught.value.stage == "llvm"
    assert because in caught.value.because
    size = np.ones(16, np.float32)
    assert run(add(), poisoned(16), size, size).tolist() == [2.0] * 16


def test_the_same_text_is_the_same_program() -> None:
    assert load(add()) is load(add())
    assert load(add()) is not load(add(32))


def test_programs_of_one_name_live_side_by_side() -> None:
    programs = [load(source_of(store(at(param(0, F, 1), 0), UOp.const(F, float(n)))))
                for n in range(5)]  # fmt: skip
    out = Buffer("LLVM", F, 1)
    for n, program in enumerate(programs):
        program([out])
        assert out.array[0] == n


def test_a_bound_launch_outlives_what_it_was_bound_from() -> None:
    data = np.arange(16, dtype=np.float32)
    out = buffer_of(poisoned(16))
    launch = LLVMProgram(add()).bind([out, buffer_of(data), buffer_of(data)])
    gc.collect()
    others = [buffer_of(poisoned(16)) for _ in range(50)]
    launch()
    np.testing.assert_array_equal(out.array, 2 * data)
    assert len(others) == 50


def test_buffers_that_do_not_fit_are_refused() -> None:
    program = load(add())
    fine = [Buffer("LLVM", F, 16) for _ in range(3)]
    with pytest.raises(DeviceError, match="takes 3 buffers, and was given 2"):
        program(fine[:2])
    with pytest.raises(DeviceError, match="argument 1 is float32\\[16\\]"):
        program([fine[0], Buffer("LLVM", F, 15), fine[2]])
    with pytest.raises(DeviceError, match="was given int32"):
        program([fine[0], fine[1], Buffer("LLVM", dtypes.int32, 16)])


def test_assembly_is_text() -> None:
    assembly = load(add()).assembly
    assert "ret" in assembly and "k:" in assembly


def test_short_kernels_become_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    program = LLVMProgram(counting(1000, 1))
    buffers = [Buffer("LLVM", F, 1000), buffer_of(np.ones(1, np.float32))]
    calls = count_calls(program, monkeypatch, step_s=1e-8)
    for _ in range(3):
        program(buffers)
    del calls[:]
    program(buffers)
    assert calls == [(0, 1000)]
    np.testing.assert_array_equal(buffers[0].array, 2)


def count_calls(
    program: LLVMProgram, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> list[tuple[int, int]]:
    """Note (lo, hi) of every call from now on; each step takes so long, by a clock of our own."""
    calls: list[tuple[int, int]] = []
    kernel = program._kernel
    now = 0.0

    def noted(arguments: int, low: int, high: int) -> None:
        nonlocal now
        kernel(arguments, low, high)
        now += step_s * (high - low)
        calls.append((low, high))

    program._kernel = noted
    clock = SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr(native_program, "time", clock)
    return calls


def test_long_kernels_are_cut_into_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that takes half a second, in parts that follow each other."""
    program = LLVMProgram(counting(400, 1000))
    buffers = [Buffer("LLVM", F, 400), buffer_of(np.full(1, 0.5, np.float32))]
    calls = count_calls(program, monkeypatch, step_s=0.5 / 400)
    program(buffers)
    assert [low for low, _ in calls[1:]] == [high for _, high in calls[:-1]]
    assert calls[0][0] == 0 and calls[-1][1] == 400
    assert len(calls) > 2
    longest_s = max(high - low for low, high in calls) * 0.5 / 400
    assert longest_s <= native_program.SLICE_S
    np.testing.assert_allclose(buffers[0].array, 1.0)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_comes_through_in_the_middle() -> None:
    program = LLVMProgram(counting(20_000, 1_000_000))  # tens of seconds
    buffers = [Buffer("LLVM", F, 20_000), buffer_of(np.full(1, 0.5, np.float32))]
    kernel, began = program._kernel, threading.Event()

    def noted(arguments: int, low: int, high: int) -> None:
        began.set()
        kernel(arguments, low, high)

    def press() -> None:
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    program._kernel = noted
    presser = threading.Thread(target=press)
    # a shell starts background jobs with the signal ignored, and children inherit that
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            program(buffers)
        assert buffers[0].array[-1] != 1.0, "it was not done to its end"
        presser.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_launches_run_beside_python() -> None:
    """Other threads go on while a kernel runs, and two launches do not mix."""
    program = load(add(1 << 16))
    data = [np.full(1 << 16, n, np.float32) for n in range(4)]
    outs = [buffer_of(poisoned(1 << 16)) for _ in range(4)]

    def work(n: int) -> None:
        operand = buffer_of(data[n])
        for _ in range(50):
            program([outs[n], operand, operand])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, out in enumerate(outs):
        np.testing.assert_array_equal(out.array, 2 * data[n])


def test_a_bound_launch_does_next_to_nothing() -> None:
    """All that is checked and packed is done when it is bound."""
    program, buffers = load(add(8)), [Buffer("LLVM", F, 8) for _ in range(3)]
    launch = program.bind(buffers)
    launch()
    assert calls_of(launch) <= 4 < calls_of(lambda: program(buffers))


def test_a_second_session_finds_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dataclasses.replace(add(), text=add().text + "; found again\n")
    LLVMProgram(source)

    def never(text: str) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(jit, "compile_object", never)
    LLVMProgram(source)


def test_a_damaged_object_is_compiled_again() -> None:
    text = add().text + "; damaged\n"
    source = dataclasses.replace(add(), text=text)
    LLVMProgram(source)
    host = jit.host()
    key = key_of(text, host.version, host.triple, host.cpu, host.features)
    path = cache_folder() / "objects" / key
    whole = path.read_bytes()
    damaged = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    path.write_bytes(damaged)
    with pytest.warns(RuntimeWarning, match="damaged"):
        program = LLVMProgram(source)
    data, out = buffer_of(np.ones(16, np.float32)), buffer_of(poisoned(16))
    program([out, data, data])
    assert out.array.tolist() == [2.0] * 16
    assert path.read_bytes() == whole


def test_nothing_is_loaded_before_it_is_needed() -> None:
    script = (
        "import sys\n"
        "import workbench.backends.llvm.llvm_device, workbench.measure.peak\n"
        "import workbench.backends.device\n"
        "assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_without_llvmlite_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "llvmlite.py").write_text("raise ImportError('not here')")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from workbench.backends.native import jit\n"
        "from workbench.base.errors import DeviceError\n"
        "try: jit.host()\n"
        "except DeviceError as error: print(error)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "pip install 'llvmlite" in process.stdout, process.stderr


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    script = (
        "from tests.backends.llvm.test_runtime import *\n"
        "x = np.ones(64, np.float32)\n"
        "for size in range(8, 72, 8):\n"
        "    y = run(elementwise(Ops.ADD, F, [F, F], size, 8), *[x[:size]] * 3)\n"
        "    assert (y == 2).all()"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", script]
    both = [subprocess.Popen(command, cwd=ROOT, env=env) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    names = [path.name for path in (tmp_path / "workbench" / "objects").iterdir()]
    assert len(names) == 8 and all(len(name) == 64 for name in names)


def test_linkers_go_with_what_they_loaded() -> None:
    """Of a linker that lives, every library leaves something in memory, even when it is gone."""
    image = jit.compile_object("define void @f(ptr %a, i64 %lo, i64 %hi) { ret void }")
    linkers = []
    function = jit.load_object(image, "f")
    for number in range(5 * jit.LIBRARIES_PER_LINKER):
        code = jit.load_object(image, "f")
        if number % jit.LIBRARIES_PER_LINKER == 0:
            linkers.append(weakref.ref(jit._llvm().linkers._linker))
    gc.collect()
    assert sum(linker() is not None for linker in linkers) <= 1
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    for loaded in (function, code):  # the linker is gone, what it loaded is not
        call(loaded.address)(None, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_kernel_that_died_leaves_nothing_behind() -> None:
    image = jit.compile_object("define void @f(ptr %a, i64 %lo, i64 %hi) { ret void }")

    def resident_bytes() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    sizes = []
    for _ in range(3):
        for _ in range(400):
            jit.load_object(image, "f")
        gc.collect()
        sizes.append(resident_bytes())
    assert sizes[-1] - sizes[0] < 800 * 3000  # one linker kept 9,000 bytes of each
