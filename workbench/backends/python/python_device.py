"""The PYTHON device, an emulator that runs statement trees on numpy. Imports hold `no_fork`: in a
child that is forked during an import, a module would stay half imported.

Sections: The PYTHON device; The runtime of the PYTHON device; The renderer of the PYTHON device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.text import Source, signature
from workbench.backends.python.statement import (
    Array,
    EmulatorLoop,
    EmulatorPlan,
    EmulatorStatement,
    State,
    execute,
    make_plan,
)
from workbench.base.errors import DeviceError
from workbench.base.files import Unpicklable
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves
from workbench.ir.text.program import to_expr

# --------------------------------------------------------------------------------------------------
# The PYTHON device.


class PythonDevice(DeviceInfo):
    """An emulator: it runs the statement tree."""

    name = "PYTHON"
    has_machine_code = False
    about = "an emulator on numpy: slow, and every step can be looked at"
    how_to_get = "it is always there"
    rank = 90
    is_emulator = True
    runs_plain = True
    can_abort = False
    memory = host_memory

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return Target(self.name, native_transcendentals=True, native_low_precision=True)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return render(block)

    def load(self, source: Source) -> Program:
        return EmulatorProgram(source)


DEVICE = PythonDevice()


# --------------------------------------------------------------------------------------------------
# The runtime of the PYTHON device: numpy runs the statement tree, all lanes of many work-items in
# lock step.
#
# A loop whose iterations are independent is a dimension of numpy arrays, and so is each lane axis.
# A statement runs for all of their steps before the next statement begins, so barriers cost
# nothing. REDUCE loops run in sequence. Where there are too many lanes, the outermost loops run in
# parts. Every access to a buffer is checked against its size.

LANES_AT_ONCE = 1 << 20


class HasArray(Protocol):
    """A buffer: `array` is its memory, one-dimensional."""

    @property
    def array(self) -> Array: ...


class EmulatorProgram(Unpicklable):
    """A kernel that the emulator can run. A call runs it once on `buffers`, by slot.

    Errors: WorkbenchError where an index leaves its buffer, with the position in the loops;
    DeviceError for a Source without a statement tree, and for buffers that do not fit.
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
        """Return a function that runs the kernel on these buffers."""
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
    """A kernel bound to its memory: call it to run. `move` binds a slot to other memory of the
    same dtype and size."""

    def __init__(self, plan: EmulatorPlan, arrays: list[Array], lanes_at_once: int):
        self._plan, self._arrays, self._lanes_at_once = plan, arrays, lanes_at_once

    def __call__(self, wait: bool = True) -> None:
        _Run(self._plan, self._arrays, self._lanes_at_once).run()

    def move(self, slot: int, buffer: HasArray) -> None:
        self._arrays[slot] = buffer.array


class _Run:
    """One launch: walks the loops, and runs each statement."""

    def __init__(self, plan: EmulatorPlan, params: Sequence[Array], lanes_at_once: int):
        self.plan, self.lanes_at_once = plan, lanes_at_once
        # Masked lanes read element 0, which an empty buffer lacks.
        memory = [p if p.size else np.zeros(1, p.dtype) for p in params]
        self.state = State(plan.name, memory)

    def run(self) -> None:
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
        """Yield (first step, steps) of parts that are small enough for `lanes_at_once`."""
        lanes = math.prod(self.state.count[axis] for axis in self.state.axes[:-1])
        step = max(1, self.lanes_at_once // (lanes * loop.lanes))
        for first in range(0, loop.axis.extent, step):
            yield first, min(step, loop.axis.extent - first)


# --------------------------------------------------------------------------------------------------
# The renderer of the PYTHON device: the statement tree itself, and its readable text.


def render(block: UOp) -> Source:
    """Return the tree as a Source: the emulator walks the tree; the text is for reading."""
    return Source(
        name=block.arg.name,
        language="workbench IR",
        text=to_expr(block),
        params=signature(leaves([block], Ops.PARAM)),
        block=block,
    )
