"""A device for tests whose kernels the emulator runs: whatever it computes is watched, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workbench.backends.contract import DeviceInfo
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.analysis import analyse
from workbench.backends.program.text import Language, Source, signature
from workbench.base.target import Target
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text

NAME = "EMULATED"


class Emulated(DeviceInfo):
    """The device; `traces` has the Trace of each launch."""

    name = NAME
    about = "work-groups on the emulator"
    how_to_get = "it is always there"
    language = Language("steps", "the linear program", "#.*$", r"\bLOAD\b")
    memory = host_memory
    can_abort = False

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.programs: dict[str, tuple[UOp, ...]] = {}

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return common_gpu(NAME)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        plan, text = analyse(linear, self.target), to_text(linear)
        self.programs[text] = linear
        params = signature(plan.params)
        return Source(linear[0].arg.name, "steps", text, params, launch=plan.launch)

    def load(self, source: Source) -> EmulatedProgram:
        return EmulatedProgram(self, source)


class EmulatedProgram:
    """A kernel that the emulator runs."""

    def __init__(self, device: Emulated, source: Source):
        self.device, self.source = device, source

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> EmulatedLaunch:
        return EmulatedLaunch(self, [*buffers])


class EmulatedLaunch:
    """A kernel and its memory."""

    def __init__(self, program: EmulatedProgram, buffers: list[Buffer]):
        self.program, self.buffers = program, buffers

    def __call__(self, wait: bool = True) -> None:
        device = self.program.device
        linear = device.programs[self.program.source.text]
        arrays = [buffer.array for buffer in self.buffers]
        device.traces.append(emulated(linear, arrays, device.target))

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer


@contextmanager
def registered() -> Iterator[Emulated]:
    """The device, which is there meanwhile."""
    emulator = Device.register(Emulated())
    assert isinstance(emulator, Emulated)
    yield emulator
    Device.unregister(NAME)
