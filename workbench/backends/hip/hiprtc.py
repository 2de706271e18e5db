"""Compilers of HIP: hipRTC for the GPU of this machine, clang with a header of ours for any GPU.

Sections: hipRTC, the compiler of HIP as a library; A stand-in for ROCm's header (AMD, HIP
documentation, "HIP C++ language extensions"); Machine code for any AMD GPU, present or not.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.backends.compilers.compilers import (
    Clang,
    MachineCode,
    clang_for,
    code_of,
    how_to_get_clang,
)
from workbench.backends.compilers.refusal import refusal
from workbench.backends.hip.driver import call, part
from workbench.backends.llvm_ir.gpu_code import gpu_machine_code, read_gpu
from workbench.backends.llvm_ir.gpu_targets import AMDGCN
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# hipRTC, the compiler of HIP as a library. It runs in the child process of compilers.


def compile_text(text: str, arch: str) -> bytes:
    """Return the code object of a text for an architecture such as "gfx942".

    Errors: CompileError with the line that hipRTC refuses.
    """
    rtc = part("hiprtc")
    program = call("CreateProgram", text.encode(), b"kernel.hip", 0, None, None, module="hiprtc")
    options = [f"--offload-arch={arch}".encode(), b"-O3", b"-ffp-contract=off"]
    try:
        (status,) = rtc.hiprtcCompileProgram(program, len(options), options)
        if int(status):
            raise refusal("hiprtc", _log(program), text)
        code = bytearray(call("GetCodeSize", program, module="hiprtc"))
        call("GetCode", program, code, module="hiprtc")
        return bytes(code)
    finally:
        call("DestroyProgram", program.createRef(), module="hiprtc")


def _log(program: object) -> str:
    log = bytearray(call("GetProgramLogSize", program, module="hiprtc"))
    if log:
        call("GetProgramLog", program, log, module="hiprtc")
    return log.rstrip(b"\0").decode(errors="replace")


# --------------------------------------------------------------------------------------------------
# A stand-in for ROCm's header (AMD, HIP documentation, "HIP C++ language extensions"): the names of
# HIP that a compiler must know.
#
# Its functions have no debug locations, so that their instructions get the line of the call. What
# only AMD's device library defines is only declared here: the machine code has a call of it.

NAME = "hip/hip_runtime.h"
_SIZES = (1, 2, 3, 4)
_TYPES = {
    "char": "signed char", "uchar": "unsigned char", "short": "short",
    "ushort": "unsigned short", "int": "int", "uint": "unsigned int", "long": "long",
    "ulong": "unsigned long", "longlong": "long long", "ulonglong": "unsigned long long",
    "float": "float", "double": "double",
}  # fmt: skip
_BITS = {
    "int": "int", "uint": "unsigned int", "float": "float",
    "longlong": "long long", "double": "double",
}  # fmt: skip
_BOTH = (
    "sqrt(a)", "trunc(a)", "floor(a)", "ceil(a)", "rint(a)", "round(a)", "fabs(a)", "fmod(a, b)",
    "fmin(a, b)", "fmax(a, b)", "copysign(a, b)", "fma(a, b, c)",
)  # fmt: skip
"""Functions of floats and of doubles that clang has."""
_FLOATS = ("exp2(a)", "log2(a)", "exp(a)", "log(a)", "log10(a)", "sin(a)", "cos(a)")
_LIBRARY = (
    "exp2(double)", "log2(double)", "exp(double)", "log(double)", "log10(double)",
    "sin(double)", "cos(double)", "pow(double, double)", "tanh(double)", "erf(double)",
)  # fmt: skip
_LIBRARY_FLOATS = ("powf(float, float)", "tanhf(float)", "erff(float)")
_WORDS = """\
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(items, ...) __attribute__((amdgpu_flat_work_group_size(1, items)))
#define WB_INLINE static inline __device__ __attribute__((always_inline, nodebug))
#define WB_NUMBER(letter, value) \\
  __declspec(property(get = get_##letter)) unsigned letter; \\
  __device__ __attribute__((always_inline, nodebug)) \\
  unsigned get_##letter() const { return value; }
#define WB_NUMBERS(name, value) \\
  static constexpr __device__ struct { \\
    WB_NUMBER(x, value(x)) WB_NUMBER(y, value(y)) WB_NUMBER(z, value(z)) \\
  } name;
#define WB_GROUP(letter) __builtin_amdgcn_workgroup_id_##letter()
#define WB_ITEM(letter) __builtin_amdgcn_workitem_id_##letter()
#define WB_ITEMS(letter) __builtin_amdgcn_workgroup_size_##letter()
#define WB_GROUPS(letter) (__builtin_amdgcn_grid_size_##letter() / WB_ITEMS(letter))
WB_NUMBERS(blockIdx, WB_GROUP)
WB_NUMBERS(threadIdx, WB_ITEM)
WB_NUMBERS(blockDim, WB_ITEMS)
WB_NUMBERS(gridDim, WB_GROUPS)
WB_INLINE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
WB_INLINE int wb_other_word(int a, int mask) {
  int before = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, before);
  return __builtin_amdgcn_ds_bpermute((lane ^ mask) * 4, a);
}
struct wb_words { int low, high; };
"""


def _vectors() -> list[str]:
    lines = []
    for name, kind in _TYPES.items():
        for size in _SIZES:
            vector, letters = f"{name}{size}", "abcd"[:size]
            attribute = f"__attribute__((ext_vector_type({size})))"
            arguments = ", ".join(f"{kind} {letter}" for letter in letters)
            value = f"return {vector}{{{', '.join(letters)}}};"
            lines += [
                f"typedef {kind} {vector} {attribute};",
                f"WB_INLINE {vector} make_{vector}({arguments}) {{ {value} }}",
            ]
    return lines


def _bits() -> list[str]:
    return [
        f"WB_INLINE {kind} __{source}_as_{target}({other} a)"
        f" {{ return __builtin_bit_cast({kind}, a); }}"
        for source, other in _BITS.items()
        for target, kind in _BITS.items()
        if source != target
        and (source in ("longlong", "double")) == (target in ("longlong", "double"))
    ]


def _math() -> list[str]:
    lines = [
        _function(call, kind, suffix)
        for calls, kinds in ((_BOTH, ("double", "float")), (_FLOATS, ("float",)))
        for call in calls
        for kind, suffix in (("double", ""), ("float", "f"))
        if kind in kinds
    ]
    lines += [f'extern "C" __device__ double {head};' for head in _LIBRARY]
    lines += [f'extern "C" __device__ float {head};' for head in _LIBRARY_FLOATS]
    lines += [
        f"WB_INLINE {kind} {word}({kind} a, {kind} b) {{ return a {sign} b ? a : b; }}"
        for kind in ("int", "unsigned", "long long", "unsigned long long", "float")
        for word, sign in (("min", "<"), ("max", ">"))
    ]
    return lines


def _function(call: str, kind: str, suffix: str) -> str:
    """Return a function of clang's, such as "fmod(a, b)", under its name in C."""
    name, _, letters = call.rstrip(")").partition("(")
    arguments = ", ".join(f"{kind} {letter}" for letter in letters.split(", "))
    value = f"__builtin_{name}{suffix}({letters})"
    return f"WB_INLINE {kind} {name}{suffix}({arguments}) {{ return {value}; }}"


def _shuffles() -> list[str]:
    """Return the functions that read a value of another lane, by words of 32 bits."""
    lines = []
    for kind in ("int", "unsigned", "float"):
        word = "wb_other_word(__builtin_bit_cast(int, a), mask)"
        value = f"return __builtin_bit_cast({kind}, {word});"
        lines.append(f"WB_INLINE {kind} __shfl_xor({kind} a, int mask) {{ {value} }}")
    for kind in ("long long", "unsigned long long", "double"):
        lines += [
            f"WB_INLINE {kind} __shfl_xor({kind} a, int mask) {{",
            "  wb_words w = __builtin_bit_cast(wb_words, a);",
            "  w = {wb_other_word(w.low, mask), wb_other_word(w.high, mask)};",
            f"  return __builtin_bit_cast({kind}, w);",
            "}",
        ]
    return lines


HEADER = "\n".join([_WORDS.rstrip(), *_vectors(), *_bits(), *_math(), *_shuffles(), ""])
"""The text of the header."""


# --------------------------------------------------------------------------------------------------
# Machine code for any AMD GPU, present or not.

# The header is ours with any clang, so that line numbers are those of the text.
_FLAGS = (
    "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-std=c++17",
    "-O3", "-ffp-contract=off", "-gline-tables-only", "-include", NAME,
)  # fmt: skip
_NO_LINES = "__attribute__((nodebug))"


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the machine code of a kernel's text by clang; without clang, that of its linear
    program by LLVM.

    Errors: CompileError with the line of the source; DeviceError without clang, for a text that
    a user wrote.
    """
    arch = AMDGCN.processor(target)
    clang = clang_for("amdgcn", arch)
    if clang is not None:
        text, parts = source.text, (HEADER, *_FLAGS, clang.stamp)
        return code_of(lambda: compile_with_clang(clang, text, arch), text, arch, *parts)
    if not source.linear:
        what = f"there is no compiler of HIP for {arch} here"
        raise DeviceError(what, f"no clang here knows {arch}", how_to_get_clang())
    code = gpu_machine_code(AMDGCN, arch, source, target)
    return replace(code, compiler=f"{code.compiler} (of the text itself: {how_to_get_clang()})")


def compile_with_clang(clang: Clang, text: str, arch: str) -> MachineCode:
    """Return the machine code of a text by clang, for an architecture such as "gfx942".

    Errors: CompileError with the line that clang refuses.
    """
    # Instructions of functions before the kernel get the line of the call.
    text = text.replace("__device__ inline ", f"__device__ inline {_NO_LINES} ")
    written = clang.compile(text, {NAME: HEADER}, *_FLAGS, f"--offload-arch={arch}")
    return replace(read_gpu(AMDGCN, arch, written), compiler=clang.name)
