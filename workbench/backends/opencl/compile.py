"""The compiler of an OpenCL driver in a process of its own: if it crashes or hangs, a kernel is
lost, and this process goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.backends.compilers.child import CompilerProcess
from workbench.backends.compilers.opencl import binary_in, build
from workbench.backends.gpu.opencl_c import STANDARD
from workbench.backends.native import object_cache
from workbench.backends.opencl import pocl
from workbench.backends.opencl.driver import OpenCLDriver
from workbench.base.cache.folder import key_of
from workbench.base.errors import CompileError

LIMIT_S = 120.0
"""Seconds that a driver's compiler may take."""
_process = CompilerProcess()
"""Of no other compiler: drivers bring whole compilers that are not made to share a process."""


class KernelText(NamedTuple):
    """A kernel for the device that is here: its text, its name, and along x, y and z the work-items
    of all groups and of one."""

    text: str
    name: str
    items: tuple[int, ...]
    group: tuple[int, ...]


class KernelBinary(NamedTuple):
    """What a driver loads, b"" where it gives no binaries, and the kernel's name in it."""

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
        object_cache.put(key, data)
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
