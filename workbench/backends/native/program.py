"""Launching machine code, for all devices on this machine's processor.

The languages of these devices have the same frame around a kernel:

    name(args, lo, hi, thread)

`args` holds a pointer per argument, and one to scratch memory if that is large. `lo` and `hi` are
the steps of the chunked loop that this launch runs; `thread` is its step of the loop over threads,
if there is one. A long kernel is launched in slices of at most 50 ms, so that Ctrl-C works in the
middle of it; a kernel that is known to be short is one call, of less than a microsecond.

Sections: Assembly text; Launching machine code, for all devices on this machine's processor.
"""

from __future__ import annotations

import ctypes
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from typing import Any, NamedTuple

from workbench.backends.compilers.refusal import errors_in, missing_kernel
from workbench.backends.memory import Buffer
from workbench.backends.native.jit import Code
from workbench.backends.native.stamps import Stamp, can_stamp, run_stamped
from workbench.backends.native.thread_pool import pool
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.base.files import Unpicklable
from workbench.base.interrupts import once

# --------------------------------------------------------------------------------------------------
# Assembly text: instructions and the labels that they jump to, each with its line of source.
#
# Compilers write `.loc` directives with the line of the source that the next instructions are for.
# These directives, and all others, are removed from the text.

_LABEL = re.compile(r'[\w.$@"]+:')
_NAME = re.compile(r"[\w.$@]+")
_LOC = re.compile(r"\.loc\s+\d+\s+(\d+)")
_COMMENT = re.compile(r"(?:^|\s+)(?:#(?:\s.*)?|#[A-Z_]+|//.*|;.*)$")


class AsmLine(NamedTuple):
    """An instruction or a label. `source_line` is the number, from 1, of the line of the source
    text that it is for; None for a label, and where the compiler gives none."""

    text: str
    source_line: int | None

    @property
    def is_label(self) -> bool:
        return self.text.endswith(":")


def readable(assembly: str) -> tuple[AsmLine, ...]:
    """Return a compiler's assembly without directives, comments and needless labels."""
    lines = list(_instructions(assembly))
    used = {w for line in lines if not line.is_label for w in _NAME.findall(line.text)}
    return tuple(line for line in lines if not line.is_label or _is_shown(line.text[:-1], used))


def code_loops(lines: Sequence[AsmLine]) -> list[range]:
    """Return the loops of some code, each from its label to a jump back to it, outer ones before
    inner ones."""
    labels = {line.text[:-1]: place for place, line in enumerate(lines) if line.is_label}
    loops: list[range] = []
    for place, line in enumerate(lines):
        start = labels.get(line.text.split()[-1], place)
        if start < place:
            loops.append(range(start, place + 1))
    return sorted(loops, key=len, reverse=True)


def _instructions(assembly: str) -> Iterator[AsmLine]:
    """Yield the labels and instructions of the sections that hold code."""
    number: int | None = None
    is_code = True
    for line in assembly.splitlines():
        words = _COMMENT.sub("", line).strip()
        if label := _LABEL.match(words):
            if is_code:
                yield AsmLine(label[0], None)
        elif location := _LOC.match(words):
            number = int(location[1]) or None
        elif words.startswith((".section", ".text", ".data", ".bss")):
            is_code = ".text" in words or "__text" in words
        elif words and is_code and not words.startswith("."):
            yield AsmLine("  " + " ".join(words.split()), number)


def _is_shown(label: str, used: set[str]) -> bool:
    """Whether an instruction names a label, or it is a function's name."""
    return label in used or not label.startswith((".", "L", '"'))


# --------------------------------------------------------------------------------------------------
# Launching machine code, for all devices on this machine's processor.

SLICE_S = 0.05
KernelCall = Callable[[int, int, int], None]
_Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class NativeProgram(Unpicklable, ABC):
    """A kernel in machine code: `program(buffers)` runs it, one Buffer per slot.

    Errors: DeviceError for buffers that do not fit.
    """

    device: str

    def __init__(self, source: Source):
        self.source = source
        pointers = len(source.params) + bool(source.scratch_bytes)
        self._array = ctypes.c_uint64 * pointers
        self._steps = 1 if source.launch.steps is None else source.launch.steps
        self._threads = source.launch.threads
        # Steps of one slice: 1 until a launch has measured a step.
        self._slice = 1 if self._steps > 1 else self._steps

    def __repr__(self) -> str:
        return f"<Program {self.source.name}: {len(self.source.params)} arguments>"

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        """Run all steps of the kernel on `buffers`."""
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> NativeLaunch:
        """Return a launch of the kernel on `buffers`, whose pointers are packed once."""
        self._check(buffers)
        # further buffers are inputs that simplification removed
        return NativeLaunch(self, buffers[: len(self.source.params)])

    def pack(self, addresses: Sequence[int], buffers: list[Buffer]) -> Any:
        """Return an array of pointers. If the kernel needs scratch memory, the last one points to
        new memory, which is added to `buffers`."""
        own = list(addresses)
        if self.source.scratch_bytes:
            scratch = Buffer(self.device, dtypes.uint8, self.source.scratch_bytes)
            own.append(scratch.address)
            buffers.append(scratch)
        return self._array(*own)

    def run(self, kernel: KernelCall, arguments: int) -> None:
        """Run all steps on the pointers at `arguments`: at once, or in slices."""
        if self._slice >= self._steps:
            kernel(arguments, 0, self._steps)
        else:
            self._run_slices(kernel, arguments)

    def on_threads(self, table: int, lo: int, hi: int) -> None:
        """Run the steps from `lo` to `hi` of every thread's part, all parts at once."""
        pool().run(self._code.address, table, self._threads, lo, hi)

    @property
    @abstractmethod
    def assembly(self) -> str:
        """The machine's instructions, as text."""

    @property
    @abstractmethod
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions without directives, each with its line of the source."""

    @abstractmethod
    def _load(self) -> Code:
        """Return the kernel's machine code, compiled and loaded."""

    @once
    def _code(self) -> Code:
        with errors_in(self.source):
            try:
                return self._load()
            except CompileError as error:
                if re.search(rf"not found: \[.*\b{self.source.name}\b", error.because):
                    raise missing_kernel(error.stage, self.source) from error
                raise

    def require_code(self) -> None:
        """Compile and load the kernel, if it is not loaded. Errors: CompileError."""
        _ = self._code

    @once
    def _kernel(self) -> KernelCall:
        return _Kernel(self._code.address)

    def _run_slices(self, kernel: KernelCall, arguments: int) -> None:
        """Run slice by slice; set the slices of later launches by the longest one of this launch.

        Slices aim at half the limit and grow eightfold at most: the time of a few steps says little
        about many.
        """
        position, length, measured = 0, self._slice, (0, 0.0)
        while position < self._steps:
            upto = min(self._steps, position + length)
            start = time.perf_counter()
            kernel(arguments, position, upto)
            step_s = (time.perf_counter() - start) / (upto - position)
            measured = max(measured, (upto - position, step_s))
            length = min(8 * length, _steps_in_slice(step_s))
            position = upto
        self._slice = _steps_in_slice(measured[1])

    def _check(self, buffers: Sequence[Buffer]) -> None:
        params = self.source.params
        if len(buffers) < len(params):
            raise DeviceError(
                f"cannot launch {self.source.name}",
                f"it takes {len(params)} buffers, and was given {len(buffers)}",
            )
        for slot, (buffer, param) in enumerate(zip(buffers, params, strict=False)):
            if not buffer.address:
                raise DeviceError(
                    f"cannot launch {self.source.name}",
                    f"argument {slot} is {buffer!r}, which the processor cannot read",
                    "the memory of a device that runs in this process",
                )
            if not _fits(buffer, param):
                dtype, size = param
                raise DeviceError(
                    f"cannot launch {self.source.name}",
                    f"argument {slot} is {dtype}[{size}], and was given"
                    f" {buffer.dtype}[{buffer.size}]",
                )
            if slot in self.source.aligned and not _begins_a_line(buffer):
                raise DeviceError(
                    f"cannot launch {self.source.name}",
                    f"argument {slot} is a part of a buffer that begins inside of a cache line,"
                    " and the kernel writes whole lines",
                    "a buffer of its own",
                )


class NativeLaunch:
    """A kernel and its buffers: a call runs it on as many `threads`. `move` gives a slot another
    buffer."""

    __slots__ = (
        "_arguments", "_buffers", "_kernel", "_parts", "_program", "_slots", "_table", "threads"
    )  # fmt: skip

    def __init__(self, program: NativeProgram, buffers: Sequence[Buffer]):
        self._program = program
        self._slots, self._buffers = len(buffers), [*buffers]
        addresses = [b.address for b in buffers]
        self.threads = program._threads
        self._parts = [program.pack(addresses, self._buffers) for _ in range(self.threads)]
        starts = [ctypes.addressof(part) for part in self._parts]
        self._table = (ctypes.c_uint64 * len(starts))(*starts)
        self._kernel, self._arguments = program._kernel, starts[0]
        if len(starts) > 1:
            self._kernel = program.on_threads
            self._arguments = ctypes.addressof(self._table)

    def __call__(self, wait: bool = True) -> None:
        self._program.run(self._kernel, self._arguments)

    @property
    def is_one_call(self) -> bool:
        """Whether the kernel is known to take less than a slice."""
        return self._program._slice >= self._program._steps

    @property
    def row(self) -> tuple[int, int, int, int]:
        """The words of the launch in the table of a batch."""
        program = self._program
        return program._code.address, ctypes.addressof(self._table), program._steps, self.threads

    def move(self, slot: int, buffer: Buffer) -> None:
        """Set a slot to `buffer`, which must have the same dtype and size, and must begin a cache
        line if the slot is `aligned` in the Source; a slot that the kernel lacks is ignored."""
        if slot < self._slots:
            self._buffers[slot] = buffer
            for part in self._parts:
                part[slot] = buffer.address


class NativeBatch:
    """Launches that run one after the other. The first call runs and times each; later ones are a
    native call for as many neighbours as take at most a slice, so that Ctrl-C works between them.
    The call reads a table, so that nothing is compiled for a batch.
    """

    def __init__(self, launches: Sequence[NativeLaunch]):
        self._launches = [*launches]
        self._runs: list[Callable[[], None]] | None = None
        self._groups = [[launch] for launch in self._launches]

    def recorded(self) -> Iterator[list[Stamp]]:
        """Run the launches; yield the stamps of their parts, those of each native call together.
        Before the first call of the batch each is a call of its own."""
        first = 0
        for group in self._groups:
            if can_stamp() and all(launch.is_one_call for launch in group):
                stamps = run_stamped([launch.row for launch in group])
                yield [stamp._replace(launch=first + stamp.launch) for stamp in stamps]
            else:
                for number, launch in enumerate(group, first):
                    start_ns = time.perf_counter_ns()
                    launch()
                    end_ns = time.perf_counter_ns()
                    yield [Stamp(number, start_ns, end_ns, get_ident())]
            first += len(group)

    def __call__(self) -> None:
        if self._runs is None:
            self._runs = self._timed()
            return
        for run in self._runs:
            run()

    def _timed(self) -> list[Callable[[], None]]:
        """Run the launches; return the calls that run them from now on."""
        groups: list[list[NativeLaunch]] = []
        sum_s = 0.0
        for launch in self._launches:
            start = time.perf_counter()
            launch()
            seconds = time.perf_counter() - start
            sum_s += seconds
            if not groups or sum_s > SLICE_S or not launch.is_one_call:
                groups.append([])
                sum_s = seconds
            groups[-1].append(launch)
            if not launch.is_one_call:
                sum_s = SLICE_S  # the next one begins a group
        self._groups = groups
        return [_native_call(group) for group in groups]


def _native_call(launches: Sequence[NativeLaunch]) -> Callable[[], None]:
    """Return a call that runs launches one after the other, each of which is one call, or alone."""
    if not all(launch.is_one_call for launch in launches):
        return launches[0]
    words = [word for launch in launches for word in launch.row]
    if all(launch.threads == 1 for launch in launches):
        return pool().chain(words)
    table = (ctypes.c_int64 * len(words))(*words)
    start, count = ctypes.addressof(table), len(launches)
    parts = max(launch.threads for launch in launches)

    def run(memory: Any = table) -> None:  # the default argument keeps the table alive
        pool().run_batch(start, count, parts)

    return run


def _steps_in_slice(step_s: float) -> int:
    return max(1, int(SLICE_S / 2 / max(step_s, 1e-12)))


def _begins_a_line(buffer: Buffer) -> bool:
    """Whether a Buffer begins at the alignment of its memory's blocks."""
    return buffer.address % buffer.memory.alignment_bytes == 0


def _fits(buffer: Buffer, param: tuple[DType, int]) -> bool:
    dtype, size = param
    if dtype is dtypes.void:
        return True
    # Lowering may have turned low-precision floats into their bits.
    as_bits = (
        dtype.kind == "uint" and dtype.bits == buffer.dtype.bits and buffer.dtype.is_low_precision
    )
    return (buffer.dtype is dtype or as_bits) and buffer.size >= size
