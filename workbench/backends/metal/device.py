"""The METAL device: an Apple GPU."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.memory import Memory
from workbench.backends.metal.dialect import METAL, Metal
from workbench.backends.metal.driver import MetalDriver
from workbench.backends.metal.machines import MACHINES
from workbench.backends.metal.memory import MetalMemory
from workbench.backends.metal.runtime import MetalProgram
from workbench.base.target import Target


class MetalDevice(WorkGroupDevice):
    """Metal on an Apple GPU."""

    name = "METAL"
    has_machine_code = False
    about = "an Apple GPU"
    extra = "metal"
    needs = "on a Mac"
    rank = 98
    queues = True
    memory: Memory = MetalMemory()
    driver = MetalDriver
    program = MetalProgram
    language = METAL

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Metal:
        return Metal()


DEVICE = MetalDevice()
