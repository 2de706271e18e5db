"""The sandbox: a user's source text runs in a worker process, so that no write and no endless loop
in it ends this process.

A run sends the inputs and receives the outputs, which takes milliseconds. Its time is that of the
run itself, by the worker's clock.

Sections: Programs in a worker process; Buffers that detect writes outside of their bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.program.text import OUTSIDE, Source, slots_of
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.files import Unpicklable
from workbench.base.interrupts import free_lock, once
from workbench.ir.node.uop import UOp
from workbench.worker.client import Worker
from workbench.worker.rows import Row, kernel_row

# --------------------------------------------------------------------------------------------------
# Programs in a worker process.

LIMIT_S = 30.0
"""Seconds after which a run counts as hanging."""
_numbers = itertools.count()
_lock = free_lock()
_worker = Worker(nice=0)


_is_inside = False


def enter() -> None:
    """Record that this process is a worker, which runs users' source text itself."""
    global _is_inside
    _is_inside = True


def sandboxed(kernel: UOp, device: DeviceInfo, source: Source) -> Program:
    """Return the Program of a kernel (an EXTERN) on a device; in a worker it has no sandbox."""
    return device.load(source) if _is_inside else SandboxedProgram(kernel, device, source)


class SandboxedProgram(Unpicklable):
    """A kernel that a user wrote: `program(buffers)` runs it in a worker process. `row` is the
    kernel as data, and `names` are those of its buffers by slot, if they are not those of an
    EXTERN.

    Errors of a run: WorkerEnded if it crashes or does not end, WorkbenchError if it writes to other
    memory than its outputs, CompileError if the compiler refuses it.
    """

    def __init__(
        self,
        kernel: UOp,
        device: DeviceInfo,
        source: Source,
        row: Row | None = None,
        names: Sequence[str] = (),
    ):
        self.kernel, self.device, self.source = kernel, device.name, source
        self.row = kernel_row(kernel, device.name, (), lambda: source) if row is None else row
        self.names = list(names) or _names_of(self)
        self._load = device.load

    @once
    def _compiled(self) -> Program:
        """The program in this process, for its assembly: it is not run here."""
        return self._load(self.source)

    def __repr__(self) -> str:
        return f"<Program {self.source.name}, in a process of its own>"

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> SandboxedLaunch:
        """Return the kernel with its memory. Errors: DeviceError for buffers that do not fit."""
        params = self.source.params
        for slot, (dtype, size) in enumerate(params):
            if slot >= len(buffers) or buffers[slot].size < size:
                raise DeviceError(
                    f"cannot launch {self.source.name}",
                    f"argument {slot} is {dtype}[{size}], and was not passed such memory",
                )
        return SandboxedLaunch(self, buffers[: len(params)])

    @property
    def assembly(self) -> str:
        """The machine's instructions, as text."""
        return str(getattr(self._compiled, "assembly", ""))

    @property
    def assembly_lines(self) -> Any:
        """The instructions without directives, each with its line of the source."""
        return getattr(self._compiled, "assembly_lines", ())


class SandboxedLaunch:
    """A kernel and its memory: a call runs it on copies, and copies its outputs back."""

    def __init__(self, program: SandboxedProgram, buffers: Sequence[Buffer]):
        self._program, self._buffers = program, [*buffers]
        self._row, self._names = program.row, program.names
        self._outputs = program.kernel.outputs

    def __call__(self, wait: bool = True) -> None:
        self.mean_s(1)

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory, of the same size and dtype."""
        self._buffers[slot] = buffer

    def mean_s(self, batch: int) -> float:
        """Run the kernel `batch` times; return the mean seconds of a run."""
        answer = self._ask(batch)
        for slot, blob in zip(self._outputs, answer["blobs"], strict=True):
            self._buffers[slot].copy_in(np.frombuffer(blob, np.uint8))
        return float(answer["seconds"])

    def _ask(self, batch: int) -> dict[str, Any]:
        key = f"run {next(_numbers)}"
        task = {
            "do": "run", "kernel": self._row, "data": key, "outputs": list(self._outputs),
            "names": self._names, "times": batch, "silent_s": LIMIT_S,
        }  # fmt: skip
        with _lock:
            try:
                _worker.hold(key, self._memory)
                return _worker.ask(task)
            except WorkbenchError as error:
                error.what = f"the kernel {self._program.kernel.arg.name}: {error.what}"
                raise
            except BaseException:  # interrupted: the kernel must not go on
                _worker.close()
                raise
            finally:
                _worker.drop(key)

    def _memory(self) -> list[tuple[Buffer, bool]]:
        return [(b, slot in self._outputs) for slot, b in enumerate(self._buffers)]


def _names_of(program: SandboxedProgram) -> list[str]:
    """Return the names of a kernel's buffers in its text, by slot."""
    code = program.kernel.code
    assert code is not None
    slots, copies = slots_of(program.kernel)
    declared = Device[program.device].declaration(code.text)
    names = {slot: argument.name for slot, argument in zip(slots, declared.arguments, strict=True)}
    names |= {copy.begins_as: f"of {names[copy.slot]} before" for copy in copies}
    return [names.get(slot, str(slot)) for slot in range(len(program.source.params))]


# --------------------------------------------------------------------------------------------------
# Buffers that detect writes outside of their bounds: edited source is not verified.

STRIP_BYTES = 4096
FILL, FILL_OF_FLOATS = 0xA5, 0xFF
"""The bytes of the strips: large integers, and floats of inputs that are NaN, so that an answer
shows a read of them. Around outputs they are numbers: NaN that was read outside would be no change
where it is written outside."""


def judged(is_right: bool, text: str, reads: str) -> tuple[bool, str]:
    """Return a verdict and its text with what a program `reads` outside of its buffers ("":
    nothing): an answer that depends on that is right by chance alone."""
    if not reads:
        return is_right, text
    return False, f"WRONG: {reads}" if is_right else f"{text}; {reads}"


class SandboxedBuffer:
    """A copy of a buffer, on a device, between two strips of memory that no program may write to,
    or read from."""

    def __init__(self, original: Buffer, device: str, is_output: bool):
        self._original, strip = original, STRIP_BYTES // max(1, original.dtype.itemsize)
        self._whole = Buffer(device, original.dtype, original.size + 2 * strip)
        self._front_bytes = strip * original.dtype.itemsize
        self._is_output = is_output
        self._first_fill = FILL_OF_FLOATS if original.dtype.is_float and not is_output else FILL
        self.buffer = self._whole.window(strip, original.size)
        self.renew()

    def renew(self, other_strips: bool = False) -> None:
        """Give the copy and its strips the contents that they began with; `other_strips`: all bits
        of the strips are others."""
        self._fill = self._first_fill ^ 0xFF if other_strips else self._first_fill
        self._whole.copy_in(np.full(self._whole.nbytes, self._fill, np.uint8))
        self.buffer.copy_from(self._original)

    def noted(self) -> tuple[int, int] | None:
        """Return the line and the index of the access outside of the buffer that a text with bounds
        checks has noted in front of it (None: none)."""
        note = self._bytes()[: self._front_bytes][-24:].view(np.int64)
        return (int(note[1]), int(note[2])) if note[0] == OUTSIDE else None

    def spoilt(self, name: str) -> str:
        """Return a text about a write outside of the buffer, or to an input; "" for none. `name`
        stands for the buffer in the text."""
        contents = self._bytes()
        strips = np.concatenate([contents[:STRIP_BYTES], contents[-STRIP_BYTES:]])
        if np.any(strips != self._fill):
            return f"writes outside of buffer {name}"
        before, after = (b.to_numpy().view(np.uint8) for b in (self._original, self.buffer))
        same = self._is_output or np.array_equal(before, after)
        return "" if same else f"changes buffer {name}, an input"

    def _bytes(self) -> Any:
        return self._whole.to_numpy().view(np.uint8)
