"""Devices of machines that are not here, whose kernels are compiled, predicted and emulated, never
launched; and renderers without a runtime.

Sections: A device of another machine; A renderer without a runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.compilers.refusal import errors_in, require_kernel
from workbench.backends.contract import DeviceInfo, Launch, Program, require_room
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.native.host_memory import host_memory
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import Language, Source
from workbench.base.errors import DeviceError, require
from workbench.base.interrupts import once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# A device of another machine.


class Elsewhere(DeviceInfo):
    """A device on one of its `machines`. Its data are in this process's memory, where the emulator
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
        self.needs = f"the {machine}; without it only unedited kernels run, emulated"
        self.memory, self.language = host_memory, device.language
        self.has_groups = device.machines[machine].has_groups
        self.runs_in_page = device.runs_in_page
        self.compiles_text = device.compiles_text
        # a driver may hide its machine code, and a compiler of this machine does not
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
        """Return the error for measuring a time."""
        return DeviceError(
            f"{self.name} is not timed",
            f"the {self.machine} is not here: its times are predicted, not run here",
            "the prediction, `kernel.cost`, or a device that is here",
        )

    def compile_here(self, source: Source) -> MachineCode | None:
        """Return the machine code of a kernel, to read; None where no compiler for the machine is
        known.

        Errors: as `compile_for`, and CompileError unless the text has the kernel of `source` alone;
        an error at a line says what the line computes.
        """
        with errors_in(source):
            code = self.device.compile_for(self.target, source)
            if code is not None:
                require_kernel("read", code.kernels, source)
            return code


class ElsewhereProgram:
    """A kernel for a machine that is not here. Its machine code can be read; a launch runs
    `emulated`. Edited text has none, since the emulator runs linear programs, not text: then `bind`
    raises a DeviceError."""

    def __init__(self, device: Elsewhere, source: Source, emulated: Program | None = None):
        self.device, self.source, self.emulated = device, source, emulated

    @once
    def machine_code(self) -> MachineCode | None:
        """The machine code, compiled when it is first read. Errors: as `compile_here`."""
        return self.device.compile_here(self.source)

    def require_code(self) -> None:
        """Compile now. Errors: CompileError; DeviceError without a compiler."""
        _ = self.machine_code

    @property
    def assembly(self) -> str | None:
        """The machine code as text; None where no compiler for the machine is known."""
        return None if self.machine_code is None else self.machine_code.text

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions, each with its line of the source."""
        return () if self.machine_code is None else self.machine_code.lines

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def require_room(self) -> None:
        """Errors: DeviceError if the kernel is too large for the emulator."""
        if self.emulated is not None:
            require_room(self.emulated)

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        if self.emulated is not None:
            return self.emulated.bind(buffers)
        machine = self.device
        because = f"the {machine.machine} is not here"
        raise DeviceError(f"{machine.name} runs no kernels", because, machine.how_to_get)


# --------------------------------------------------------------------------------------------------
# A renderer without a runtime: a language in which kernels of any machine can be read.
#
#     register(Renderer("SHADER", Language("shader", ..), target, render))
#
# From then on the page has a tab for it, beside those of the devices.

Render = Callable[[UOp, tuple[UOp, ...], Target, UOp | None], Source]


class Renderer(DeviceInfo):
    """A device that renders kernels in its language and runs none.

    `render(block, linear, target, tree)` returns the Source of a kernel from its lowered
    statement tree and its linear program; `tree` is the statement tree before operations were
    decomposed. It may raise a WorkbenchError for an operation that the language lacks.
    """

    is_available = False
    renders_anywhere = True
    how_to_get = "a device that runs this language; the text can be read without one"

    def __init__(self, name: str, language: Language, target: Target, render: Render):
        require(name, str, "Renderer: name", '"MINE"')
        require(language, Language, "Renderer: language", "Language(..)")
        require(target, Target, "Renderer: target", 'Device["C"].target')
        self.name, self.language = name, language
        self.about = f"{language.title}, to read"
        self.memory = _NoMemory(name)
        self._own_target, self._render = replace(target, device=name), render

    def _target(self) -> Target:
        return self._own_target

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return self._render(block, linear, self._own_target, tree)

    def load(self, source: Source) -> Program:
        raise _cannot_run(self.name)


class _NoMemory(Memory):
    """The memory of a device that runs nothing: it raises at every use."""

    def __init__(self, name: str):
        self.name = name

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        raise _cannot_run(self.name)

    def free(self, handle: Any) -> None:
        raise _cannot_run(self.name)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        raise _cannot_run(self.name)

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        raise _cannot_run(self.name)

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        raise _cannot_run(self.name)


def _cannot_run(name: str) -> DeviceError:
    because = "it is a renderer: its kernels can be read, and nothing runs them"
    return DeviceError(f"{name} runs no kernels", because, "another device")
