"""The METAL device: an Apple GPU."""

from __future__ import annotations

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.metal.dialect import METAL, Metal


class MetalDevice(WorkGroupDevice):
    """Metal on an Apple GPU."""

    name = "METAL"
    about = "an Apple GPU"
    how_to_get = "macOS on a machine with an Apple GPU"
    rank = 98
    language = METAL

    def dialect(self) -> Metal:
        return Metal()


DEVICE = MetalDevice()
