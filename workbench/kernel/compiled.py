"""Compiled: a kernel compiled for a device, with the record of its passes.

Sections: Compiled; The registers of a work-item, as a compiler of the machine reports them;
Checking the plain arguments of a Kernel's methods.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, get_args

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.device import Device
from workbench.backends.native.program import AsmLine
from workbench.base.errors import (
    DeviceError,
    DTypeError,
    LevelError,
    ShapeError,
    WorkbenchError,
    integer_of,
)
from workbench.base.files import Unpicklable
from workbench.base.terminal import Displayed
from workbench.base.trace import PassRecord, unobserved
from workbench.edited import IRLevel, ir_text
from workbench.ir.lower.launch import barriers
from workbench.ir.nest.estimates import Counts, Estimates, count
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.pipeline import Recorded, Stages, build

# --------------------------------------------------------------------------------------------------
# Compiled.


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
        """The machine code for a machine that is not here, with its use of the machine; None on
        other devices, and if no compiler is known. Errors: CompileError; DeviceError if the
        compiler is missing."""
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

    def text(self, level: IRLevel) -> str:
        """Return the IR text of a level, "tree" or "linear"; edited, `kernel.try_text` runs it.

        Errors: LevelError for another name."""
        if not isinstance(level, str) or level not in get_args(IRLevel):
            because = 'there are "tree" and "linear"'
            raise LevelError(f"there is no level {level!r:.40}", because, '"linear"')
        return ir_text(self.built, level)

    def __getitem__(self, level: str) -> Any:
        """Return the state "lowered" (a BLOCK) or "linear" (a tuple of UOps). Errors: LevelError
        for another name."""
        levels = {"lowered": self.built.lowered, "linear": self.built.linear}
        if not isinstance(level, str) or level not in levels:
            because = "there are " + ", ".join(levels)
            raise LevelError(f"there is no level {level!r:.40}", because, '"linear"')
        return levels[level]

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        source, lines = self.built.source, self.source.count("\n") + 1
        return f"Compiled({source.name} for {self.device}: {lines:,} lines of {source.language})"


def compiled(device: str, record: Recorded, estimates: Estimates) -> Compiled:
    """Return a kernel compiled for a device, with its record and estimates."""
    stages, passes = record
    target = Device[device].target
    counts = count(stages.linear, barriers(stages.kernel, target), target.has_groups)
    return Compiled(device, stages, passes, estimates, counts)


# --------------------------------------------------------------------------------------------------
# The registers of a work-item, as a compiler of the machine reports them: for predictions and the
# page.

KEPT_KERNELS = 512
"""The number of kernels whose registers are memoised, the most recently used ones."""


def compiled_registers(kernel: UOp, device: str) -> int | None:
    """Return the registers of a work-item of a kernel (a SINK) on a GPU with published figures;
    None where no compiler reports them. A result is read from disk the next time."""
    info = Device[device]
    if not info.has_groups or not info.has_hardware or kernel.code is not None:
        return None
    return _registers(kernel, info.name, rules_in_force())


@lru_cache(maxsize=KEPT_KERNELS)
def _registers(kernel: UOp, device: str, rules: RulesInForce) -> int | None:
    with suppress(WorkbenchError), unobserved():
        code = getattr(build(kernel, device).program, "machine_code", None)
        return None if code is None else code.use.registers
    return None


# --------------------------------------------------------------------------------------------------
# Checking the plain arguments of a Kernel's methods.


def seed(value: object) -> int:
    """Return a seed of random data. Errors: DTypeError unless it is an integer, 0 or more."""
    integer = integer_of(value)
    if integer is not None and integer >= 0:
        return integer
    raise DTypeError(
        f"cannot use seed={value!r:.40}", "a seed must be an integer, 0 or more", "seed=0"
    )


def budget(value: Any) -> float:
    """Return a time in seconds. Errors: DTypeError unless it is a number, 0 or more."""
    is_number = isinstance(value, Real)
    if is_number and 0 <= value <= sys.float_info.max:
        return float(value)
    raise DTypeError(
        f"cannot use budget_s={value!r:.40}", "it must be seconds, 0 or more", "budget_s=0.5"
    )


def shape_of(value: object, size: int) -> tuple[int, ...]:
    """Return a shape of `size` elements. Errors: ShapeError unless it is one."""
    if isinstance(value, tuple | list):
        shape = tuple(value)
        if all(type(n) is int for n in shape) and math.prod(shape) == size:
            return shape
    raise ShapeError(
        f"shape {value!r:.40} does not fit", f"the output has {size} elements", f"({size},)"
    )
