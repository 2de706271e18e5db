"""The contract of a device: its Target, renderer and loader, and facts that other layers read.

A device of the package is a folder NAME here with a module NAME_device, whose `DEVICE` is a
DeviceInfo; any other one is registered (see `device.py`). Its name is written only in its folder.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.memory import Buffer, Memory
from workbench.backends.program.text import CheckedText, Declaration, Language, Source
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command, is_installed
from workbench.base.interrupts import once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

KEPT_PROGRAMS = 1024
"""Most programs that a runtime keeps in memory, by their Source."""


class Launch(Protocol):
    """A kernel bound to its memory: call it to run. A device with a clock of its own adds
    `timed() -> float`: it runs the kernel, and returns the seconds of that clock. A device that
    runs in another process adds `mean_s(batch) -> float`: the mean seconds per run of a batch. One
    that runs on several threads of this process says on how many `threads`."""

    def __call__(self, wait: bool = True) -> None:
        """Run, and return when it is done. Without `wait`, a device that queues may return before:
        then `synchronize` waits, and copies from and to its memory come after the run."""

    def move(self, slot: int, buffer: Buffer) -> None:
        """Bind a slot to another Buffer of the same size and dtype."""


class Program(Protocol):
    """A loaded kernel: call it with one Buffer per slot, or bind the Buffers once and time the
    launch. A launch runs the whole of `Source.launch`, in parts if the device has to.

    Some have more: `assembly` and `assembly_lines`, where machine code can be read;
    `require_room()`, which raises a DeviceError for a kernel that is too large for the device, and
    is called before memory is allocated; `require_code()`, which compiles at once what the driver
    would compile at the first bind, and raises its CompileError."""

    def __call__(self, buffers: Sequence[Buffer]) -> None: ...

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        """Return the launch of the kernel on these Buffers, one per slot."""


def require_room(program: Program) -> None:
    """Check that a program is small enough for its device. Errors: DeviceError."""
    refuse = getattr(program, "require_room", None)
    if refuse is not None:
        refuse()


def require_code(program: Program) -> None:
    """Compile a program that its driver would compile later. Errors: CompileError."""
    compile_now = getattr(program, "require_code", None)
    if compile_now is not None:
        compile_now()


class DeviceInfo(ABC):
    """One device: its Target, its renderer, its loader, and facts.

    `about` describes it in one line, `how_to_get` says how to install it: by `extra`, an extra of
    our distribution, and by what it `needs` besides. `memory` has its buffers, and may be shared
    with other devices; `aliases` are other names. The available device of the least `rank` is the
    default. `language` is the one that its renderer writes and its loader reads (None: it runs the
    statement tree itself), `languages` are all in which its kernels can be read.
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
    """Whether it simulates kernels: its times are those of the simulation, and are never compared
    with times of other devices."""
    is_elsewhere: bool = False
    """Whether its machine is not this one: small kernels are emulated, and times predicted."""
    has_groups: bool = False
    """Whether its Target has work-groups; known also where the device is not available."""
    notice: str = ""
    """Sentences for readers of its kernels; "": none."""
    runs_plain: bool = False
    """Whether its kernels get no default opts."""
    queues: bool = False
    """Whether a launch may return before it is done; `synchronize` waits for its end."""
    can_abort: bool = True
    """Whether a wrong kernel may end the process: then edited text runs in a process of its own,
    except on a device that only this process has."""
    takes_text: bool = False
    """Whether a kernel may be text that a user wrote in its language."""
    compiles_text: bool = False
    """Whether `compile_for` compiles a text of its language, even an edited one; else it compiles
    only linear programs."""
    packages: tuple[str, ...] = ()
    """Python modules without which it is not available."""
    renders_anywhere: bool = False
    """Whether its Target is known, and kernels are rendered, also where the device cannot run."""
    only_compiles: bool = False
    """Whether it runs no kernel on any machine."""
    has_machine_code: bool = True
    """Whether its programs may have machine code that can be read."""
    page_stack_bytes: int = 0
    """Bytes of stack in the module that `page_module` returns."""
    runs_in_page: bool = False
    """Whether a page can run its sources in the browser that shows it."""

    @property
    def how_to_get(self) -> str:
        parts = [install_command(self.extra) if self.extra else "", self.needs]
        return ", ".join(part for part in parts if part)

    def page_module(self, source: Source) -> bytes:
        """Return the WebAssembly module that a page runs; b"" where the page compiles the text."""
        return b""

    @property
    def is_lost(self) -> bool:
        """Whether a fault has made it unusable in this process; another process can use it."""
        return False

    @property
    def machines(self) -> Mapping[str, Target]:
        """Targets of machines that need not be here, by name: kernels are compiled, predicted and
        emulated for them. `Device["NAME:MACHINE"]` is the device on such a machine."""
        return {}

    @property
    def source_device(self) -> DeviceInfo:
        """The device that gives kernels their source and costs: itself, or one that it wraps."""
        return self

    @property
    def has_hardware(self) -> bool:
        """Whether its costs are computed from figures of its machine, not from measured speeds."""
        return self.is_elsewhere

    def on(self, machine: str) -> DeviceInfo | None:
        """Return the DeviceInfo of `Device["NAME:MACHINE"]` where the device makes it itself; None
        where the registry makes it from `machines`. Errors: DeviceError for an unknown name."""
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
        """Whether kernels can run on it here. It is cheap: GPUs are searched once, others load
        nothing."""

    @once
    def target(self) -> Target:
        """The capabilities of the device.

        Errors: DeviceError, with how to get it, if the device is not available.
        """
        if not self.is_available and not self.renders_anywhere:
            raise self.missing()
        return self._target()

    @property
    def absence(self) -> str:
        """What it lacks where it is not available; "" if that is not known."""
        lacking = self._lacking
        words = "module {} is" if len(lacking) == 1 else "modules {} are"
        return f"the Python {words.format(' and '.join(lacking))} not installed" if lacking else ""

    def require_available(self) -> None:
        """Errors: DeviceError, with how to get it, if neither kernels nor memory of it are possible
        here; a device that only compiles says at its first kernel that it runs none."""
        if not (self.is_available or self.is_elsewhere or self.only_compiles):
            raise self.missing()

    def missing(self) -> DeviceError:
        """Return the error for a use of the device where it is not available."""
        because = f"this machine does not have it: {self.about}"
        because += f"; {self.absence}" if self.absence else ""
        machine = next(iter(self.machines), None)
        other = "" if machine is None else f'; or "{self.name}:{machine}", which is emulated'
        what = f"the device {self.name} is not available"
        named = re.sub(r"[._]", "-", self.how_to_get).lower()
        more = [f"pip install {name}" for name in self._lacking if name.lower() not in named]
        return DeviceError(what, because, "; ".join([*more, f"{self.how_to_get}{other}"]))

    @property
    def _lacking(self) -> list[str]:
        return [name for name in self.packages if not is_installed(name)]

    @abstractmethod
    def _target(self) -> Target: ...

    @abstractmethod
    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        """Return the text of a kernel from its lowered tree and its linear program; comments quote
        `tree`, its statement tree before operations were decomposed."""

    def render_for(
        self, target: Target, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        """Return the text of a kernel for one of `machines`; the rest is as in `render`."""
        raise NotImplementedError

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        """Return the machine code of a kernel for one of `machines`, to read; None where no
        compiler for the machine is known.

        Errors: CompileError with the line of the source; DeviceError without the compiler.
        """
        return None

    def render_as(
        self, language: Language, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        """Return the text of a kernel in one of `languages` that its loader does not read; the rest
        is as in `render`.

        Errors: DeviceError for a language that is not one of them.
        """
        what = f"{self.name} writes no {language.name}"
        names = " or ".join(each.name for each in self.languages)
        raise DeviceError(what, "it is not one of its languages", names)

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
        """Return the name and the arguments of the function in a user's text, on a device that
        `takes_text`. Errors: ParseError."""
        raise NotImplementedError

    def bounds_checked(self, text: str, sizes: Sequence[int]) -> CheckedText | None:
        """Return edited text with bounds checks, for arguments of so many elements, by slot; None
        on a device that has none."""
        return None

    def framed(self, kernel: UOp) -> Source:
        """Return the Source of an EXTERN, a kernel that a user wrote as text, on such a device."""
        raise NotImplementedError

    def as_function(self, source: Source, written: Sequence[int]) -> str:
        """Return a Source, even an edited one, as text that `declaration` reads: a function with a
        pointer for each slot, to const but for those `written`. Its threads run one after another.
        Errors: ParseError; DTypeError for a dtype that such text has no word for."""
        raise NotImplementedError

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        """Return a function that runs these launches of the device in their order, on the memory
        that is bound when it runs; like a launch without `wait`, it may return before they are
        done. None where a device launches one by one. If the function has `recorded()`, that runs
        them, too, and yields lists of stamps (launch, start_ns, end_ns, thread) of their parts, by
        the clock of recordings."""
        return None

    def synchronize(self) -> None:  # noqa: B027  most devices do not queue
        """Wait until all launches are done."""

    def flush(self) -> None:
        """Submit the queued launches, if the device can, without waiting for them: their errors are
        then raised by the next call that waits. Else wait for them."""
        self.synchronize()

    @abstractmethod
    def load(self, source: Source) -> Program:
        """Return the Program of a Source, compiled if necessary."""
