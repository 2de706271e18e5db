"""A device of another machine: its kernels are compiled, predicted and emulated, never launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.compilers.refusal import errors_in, require_kernel
from workbench.backends.contract import DeviceInfo, Launch, Program, require_room
from workbench.backends.native.assembly import AsmLine
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.forking import once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class Elsewhere(DeviceInfo):
    """One of the machines of a device. Its data are in this process's memory, where the emulator
    reads them."""

    is_available = False
    is_elsewhere = True
    is_emulator = True
    renders_anywhere = True

    def __init__(self, device: DeviceInfo, machine: str):
        self.device, self.machine = device, machine
        self.name = f"{device.name}:{machine}"
        hardware = device.machines[machine].hardware
        self.is_predicted = hardware is not None
        what = f"{device.about} ({machine})" if hardware is None else hardware.about
        self.about = f"{what}, which is not here"
        self.needs = "a machine with one; without it kernels are emulated"
        self.memory, self.language = host_memory, device.language
        self.has_groups = device.machines[machine].has_groups
        self.runs_in_page = device.runs_in_page
        self.compiles_text = device.compiles_text
        # a driver's own code may not be readable where what is compiled for others is
        self.has_machine_code = device.has_machine_code or device.compiles_text

    @property
    def notice(self) -> str:  # type: ignore[override]  # the machines of a device may change
        others = [m for m in self.device.machines if m != self.machine]
        sentences = [
            f"{self.name}: {self.about}.",
            "Times are predicted, not run here;"
            if self.is_predicted
            else "Its speed is not known, so no time is predicted;",
            "answers of small kernels are emulated.",
        ]
        if self.runs_in_page:
            sentences.append("A page runs its kernels in the browser that shows it.")
        if others:
            names = ", ".join(others)
            sentences.append(f"Other machines of {self.device.name}: {names}.")
        return " ".join(sentences)

    @property
    def languages(self) -> tuple[Language, ...]:
        return self.device.languages

    def _target(self) -> Target:
        return replace(self.device.machines[self.machine], device=self.name)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        source = self.device.render_for(self.target, block, linear, tree)
        return replace(source, linear=linear)  # errors of compilers name its ops

    def render_as(
        self, language: Language, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        return self.device.render_as_for(self.target, language, block, linear, tree)

    def load(self, source: Source) -> Program:
        return ElsewhereProgram(self, source)

    def load_emulated(self, source: Source, emulated: Program) -> Program:
        """Return the Program of a Source that `emulated` runs."""
        return ElsewhereProgram(self, source, emulated)

    def no_times(self) -> DeviceError:
        """Return the error of what would measure a time."""
        return DeviceError(
            f"{self.name} is not timed",
            f"the {self.machine} is not here: its times are predicted, not run here",
            "the prediction, `kernel.cost`, or a device that is here",
        )

    def compile_here(self, source: Source) -> MachineCode | None:
        """Return the machine code of a kernel, which does not run here; None where no compiler for
        the machine is known.

        Errors: as `compile_for`, also for a text that has other kernels; one about a line names
        what it computes.
        """
        with errors_in(source):
            code = self.device.compile_for(self.target, source)
            if code is not None:
                require_kernel("read", code.kernels, source)
            return code


class ElsewhereProgram:
    """A kernel for a machine that is not here: it has machine code; what runs is `emulated`, or
    nothing, as with an edited text: the emulator runs programs."""

    def __init__(self, device: Elsewhere, source: Source, emulated: Program | None = None):
        self.device, self.source, self.emulated = device, source, emulated

    @once
    def machine_code(self) -> MachineCode | None:
        """The machine code, compiled when it is first read. Errors: as `compile_here`."""
        return self.device.compile_here(self.source)

    def require_code(self) -> None:
        """Errors: CompileError; DeviceError without a compiler."""
        _ = self.machine_code

    @property
    def assembly(self) -> str | None:
        """The machine code as text."""
        return None if self.machine_code is None else self.machine_code.text

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions, each with its line of the source."""
        return () if self.machine_code is None else self.machine_code.lines

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def require_room(self) -> None:
        """Errors: DeviceError where nothing can run it, for its size."""
        if self.emulated is not None:
            require_room(self.emulated)

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        if self.emulated is not None:
            return self.emulated.bind(buffers)
        machine = self.device
        because = f"the {machine.machine} is not here"
        raise DeviceError(f"{machine.name} runs no kernels", because, machine.how_to_get)
