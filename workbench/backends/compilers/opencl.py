"""The compiler of an OpenCL driver, in the process that calls it."""

from __future__ import annotations

import warnings
from typing import Any

from workbench.backends.compilers.refusal import missing_kernel, refusal
from workbench.backends.gpu.opencl_c import STANDARD
from workbench.backends.program.source import Source
from workbench.base.libraries import library


def build(context: Any, text: str, options: str = "") -> Any:
    """Return the program of a text, with more options than the standard's.

    Errors: CompileError with the line that the driver refuses.
    """
    cl = library("pyopencl")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what compilers say of right kernels
            return cl.Program(context, text).build(f"{STANDARD} {options}")
    except cl.Error as error:
        raise refusal("opencl", str(error), text) from error


def kernel_in(program: Any, name: str, source: Source) -> Any:
    """Return the kernel of a source, which has a `name` in a program.

    Errors: CompileError where the program has none of that name.
    """
    cl = library("pyopencl")
    try:
        return cl.Kernel(program, name)
    except cl.Error as error:
        raise missing_kernel("opencl", source) from error


def load(context: Any, device: Any, binary: bytes) -> Any | None:
    """Return the program of a binary, None where the driver does not take it, or gave none."""
    cl = library("pyopencl")
    try:
        if not binary:
            return None
        return cl.Program(context, [device], [binary]).build()
    except cl.Error:
        return None


def binary_in(program: Any) -> bytes:
    """Return the binary of a program that was built for one device; b"" where the driver gives
    none."""
    cl = library("pyopencl")
    try:
        return bytes(program.get_info(cl.program_info.BINARIES)[0])
    except cl.Error:
        return b""
