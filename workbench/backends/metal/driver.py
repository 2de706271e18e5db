"""Apple's driver, through pyobjc: the GPU, its queue, its limits."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.metal.machines import machine_of
from workbench.base.errors import DeviceError
from workbench.base.libraries import library
from workbench.base.target import Target

MOST_PENDING = 64
"""Most launches that run, or wait for others: the command buffers that a queue of Metal has."""
COMPLETED = 4
"""Apple, Metal, MTLCommandBufferStatus."""
APPLE_FAMILIES = range(1001, 1020)
"""Apple, Metal, MTLGPUFamily: the number of Apple 1, and of those after it."""


class MetalDriver(GpuDriver):
    """The GPU of this Mac, and the queue of all launches; what is launched is `pending`."""

    name = "METAL"
    package = "Metal"
    absence = "pyobjc finds no GPU that Metal supports"

    def __init__(self, gpu: Any):
        self.gpu, self.queue = gpu, gpu.newCommandQueue()
        self.pending: deque[tuple[str, Any]] = deque()

    @staticmethod
    def find() -> Any | None:
        return library("Metal").MTLCreateSystemDefaultDevice()

    @property
    def arch(self) -> str:
        """The last family of GPUs that it belongs to: "apple9"; "" for GPUs of others."""
        families = [n for n in APPLE_FAMILIES if self.gpu.supportsFamily_(n)]
        return f"apple{families[-1] - 1000}" if families else ""

    def target(self) -> Target:
        memory = self.gpu.recommendedMaxWorkingSetSize()
        machine = machine_of(self.gpu.name(), self.arch, memory)
        return replace(
            machine,
            device=self.name,
            group_items=self.gpu.maxThreadsPerThreadgroup().width,
            shared_bytes=self.gpu.maxThreadgroupMemoryLength(),
        )

    def start(self, name: str, commands: Any) -> None:
        """Let commands run, after all others. Errors: as `wait`, of an earlier launch."""
        if len(self.pending) == MOST_PENDING:
            self._finish()
        commands.commit()
        self.pending.append((name, commands))

    def flush(self) -> None:
        """What is committed begins by itself."""

    def wait(self) -> None:
        while self.pending:
            self._finish()

    def _finish(self) -> None:
        """Wait for the first launch that is pending."""
        name, commands = self.pending.popleft()
        commands.waitUntilCompleted()
        if commands.status() != COMPLETED:
            because = str(commands.error().localizedDescription())
            raise DeviceError(f"the GPU stopped in {name}", because)
