"""NVRTC, NVIDIA's compiler of CUDA C++ as a library (NVIDIA, NVRTC documentation), by ctypes.

It is looked for where pip installs it, in $CUDA_HOME, and by the system's loader. It runs in the
process of compilers; what can be said without loading it is said here.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
from ctypes.util import find_library
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.errors import CompileError, DeviceError

HOW = "pip install 'workbench[cuda]'"
_ERROR = re.compile(
    r"^kernel\.cu\((\d+)\): (?:catastrophic )?error:\s*(.*)$", re.MULTILINE
)
_PTXAS = re.compile(r"^ptxas (?:error|fatal)\s*:\s*(.*)$", re.MULTILINE)


class Toolkit(NamedTuple):
    """Where NVIDIA's tools are: the library, nvdisasm and the headers ("": none)."""

    library: str
    nvdisasm: str
    headers: str


class Image(NamedTuple):
    """What NVRTC makes of a text: PTX or a cubin, and what it says of it."""

    data: bytes
    log: str


@lru_cache(maxsize=1)
def toolkit() -> Toolkit | None:
    """Return NVIDIA's tools; None where there is no NVRTC. Nothing is loaded."""
    for root in _roots():
        names = ("lib/libnvrtc.so*", "lib64/libnvrtc.so*", "bin/**/nvrtc64_*.dll")
        paths = sorted(path for name in names for path in root.glob(name))
        libraries = [
            p for p in paths if "alt" not in p.name and "builtins" not in p.name
        ]
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
        raise DeviceError("there is no NVRTC here", "it compiles CUDA C++", HOW)
    try:
        return ctypes.CDLL(tools.library)
    except OSError as error:
        raise DeviceError("NVRTC does not load", str(error), HOW) from error


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
        "-default-device",
        "-lineinfo",
    ]
    if arch.startswith("sm_"):
        options.append("--ptxas-options=-v")
    if tools.headers:
        options.append(f"-I{tools.headers}")
    program = ctypes.c_void_p()
    create = library.nvrtcCreateProgram
    create(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    try:
        words = [option.encode() for option in options]
        arguments = (ctypes.c_char_p * len(words))(*words)
        status = library.nvrtcCompileProgram(program, len(words), arguments)
        log = (
            _read(library, program, "ProgramLog")
            .rstrip(b"\0")
            .decode("utf-8", "replace")
        )
        if status:
            raise error_of(log)
        kind = "CUBIN" if arch.startswith("sm_") else "PTX"
        return Image(_read(library, program, kind), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{what}")(program, data)
    return data.raw[: size.value]


def error_of(log: str) -> CompileError:
    """Return the first error of a log as a CompileError."""
    match = _ERROR.search(log)
    if match:
        return CompileError("nvrtc", match[2].strip(), line=int(match[1]))
    limit = _PTXAS.search(log)
    because = limit[1].strip() if limit else " ".join(log.split())[:400]
    return CompileError("nvrtc", because or "it says nothing")
