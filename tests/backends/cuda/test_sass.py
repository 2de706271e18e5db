"""CUDA C++ for GPUs that are not here: SASS, its lines, what it takes, what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from workbench import Tensor, explore
from workbench.backends.compilers.compilers import LiveRegisters, MachineCode
from workbench.backends.compilers.refusal import refusal
from workbench.backends.cuda import cuda_device, nvrtc, sass
from workbench.backends.cuda.cuda_device import compile_source
from workbench.backends.cuda.sass import live_registers, resources
from workbench.backends.device import Device
from workbench.backends.elsewhere import ElsewhereProgram
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, DeviceError
from workbench.kernel.kernel import Kernel

TOOLS = nvrtc.toolkit()
needs_nvrtc = pytest.mark.skipif(
    TOOLS is None or not TOOLS.nvdisasm,
    reason=f"NVRTC and nvdisasm are not here: {nvrtc.how_to_get()}",
)
TARGET = Device["CUDA:H100"].target
LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     304 bytes stack frame, 120 bytes spill stores, 148 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8192 bytes smem
"""
LISTING = """        /*0080*/    UMOV UR4, 0x400 ; // |  7 ::  ::::     :  |        | 4     ^:::  |
.L_x_1:                                  // +....................+........+.............+
        /*03c0*/    EXIT ;               // | 12  :              |        |             |
"""


def kernel() -> Kernel:
    a, b = Tensor.empty(64, 48), Tensor.empty(48, 80)
    return explore((a @ b).relu()).kernels[0]


def program(a_kernel: Kernel) -> ElsewhereProgram:
    built = a_kernel.compile("CUDA:H100").built.program
    assert isinstance(built, ElsewhereProgram)
    return built


def test_the_log_of_the_assembler_is_read() -> None:
    use = resources(LOG)
    assert (use.registers, use.shared_bytes) == (255, 8192)
    assert (use.stack_bytes, use.spill_bytes) == (304, 148)
    assert str(use) == (
        "255 registers, 8,192 bytes of shared memory, 304 bytes of stack, 148 bytes of spills"
    )


def test_life_ranges_are_read() -> None:
    assert dict(live_registers(LISTING)) == {
        0x80: LiveRegisters(7, "::  ::::     :"),
        0x3C0: LiveRegisters(12, " :"),
    }


@pytest.mark.parametrize(
    ("log", "because", "line"),
    [
        ('kernel.cu(12): error: identifier "x" is undefined\n  x\n', "identifier", 12),
        ("ptxas error   : Entry function 'k' uses too much shared data (0xd000)", "shared", None),
        (
            "ptxas info    : Used 9 registers\n\0ptxas error   : Entry function 'k' uses too"
            " much shared data (0x1ab40 bytes, 0xc000 max)",
            "Entry function 'k' uses too much shared data (0x1ab40 bytes, 0xc000 max)",
            None,
        ),
    ],
)
def test_the_first_error_of_a_log(log: str, because: str, line: int | None) -> None:
    error = refusal("nvrtc", log)
    assert because in error.because and error.line == line


def test_without_a_compiler_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_device.nvrtc, "toolkit", lambda: None)
    source = replace(program(kernel()).source, text="edited", linear=())
    with pytest.raises(DeviceError) as missing:
        compile_source(source, TARGET)
    assert missing.value.hint == nvrtc.how_to_get()


def test_a_text_does_not_run_elsewhere() -> None:
    source = kernel().compile("CUDA:H100").built.source
    with pytest.raises(DeviceError, match="CUDA:H100 runs no kernels"):
        Device["CUDA:H100"].load(source)([])


@needs_nvrtc
def test_sass_has_the_lines_of_the_source() -> None:
    compiled = kernel().compile("CUDA:H100")
    code = compiled.machine_code
    assert code is not None and code.isa == "SASS for sm_90"
    assert code.use.registers and code.use.registers <= 255 and not code.use.spill_bytes
    lines = compiled.source.split("\n")
    stores = [x for x in code.lines if x.text.strip().startswith("STG")]
    assert stores and all("p0[" in lines[x.source_line - 1] for x in stores if x.source_line)
    assert all(x.source_line for x in stores)
    multiply = [x for x in code.lines if re.match(r"\s+FFMA", x.text)]
    assert len(multiply) >= 1
    assert all("acc0 = fma" in lines[(x.source_line or 0) - 1] for x in multiply)


@needs_nvrtc
@pytest.mark.parametrize("text", ["", "__device__ float half(float x) { return x / 2; }"])
def test_a_text_without_a_kernel_is_refused(text: str) -> None:
    assert sass.compile_to_sass(text, "sm_90").kernels == ()
    source = program(kernel()).source
    with pytest.raises(CompileError, match="the text has no kernel") as error:
        Device["CUDA:H100"].load(source.edited(text)).machine_code  # type: ignore[attr-defined]  # noqa: B018
    assert source.name in error.value.because and source.name in error.value.hint


@needs_nvrtc
def test_each_instruction_has_its_registers() -> None:
    code = kernel().compile("CUDA:H100").machine_code
    assert code is not None and len(code.live) == len(code.lines)
    counts = [live.count for live in code.live if live is not None]
    assert len(counts) == sum(not line.is_label for line in code.lines)
    assert code.use.registers and 0 < max(counts) <= code.use.registers
    for live in filter(None, code.live):
        assert sum(mark != " " for mark in live.marks) >= live.count


@needs_nvrtc
def test_labels_are_those_of_jumps() -> None:
    code = kernel().compile("CUDA:H100").machine_code
    assert code is not None
    labels = {line.text[:-1] for line in code.lines if line.is_label}
    jumps = {line.text.split()[-1] for line in code.lines if " BRA " in line.text}
    assert labels == {jump for jump in jumps if jump.startswith(".L")}


@needs_nvrtc
def test_a_helpers_instructions_have_the_line_of_its_call() -> None:
    compiled = kernel().compile("CUDA:H100")
    code, lines = compiled.machine_code, compiled.source.split("\n")
    assert code is not None
    numbers = {x.source_line for x in code.lines if x.text.strip().startswith(("FSETP", "FMNMX"))}
    assert numbers and all(n and "p0[" in lines[n - 1] for n in numbers)


def _edited(text: str) -> MachineCode | None:
    built = program(kernel())
    device = Device["CUDA:H100"]
    edited: Source = replace(built.source, text=text)
    program_elsewhere = device.load(edited)
    assert isinstance(program_elsewhere, ElsewhereProgram)
    return program_elsewhere.machine_code


@needs_nvrtc
def test_an_error_names_the_line_and_the_operation() -> None:
    text = program(kernel()).source.text
    broken = text.replace("fmaf(p1", "fmaf(q1")
    with pytest.raises(CompileError) as error:
        _edited(broken)
    number = 1 + next(i for i, x in enumerate(broken.split("\n")) if "q1" in x)
    assert error.value.line == number
    assert '"q1" is undefined' in error.value.because and "the code of" in error.value.because


@needs_nvrtc
def test_too_much_shared_memory_is_refused_with_the_numbers() -> None:
    text = program(kernel()).source.text
    large = "__shared__ float too_large[20000]; too_large[blockIdx.x] = 1; __syncthreads();"
    large += " float acc0 = too_large[blockIdx.y];"
    with pytest.raises(CompileError, match="shared data"):
        _edited(text.replace("float acc0 = 0.0f;", large))


@needs_nvrtc
def test_it_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = program(kernel()).source
    first = compile_source(source, TARGET)
    monkeypatch.setattr(cuda_device, "in_child", None)
    assert compile_source(source, TARGET) == first
