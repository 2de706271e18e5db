"""A device on a machine that is not here: its kernels are compiled, predicted and emulated."""

from __future__ import annotations

from dataclasses import replace

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class Elsewhere(DeviceInfo):
    """One of the machines of a device. Its data are in this process's memory, where the emulator
    reads them."""

    is_available = False
    renders_anywhere = True

    def __init__(self, device: DeviceInfo, machine: str):
        self.device, self.machine = device, machine
        self.name = f"{device.name}:{machine}"
        self.about = f"{machine}, which is not here: {device.about}"
        self.how_to_get = "a machine with one; without it kernels are emulated"
        self.memory = host_memory

    @property
    def languages(self) -> tuple[Language, ...]:
        return self.device.languages

    def _target(self) -> Target:
        return replace(self.device.machines[self.machine], device=self.name)

    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        return self.device.render_for(self.target, block, linear, tree)

    def load(self, source: Source) -> Program:
        what = f"{self.name} runs no kernels"
        raise DeviceError(what, f"the {self.machine} is not here", self.how_to_get)
