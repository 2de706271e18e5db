"""The base class of drivers of devices with work-groups: a driver finds and opens a GPU.

A new device is a dialect, a driver, and the Program that its sources become:

    class MyDevice(WorkGroupDevice):
        driver, program = MyDriver, MyProgram
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import is_installed
from workbench.base.target import Target

T = TypeVar("T")
_lost: set[type[GpuDriver]] = set()
"""Drivers whose GPU this process cannot use any more, after a fault."""
_processes: dict[type[GpuDriver], int] = {}
"""The process that searched the GPU of each driver: the driver's threads are in it."""


class GpuDriver(ABC):
    """An open GPU of this machine, with the queue of its launches and copies.

    `name` is the device's name, `package` the Python package that finds a GPU ("": none is needed),
    `absence` the reason that is printed where it finds none. After an error with one of the words
    in `sticky` the process cannot use the GPU any more.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    absence: ClassVar[str]
    sticky: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __init__(self, gpu: Any):
        """Open a GPU that `find` returned."""

    @staticmethod
    @abstractmethod
    def find() -> Any | None:
        """Return the GPU to use, None without one. Called once, and only with the package."""

    @abstractmethod
    def target(self) -> Target:
        """Return the limits of the GPU, with its Hardware where that is known."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all launches and copies are done. Errors: DeviceError for a fault."""

    def flush(self) -> None:
        """Submit the queued launches; by default this waits until they are done."""
        self.wait()

    @classmethod
    def gpu_here(cls) -> Any | None:
        """Return the GPU of this machine, None without one."""
        return find_once(cls)

    @classmethod
    def why_absent(cls) -> str:
        """Return why no GPU is found here."""
        if cls.package and not is_installed(cls.package):
            return f"the Python module {cls.package} is not installed"
        return cls.absence

    @classmethod
    def current(cls) -> Self:
        """Return the driver with its GPU, the same one each time.

        Errors: DeviceError where there is none, and in a process forked from the one that has it.
        """
        driver = open_once(cls)
        if _processes[cls] != os.getpid():
            raise DeviceError(
                f"{cls.name} does not run in a process that was forked",
                "a fork copies no thread of its driver, and what it launches would never end",
                "a process that begins anew: multiprocessing.get_context('spawn')",
            )
        assert isinstance(driver, cls)
        return driver

    @classmethod
    def is_lost(cls) -> bool:
        """Return whether a fault has made the GPU unusable in this process."""
        return cls in _lost

    @classmethod
    def explain(cls, what: str, act: Callable[[], T]) -> T:
        """Return what `act` returns.

        Errors: DeviceError with `what` for any exception of `act`, but for a CompileError,
        DeviceError or MemoryError, which are raised as they are.
        """
        try:
            return act()
        except (CompileError, DeviceError, MemoryError):
            raise
        except Exception as error:  # the classes of drivers' errors are not public
            because = " ".join(str(error).split())[:400]
            if not any(word in because for word in cls.sticky):
                raise DeviceError(what, because) from error
            _lost.add(cls)
            hint = "in another process: the GPU is lost to this one"
            raise DeviceError(what, because, hint) from error


@cache
def find_once(kind: type[GpuDriver]) -> Any | None:
    """Return the GPU of a driver, None without one. It is searched once."""
    _processes[kind] = os.getpid()
    return kind.find() if not kind.package or is_installed(kind.package) else None


@cache
def open_once(kind: type[GpuDriver]) -> GpuDriver:
    """Return a driver with its GPU. Errors: DeviceError where there is none."""
    gpu = find_once(kind)
    if gpu is None:
        what = f"the device {kind.name} is not available"
        hint = "`workbench doctor`, which lists devices and machines"
        raise DeviceError(what, kind.why_absent(), hint)
    return kind(gpu)


def without_status(status: Any, *values: Any) -> Any:
    """Return the values that a function of a driver's package returned after a status that is 0:
    one, or a tuple.

    Errors: MemoryError where memory ran out; RuntimeError with the name of any other status.
    """
    if int(status):
        word = getattr(status, "name", str(status))
        is_of_memory = "outofmemory" in word.replace("_", "").lower()
        raise MemoryError(word) if is_of_memory else RuntimeError(word)
    return values[0] if len(values) == 1 else values
