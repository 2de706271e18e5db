"""The NULL device, which compiles everything and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.contract import DeviceInfo, Launch, Program
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class NullDevice(DeviceInfo):
    """A NULL device over another device, `inner` (by default the processor). Kernels are compiled
    as by `inner`, to machine code where it has a compiler. They are refused instead of run, so that
    no value is taken for their result. `Device["NULL:OPENCL"]` is over OPENCL,
    `Device["NULL:CUDA:H100"]` over a machine that is not here.
    """

    name = "NULL"
    about = "compiles everything, and runs nothing"
    how_to_get = "it is always there, and none of its kernels runs"
    rank = 200
    is_available = False
    renders_anywhere = True
    only_compiles = True
    memory = host_memory

    def __init__(self, inner: str = ""):
        self._inner = inner
        if inner:
            self.name = f"{NullDevice.name}:{inner}"

    @property
    def source_device(self) -> DeviceInfo:
        from workbench.backends.device import Device

        return Device[self._inner] if self._inner else Device.processor

    def on(self, machine: str) -> DeviceInfo:
        from workbench.backends.device import Device

        return NullDevice(Device[machine].name)

    def _target(self) -> Target:
        return replace(self.source_device.target, device=self.name)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return self.source_device.render(block, linear, tree)

    def load(self, source: Source) -> Program:
        return NullProgram(self, self.source_device.load(source))


class NullProgram:
    """A program that another device compiled, and that does not run."""

    def __init__(self, device: NullDevice, program: Program):
        self.device, self.program = device, program

    @property
    def assembly(self) -> str | None:
        """The machine code as text; None where the device has none."""
        return getattr(self.program, "assembly", None)

    @property
    def assembly_lines(self) -> Any:
        """The instructions, each with its line of the source; () where there are none."""
        return getattr(self.program, "assembly_lines", ())

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        what = f"{self.device.name} runs no kernels"
        inner = self.device.source_device.name
        because = "it compiles them, and what they compute is not known"
        raise DeviceError(what, because, f'the device "{inner}"')


DEVICE = NullDevice()
