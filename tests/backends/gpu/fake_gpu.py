"""A GPU for tests without one: its memory is numpy's, its launches run the emulator. The drivers
that tests put in the place of the real ones speak to it, each in its own words. The machine code of
a kernel is its text; its program is that of the Source with this text."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from workbench.backends.contract import Program
from workbench.backends.device import Device
from workbench.backends.gpu import driver as drivers
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.program.text import Source
from workbench.emulator.machine import Machine

Array = np.ndarray[Any, Any]
WRONG_WORD = "undefined_name"
"""What a fake compiler refuses."""


class IllegalAddress(Exception):
    """An access outside of all allocations."""


@dataclass
class FakeGpu:
    """Memory by address, launches so far, and the next error."""

    sources: dict[bytes, Source] = field(default_factory=dict)
    memory: dict[int, Array] = field(default_factory=dict)
    launches: list[str] = field(default_factory=list)
    built: int = 0
    fault: str = ""

    def allocate(self, size: int) -> int:
        """Return the address of bytes that nobody wrote. Errors: MemoryError."""
        if size > 1 << 32:
            raise MemoryError
        address = max([1 << 40, *(a + b.size + 4096 for a, b in self.memory.items())])
        address = -(-address // 512) * 512
        self.memory[address] = np.full(size, 0xA5, np.uint8)
        return address

    def bytes_at(self, address: int, size: int) -> Array:
        """Return memory. Errors: IllegalAddress for an address that is in no allocation."""
        for start, block in self.memory.items():
            if start <= address and address + size <= start + block.size:
                return block[address - start : address - start + size]
        raise IllegalAddress(f"an illegal memory access at {address:#x}")

    def wrong_line(self, text: str) -> int | None:
        """Return the line of a text that a compiler refuses, None where there is none."""
        found = re.search(WRONG_WORD, text)
        return text.count("\n", 0, found.start()) + 1 if found else None


@dataclass
class FakeKernel:
    """A kernel, which the emulator runs."""

    gpu: FakeGpu
    source: Source

    def run(self, grid: Sequence[int], group: Sequence[int], places: Sequence[int]) -> None:
        """Run with these groups, work-items of a group, and addresses of buffers."""
        launch, left = self.source.launch, iter(places)
        assert tuple(grid) == (*reversed(launch.grid), 1, 1, 1)[:3]
        assert tuple(group) == (*reversed(launch.group), 1, 1, 1)[:3]
        arrays = [
            self.gpu.bytes_at(next(left), size * dtype.itemsize).view(dtype.numpy)
            if dtype.bits
            else np.zeros(0)
            for dtype, size in self.source.params
        ]
        machine = Machine(self.source.linear, arrays, common_gpu("GPU"), frozenset())
        machine.run()
        assert not machine.findings.all, machine.findings.all
        self.gpu.launches.append(self.source.name)


def module_of(name: str, **members: Any) -> ModuleType:
    """Return a module."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None, origin="a fake of the tests")
    vars(module).update(members)
    return module


@contextmanager
def modules(fakes: Mapping[str, ModuleType]) -> Iterator[None]:
    """Put modules in the place of others."""
    before = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


@contextmanager
def device_with(
    name: str, gpu: FakeGpu, fakes: Mapping[str, ModuleType]
) -> Iterator[pytest.MonkeyPatch]:
    """Give a device a fake GPU."""
    kind: Any = type(Device[name])
    program: Callable[[Source], Program] = kind.program

    def known(source: Source) -> Program:
        gpu.sources[source.text.encode()] = source
        return program(source)

    vars(Device[name]).pop("target", None)
    with pytest.MonkeyPatch.context() as patch, modules(fakes):
        patch.setattr(kind, "program", known)
        for look in (drivers.find_once, drivers.open_once):  # drivers in use stay so
            patch.setattr(drivers, look.__name__, cache(look.__wrapped__))
        yield patch
        gc.collect()
        Device[name].memory.pool.clear()
    vars(Device[name]).pop("target", None)


def mend(gpu: FakeGpu) -> None:
    """Let a GPU work again after a fault."""
    gpu.fault = ""
    drivers._lost.clear()
