"""The contract of a device: a Target, a renderer, a loader, and facts that other layers ask for.

A device of the package is a folder NAME here with a module NAME_device, whose `DEVICE` is a
DeviceInfo; any other one is registered (see `device.py`). No other file writes its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.memory import Buffer, Memory
from workbench.backends.program.text import Declaration, Language, Source
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command
from workbench.base.interrupts import once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class Launch(Protocol):
    """A kernel and its memory: call it to run. Where the device has a clock of its own it also has
    `timed() -> float`: it runs, and returns the seconds by that clock; where it runs in another
    process, `mean_s(batch) -> float`, the seconds of one of a batch of runs."""

    def __call__(self, wait: bool = True) -> None:
        """Run, and return when it is done. Without `wait` a device that queues may return before:
        its `synchronize` waits, and copies from and to its memory come after the run."""

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory, of the same size and dtype."""


class Program(Protocol):
    """A loaded kernel: call it with one Buffer per slot, or bind them first to time it. A launch
    runs all of its `Source.launch`, in parts if the device likes. Where there is machine code to
    read, it has `assembly` and `assembly_lines`; where a device runs no large kernels, it has
    `require_room()`, which raises a DeviceError and is asked before memory is made for it; where
    the driver compiles it when it is first bound, it has `require_code()`, which does that at once,
    and raises its CompileError."""

    def __call__(self, buffers: Sequence[Buffer]) -> None: ...

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        """Return the kernel with its memory, one Buffer per slot."""


def require_room(program: Program) -> None:
    """Errors: DeviceError where a program is too large for what runs it."""
    refuse = getattr(program, "require_room", None)
    if refuse is not None:
        refuse()


def require_code(program: Program) -> None:
    """Errors: CompileError where the driver's compiler refuses a program."""
    compile_now = getattr(program, "require_code", None)
    if compile_now is not None:
        compile_now()


class DeviceInfo(ABC):
    """One device: its Target, its renderer, its loader, and facts.

    `about` describes it in a line, `how_to_get` says how to install it where it is missing: the
    packages of `extra`, an extra of our distribution, and what it `needs` beside them. `memory`
    has its buffers, and may be shared with other devices; `aliases` are other names. Of all devices
    that are available the one with the least `rank` is the default. `language` is that of the text
    its renderer writes and its loader reads (None: it runs the statement tree itself), `languages`
    are all that its kernels can be read in.
    """

    name: str
    about: str
    extra: str = ""
    needs: str = ""
    memory: Memory
    aliases: tuple[str, ...] = ()
    rank: int = 100
    language: Language | None = None
    is_processor: bool = False
    """Whether kernels run on this machine's own processor, whose speeds are measured."""
    is_emulator: bool = False
    """Whether it simulates kernels: its times say nothing about them, and are never compared with
    others."""
    is_elsewhere: bool = False
    """Whether it is a machine that is not here: its kernels are emulated, as far as they are small,
    and their times predicted."""
    has_groups: bool = False
    """Whether its Target has work-groups, also where it is not available."""
    notice: str = ""
    """Facts for readers of its kernels."""
    runs_plain: bool = False
    """Whether its kernels get no default opts."""
    queues: bool = False
    """Whether a launch may return before it is done, so that `synchronize` waits for it."""
    can_abort: bool = True
    """Whether a wrong kernel may end the process: edited text runs in one of its own. A
    device that only this process has runs here in any case."""
    takes_text: bool = False
    """Whether a kernel may be text that a user wrote in its language."""
    compiles_text: bool = False
    """Whether it is compiled for one of `machines` from the text of its language, so that a text
    that was edited is, too; else from the linear program alone."""
    renders_anywhere: bool = False
    """Whether its Target, and so its source, is available where it cannot run."""
    only_compiles: bool = False
    """Whether it runs no kernel on any machine."""
    has_machine_code: bool = True
    """Whether its programs may have machine code that can be read."""
    page_stack_bytes: int = 0
    """The stack of what `page_module` returns."""
    runs_in_page: bool = False
    """Whether a page can run its sources in the browser that shows it."""

    @property
    def how_to_get(self) -> str:
        parts = [install_command(self.extra) if self.extra else "", self.needs]
        return ", ".join(part for part in parts if part)

    def page_module(self, source: Source) -> bytes:
        """Return the WebAssembly module that a page runs; b"" where it compiles the text."""
        return b""

    @property
    def is_lost(self) -> bool:
        """Whether a fault took it from this process, so that only another one can use it."""
        return False

    @property
    def machines(self) -> Mapping[str, Target]:
        """Targets of machines that need not be here, by name: kernels are compiled, predicted and
        emulated for them. `Device["NAME:MACHINE"]` is the device on one."""
        return {}

    @property
    def source_device(self) -> DeviceInfo:
        """The device whose source its kernels have, and so whose costs; most often itself."""
        return self

    @property
    def has_hardware(self) -> bool:
        """Whether costs of its kernels are by the published figures of its machine."""
        return self.is_elsewhere

    def on(self, machine: str) -> DeviceInfo | None:
        """Return the device on something that is none of `machines`, None where it is as any
        device elsewhere. Errors: DeviceError for an unknown name."""
        return None

    @property
    def languages(self) -> tuple[Language, ...]:
        """The languages that its kernels can be read in, best first."""
        return () if self.language is None else (self.language,)

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.about}>"

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether kernels can run on it here. It is cheap: it loads nothing."""

    @once
    def target(self) -> Target:
        """The capabilities of the device.

        Errors: DeviceError, with how to get it, if the device is not available.
        """
        if not self.is_available and not self.renders_anywhere:
            raise self.missing()
        return self._target()

    def missing(self) -> DeviceError:
        """Return the error of what would run kernels on the device, where it is not available."""
        because = f"this machine does not have it: {self.about}"
        machine = next(iter(self.machines), None)
        other = "" if machine is None else f'; or "{self.name}:{machine}", which is emulated'
        what = f"the device {self.name} is not available"
        return DeviceError(what, because, f"{self.how_to_get}{other}")

    @abstractmethod
    def _target(self) -> Target: ...

    @abstractmethod
    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        """Return the text of a kernel, from its lowered tree and its linear program; comments show
        `tree`, its statement tree before operations were decomposed."""

    def render_for(
        self, target: Target, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        """Return the text of a kernel for one of `machines`; the rest is as in `render`."""
        raise NotImplementedError

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        """Return the machine code of a kernel for one of `machines`, which does not run here; None
        where no compiler for it is known.

        Errors: CompileError with the line of the source; DeviceError without the compiler.
        """
        return None

    def render_as(
        self, language: Language, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        """Return the text of a kernel in one of `languages` that it does not run; the rest is as in
        `render`.

        Errors: DeviceError for another language.
        """
        what = f"{self.name} writes no {language.name}"
        names = " or ".join(each.name for each in self.languages)
        raise DeviceError(what, "it is none of its languages", names)

    def render_as_for(
        self,
        target: Target,
        language: Language,
        block: UOp,
        linear: tuple[UOp, ...],
        tree: UOp | None = None,
    ) -> Source:
        """Return the text of a kernel for one of `machines`, as `render_as`."""
        return self.render_as(language, block, linear, tree)

    def declaration(self, text: str) -> Declaration:
        """Return what the function of a text that a user wrote takes, on a device that
        `takes_text`. Errors: ParseError."""
        raise NotImplementedError

    def framed(self, kernel: UOp) -> Source:
        """Return the Source of a kernel (a EXTERN) that a user wrote, on such a device."""
        raise NotImplementedError

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        """Return what runs launches of this device together, in their order, each time on the
        memory that they have then, and returns as they do without `wait`; None where a device
        launches one by one."""
        return None

    def synchronize(self) -> None:  # noqa: B027  most devices do not queue
        """Wait until all launches are done."""

    def flush(self) -> None:
        """See that launches begin that are queued, without waiting for them where the device can
        do so: an error of theirs then comes with the next that waits."""
        self.synchronize()

    @abstractmethod
    def load(self, source: Source) -> Program:
        """Return the Program of a Source, compiled if necessary."""
