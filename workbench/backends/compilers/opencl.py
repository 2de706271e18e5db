"""OpenCL C through the compiler of a driver, in the process that asks for it."""

from __future__ import annotations

import re
import warnings
from typing import Any

from workbench.backends.compilers.refusal import CLANG, refusal
from workbench.backends.gpu.opencl_c import STANDARD
from workbench.base.libraries import library

POCL = re.compile(r"error: .*?:(?P<line>\d+):\d+: (?P<what>.*)")
"""How PoCL says where an error is."""


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
        pocl = POCL.search(str(error))
        raise refusal("opencl", str(error), text, POCL if pocl else CLANG) from error


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
