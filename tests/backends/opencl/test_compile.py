"""The driver's compiler runs in a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.opencl.support import need_driver
from workbench import Tensor, explore
from workbench.backends.opencl import opencl_code as compiling
from workbench.backends.opencl import opencl_device as runtime
from workbench.backends.opencl import pocl
from workbench.backends.opencl.opencl_code import OpenCLDriver
from workbench.base.errors import CompileError
from workbench.pipeline import stages

NAME = "OPENCL"
VALUES = np.arange(8, dtype=np.float32)
pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(scope="module")
def driver() -> None:
    need_driver()


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """No binary is on disk, and none gets there."""
    monkeypatch.setattr(compiling.object_cache, "get", lambda key: None)
    monkeypatch.setattr(compiling.object_cache, "store_object", lambda key, content: None)


def need_pocl() -> None:
    if not pocl.is_pocl(OpenCLDriver.current().device):
        pytest.skip("the driver is another one than PoCL")


def plus(number: float) -> Any:
    """Compute on the device."""
    x = Tensor(VALUES, device=NAME)
    return explore(x + number).kernels[-1].run()[0]


_LAUNCHES = """
import numpy as np
from workbench import Opt, OptOps, Tensor, explore
for size in (64, 1 << 17):
    values = np.arange(size, dtype=np.float32)
    kernel = explore(Tensor(values, device="OPENCL") * 3 + 1).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.LOCAL, "g0", 16))
    np.testing.assert_array_equal(kernel.run()[0], values * 3 + 1)
"""


def test_no_compiler_runs_in_this_process(tmp_path: Path) -> None:
    """What PoCL says that it does here: it loads what the other process has compiled, for few
    work-items and for many."""
    need_pocl()
    places = {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    (tmp_path / "pocl").mkdir()
    process = subprocess.run(
        [sys.executable, "-c", _LAUNCHES],
        env=os.environ | places | {"POCL_DEBUG": "llvm,general"},
        capture_output=True,
        text=True,
    )
    assert not process.returncode, process.stderr
    assert process.stderr.count("Using a cached WG function") == 2
    assert "pocl_llvm_build_program" not in process.stderr
    assert "pocl_llvm_codegen" not in process.stderr


def crash(kernel: compiling.KernelText) -> bytes:
    """Stand in for a compiler."""
    return ctypes.string_at(0)


@pytest.mark.usefixtures("no_cache")
def test_a_compiler_that_crashes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plus(1.0)  # the process is there
    monkeypatch.setattr(compiling, "compile_kernel", crash)
    with pytest.raises(CompileError, match="it ended its process") as error:
        plus(2.5)
    assert "other opts" in error.value.hint
    monkeypatch.undo()
    np.testing.assert_array_equal(plus(2.5), VALUES + 2.5)


@pytest.mark.usefixtures("no_cache")
def test_a_text_is_compiled_as_often_as_somebody_asks() -> None:
    """PoCL has it loaded, and yet gives its code."""
    kernel = explore(Tensor(VALUES, device=NAME) * 7).kernels[-1]
    source = stages(kernel.ast, NAME, "source").source
    program = runtime.OpenCLProgram(source)
    text = compiling.KernelText(source.text, source.name, program.items, program.group)
    first, second = (compiling.binary_of(text) for _ in range(2))
    assert abs(len(first.data) - len(second.data)) < 100


@pytest.mark.usefixtures("no_cache")
def test_a_compiler_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plus(1.0)  # the process is there
    monkeypatch.setattr(compiling, "LIMIT_S", 0.001)
    with pytest.raises(CompileError, match=r"more than 0\.001 s") as error:
        plus(3.5)
    assert error.value.stage == "opencl"
    monkeypatch.undo()
    np.testing.assert_array_equal(plus(3.5), VALUES + 3.5)


def test_a_binary_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    np.testing.assert_array_equal(plus(4.5), VALUES + 4.5)

    def refuse(*args: object) -> None:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr(compiling._process, "call", refuse)
    np.testing.assert_array_equal(plus(4.5), VALUES + 4.5)


def test_a_pocl_that_is_not_as_expected_compiles_the_rest_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cache is not where it should be: the binary lacks the code of the launch."""
    need_pocl()
    monkeypatch.setattr(pocl, "own_cache", lambda: SimpleNamespace(name=str(tmp_path)))

    def binary_of(kernel: compiling.KernelText) -> compiling.KernelBinary:
        data = pocl.binary(OpenCLDriver.current().context, *kernel)
        return compiling.KernelBinary(data, pocl.KERNEL)

    monkeypatch.setattr(runtime, "binary_of", binary_of)
    np.testing.assert_array_equal(plus(6.5), VALUES + 6.5)


@pytest.mark.parametrize("binary", [b"", b"of another driver"])
def test_without_binaries_the_driver_compiles_here_and_that_is_said(
    binary: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime._warn_of_compiler.cache_clear()
    answer = compiling.KernelBinary(binary, "")
    monkeypatch.setattr(runtime, "binary_of", lambda kernel: answer)
    with pytest.warns(RuntimeWarning, match="ends it if it crashes"):
        np.testing.assert_array_equal(plus(5.5 + len(binary)), VALUES + 5.5 + len(binary))
