"""The OpenCL driver that the device uses: its context, its queue, its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workbench.base.errors import DeviceError
from workbench.base.libraries import library
from workbench.base.target import Target

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_SIMULATORS = ("oclgrind",)


@dataclass(frozen=True)
class Driver:
    """One device of one OpenCL platform."""

    device: Any
    context: Any
    queue: Any

    def target(self, name: str) -> Target:
        """Return its limits."""
        device = self.device
        sizes = device.max_work_item_sizes
        is_gpu = device.type & library("pyopencl").device_type.GPU
        return Target(
            name,
            vector_bytes=16,
            native_transcendentals=bool(
                is_gpu
            ),  # those of PoCL give wrong answers for NaN
            grid_limits=(1 << 31, 1 << 16, 1 << 16),
            group_items=min(device.max_work_group_size, sizes[0], 1024),
            warp_lanes=32 if is_gpu else 8,
            shared_bytes=device.local_mem_size,
            scratch_bytes=16 << 10,
            stack_bytes=1 << 30,
            cores=device.max_compute_units,
        )


def is_simulator(device: Any) -> bool:
    """Whether a device simulates and checks kernels, which is slow."""
    return any(word in device.platform.name.lower() for word in _SIMULATORS)


@lru_cache(maxsize=1)
def find_driver() -> Any | None:
    """Return the pyopencl device to use: a GPU before others, no simulator; None without one."""
    cl = library("pyopencl")
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return None
    devices = [d for p in platforms for d in p.get_devices() if not is_simulator(d)]
    devices.sort(key=lambda d: not d.type & cl.device_type.GPU)
    return devices[0] if devices else None


@lru_cache(maxsize=1)
def driver() -> Driver:
    """Return the driver. Errors: DeviceError where there is none."""
    device = find_driver()
    if device is None:
        because = "pyopencl finds no driver"
        how = "pip install 'workbench[opencl]'"
        raise DeviceError("the device OPENCL is not available", because, how)
    cl = library("pyopencl")
    context = cl.Context([device])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    return Driver(device, context, cl.CommandQueue(context, properties=profiling))
