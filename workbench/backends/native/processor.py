"""The base of devices on this machine's own processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from workbench.backends.contract import DeviceInfo, Launch
from workbench.backends.native.host_memory import host_memory
from workbench.backends.native.program import NativeBatch, NativeLaunch
from workbench.base.dtypes import dtypes
from workbench.base.interrupts import no_fork
from workbench.base.target import Target


class Processor(DeviceInfo):
    """A device whose kernels run on this machine's own processor."""

    is_processor = True
    memory = host_memory

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        native = [launch for launch in launches if isinstance(launch, NativeLaunch)]
        return NativeBatch(native) if len(native) == len(launches) else None


def processor_target(name: str) -> Target:
    """Return a Target with the caches of this machine's processor. This reads a few small files, in
    0.5 ms."""
    with no_fork:
        from workbench.backends.native.machine import cache_ways, known_caches, line_bytes

    return Target(name, caches=known_caches(), ways=cache_ways(), line_bytes=line_bytes())


def compiled_target(name: str) -> Target:
    """Return the Target of machine code that LLVM loads on this machine's processor.

    Errors: DeviceError if llvmlite is not installed or does not load.
    """
    with no_fork:
        from workbench.backends.native.jit import host
        from workbench.backends.native.machine import multiply_add
        from workbench.backends.native.thread_pool import cores

    machine, target = host(), processor_target(name)
    fma = multiply_add(machine.cpu)
    return replace(
        target,
        vector_bytes=machine.vector_bytes,
        vector_registers=machine.vector_registers,
        fma_cycles=fma.cycles,
        fma_starts=fma.starts,
        non_temporal_bytes=target.last_cache_bytes,
        conversions=(dtypes.float16,) if machine.converts_float16 else (),
        cores=cores(),
        tensor_cores=machine.tensor_cores,
        no_tensor_cores=machine.no_tensor_cores,
    )
