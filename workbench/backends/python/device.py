"""The PYTHON device. A fork waits for an import: in a child, a module that is half imported would
stay so."""

from __future__ import annotations

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class PythonDevice(DeviceInfo):
    """An emulator: it runs the statement tree."""

    name = "PYTHON"
    has_machine_code = False
    about = "an emulator on numpy: slow, and every step can be looked at"
    how_to_get = "it is always there"
    rank = 90
    is_emulator = True
    runs_plain = True
    can_abort = False
    memory = host_memory

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return Target(self.name, native_transcendentals=True, native_low_precision=True)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        with no_fork:
            from workbench.backends.python.render import render

        return render(block)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.python.runtime import EmulatorProgram
        return EmulatorProgram(source)


DEVICE = PythonDevice()
