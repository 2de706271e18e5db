"""Machine code that a compiler made for a machine, present or not, and its use of that machine's
resources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.backends.native.assembly import AsmLine


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a kernel takes of a machine, as its compiler says; None where it does not say.

    registers: 32-bit registers of a work-item; scalar_registers: those of a warp.
    Units: shared_bytes of a group; stack_bytes of a work-item, among them spill_bytes, which are
    for registers that there were not enough of; occupancy in warps of a unit that runs them.
    """

    registers: int | None = None
    scalar_registers: int | None = None
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0
    occupancy: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.registers is not None:
            parts.append(f"{self.registers} registers")
        if self.scalar_registers is not None:
            parts.append(f"{self.scalar_registers} scalar registers")
        if self.shared_bytes:
            parts.append(f"{self.shared_bytes:,} bytes of shared memory")
        if self.stack_bytes:
            parts.append(f"{self.stack_bytes:,} bytes of stack")
        if self.registers is not None:
            spills = f"{self.spill_bytes:,} bytes of spills"
            parts.append(spills if self.spill_bytes else "no spills")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class LiveRegisters:
    """The registers in use at an instruction: how many, and a mark for each: `^` it is written, `v`
    read, `x` both, `:` kept, a space where it is free."""

    count: int
    marks: str


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A kernel's machine code: which `isa` it is of, the `compiler` that made it, its instructions,
    each with its line of the source, and the registers in use at each (None: not known). `family`
    names machines with the same instructions; `kernels` are the names of the kernels in it."""

    family: str
    isa: str
    compiler: str
    text: str
    lines: tuple[AsmLine, ...]
    kernels: tuple[str, ...]
    use: ResourceUse = ResourceUse()
    live: tuple[LiveRegisters | None, ...] = ()

    @property
    def about(self) -> str:
        """What it is, and what it takes, in a line."""
        use = str(self.use)
        return f"{self.isa} by {self.compiler}" + (f": {use}" if use else "")

    def from_lines(self, numbers: dict[int, int]) -> MachineCode:
        """Return it with other lines of a source: `numbers` has the new one for each."""
        lines = (AsmLine(line.text, numbers.get(line.source_line or 0)) for line in self.lines)
        return replace(self, lines=tuple(lines))
