"""A CUDA driver for tests without a GPU: modules like cuda.core and cuda.bindings.driver. A cubin
is the text of the kernel. Where the real library is installed each call must fit its signature."""

from __future__ import annotations

import ctypes
import inspect
import time
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.backends.gpu.fake_gpu import FakeGpu, FakeKernel, module_of

STATIC_SHARED_BYTES = 48 << 10
SHARED_ATTRIBUTE = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class Status(IntEnum):
    """What the functions of the driver return first (CUresult)."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2


class CUDAError(Exception):
    """What the real library raises, too."""


class CudaKernel(FakeKernel):
    """A kernel that allows its launches as much memory of a group as it was told."""

    most_shared = STATIC_SHARED_BYTES

    @property
    def handle(self) -> CudaKernel:
        return self


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
            kernel.run(config.grid, config.block, places)


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
    device_id = 0
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

    def launch(stream: Any, config: Any, kernel: CudaKernel, *arguments: int) -> None:
        assert config.shmem_size == kernel.source.shared_bytes <= kernel.most_shared
        assert all(type(a) is int for a in arguments)
        if isinstance(stream, FakeGraph):
            assert not stream.is_whole
            return stream.steps.append((kernel, config, arguments))
        kernel.run(config.grid, config.block, arguments)

    def from_cubin(module: bytes, *, name: str = "") -> Any:
        source = gpu.sources[module]

        def get_kernel(name: str) -> CudaKernel:
            assert name == source.name
            return CudaKernel(gpu, source)

        return SimpleNamespace(get_kernel=get_kernel)

    return module_of(
        "cuda.core",
        Device=SimpleNamespace(get_all_devices=lambda: (FakeDevice(gpu),)),
        ObjectCode=SimpleNamespace(from_cubin=from_cubin),
        LaunchConfig=lambda grid, block, shmem_size=0: SimpleNamespace(
            grid=grid, block=block, shmem_size=shmem_size
        ),
        EventOptions=lambda timing_enabled: SimpleNamespace(timing_enabled=timing_enabled),
        launch=launch,
    )


def bindings(gpu: FakeGpu, real: Any) -> ModuleType:
    """Return a module like cuda.bindings.driver; `real` is the real one, or None."""

    def allocate(bytesize: int) -> tuple[int, int]:
        try:
            return 0, gpu.allocate(bytesize)
        except MemoryError:
            return Status.CUDA_ERROR_OUT_OF_MEMORY, 0

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

    def allow(attrib: Any, val: int, kernel: CudaKernel, dev: Any) -> tuple[int]:
        assert attrib == SHARED_ATTRIBUTE
        kernel.most_shared = val
        return (0,)

    functions = {
        "cuMemAlloc": allocate, "cuMemFree": free, "cuMemcpyHtoDAsync": to_gpu,
        "cuMemcpyDtoHAsync": from_gpu, "cuMemcpyDtoDAsync": on_gpu,
        "cuKernelSetAttribute": allow,
        "cuMemGetInfo": lambda: (0, 1 << 33, 85_520_809_984),
    }  # fmt: skip
    if real is not None:
        functions = {n: fits(f, real, n) for n, f in functions.items()}
    attributes = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=SHARED_ATTRIBUTE)
    return module_of(
        "cuda.bindings.driver", CUdevice=int, CUfunction_attribute=attributes, **functions
    )


def fits(function: Any, real: Any, name: str) -> Any:
    """Return a function that refuses calls which do not fit the real one."""
    signature = inspect.signature(getattr(real, name))

    def call(*arguments: Any) -> Any:
        signature.bind(*arguments)
        return function(*arguments)

    return call


def fakes(gpu: FakeGpu) -> dict[str, ModuleType]:
    """Return the modules in whose place they stand."""
    try:
        from cuda.bindings import driver as real
    except ImportError:
        real = None
    return {"cuda.core": core(gpu), "cuda.bindings.driver": bindings(gpu, real)}
