"""The source of a kernel's data when a user runs it.

A kernel of an expression: its producers run first, on the same device, into memory of their own; a
tensor's buffer is never written. If the expression was loaded without data, they are seeded random
numbers, which are good for timing. A kernel of IR text: seeded random numbers. A pickled kernel:
the inputs that were pickled with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.check.answer import CheckResult, compared, with_results
from workbench.execution.buffers import Array
from workbench.ir.meaning.sampled import TooManyPositions
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.kernel.run import CheckRun, ScheduleRun, random_values
from workbench.pickles import pickled

OF_KERNEL = "the kernel before its opts"
Medians = dict[tuple[UOp, tuple[str, ...], str], list[float]]
"""The times of kernels on this data, one for each call of `time`, by kernel, the rules that are
off, and device. Units: seconds."""
TOO_LARGE = "what the expression means is too much to compute"


@pickled
@dataclass(frozen=True, slots=True)
class FromSchedule:
    """The data of item `number` of a schedule. `on` is the device, "" for that of the item."""

    run: ScheduleRun
    number: int
    on: str = ""
    medians: Medians = field(default_factory=dict, compare=False, repr=False)

    @property
    def device(self) -> str:
        """The device of the data: `on`, or else that of the item."""
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

    def check_run(self, kernel: UOp, device: str) -> CheckRun:
        """Return the check of a kernel against the meaning of the expression. Its inputs do not
        come from the kernels before it, which may be wrong. Where the meaning is too much to
        compute, the kernel is compared with itself before its opts."""
        run, number = self.run, self.number
        device, item = Device.runner(device), run.items[number]
        try:
            comparison = run.comparison(number, device)
        except TooManyPositions:
            words = f"{OF_KERNEL}; {TOO_LARGE}"
            buffers = run.buffers(number, device)
            return CheckRun.of_kernel(kernel, buffers, words)
        buffers = run.buffers(number, device, comparison.inputs)

        def verdict(outputs: Sequence[Array]) -> CheckResult:
            own = compared(comparison.reference, outputs)
            if not comparison.is_inner:
                return own
            written = dict(zip(item.outputs, outputs, strict=True))
            try:
                return with_results(own, run.check(device, number, written))
            except TooManyPositions:
                words = f"{own.against}; {TOO_LARGE}"
                return replace(own, against=words)

        return CheckRun(buffers, comparison.reference, verdict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the inputs as data: the memory of a run is this process's."""
        written = self.run.items[self.number].slots
        arguments = tuple(
            (b.dtype, b.size if slot in written else b.to_numpy())
            for slot, b in enumerate(self.run.buffers(self.number, self.device))
        )
        return PickledData, (self.device, arguments)


@pickled
@dataclass(frozen=True, slots=True, eq=False)
class PickledData:
    """The data of a kernel that was pickled, by slot: the dtype of each argument, with the size of
    an output or the elements of an input."""

    device: str
    arguments: tuple[tuple[DType, Array | int], ...]
    medians: Medians = field(default_factory=dict, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PickledData) or self.device != other.device:
            return False
        pairs = zip_longest(self.arguments, other.arguments)
        return all(
            one is not None
            and two is not None
            and one[0] == two[0]
            and np.array_equal(one[1], two[1], equal_nan=one[0].is_float)
            for one, two in pairs
        )

    __hash__ = None  # type: ignore[assignment]  # of arrays

    def for_device(self, name: str) -> PickledData:
        """Return the same data for kernels on another device."""
        return replace(self, device=name)

    def check_run(self, kernel: UOp, device: str) -> CheckRun:
        """Return the check of a kernel against itself before its opts."""
        return CheckRun.of_kernel(kernel, self.buffers(kernel, device))

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot: new outputs, and copies of the inputs."""
        return [
            Buffer(device, dtype, elements)
            if isinstance(elements, int)
            else Buffer.of(device, dtype, elements)
            for dtype, elements in self.arguments
        ]


@pickled
@dataclass(frozen=True, slots=True)
class Seeded:
    """Random data from a seed, the same on every device; `device` is "" for the default one."""

    seed: int = 0
    device: str = ""
    medians: Medians = field(default_factory=dict, compare=False, repr=False)

    def for_device(self, name: str) -> Seeded:
        """Return the same data for kernels on another device."""
        return replace(self, device=name)

    def check_run(self, kernel: UOp, device: str) -> CheckRun:
        """Return the check of a kernel against itself before its opts."""
        return CheckRun.of_kernel(kernel, self.buffers(kernel, device))

    def buffers(self, kernel: UOp, device: str) -> list[Buffer]:
        """Return the kernel's buffers by slot, all of them with random values."""
        generator = np.random.default_rng(self.seed)
        params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
        memory = []
        for slot in range(max(params, default=-1) + 1):
            param = params.get(slot)
            if param is None:  # a slot that the kernel never touches
                memory.append(Buffer(device, dtypes.uint8, 0))
                continue
            buffer = Buffer(device, param.dtype, param.length)  # it says how much memory is free
            buffer.copy_in(random_values(generator, param.dtype, param.length))
            memory.append(buffer)
        return memory


def written(kernel: UOp) -> list[UOp]:
    """Return the PARAMs that a kernel writes, by slot."""
    params = {store.place.param for store in kernel.stores}
    return sorted(params, key=lambda param: param.slot)
