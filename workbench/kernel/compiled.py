"""Compiled: a kernel compiled for a device, with the record of its passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.device import Device
from workbench.backends.native.assembly import AsmLine
from workbench.base.display import Displayed
from workbench.base.errors import DeviceError, LevelError
from workbench.base.trace import PassRecord
from workbench.base.unpicklable import Unpicklable
from workbench.ir.lower.launch.barriers import barriers
from workbench.ir.nest.estimates import Counts, Estimates, count
from workbench.pipeline import Recorded, Stages


@dataclass(frozen=True, slots=True, repr=False)
class Compiled(Unpicklable, Displayed):
    """A kernel compiled for a device, with the record of its passes. It has not run."""

    device: str
    built: Stages
    passes: tuple[PassRecord, ...]
    estimates: Estimates
    counts: Counts

    @property
    def source(self) -> str:
        """The text that the device's compiler reads."""
        return self.built.source.text

    @property
    def assembly(self) -> str:
        """The machine code as text.

        Errors: DeviceError on a device that has no machine code.
        """
        return str(self._of_program("assembly"))

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The machine code without directives; each instruction with its line of the source.

        This compiles it again. Errors: as `assembly`.
        """
        lines: tuple[AsmLine, ...] = self._of_program("assembly_lines")
        return lines

    @property
    def machine_code(self) -> MachineCode | None:
        """The machine code for a machine that is not here, with what it takes of it; None where no
        compiler for it is known. Errors: CompileError; DeviceError without the compiler."""
        code: MachineCode | None = self._of_program("machine_code", or_none=True)
        return code

    def _of_program(self, name: str, or_none: bool = False) -> Any:
        value = getattr(self.built.program, name, None)
        if value is None and not or_none:
            device = Device[self.device]
            because = f"it is {device.about}"
            if device.is_elsewhere:
                because = f"no compiler for it is known here: {because}"
            what = f"{device.name} has no machine code"
            raise DeviceError(what, because, f'"{Device.processor.name}"')
        return value

    def __getitem__(self, level: str) -> Any:
        """Return the state at "lowered" (a BLOCK) or "linear" (a tuple of UOps)."""
        levels = {"lowered": self.built.lowered, "linear": self.built.linear}
        if not isinstance(level, str) or level not in levels:
            because = "there are " + ", ".join(levels)
            raise LevelError(f"there is no level {level!r:.40}", because)
        return levels[level]

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        source, lines = self.built.source, self.source.count("\n") + 1
        return f"Compiled({source.name} for {self.device}: {lines:,} lines of {source.language})"


def compiled(device: str, record: Recorded, estimates: Estimates) -> Compiled:
    """Return a kernel compiled for a device, with its record and estimates."""
    stages, passes = record
    counts = count(stages.linear, barriers(stages.kernel, Device[device].target))
    return Compiled(device, stages, passes, estimates, counts)
