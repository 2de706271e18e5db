"""The METAL device: an Apple GPU."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.metal.dialect import METAL, Metal
from workbench.backends.metal.machines import MACHINES
from workbench.base.target import Target


class MetalDevice(WorkGroupDevice):
    """Metal on an Apple GPU."""

    name = "METAL"
    about = "an Apple GPU"
    how_to_get = "macOS on a machine with an Apple GPU"
    rank = 98
    language = METAL

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Metal:
        return Metal()


DEVICE = MetalDevice()
