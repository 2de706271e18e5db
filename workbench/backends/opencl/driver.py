"""The OpenCL driver that the device uses: its context, its queue, its limits."""

from __future__ import annotations

import os
from typing import Any

from workbench.backends.gpu.driver import GpuDriver
from workbench.base.dtypes import dtypes
from workbench.base.installation import library
from workbench.base.target import Target

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_SIMULATORS = ("oclgrind",)


class OpenCLDriver(GpuDriver):
    """One device of one OpenCL platform: a GPU before others, no simulator."""

    name = "OPENCL"
    package = "pyopencl"
    absence = "pyopencl finds no driver"

    def __init__(self, gpu: Any):
        cl = library("pyopencl")
        self.device, self.context = gpu, cl.Context([gpu])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)

    @staticmethod
    def find() -> Any | None:
        cl = library("pyopencl")
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            return None
        devices = [d for p in platforms for d in p.get_devices() if not is_simulator(d)]
        devices.sort(key=lambda d: not d.type & cl.device_type.GPU)
        return devices[0] if devices else None

    def target(self) -> Target:
        device = self.device
        sizes = device.max_work_item_sizes
        is_gpu = device.type & library("pyopencl").device_type.GPU
        return Target(
            self.name,
            vector_bytes=16,
            native_transcendentals=bool(is_gpu),  # those of PoCL give wrong answers for NaN
            conversions=(dtypes.float16,),
            converts_in_memory=True,
            grid_limits=(1 << 31, 1 << 16, 1 << 16),
            group_items=min(device.max_work_group_size, sizes[0], 1024),
            group_limits=tuple(sizes),
            warp_lanes=32 if is_gpu else 8,
            serial_items=not is_gpu,
            shared_bytes=device.local_mem_size,
            scratch_bytes=16 << 10,
            stack_bytes=1 << 30,
            cores=device.max_compute_units,
        )

    def flush(self) -> None:
        self.queue.flush()

    def wait(self) -> None:
        self.queue.finish()


def is_simulator(device: Any) -> bool:
    """Whether a device simulates and checks kernels, which is slow."""
    return any(word in device.platform.name.lower() for word in _SIMULATORS)
