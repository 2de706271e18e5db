"""The devices by name: what each can do, its renderer and its runtime.

`Device["LLVM"]` is a DeviceInfo. Nothing is imported or asked of the machine before it is
needed: `import workbench` must not load llvmlite. A fork waits for an import: in a child that got
one half of a module nobody completes it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Protocol

from workbench.backends.llvm import render as render_llvm
from workbench.backends.native.buffer import Buffer
from workbench.backends.program.source import Source
from workbench.base.context import DEV
from workbench.base.errors import DeviceError
from workbench.base.forking import no_fork, once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class Launch(Protocol):
    """A kernel and its memory: call it to run, as often as need be."""

    def __call__(self) -> None: ...

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory, of the same size and dtype."""


class Program(Protocol):
    """A loaded kernel: call it with one Buffer per slot, or bind them first to time it."""

    def __call__(self, buffers: Sequence[Buffer]) -> None: ...

    def bind(self, buffers: Sequence[Buffer]) -> Launch:
        """Return the kernel with its memory, one Buffer per slot."""


class DeviceInfo(ABC):
    """One device: its Target, how a kernel is rendered for it, how a Source is loaded."""

    name: str
    about: str
    how_to_get: str

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.about}>"

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether kernels can run on it here. Cheap: nothing is loaded."""

    @once
    def target(self) -> Target:
        """What the device can do.

        Errors: DeviceError, with how to get it, if the device is not available.
        """
        if not self.is_available:
            raise DeviceError(
                f"the device {self.name} is not available", self.about, self.how_to_get
            )
        return self._target()

    @abstractmethod
    def _target(self) -> Target: ...

    @abstractmethod
    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        """Return the text of a kernel, from its lowered tree and its linear program; comments
        are in terms of `tree`, its statement tree before operations were taken apart."""

    @abstractmethod
    def load(self, source: Source) -> Program:
        """Return the Program of a Source, compiled if need be."""


class _LLVM(DeviceInfo):
    name = "LLVM"
    about = "this machine's processor, through the LLVM of llvmlite"
    how_to_get = "pip install 'llvmlite>=0.50'"

    @property
    def is_available(self) -> bool:
        return find_spec("llvmlite") is not None

    def _target(self) -> Target:
        with no_fork:
            from workbench.backends.llvm.jit import host
            from workbench.backends.native.thread_pool import cores

        found = host()
        l1_bytes, l2_bytes, last_bytes = _caches()
        return Target(
            "LLVM",
            vector_bytes=found.vector_bytes,
            vector_registers=found.vector_registers,
            l1_bytes=l1_bytes,
            l2_bytes=l2_bytes,
            stream_bytes=last_bytes,
            converts_float16=found.converts_float16,
            cores=cores(),
        )

    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        return render_llvm.render(linear, self.target)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.llvm.runtime import load
        return load(source)


class _C(DeviceInfo):
    name = "C"
    about = "this machine's processor, through its C compiler"
    how_to_get = "pip install 'workbench[c]', or a cc, clang or gcc on PATH"

    @property
    def is_available(self) -> bool:
        with no_fork:
            from workbench.backends.c.compiler import find_compiler

        with suppress(DeviceError):  # a $CC that cannot be read: a launch tells so
            return find_compiler() is not None and find_spec("llvmlite") is not None
        return False

    @once
    def target(self) -> Target:
        """What the processor can do: it needs no compiler to read the C of a kernel."""
        return self._target()

    def _target(self) -> Target:
        if find_spec("llvmlite") is None:
            l1_bytes, l2_bytes, _ = _caches()
            return Target("C", l1_bytes=l1_bytes, l2_bytes=l2_bytes)
        # Compilers differ in what they know of float16, and in how a store past the caches is
        # spelled; all of them know integers and plain stores.
        return replace(
            Device["LLVM"].target, device="C", converts_float16=False, stream_bytes=0
        )

    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        with no_fork:
            from workbench.backends.c.render import render

        return render(block, linear, self.target, tree)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.c.runtime import load
        return load(source)


class _Python(DeviceInfo):
    name = "PYTHON"
    about = "an emulator on numpy: slow, and every step can be looked at"
    how_to_get = "it is always there"

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return Target("PYTHON", native_transcendentals=True, native_small_floats=True)

    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        with no_fork:
            from workbench.backends.python.render import render

        return render(block, self.target)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.python.runtime import EmulatorProgram
        return EmulatorProgram(source)


def _caches() -> tuple[int, int, int]:
    """Return the bytes of the two caches that a core has for itself, and of the largest; those of
    a common processor where the system does not tell. It reads a few small files, once: half a
    millisecond."""
    with no_fork:
        from workbench.backends.native.machine import TYPICAL, caches

    found = dict(TYPICAL) | dict(caches())
    return found["L1"], found["L2"], max(found.values())


class Devices:
    """The registry: `Device[name]`, in any case, aliases too.

    `Device.DEFAULT` is what a `with Context(DEV=...)` says, else what it was set to, else the
    environment's DEV, else the first device that is available.
    """

    def __init__(self, devices: Sequence[DeviceInfo], aliases: dict[str, str]):
        self._devices = {device.name: device for device in devices}
        self._aliases = aliases
        self._chosen = ""

    def __getitem__(self, name: str) -> DeviceInfo:
        return self._devices[self.canonical(name)]

    def __repr__(self) -> str:
        return f"<Device: {', '.join(self._devices)}; default {self.DEFAULT}>"

    def canonical(self, name: str) -> str:
        """Return the name of a device as the registry has it.

        Errors: DeviceError for a name that is unknown, with the list of those that are.
        """
        key = str(name).upper()
        key = self._aliases.get(key, key)
        if key not in self._devices:
            raise DeviceError(
                f"there is no device {name!r:.60}",
                "known are " + ", ".join(self._devices),
                f"one of them, such as {next(iter(self._devices))!r}",
            )
        return key

    def names(self) -> tuple[str, ...]:
        """Return the names of all devices, available or not."""
        return tuple(self._devices)

    def available(self, name: str) -> bool:
        """Return whether a device can run kernels here."""
        return self[name].is_available

    @property
    def DEFAULT(self) -> str:
        """The device of tensors that are not given one."""
        named = DEV.value
        if named == os.environ.get("DEV", "") and self._chosen:
            return self._chosen
        if named:
            return self.canonical(named)
        return next(name for name, d in self._devices.items() if d.is_available)

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._chosen = self.canonical(name)


Device = Devices((_LLVM(), _C(), _Python()), {"CPU": "LLVM", "CLANG": "C", "GCC": "C"})
"""All devices, by name."""
