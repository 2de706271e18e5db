"""NVRTC, NVIDIA's library that compiles CUDA C++ (NVIDIA, NVRTC documentation), by ctypes.

It is searched where pip installs it, in $CUDA_HOME and $CUDA_PATH, and by the system's loader. It
runs in the child process of compilers; `toolkit` and `how_to_get` do not load it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from ctypes.util import find_library
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from workbench.backends.compilers.refusal import refusal
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command

_TYPE = """\
#pragma once
struct {kind} {{ unsigned short bits; }};
struct __align__(4) {kind}2 {{ {kind} x, y; }};
__device__ inline {kind} __ushort_as_{word}(unsigned short bits) {{ return {kind}{{bits}}; }}
__device__ inline {kind} __short_as_{word}(short bits) {{ return {kind}{{(unsigned short)bits}}; }}
__device__ inline unsigned short __{word}_as_ushort({kind} a) {{ return a.bits; }}
__device__ inline short __{word}_as_short({kind} a) {{ return (short)a.bits; }}
"""
_FP16 = """\
__device__ inline float __half2float(__half a) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(a.bits));
  return wide;
}
__device__ inline __half __float2half(float a) {
  __half rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(a));
  return rounded;
}
"""
_BF16 = """\
__device__ inline float __bfloat162float(__nv_bfloat16 a) {
  return __uint_as_float((unsigned)a.bits << 16);
}
__device__ inline __nv_bfloat16 __float2bfloat16(float a) {
  __nv_bfloat16 rounded;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(a));
#else
  unsigned whole = __float_as_uint(a);
  rounded.bits = a != a ? 0x7fff : (whole + 0x7fff + (whole >> 16 & 1)) >> 16;
#endif
  return rounded;
}
"""

HEADERS: Mapping[str, str] = {
    "cuda_fp16.h": _TYPE.format(kind="__half", word="half") + _FP16,
    "cuda_bf16.h": _TYPE.format(kind="__nv_bfloat16", word="bfloat16") + _BF16,
}
"""Short stand-ins for NVIDIA's headers, by file name, where those are not installed: types, and
conversions by the instructions of PTX ISA 8.5, "cvt". bfloat16 is rounded by an instruction from
sm_80 on, and before that by integer arithmetic."""


class Toolkit(NamedTuple):
    """Paths of NVIDIA's tools: the library, nvdisasm and the folder of headers ("": none)."""

    library: str
    nvdisasm: str
    headers: str


class Image(NamedTuple):
    """A compiled text, PTX or a cubin, and the compiler's log."""

    data: bytes
    log: str


@lru_cache(maxsize=1)
def toolkit() -> Toolkit | None:
    """Return NVIDIA's tools; None where there is no NVRTC. Nothing is loaded."""
    for root in _roots():
        names = ("lib/libnvrtc.so*", "lib64/libnvrtc.so*", "bin/**/nvrtc64_*.dll")
        paths = sorted(path for name in names for path in root.glob(name))
        libraries = [p for p in paths if "alt" not in p.name and "builtins" not in p.name]
        if libraries:
            return Toolkit(str(libraries[-1]), _nvdisasm(), str(root / "include"))
    system = find_library("nvrtc")
    return Toolkit(system, _nvdisasm(), "") if system else None


def _roots() -> list[Path]:
    """Return the folders that may have NVIDIA's tools."""
    package = find_spec("nvidia")
    places = list(package.submodule_search_locations or ()) if package else []
    roots = [root for place in places for root in sorted(Path(place).glob("c*"))]
    variables = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [*roots, *(Path(path) for path in variables if path)]


def _nvdisasm() -> str:
    name = "nvdisasm.exe" if sys.platform == "win32" else "nvdisasm"
    files = [path for root in _roots() for path in root.glob(f"bin/**/{name}")]
    return str(files[0]) if files else shutil.which(name) or ""


@lru_cache(maxsize=1)
def _library() -> Any:
    tools = toolkit()
    if tools is None:
        raise DeviceError("there is no NVRTC here", "it compiles CUDA C++", how_to_get())
    try:
        # loaded first: NVRTC opens it by its bare name, which no loader finds where pip installs it
        for name in ("libnvrtc-builtins.so*", "nvrtc-builtins64_*.dll"):
            for builtins in Path(tools.library).parent.glob(name):
                ctypes.CDLL(str(builtins))
        return ctypes.CDLL(tools.library)
    except OSError as error:
        raise DeviceError("NVRTC does not load", str(error), how_to_get()) from error


def how_to_get() -> str:
    """Return the command that installs NVRTC and nvdisasm."""
    return install_command("cuda")


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version of NVRTC, such as "13.5"."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_text(text: str, arch: str) -> Image:
    """Return the cubin of CUDA C++ for an `arch` such as "sm_90", or its PTX for "compute_90".

    Errors: CompileError with the first error and its line; DeviceError without NVRTC.
    """
    library, tools = _library(), toolkit()
    assert tools is not None
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--fmad=false",
        "-default-device",
        "-lineinfo",
    ]
    if arch.startswith("sm_"):
        options.append("--ptxas-options=-v")
    headers: Mapping[str, str] = HEADERS
    if Path(tools.headers, next(iter(HEADERS))).exists():
        options.append(f"-I{tools.headers}")
        headers = {}
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(
        ctypes.byref(program),
        text.encode(),
        b"kernel.cu",
        len(headers),
        _strings([*headers.values()]),
        _strings([*headers]),
    )
    try:
        arguments = _strings(options)
        status = library.nvrtcCompileProgram(program, len(options), arguments)
        log = _read(library, program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")
        if status:
            raise refusal("nvrtc", log, text)
        kind = "CUBIN" if arch.startswith("sm_") else "PTX"
        return Image(_read(library, program, kind), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _strings(words: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(words))(*[word.encode() for word in words])


def _read(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{what}")(program, data)
    return data.raw[: size.value]
