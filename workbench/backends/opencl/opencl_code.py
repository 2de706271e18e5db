"""The OpenCL driver of the device, its compiler in a process of its own, and SPIR-V by clang.

Sections: The OpenCL driver that the device uses; The compiler of an OpenCL driver in a process
of its own; A stand-in for clang's OpenCL header (OpenCL C specification, 1.2, "Supported data
types"); SPIR-V of OpenCL C, which the driver of any GPU compiles.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any, NamedTuple

from workbench.backends.compilers.child import CompilerProcess
from workbench.backends.compilers.compilers import (
    Clang,
    MachineCode,
    binary_in,
    build,
    clang_for,
    code_of,
    how_to_get_clang,
)
from workbench.backends.gpu.cpp import STANDARD
from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.llvm_ir.gpu_code import gpu_machine_code, read_spirv, with_marks
from workbench.backends.llvm_ir.gpu_targets import SPIRV
from workbench.backends.llvm_ir.loops import without_locations
from workbench.backends.native import object_cache
from workbench.backends.opencl import pocl
from workbench.backends.opencl.opencl_machines import XE_HPC, XE_HPG
from workbench.backends.program.text import Source
from workbench.base.cache import key_of
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import library
from workbench.base.target import Target

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")

# --------------------------------------------------------------------------------------------------
# The OpenCL driver that the device uses: its context, its queue, its limits.

_SIMULATORS = ("oclgrind",)


class OpenCLDriver(GpuDriver):
    """One device of an OpenCL platform: a GPU if there is one, never a simulator."""

    name = "OPENCL"
    package = "pyopencl"
    absence = "pyopencl finds no driver"

    def __init__(self, gpu: Any):
        cl = library("pyopencl")
        self.device, self.context = gpu, cl.Context([gpu])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)

    @staticmethod
    def find() -> Any | None:
        cl = library("pyopencl")
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            return None
        devices = [d for p in platforms for d in p.get_devices() if not is_simulator(d)]
        devices.sort(key=lambda d: not d.type & cl.device_type.GPU)
        return devices[0] if devices else None

    def target(self) -> Target:
        device = self.device
        sizes = device.max_work_item_sizes
        is_gpu = device.type & library("pyopencl").device_type.GPU
        return Target(
            self.name,
            vector_bytes=16,
            native_transcendentals=bool(is_gpu),  # those of PoCL give wrong answers for NaN
            conversions=(dtypes.float16,),
            converts_in_memory=True,
            grid_limits=(1 << 31, 1 << 16, 1 << 16),
            group_items=min(device.max_work_group_size, sizes[0], 1024),
            group_limits=tuple(sizes),
            warp_lanes=32 if is_gpu else 8,
            serial_items=not is_gpu,
            shared_bytes=device.local_mem_size,
            scratch_bytes=16 << 10,
            stack_bytes=1 << 30,
            cores=device.max_compute_units,
        )

    def flush(self) -> None:
        self.queue.flush()

    def wait(self) -> None:
        self.queue.finish()


def is_simulator(device: Any) -> bool:
    """Whether a device simulates and checks kernels, which is slow."""
    return any(word in device.platform.name.lower() for word in _SIMULATORS)


# --------------------------------------------------------------------------------------------------
# The compiler of an OpenCL driver in a process of its own. If it crashes or hangs, a kernel is
# lost, and this process goes on.

LIMIT_S = 120.0
"""Seconds that a driver's compiler may take."""
_process = CompilerProcess()
"""It runs no other compiler: drivers contain whole compilers, which may not share a process."""


class KernelText(NamedTuple):
    """A kernel for the device of this machine: its text and name, and the work-items in all
    (`items`) and in a group (`group`), along x, y and z."""

    text: str
    name: str
    items: tuple[int, ...]
    group: tuple[int, ...]


class KernelBinary(NamedTuple):
    """A binary, b"" where the driver gives none, and the kernel's name in it."""

    data: bytes
    name: str


def binary_of(kernel: KernelText) -> KernelBinary:
    """Return the binary of a kernel: from disk, or compiled.

    Errors: CompileError, with the line of the text where the driver refuses it.
    """
    device = OpenCLDriver.current().device
    driver = device.platform.version, device.name, device.driver_version
    key = key_of("OpenCL", STANDARD, *driver, *map(str, kernel))
    data = object_cache.get(key)
    if data is None:
        data = _process.call(LIMIT_S, compile_kernel, kernel)
        object_cache.store_object(key, data)
    return KernelBinary(data, pocl.KERNEL if pocl.is_pocl(device) else kernel.name)


def compile_kernel(kernel: KernelText) -> bytes:
    """Return the binary of a kernel, compiled in this process. Errors: CompileError."""
    pocl.own_cache()
    driver = OpenCLDriver.current()
    if pocl.is_pocl(driver.device):
        try:
            return pocl.binary(driver.context, *kernel)
        except CompileError as error:
            because = error.because.replace(pocl.KERNEL, kernel.name)
            raise CompileError(error.stage, because, hint=error.hint, line=error.line) from None
    return binary_in(build(driver.context, kernel.text))


# --------------------------------------------------------------------------------------------------
# A stand-in for clang's OpenCL header (OpenCL C specification, 1.2, "Supported data types"): types
# and constants beyond the built-in functions, and functions of Intel's extensions.

NAME = "opencl-c-base.h"
"""Clang includes a header of this name by itself."""
_SCALARS = (
    "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double",
)  # fmt: skip
_SHUFFLED = ("int", "uint", "long", "ulong", "float", "double")
_WORDS = """\
#pragma once
#define __opencl_c_named_address_space_builtins 1
#define cl_khr_fp64 1
#define cl_khr_fp16 1
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CHAR_BIT __CHAR_BIT__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (2u * __INT_MAX__ + 1u)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1l)
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define M_PI_F 3.14159274101257f
#define M_LN2_F 0.693147180559945f
#define M_LOG2E_F 1.44269504088896f
#define MAXFLOAT __FLT_MAX__
#define INFINITY __builtin_inff()
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define NAN __builtin_nanf("")
"""


def _header() -> str:
    overloadable = "__attribute__((overloadable))"
    vectors = [
        f"typedef {kind} {kind}{size} __attribute__((ext_vector_type({size})));"
        for kind in _SCALARS
        for size in (2, 3, 4, 8, 16)
    ]
    bits = [  # a vector of 3 has the size of one of 4
        f"#define as_{kind}{size}(a) __builtin_astype((a), {kind}{size})"
        for kind in _SCALARS
        for size in ("", 2, 3, 4, 8, 16)
    ]
    shuffles = [
        f"{kind} {overloadable} intel_sub_group_shuffle_xor({kind} a, uint mask);"
        for kind in _SHUFFLED
    ]
    products = [
        f"float8 {overloadable} {core.instruction}({rows} a, int8 b, float8 c);"
        for cores, rows in ((XE_HPG, "int8"), (XE_HPC, "short8"))
        for core in cores
    ]
    return "\n".join([_WORDS.rstrip(), *vectors, *bits, *shuffles, *products, ""])


HEADER = _header()
"""The text of the header."""


# --------------------------------------------------------------------------------------------------
# SPIR-V of OpenCL C, which the driver of any GPU compiles.

_MACHINE = "spirv64"
_TARGET = f"--target={SPIRV.triple}"
_NAMES = "-fno-discard-value-names"  # blocks are found by their names
_READ = ("-x", "cl", STANDARD, "-gline-tables-only", "-emit-llvm", _NAMES)
_WRITE = ("-x", "ir", "-Xclang", "-disable-llvm-passes", _NAMES, "-mllvm", "--spirv-ext=all")
_COPY = re.compile(r"^define [^\n]*@__clang_ocl_kern_imp_.*?^}\n", re.MULTILINE | re.DOTALL)
"""Clang's copy of a kernel, a function that other kernels could call."""


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the SPIR-V of a kernel's text by clang; without clang, that of its linear program by
    LLVM.

    Errors: CompileError with the line of the source; DeviceError without clang, for a text that
    a user wrote.
    """
    clang = clang_for(_MACHINE)
    if clang is not None:
        text, parts = source.text, (HEADER, *_READ, *_WRITE, clang.stamp)
        return code_of(lambda: compile_text(clang, text), text, *parts)
    if not source.linear:
        what = "there is no compiler of OpenCL C for other machines here"
        raise DeviceError(what, "no clang here writes SPIR-V", how_to_get_clang())
    code = gpu_machine_code(SPIRV, "", source, target)
    return replace(code, compiler=f"{code.compiler} (of the text itself: {how_to_get_clang()})")


def compile_text(clang: Clang, text: str) -> MachineCode:
    """Return the SPIR-V of a text by clang.

    Errors: CompileError with the line that clang refuses.
    """
    ir = clang.compile(text, {NAME: HEADER}, *_READ, _TARGET, "-O2", "-fno-unroll-loops")
    located = without_locations(_COPY.sub("", ir))
    marked = with_marks(located.text, lambda line: located.numbers[line - 1])
    written = clang.compile(marked.text, {}, *_WRITE, _TARGET, "-O2", "-fno-unroll-loops")
    return replace(read_spirv(written, marked), compiler=clang.name)
