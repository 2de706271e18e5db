"""The source of a kernel's data when a user runs it.

Of an expression: its producers run first, on the same device, into memory of their own; a tensor's
buffer is never written. Data that are not here, because the expression was loaded without them, are
seeded random numbers, good for timing. Of IR text alone: seeded random numbers, too. Of a pickled
kernel: its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.execution.buffers import Array, is_absent, memory_of
from workbench.execution.readers import read_by
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.item import ScheduleItem
from workbench.pipeline import build, tuned


@dataclass(slots=True, eq=False, weakref_slot=True)
class Run:
    """A run of a schedule apart from its tensors: memory per device, and the number of items that
    have run there (`counts`)."""

    items: tuple[ScheduleItem, ...]
    memory: dict[str, dict[UOp, Buffer]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        read_by(self)

    def buffers_read(self) -> Iterator[UOp]:
        """Return the BUFFERs whose contents a run needs."""
        return (b for item in self.items for b in item.inputs)

    @property
    def has_data(self) -> bool:
        """Whether the data of all its tensors are here."""
        return not any(is_absent(b) for item in self.items for b in item.buffers)

    def upto(self, count: int, device: str) -> dict[UOp, Buffer]:
        """Return the memory on `device` after the first `count` items have run there; where it is
        elsewhere, they run here."""
        device = Device.runner(device)
        memory = self.memory.setdefault(device, {})
        for number in range(self.counts.get(device, 0), count):
            item = self.items[number]
            written = item.slots
            buffers = [
                self._buffer(b, device, memory, fill=slot not in written)
                for slot, b in enumerate(item.buffers)
            ]
            if item.kernel is None:
                buffers[0].copy_from(buffers[1])
            else:
                build(tuned(item.kernel, device), device).program(buffers)
            self.counts[device] = number + 1
        return memory

    def _buffer(
        self, node: UOp, device: str, memory: dict[UOp, Buffer], fill: bool
    ) -> Buffer:
        """Return this run's own memory for a BUFFER, with a copy of a tensor's data, or random
        numbers where these are not here."""
        if node not in memory:
            buffer = memory[node] = Buffer(device, node.dtype, node.size)
            if fill and is_absent(node):
                generator = np.random.default_rng(len(memory))
                values = random_values(generator, node.dtype, node.size)
                buffer.copy_from(Buffer.of(device, node.dtype, values))
            elif fill:
                buffer.copy_from(memory_of(node))
        return memory[node]

    def buffers(self, number: int, device: str) -> list[Buffer]:
        """Return the buffers of item `number` by slot: new ones for its outputs, and its inputs,
        after running their producers."""
        device = Device.runner(device)
        memory, item = self.upto(number, device), self.items[number]
        written = item.slots
        return [
            Buffer(device, b.dtype, b.size)
            if slot in written
            else self._buffer(b, device, memory, fill=True)
            for slot, b in enumerate(item.buffers)
        ]


@dataclass(frozen=True, slots=True)
class FromSchedule:
    """The data of item `number` of a schedule; `on` names another device than the item's."""

    run: Run
    number: int
    on: str = ""

    @property
    def device(self) -> str:
        """The device that the item's result is on, unless another is named."""
        return self.on or self.run.items[self.number].device

    @property
    def has_data(self) -> bool:
        """Whether the inputs are the expression's own, not random numbers."""
        return self.run.has_data

    def for_device(self, name: str) -> FromSchedule:
        """Return the same data for kernels on another device."""
        return replace(self, on=name)

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: new outputs, and the inputs."""
        return self.run.buffers(self.number, device)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the inputs as data: the memory of a run is this process's."""
        written = self.run.items[self.number].slots
        arguments = tuple(
            (b.dtype, b.size if slot in written else b.to_numpy())
            for slot, b in enumerate(self.run.buffers(self.number, self.device))
        )
        return PickledData, (self.device, arguments)


@dataclass(frozen=True, slots=True)
class PickledData:
    """The data of a kernel that was pickled, by slot: the dtype of each argument, with the size of
    an output or the elements of an input."""

    device: str
    arguments: tuple[tuple[DType, Array | int], ...]

    def for_device(self, name: str) -> PickledData:
        """Return the same data for kernels on another device."""
        return replace(self, device=name)

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: new outputs, and copies of the inputs."""
        return [
            Buffer(device, dtype, elements)
            if isinstance(elements, int)
            else Buffer.of(device, dtype, elements)
            for dtype, elements in self.arguments
        ]


@dataclass(frozen=True, slots=True)
class Seeded:
    """Random data from a seed, the same on every device; `device` is "" for the default one."""

    seed: int = 0
    device: str = ""

    def for_device(self, name: str) -> Seeded:
        """Return the same data for kernels on another device."""
        return replace(self, device=name)

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: outputs zeroed, inputs random."""
        generator = np.random.default_rng(self.seed)
        params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
        memory = []
        for slot in range(max(params, default=-1) + 1):
            param = params.get(slot)
            if param is None:  # a slot that the kernel never touches
                memory.append(Buffer(device, dtypes.uint8, 0))
                continue
            values = random_values(generator, param.dtype, param.length)
            memory.append(Buffer.of(device, param.dtype, values))
        return memory


def arrays(buffers: Sequence[Buffer], written: Sequence[int]) -> list[Array]:
    """Return copies of a kernel's inputs by slot, and zeros for its outputs."""
    return [
        np.zeros(b.size, b.dtype.numpy) if slot in written else b.to_numpy()
        for slot, b in enumerate(buffers)
    ]


def random_values(generator: np.random.Generator, dtype: DType, size: int) -> Array:
    """Return `size` values that suit a dtype: floats around 0, small integers, coin flips."""
    if dtype.is_float:
        return generator.standard_normal(size).astype(dtype.numpy)
    if dtype.is_bool:
        return generator.integers(0, 2, size).astype(bool)
    low = 0 if dtype.kind == "uint" else -8
    return generator.integers(low, 9, size).astype(dtype.numpy)


def written(kernel: UOp) -> list[UOp]:
    """Return the PARAMs that a kernel writes, by slot."""
    params = {store.place.param for store in kernel.stores}
    return sorted(params, key=lambda param: param.slot)
