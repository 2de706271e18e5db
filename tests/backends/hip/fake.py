"""A HIP driver for tests without a GPU: a package like hip-python. The code of a kernel is its
text. Where hip-python is installed each call must fit its signature."""

from __future__ import annotations

import ctypes
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.backends.gpu.fake_gpu import WRONG_WORD, FakeGpu, FakeKernel, IllegalAddress, module_of


class HipStatus(IntEnum):
    """What the functions return first (hipError_t, hiprtcResult)."""

    hipSuccess = 0
    hipErrorOutOfMemory = 2
    HIPRTC_ERROR_COMPILATION = 6
    hipErrorNotFound = 500
    hipErrorIllegalAddress = 700
    hipErrorLaunchFailure = 719


MI300X = SimpleNamespace(
    name=b"AMD Instinct MI300X",
    gcnArchName=b"gfx942:sramecc+:xnack-",
    multiProcessorCount=304,
    clockRate=2_100_000,
    totalGlobalMem=206_141_652_992,
    l2CacheSize=4 << 20,
    maxThreadsPerBlock=1024,
    warpSize=64,
    sharedMemPerBlock=64 << 10,
)
"""Properties of a device (hipDeviceProp_t)."""


@dataclass
class FakeProgram:
    """A program of hipRTC."""

    text: bytes
    log: bytes = b""

    def createRef(self) -> FakeProgram:
        return self


class FakeHip:
    """The functions, by their names without "hip"."""

    def __init__(self, gpu: FakeGpu, properties: SimpleNamespace):
        self.gpu, self.properties = gpu, properties
        self.captured: list[Callable[[], None]] | None = None
        self.executables: list[object] = []

    def GetDeviceCount(self) -> Any:
        return 0, 1

    def GetDeviceProperties(self, prop: Any, deviceId: int) -> Any:
        vars(prop).update(vars(self.properties))
        return (0,)

    def later_properties(self, deviceId: int) -> Any:
        """As hip-python has it since some release."""
        return 0, self.properties

    def StreamCreate(self) -> Any:
        return 0, "stream"

    def StreamSynchronize(self, stream: Any) -> Any:
        return (HipStatus[self.gpu.fault] if self.gpu.fault else HipStatus.hipSuccess,)

    def Malloc(self, size: int) -> Any:
        try:
            return 0, self.gpu.allocate(size)
        except MemoryError:
            return HipStatus.hipErrorOutOfMemory, 0

    def Free(self, ptr: int) -> Any:
        del self.gpu.memory[ptr]
        return (0,)

    def MemGetInfo(self) -> Any:
        return 0, 1 << 33, 1 << 34

    def MemcpyHtoDAsync(self, dst: int, src: int, sizeBytes: int, stream: Any) -> Any:
        data = np.frombuffer(ctypes.string_at(src, sizeBytes), np.uint8)
        self.gpu.bytes_at(dst, sizeBytes)[:] = data
        return (0,)

    def MemcpyDtoHAsync(self, dst: int, src: int, sizeBytes: int, stream: Any) -> Any:
        data = self.gpu.bytes_at(src, sizeBytes).tobytes()
        ctypes.memmove(dst, data, sizeBytes)
        return (0,)

    def MemcpyDtoDAsync(self, dst: int, src: int, sizeBytes: int, stream: Any) -> Any:
        data = self.gpu.bytes_at(src, sizeBytes).copy()
        self.gpu.bytes_at(dst, sizeBytes)[:] = data
        return (0,)

    def ModuleLoadData(self, image: bytes) -> Any:
        return 0, self.gpu.sources[image]

    def ModuleGetFunction(self, module: Any, kname: bytes) -> Any:
        if kname.decode() != module.name:
            return HipStatus.hipErrorNotFound, None
        return 0, FakeKernel(self.gpu, module)

    def ModuleLaunchKernel(
        self, f: FakeKernel, gridDimX: int, gridDimY: int, gridDimZ: int, blockDimX: int,
        blockDimY: int, blockDimZ: int, sharedMemBytes: int, stream: Any, kernelParams: Any,
        extra: tuple[ctypes.c_void_p, ...],
    ) -> Any:  # fmt: skip
        assert sharedMemBytes == 0 and kernelParams is None and stream == "stream"
        grid, group = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
        places = [place.value or 0 for place in extra]
        if self.captured is not None:
            self.captured.append(lambda: f.run(grid, group, places))
            return (0,)
        try:
            f.run(grid, group, places)
        except IllegalAddress:
            return (HipStatus.hipErrorIllegalAddress,)
        return (0,)

    def StreamBeginCapture(self, stream: Any, mode: Any) -> Any:
        assert stream == "stream" and mode == "relaxed" and self.captured is None
        self.captured = []
        return (0,)

    def StreamEndCapture(self, stream: Any) -> Any:
        graph, self.captured = self.captured, None
        return 0, graph

    def GraphInstantiateWithFlags(self, graph: Any, flags: int) -> Any:
        self.gpu.built += 1
        executable = SimpleNamespace(runs=tuple(graph))
        self.executables.append(executable)
        return 0, executable

    def GraphDestroy(self, graph: Any) -> Any:
        graph.clear()
        return (0,)

    def GraphLaunch(self, graphExec: Any, stream: Any) -> Any:
        assert stream == "stream"
        for run in graphExec.runs:
            run()
        return (0,)

    def GraphExecDestroy(self, graphExec: Any) -> Any:
        self.executables.remove(graphExec)
        return (0,)

    def EventCreate(self) -> Any:
        return 0, SimpleNamespace(at=0.0)

    def EventRecord(self, event: Any, stream: Any) -> Any:
        event.at = time.perf_counter()
        return (0,)

    def EventSynchronize(self, event: Any) -> Any:
        return (0,)

    def EventElapsedTime(self, start: Any, stop: Any) -> Any:
        return 0, (stop.at - start.at) * 1e3

    def EventDestroy(self, event: Any) -> Any:
        return (0,)


class FakeRtc:
    """The functions of hipRTC, by their names without "hiprtc"."""

    def __init__(self, gpu: FakeGpu):
        self.gpu = gpu

    def CreateProgram(
        self, src: bytes, name: bytes, numHeaders: int, headers: Any, includeNames: Any
    ) -> Any:
        assert isinstance(src, bytes) and isinstance(name, bytes) and numHeaders == 0
        return 0, FakeProgram(src)

    def CompileProgram(self, prog: FakeProgram, numOptions: int, options: list[bytes]) -> Any:
        assert len(options) == numOptions and b"--offload-arch=gfx942" in options
        line = self.gpu.wrong_line(prog.text.decode())
        if line is None:
            return (0,)
        words = f"use of undeclared identifier '{WRONG_WORD}'"
        prog.log = f"/tmp/input/CompileSource:{line}:5: error: {words}\n\0".encode()
        return (HipStatus.HIPRTC_ERROR_COMPILATION,)

    def GetProgramLogSize(self, prog: FakeProgram) -> Any:
        return 0, len(prog.log)

    def GetProgramLog(self, prog: FakeProgram, log: bytearray) -> Any:
        log[:] = prog.log
        return (0,)

    def GetCodeSize(self, prog: FakeProgram) -> Any:
        return 0, len(prog.text)

    def GetCode(self, prog: FakeProgram, code: bytearray) -> Any:
        code[:] = prog.text
        return (0,)

    def DestroyProgram(self, prog: FakeProgram) -> Any:
        return (0,)


def fakes(gpu: FakeGpu, properties: SimpleNamespace = MI300X) -> dict[str, ModuleType]:
    """Return the packages in whose place they stand."""
    try:
        import hip as real
    except ImportError:
        real = None
    hip = _functions("hip", FakeHip(gpu, properties), real)
    hip["hipDeviceProp_t"] = SimpleNamespace
    relaxed = SimpleNamespace(hipStreamCaptureModeRelaxed="relaxed")
    hip["hipStreamCaptureMode"] = relaxed
    rtc = _functions("hiprtc", FakeRtc(gpu), real)
    parts = {
        name: module_of(f"hip.{name}", **functions)
        for name, functions in (("hip", hip), ("hiprtc", rtc))
    }
    return {"hip": module_of("hip", **parts)}


def _functions(prefix: str, fake: Any, real: Any) -> dict[str, Callable[..., Any]]:
    names = [name for name in dir(fake) if name[0].isupper()]
    functions = {prefix + name: getattr(fake, name) for name in names}
    if real is not None:
        module = __import__("hip", fromlist=[prefix])
        later = getattr(fake, "later_properties", None)
        if later and len(_parameters(module.hip.hipGetDeviceProperties)) == 1:
            functions["hipGetDeviceProperties"] = later
        for name, function in functions.items():
            theirs = _parameters(getattr(getattr(module, prefix), name))
            assert _parameters(function) == theirs, name
    return functions


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)
