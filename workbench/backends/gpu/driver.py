"""The driver of a device with work-groups: it finds and opens a GPU.

A new device is a dialect, a driver, and the Program that its sources become:

    class MyDevice(WorkGroupDevice):
        driver, program = MyDriver, MyProgram
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self, TypeVar

from workbench.base.errors import CompileError, DeviceError
from workbench.base.target import Target

T = TypeVar("T")
_lost: set[type[GpuDriver]] = set()
"""Drivers whose GPU a fault took from this process."""
_processes: dict[type[GpuDriver], int] = {}
"""The process in which each driver was looked for: its threads are there."""


class GpuDriver(ABC):
    """A GPU of this machine that is open, with the queue of its launches and copies.

    `name` is the device's, `package` what has to be installed to look for a GPU ("": nothing),
    `absence` says what is missing where none is found. After an error with one of the words
    `sticky` the process cannot use the GPU any more.
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
        """Return its limits, with its figures where they are known."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all that was launched is done. Errors: DeviceError for a fault."""

    def flush(self) -> None:
        """See that what was launched begins, without waiting for it where that can be."""
        self.wait()

    @classmethod
    def gpu_here(cls) -> Any | None:
        """Return the GPU of this machine, None without one."""
        return find_once(cls)

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
        """Return whether a fault took the GPU from this process."""
        return cls in _lost

    @classmethod
    def explain(cls, what: str, act: Callable[[], T]) -> T:
        """Return what `act` does.

        Errors: DeviceError with `what` for any error of the driver.
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
    """Return the GPU of a driver, None without one."""
    _processes[kind] = os.getpid()
    return kind.find() if not kind.package or _is_installed(kind.package) else None


@cache
def open_once(kind: type[GpuDriver]) -> GpuDriver:
    """Return a driver with its GPU. Errors: DeviceError where there is none."""
    gpu = find_once(kind)
    if gpu is None:
        what = f"the device {kind.name} is not available"
        hint = "`workbench doctor`, which lists devices and machines"
        raise DeviceError(what, kind.absence, hint)
    return kind(gpu)


def _is_installed(package: str) -> bool:
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:  # not even what it is in
        return False
    return spec is not None and spec.origin is not None  # else others left their files
