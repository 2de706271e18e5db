"""The HIP runtime: HIP to a Program, code of hipRTC launched through hip-python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.refusal import errors_in
from workbench.backends.gpu.addresses import AddressLaunch
from workbench.backends.hip.driver import HipDriver, call
from workbench.backends.hip.hiprtc import compile_text
from workbench.backends.program.source import Source
from workbench.base.forking import once

MILLI = 1e-3


class HipProgram:
    """A kernel in HIP; it is compiled when it is first bound.

    Errors: CompileError with the line that hipRTC refuses; DeviceError where the GPU does not load
    it.
    """

    def __init__(self, source: Source):
        self.source = source

    def require_code(self) -> None:
        """Errors: CompileError."""
        _ = self.kernel

    @once
    def kernel(self) -> Any:
        """The kernel on the GPU, with the module that it is of."""
        driver, source = HipDriver.current(), self.source
        with errors_in(source):
            code: bytes = in_child(compile_text, source.text, driver.arch)

        def load() -> Any:
            module = call("ModuleLoadData", code)
            return call("ModuleGetFunction", module, source.name.encode()), module

        return driver.explain(f"the GPU does not load {source.name}", load)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> HipLaunch:
        return HipLaunch(self, buffers)


class HipLaunch(AddressLaunch):
    """A kernel and its memory."""

    def __init__(self, program: HipProgram, buffers: Sequence[Buffer]):
        self.kernel, _ = program.kernel
        super().__init__(program.source, buffers)

    def __call__(self, wait: bool = True) -> None:
        driver = HipDriver.current()
        driver.explain(f"HIP cannot launch {self.name}", self.enqueue)
        if wait:
            driver.explain(
                f"the GPU stopped in {self.name}", lambda: call("StreamSynchronize", driver.stream)
            )

    def timed(self) -> float:
        """Run, and return the seconds between two events of the stream."""
        return HipDriver.explain(f"the GPU stopped in {self.name}", self._timed)

    def _timed(self) -> float:
        stream = HipDriver.current().stream
        begin, end = call("EventCreate"), call("EventCreate")
        try:
            call("EventRecord", begin, stream)
            self.enqueue()
            call("EventRecord", end, stream)
            call("EventSynchronize", end)
            return float(call("EventElapsedTime", begin, end)) * MILLI
        finally:
            call("EventDestroy", begin)
            call("EventDestroy", end)

    def enqueue(self) -> None:
        """Launch in the stream, which may be captured."""
        arguments = tuple(ctypes.c_void_p(place) for place in self.places.values())
        sizes = *self.grid, *self.group
        stream = HipDriver.current().stream
        call("ModuleLaunchKernel", self.kernel, *sizes, 0, stream, None, arguments)
