"""The HIP device: an AMD GPU, through HIP."""

from __future__ import annotations

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.hip.dialect import HIP_CPP, HipCpp


class HipDevice(WorkGroupDevice):
    """HIP on an AMD GPU."""

    name = "HIP"
    about = "an AMD GPU, through HIP"
    how_to_get = "an AMD GPU with ROCm"
    rank = 97
    language = HIP_CPP

    def dialect(self) -> HipCpp:
        return HipCpp()


DEVICE = HipDevice()
