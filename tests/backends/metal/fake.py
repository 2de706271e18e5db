"""Apple's driver for tests without a Mac: modules like pyobjc's Metal and objc."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.backends.gpu.fake_gpu import WRONG_WORD, FakeGpu, FakeKernel, module_of

RUNS = 3
COMPLETED = 4
STOPPED = 5
"""MTLCommandBufferStatus."""
PLACE = 256


@dataclass
class FakeSize:
    """MTLSize."""

    width: int
    height: int
    depth: int


@dataclass
class FakeBuffer:
    """MTLBuffer."""

    gpu: FakeGpu
    address: int
    size: int

    def length(self) -> int:
        return self.size

    def contents(self) -> Any:
        data = self.gpu.bytes_at(self.address, self.size)
        return SimpleNamespace(as_buffer=lambda count: memoryview(data)[:count])


@dataclass
class FakeError:
    """NSError."""

    words: str

    def localizedDescription(self) -> str:
        return self.words


class FakeState:
    """MTLComputePipelineState."""

    def __init__(self, kernel: FakeKernel):
        self.kernel = kernel

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return 512


class FakeEncoder:
    """MTLComputeCommandEncoder."""

    def __init__(self, commands: FakeCommands):
        self.commands = commands
        self.places: dict[int, int] = {}

    def setComputePipelineState_(self, state: FakeState) -> None:
        self.state = state

    def setBuffer_offset_atIndex_(self, buffer: FakeBuffer, offset: int, index: int) -> None:
        self.places[index] = buffer.address + offset

    def dispatchThreadgroups_threadsPerThreadgroup_(self, grid: FakeSize, group: FakeSize) -> None:
        places = [self.places[index] for index in range(len(self.places))]
        sizes = [(s.width, s.height, s.depth) for s in (grid, group)]
        self.commands.steps.append((self.state.kernel, *sizes, places))

    def endEncoding(self) -> None:
        self.commands.is_whole = True


class FakeCommands:
    """MTLCommandBuffer, which runs when somebody waits for it."""

    def __init__(self, gpu: FakeGpu):
        self.gpu = gpu
        self.steps: list[Any] = []
        self.state = 0
        self.is_whole = False
        self.begin = 0.0
        self.end = 0.0

    def computeCommandEncoder(self) -> FakeEncoder:
        return FakeEncoder(self)

    def commit(self) -> None:
        assert self.is_whole and self.state == 0
        self.state = RUNS

    def waitUntilCompleted(self) -> None:
        assert self.state == RUNS
        self.begin = time.perf_counter()
        for kernel, grid, group, places in self.steps:
            kernel.run(grid, group, places)
        self.end = time.perf_counter()
        self.state = STOPPED if self.gpu.fault else COMPLETED

    def status(self) -> int:
        return self.state

    def error(self) -> FakeError:
        return FakeError(self.gpu.fault)

    def GPUStartTime(self) -> float:
        return self.begin

    def GPUEndTime(self) -> float:
        return self.end


class FakeMetal:
    """MTLDevice, of the limits of an M3."""

    def __init__(self, gpu: FakeGpu, name: str = "Apple M3"):
        self.gpu, self._name = gpu, name

    def name(self) -> str:
        return self._name

    def supportsFamily_(self, family: int) -> bool:
        return family <= 1009

    def recommendedMaxWorkingSetSize(self) -> int:
        return 5_726_633_984

    def maxThreadsPerThreadgroup(self) -> FakeSize:
        return FakeSize(1024, 1024, 1024)

    def maxThreadgroupMemoryLength(self) -> int:
        return 32 << 10

    def maxBufferLength(self) -> int:
        return 1 << 31

    def newCommandQueue(self) -> Any:
        return SimpleNamespace(commandBuffer=lambda: FakeCommands(self.gpu))

    def newBufferWithLength_options_(self, size: int, options: int) -> FakeBuffer:
        assert options == 0, "memory that the processor shares"
        size = -(-size // PLACE) * PLACE
        return FakeBuffer(self.gpu, self.gpu.allocate(size), size)

    def newLibraryWithSource_options_error_(self, text: str, options: Any, error: None) -> Any:
        assert options.is_fast is False
        line = self.gpu.wrong_line(text)
        if line is not None:
            words = f"use of undeclared identifier '{WRONG_WORD}'"
            return None, FakeError(f"program_source:{line}:9: error: {words}\n  ^")
        source = self.gpu.sources[text.encode()]

        def function(name: str) -> FakeKernel:
            assert name == source.name
            return FakeKernel(self.gpu, source)

        return SimpleNamespace(newFunctionWithName_=function), None

    def newComputePipelineStateWithFunction_error_(self, function: FakeKernel, error: None) -> Any:
        return FakeState(function), None


class FakeOptions:
    """MTLCompileOptions."""

    is_fast = True

    @staticmethod
    def new() -> FakeOptions:
        return FakeOptions()

    def setFastMathEnabled_(self, is_fast: bool) -> None:
        self.is_fast = is_fast


@contextmanager
def autorelease_pool() -> Iterator[None]:
    yield


def fakes(gpu: FakeGpu) -> dict[str, ModuleType]:
    """Return the modules in whose place they stand."""
    metal = module_of(
        "Metal",
        MTLCreateSystemDefaultDevice=lambda: FakeMetal(gpu),
        MTLCompileOptions=FakeOptions,
        MTLSizeMake=FakeSize,
    )
    return {"Metal": metal, "objc": module_of("objc", autorelease_pool=autorelease_pool)}
