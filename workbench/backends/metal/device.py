"""The METAL device: an Apple GPU. It has a language and machines, and no runtime."""

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
    how_to_get = "nothing launches Metal: pip install 'workbench[webgpu]' runs kernels on its GPU"
    rank = 98
    language = METAL

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Metal:
        return Metal()


DEVICE = MetalDevice()
