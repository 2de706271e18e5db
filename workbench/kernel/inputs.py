"""Where a kernel's data comes from when it is run by hand.

From an expression: its producers run first, on the same device, into memory of their own; a
buffer that a tensor holds is never written. From IR text alone: seeded random numbers. Of a kernel
that was pickled: the inputs that it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.engine import Array, memory_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.item import ScheduleItem
from workbench.pipeline import build, tuned


@dataclass(slots=True)
class Run:
    """A schedule run apart from its tensors: memory per device, filled as far as was asked."""

    items: tuple[ScheduleItem, ...]
    memory: dict[str, dict[UOp, Buffer]] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)

    def upto(self, count: int, device: str) -> dict[UOp, Buffer]:
        """Return the memory on `device` after the first `count` items have run there."""
        held = self.memory.setdefault(device, {})
        for number in range(self.done.get(device, 0), count):
            item = self.items[number]
            buffers = [
                self._buffer(b, device, held, fill=i > 0)
                for i, b in enumerate(item.buffers)
            ]
            if item.kernel is None:
                buffers[0].copy_from(buffers[1])
            else:
                build(tuned(item.kernel, device), device).program(buffers)
            self.done[device] = number + 1
        return held

    def _buffer(
        self, node: UOp, device: str, held: dict[UOp, Buffer], fill: bool
    ) -> Buffer:
        """Return this run's own memory for a BUFFER; what a tensor holds is copied in."""
        if node not in held:
            made = held[node] = Buffer(device, node.dtype, node.size)
            if fill:
                made.copy_from(memory_of(node))
        return held[node]

    def inputs(self, number: int, device: str) -> list[Buffer]:
        """Return the input buffers of item `number`, producers run."""
        held = self.upto(number, device)
        return [
            self._buffer(b, device, held, fill=True)
            for b in self.items[number].buffers[1:]
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
        return self.on or str(self.run.items[self.number].buffers[0].arg[1])

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: a fresh output, then the inputs."""
        target = self.run.items[self.number].buffers[0]
        return [
            Buffer(device, target.dtype, target.size),
            *self.run.inputs(self.number, device),
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        """The inputs as they are: the memory of a run is this process's."""
        target = self.run.items[self.number].buffers[0]
        inputs = self.run.inputs(self.number, self.device)
        arrays = tuple((buffer.dtype, buffer.to_numpy()) for buffer in inputs)
        return Carried, (self.device, (target.dtype, target.size), arrays)


@dataclass(frozen=True, slots=True)
class Carried:
    """The data of a kernel that was pickled: the dtype and size of its output, and its inputs by
    slot, each with its dtype."""

    device: str
    output: tuple[DType, int]
    inputs: tuple[tuple[DType, Array], ...]

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: a fresh output, then copies of the inputs."""
        inputs = [Buffer.of(device, dtype, array) for dtype, array in self.inputs]
        return [Buffer(device, *self.output), *inputs]


@dataclass(frozen=True, slots=True)
class Seeded:
    """Random data from a seed, the same on every device."""

    seed: int = 0

    @property
    def device(self) -> str:
        """No device of its own: "" stands for the default."""
        return ""

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: outputs zeroed, inputs random."""
        generator = np.random.default_rng(self.seed)
        params = {n.arg[0]: n for n in kernel.toposort() if n.op is Ops.PARAM}
        made = []
        for slot in range(max(params, default=-1) + 1):
            param = params.get(slot)
            if param is None:  # a slot that the kernel never touches
                made.append(Buffer(device, dtypes.uint8, 0))
                continue
            values = random_values(generator, param.dtype, param.arg[1])
            made.append(Buffer.of(device, param.dtype, values))
        return made


def arrays(buffers: Sequence[Buffer], written: Sequence[int]) -> list[Array]:
    """Return copies of a kernel's inputs by slot; zeros for what it writes."""
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


def outputs(kernel: UOp) -> tuple[int, ...]:
    """Return the slots that a kernel writes."""
    slots: Sequence[Any] = [end.src[0].src[0].src[0].arg[0] for end in kernel.src]
    return tuple(sorted(set(slots)))
