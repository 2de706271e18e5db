"""A CUDA driver for tests without a GPU: modules like cuda.core and cuda.bindings.driver, whose
memory is numpy's and whose launches run the emulator. A cubin is the text of the kernel; its
program is that of the Source with this text. Where the real library is installed each call must fit
its signature."""

from __future__ import annotations

import ctypes
import inspect
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from workbench.backends.program.source import Source
from workbench.emulator.machine import Machine

Array = np.ndarray[Any, Any]


class Status(IntEnum):
    """What the functions of the driver return first (CUresult)."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2


class CUDAError(Exception):
    """What the real library raises, too."""


@dataclass
class FakeGpu:
    """The state of the driver: memory by address, launches so far, and the next error."""

    sources: dict[bytes, Source] = field(default_factory=dict)
    memory: dict[int, Array] = field(default_factory=dict)
    launches: list[str] = field(default_factory=list)
    built: int = 0
    fault: str = ""

    def bytes_at(self, address: int, size: int) -> Array:
        """Return memory. Errors: CUDAError for an address that is in no allocation."""
        for start, block in self.memory.items():
            if start <= address and address + size <= start + block.size:
                return block[address - start : address - start + size]
        raise CUDAError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")


class FakeKernel:
    """A kernel, which the emulator runs."""

    def __init__(self, gpu: FakeGpu, source: Source):
        self.gpu, self.source = gpu, source

    def run(self, config: SimpleNamespace, places: Sequence[int]) -> None:
        source, left = self.source, iter(places)
        launch = source.launch
        grid = (*reversed(launch.grid), 1, 1, 1)[:3]
        group = (*reversed(launch.group), 1, 1, 1)[:3]
        assert (tuple(config.grid), tuple(config.block)) == (grid, group)
        arrays = [
            self.gpu.bytes_at(next(left), size * dtype.itemsize).view(dtype.numpy)
            if dtype.bits
            else np.zeros(0)
            for dtype, size in source.params
        ]
        machine = Machine(source.linear, arrays)
        machine.run()
        assert not machine.findings.all, machine.findings.all
        self.gpu.launches.append(source.name)


class FakeGraph:
    """A graph, from its first launch on: it is its own builder."""

    def __init__(self, gpu: FakeGpu):
        self.gpu = gpu
        self.steps: list[tuple[FakeKernel, Any, tuple[int, ...]]] = []
        self.is_whole = False

    def begin_building(self, mode: str = "relaxed") -> FakeGraph:
        return self

    def end_building(self) -> FakeGraph:
        return self

    def complete(self, options: Any = None) -> FakeGraph:
        self.is_whole = True
        self.gpu.built += 1
        return self

    def launch(self, stream: FakeStream) -> None:
        assert self.is_whole and isinstance(stream, FakeStream)
        for kernel, config, places in self.steps:
            kernel.run(config, places)


class FakeStream:
    """A stream that does everything at once."""

    handle = "stream"

    def __init__(self, gpu: FakeGpu):
        self.gpu = gpu

    def sync(self) -> None:
        if self.gpu.fault:
            raise CUDAError(self.gpu.fault)

    def record(self, event: Any = None, options: Any = None) -> FakeEvent:
        assert options.timing_enabled
        return FakeEvent(time.perf_counter())


@dataclass
class FakeEvent:
    """A moment. Units: the difference of two is in milliseconds."""

    at: float

    def sync(self) -> None: ...

    def __sub__(self, other: FakeEvent) -> float:
        return (self.at - other.at) * 1e3


class FakeDevice:
    """A GPU of Hopper's limits."""

    name = "NVIDIA H100 80GB HBM3"
    compute_capability = SimpleNamespace(major=9, minor=0)
    properties = SimpleNamespace(
        max_shared_memory_per_multiprocessor=228 << 10,
        l2_cache_size=50 << 20,
        multiprocessor_count=132,
        max_grid_dim_x=(1 << 31) - 1,
        max_grid_dim_y=65535,
        max_grid_dim_z=65535,
        max_threads_per_block=1024,
        warp_size=32,
        max_shared_memory_per_block=48 << 10,
        reserved_shared_memory_per_block=1 << 10,
        max_registers_per_multiprocessor=65536,
        max_threads_per_multiprocessor=2048,
        max_blocks_per_multiprocessor=32,
        clock_rate=1_980_000,
        memory_clock_rate=2_619_000,
        global_memory_bus_width=5120,
    )

    def __init__(self, gpu: FakeGpu):
        self.gpu = gpu

    def set_current(self, ctx: Any = None) -> None: ...

    def create_graph_builder(self) -> FakeGraph:
        return FakeGraph(self.gpu)

    def create_stream(self, obj: Any = None, options: Any = None) -> FakeStream:
        return FakeStream(self.gpu)


def core(gpu: FakeGpu) -> ModuleType:
    """Return a module like cuda.core."""

    def launch(stream: Any, config: Any, kernel: FakeKernel, *arguments: int) -> None:
        assert all(type(a) is int for a in arguments)
        if isinstance(stream, FakeGraph):
            assert not stream.is_whole
            return stream.steps.append((kernel, config, arguments))
        kernel.run(config, arguments)

    def from_cubin(module: bytes, *, name: str = "") -> Any:
        source = gpu.sources[module]

        def get_kernel(name: str) -> FakeKernel:
            assert name == source.name
            return FakeKernel(gpu, source)

        return SimpleNamespace(get_kernel=get_kernel)

    module: Any = ModuleType("cuda.core")
    module.Device = SimpleNamespace(get_all_devices=lambda: (FakeDevice(gpu),))
    module.ObjectCode = SimpleNamespace(from_cubin=from_cubin)
    module.LaunchConfig = lambda grid, block: SimpleNamespace(grid=grid, block=block)
    module.EventOptions = lambda timing_enabled: SimpleNamespace(
        timing_enabled=timing_enabled
    )
    module.launch = launch
    whole: ModuleType = module
    return whole


def bindings(gpu: FakeGpu, real: Any) -> ModuleType:
    """Return a module like cuda.bindings.driver; `real` is the real one, or None."""

    def allocate(bytesize: int) -> tuple[int, int]:
        if bytesize > 1 << 32:
            return Status.CUDA_ERROR_OUT_OF_MEMORY, 0
        address = max([1 << 40, *(a + b.size + 4096 for a, b in gpu.memory.items())])
        address = -(-address // 512) * 512
        gpu.memory[address] = np.full(bytesize, 0xA5, np.uint8)
        return 0, address

    def free(dptr: int) -> tuple[int]:
        del gpu.memory[dptr]
        return (0,)

    def to_gpu(target: int, host: int, size: int, stream: Any) -> tuple[int]:
        data = np.frombuffer(ctypes.string_at(host, size), np.uint8)
        gpu.bytes_at(target, size)[:] = data
        return (0,)

    def from_gpu(host: int, source: int, size: int, stream: Any) -> tuple[int]:
        ctypes.memmove(host, gpu.bytes_at(source, size).tobytes(), size)
        return (0,)

    def on_gpu(target: int, source: int, size: int, stream: Any) -> tuple[int]:
        gpu.bytes_at(target, size)[:] = gpu.bytes_at(source, size).copy()
        return (0,)

    module: Any = ModuleType("cuda.bindings.driver")
    functions = {
        "cuMemAlloc": allocate, "cuMemFree": free, "cuMemcpyHtoDAsync": to_gpu,
        "cuMemcpyDtoHAsync": from_gpu, "cuMemcpyDtoDAsync": on_gpu,
        "cuMemGetInfo": lambda: (0, 1 << 33, 85_520_809_984),
    }  # fmt: skip
    for name, function in functions.items():
        setattr(module, name, function if real is None else fits(function, real, name))
    whole: ModuleType = module
    return whole


def fits(function: Any, real: Any, name: str) -> Any:
    """Return a function that refuses calls which do not fit the real one."""
    signature = inspect.signature(getattr(real, name))

    def call(*arguments: Any) -> Any:
        signature.bind(*arguments)
        return function(*arguments)

    return call


@contextmanager
def modules(gpu: FakeGpu) -> Iterator[None]:
    """Put the fake modules in the place of the real ones."""
    try:
        from cuda.bindings import driver as real
    except ImportError:
        real = None
    fakes = {"cuda.core": core(gpu), "cuda.bindings.driver": bindings(gpu, real)}
    before = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
