"""The runtime of the PYTHON device: numpy runs the statement tree, all lanes of many work-items in
lock step.

A loop whose iterations are independent is a dimension of numpy arrays, and so is each lane axis. A
statement runs for all of them before the next one begins, so barriers cost nothing. REDUCE loops
run in sequence. Where there are too many lanes, the outermost loops run in pieces. Every access
to a buffer is checked against its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from workbench.backends.program.source import Source
from workbench.backends.python.plan import EmulatorLoop, EmulatorPlan, EmulatorStatement, make_plan
from workbench.backends.python.statement import Array, State, execute
from workbench.base.errors import DeviceError
from workbench.base.unpicklable import Unpicklable
from workbench.ir.node.uop import UOp

LANES_AT_ONCE = 1 << 20


class HasArray(Protocol):
    """A buffer: `array` is its memory, one-dimensional."""

    @property
    def array(self) -> Array: ...


class EmulatorProgram(Unpicklable):
    """A kernel that the emulator can run. Calling it runs it once over `buffers`, by slot.

    Errors: WorkbenchError where an index leaves its buffer, with the position it happened at.
    """

    def __init__(self, source: Source, lanes_at_once: int = LANES_AT_ONCE):
        if source.block is None:
            raise DeviceError(
                f"the emulator cannot run {source.name}",
                f"it runs the statement tree, and this source is {source.language} only",
            )
        self.source, self.lanes_at_once = source, lanes_at_once
        self._plan = make_plan(source.block)

    def __call__(self, buffers: Sequence[HasArray]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[HasArray]) -> EmulatorLaunch:
        """Return a function that runs the kernel over these buffers."""
        arrays = [b.array for b in buffers]
        self._check_buffers(arrays)
        return EmulatorLaunch(self._plan, arrays, self.lanes_at_once)

    def _check_buffers(self, arrays: Sequence[Array]) -> None:
        what = f"cannot launch {self.source.name}"
        params = self.source.params
        if len(arrays) < len(params):
            raise DeviceError(what, f"it takes {len(params)} buffers, not {len(arrays)}")
        for slot, (dtype, size) in enumerate(params):
            array = arrays[slot]
            if dtype.bits and (array.dtype != dtype.numpy or array.size < size):
                raise DeviceError(
                    what,
                    f"buffer {slot} is {array.size} x {array.dtype}, "
                    f"and the kernel needs {size} x {dtype}",
                )


class EmulatorLaunch:
    """A kernel and the memory that it runs over: call it to run. `move` gives a slot other
    memory, of the same dtype and size."""

    def __init__(self, plan: EmulatorPlan, arrays: list[Array], lanes_at_once: int):
        self._plan, self._arrays, self._lanes_at_once = plan, arrays, lanes_at_once

    def __call__(self, wait: bool = True) -> None:
        _Run(self._plan, self._arrays, self._lanes_at_once).everything()

    def move(self, slot: int, buffer: HasArray) -> None:
        self._arrays[slot] = buffer.array


class _Run:
    """One launch: walks the loops, and runs each statement."""

    def __init__(self, plan: EmulatorPlan, params: Sequence[Array], lanes_at_once: int):
        self.plan, self.lanes_at_once = plan, lanes_at_once
        # Masked lanes read element 0, which an empty buffer lacks.
        memory = [p if p.size else np.zeros(1, p.dtype) for p in params]
        self.state = State(plan.name, memory)

    def everything(self) -> None:
        with np.errstate(all="ignore"):
            self.body(self.plan.body, self.plan.storage)

    def body(
        self, body: tuple[EmulatorLoop | EmulatorStatement, ...], storage: tuple[UOp, ...]
    ) -> None:
        self.state.open_storage(storage)
        for child in body:
            if isinstance(child, EmulatorLoop):
                self.loop(child)
            else:
                execute(self.state, child)

    def loop(self, loop: EmulatorLoop) -> None:
        state = self.state
        if not loop.independent:
            for step in range(loop.axis.extent):
                state.first[loop.axis] = step
                self.body(loop.body, loop.storage)
            del state.first[loop.axis]
            return
        state.axes.append(loop.axis)
        for first, count in self.pieces(loop):
            state.first[loop.axis], state.count[loop.axis] = first, count
            self.body(loop.body, loop.storage)
        state.axes.pop()
        del state.first[loop.axis], state.count[loop.axis]

    def pieces(self, loop: EmulatorLoop) -> Iterator[tuple[int, int]]:
        """Yield (first step, steps) so that no statement has too many lanes at once."""
        lanes = math.prod(self.state.count[axis] for axis in self.state.axes[:-1])
        step = max(1, self.lanes_at_once // (lanes * loop.lanes))
        for first in range(0, loop.axis.extent, step):
            yield first, min(step, loop.axis.extent - first)
