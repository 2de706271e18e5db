"""The compilers of the table: each takes a kernel, and raises where it refuses what is written."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.languages import preludes
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import clang_for
from workbench.backends.cuda import nvrtc
from workbench.backends.device import Device
from workbench.backends.hip import hiprtc as hip
from workbench.backends.llvm_ir.gpu_code import gpu_machine_code
from workbench.backends.llvm_ir.gpu_targets import AMDGCN, PTX, SPIRV
from workbench.backends.opencl import opencl_code as spirv
from workbench.base.errors import CompileError
from workbench.base.installation import library
from workbench.ir.opt.opt import OptOps
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages

LIMIT_S = 120.0
PTX_INPUT = 2
"""How nvJitLink calls a text of PTX."""


@dataclass(frozen=True)
class Check:
    """A row of the table: a language, its compiler, the device and the machine whose kernels it
    takes, whether it is here, what compiles a kernel, and whether that machine is another one than
    the compiler's, whose tensor cores are others: kernels on these are left out."""

    language: str
    compiler: str
    device: str
    machine: str
    is_here: Callable[[], bool]
    compile: Callable[[str, Kernel], None]
    is_another: bool = False

    def takes(self, kernel: Kernel) -> bool:
        """Whether the compiler must take a kernel."""
        return not (self.is_another and any(o.op is OptOps.TC for o in kernel.applied_opts))

    @property
    def name(self) -> str:
        return f"{self.device}:{self.machine}" if self.machine else self.device


def text_of(device: str, kernel: Kernel) -> str:
    return stages(kernel.ast, device, "source").source.text


def by_nvrtc(arch: str) -> Callable[[str, Kernel], None]:
    def compile_kernel(device: str, kernel: Kernel) -> None:
        in_child(nvrtc.compile_text, text_of(device, kernel), arch)

    return compile_kernel


def by_llvm(gpu: Any, arch: str) -> Callable[[str, Kernel], None]:
    def compile_kernel(device: str, kernel: Kernel) -> None:
        source = stages(kernel.ast, device, "source").source
        assert gpu_machine_code(gpu, arch, source, Device[device].target).lines

    return compile_kernel


def by_its_machine(device: str, kernel: Kernel) -> None:
    code = kernel.compile(device).machine_code
    assert code is not None and code.lines


def by_nvjitlink(device: str, kernel: Kernel) -> None:
    source = stages(kernel.ast, device, "source").source
    code = gpu_machine_code(PTX, "sm_90", source, Device[device].target)
    in_child(link_ptx, code.text, "sm_90")


def link_ptx(text: str, arch: str) -> int:
    """Return the bytes of a cubin that nvJitLink makes of PTX."""
    link = ctypes.CDLL(str(nvjitlink()))
    options = (ctypes.c_char_p * 1)(f"-arch={arch}".encode())
    handle = ctypes.c_void_p()
    link.nvJitLinkCreate(ctypes.byref(handle), 1, options)
    data = text.encode() + b"\0"
    status = link.nvJitLinkAddData(handle, PTX_INPUT, data, len(data), b"kernel")
    status = status or link.nvJitLinkComplete(handle)
    size = ctypes.c_size_t()
    if status:
        link.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        link.nvJitLinkGetErrorLog(handle, log)
        raise CompileError("nvjitlink", log.value.decode("utf-8", "replace")[:400])
    link.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
    return size.value


@cache
def nvjitlink() -> Path | None:
    package = find_spec("nvidia")
    places = list(package.submodule_search_locations or ()) if package else []
    files = [f for place in places for f in Path(place).glob("*/lib/libnvJitLink.so*")]
    return files[0] if files else None


def by_clang(prelude: str, *words: str) -> Callable[[str, Kernel], None]:
    """Compile with the clang in the ziglang package, after declarations."""

    def compile_kernel(device: str, kernel: Kernel) -> None:
        text = prelude + text_of(device, kernel)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cpp"
            path.write_text(text)
            (Path(folder) / "metal_stdlib").write_text("")
            command = [str(zig()), "clang", *words, f"-I{folder}", str(path)]
            command += ["-o", str(Path(folder) / "out")]
            process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        if process.returncode:
            raise CompileError("clang", process.stderr[:600])

    return compile_kernel


@cache
def zig() -> Path | None:
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).with_name("zig")


def hip_by_clang(arch: str) -> Callable[[str, Kernel], None]:
    def compile_kernel(device: str, kernel: Kernel) -> None:
        clang = clang_for("amdgcn")
        assert clang is not None
        assert hip.compile_with_clang(clang, text_of(device, kernel), arch).lines

    return compile_kernel


def opencl_by_clang(device: str, kernel: Kernel) -> None:
    clang = clang_for("spirv64")
    assert clang is not None
    assert spirv.compile_text(clang, text_of(device, kernel)).lines


def by_opencl(device: str, kernel: Kernel) -> None:
    program: Any = stages(kernel.ast, device).program
    assert program.kernel() is not None


def by_wasm(device: str, kernel: Kernel) -> None:
    program: Any = stages(kernel.ast, device).program
    wasmtime = library("wasmtime")
    wasmtime.Module.validate(wasmtime.Engine(), program.module)


def is_nvrtc_here() -> bool:
    return nvrtc.toolkit() is not None


def is_clang_here() -> bool:
    return zig() is not None


def is_hip_here() -> bool:
    return clang_for("amdgcn") is not None


def is_opencl_here() -> bool:
    return clang_for("spirv64") is not None


def always() -> bool:
    return True


METAL_WORDS = ("-x", "c++", "-std=c++17", "-fsyntax-only", "-w")
CHECKS = (
    Check("CUDA C++", "NVRTC sm_80", "CUDA", "A100", is_nvrtc_here, by_nvrtc("sm_80")),
    Check("CUDA C++", "NVRTC sm_90", "CUDA", "H100", is_nvrtc_here, by_nvrtc("sm_90")),
    Check("PTX", "nvJitLink sm_90", "CUDA", "H100", lambda: bool(nvjitlink()), by_nvjitlink),
    Check("HIP", "clang gfx942", "HIP", "MI300X", is_hip_here, hip_by_clang("gfx942")),
    Check(
        "HIP", "clang gfx1100", "HIP", "MI300X", is_hip_here, hip_by_clang("gfx1100"), True
    ),
    Check(
        "Metal", "clang, C++ grammar", "METAL", "M3", is_clang_here,
        by_clang(preludes.METAL, *METAL_WORDS),
    ),
    Check("AMDGCN", "LLVM gfx1100", "HIP", "MI300X", always, by_llvm(AMDGCN, "gfx1100"), True),
    Check("AMDGCN", "LLVM gfx942", "HIP", "MI300X", always, by_its_machine),
    Check("SPIR-V", "LLVM", "OPENCL", "Iris Xe", always, by_llvm(SPIRV, "")),
    Check("OpenCL C", "clang, SPIR-V", "OPENCL", "Iris Xe", is_opencl_here, opencl_by_clang),
    Check("aarch64", "LLVM neoverse-v2", "LLVM", "Graviton4", always, by_its_machine),
    Check("x86-64", "LLVM AVX-512", "LLVM", "Xeon 8480+", always, by_its_machine),
    Check("riscv64", "LLVM, V", "LLVM", "Banana Pi F3", always, by_its_machine),
    Check(
        "wasm32", "LLVM, wasmtime", "WASM", "", lambda: Device["WASM"].is_available, by_wasm
    ),
    Check(
        "OpenCL C", "PoCL", "OPENCL", "", lambda: Device["OPENCL"].is_available, by_opencl
    ),
)  # fmt: skip
