"""Launching machine code: what all devices that run on this machine's processor share.

A launch passes one array of pointers and the steps (lo, hi) of the sliced loop that it does.
A kernel that takes long is launched in slices of at most 50 ms, so that Ctrl-C works in the
middle of it; one that is known to be short is one call, of less than a microsecond.
"""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

from workbench.backends.render.source import Source
from workbench.backends.runtime.assembly import AsmLine
from workbench.backends.runtime.buffer import Buffer
from workbench.backends.runtime.jit import Code
from workbench.backends.runtime.pool import pool
from workbench.dtypes import DType, dtypes
from workbench.errors import DeviceError

SLICE_S = 0.05
KEPT_PROGRAMS = 1024
"""How many Programs a runtime remembers by their Source."""
Launch = Callable[[int, int, int], None]
_Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class NativeProgram(ABC):
    """A kernel in machine code: `program(buffers)` runs it, one Buffer per slot.

    Errors: DeviceError for buffers that do not fit.
    """

    device: str

    def __init__(self, source: Source):
        self.source = source
        pointers = len(source.params) + bool(source.scratch_bytes)
        self._array = ctypes.c_uint64 * pointers
        self._steps = 1 if source.extent is None else source.extent
        # How many steps one slice may take: 1 until a launch has shown how long a step is.
        self._slice = 1 if self._steps > 1 else self._steps

    def __repr__(self) -> str:
        return f"<Program {self.source.name}: {len(self.source.params)} arguments>"

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        """Run the kernel on `buffers`, whole."""
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> Callable[[], None]:
        """Return a function that launches the kernel on `buffers`, with the pointers packed."""
        self._check(buffers)
        # the last ones may be inputs that simplification has made needless
        buffers = buffers[: len(self.source.params)]
        addresses = [b.address for b in buffers]
        held: list[object] = [*buffers]
        parts = [self._packed(addresses, held) for _ in range(self.source.threads)]
        if len(parts) == 1:
            kernel, arguments = self._kernel, parts[0]
        else:
            table = (ctypes.c_uint64 * len(parts))(*parts)
            held.append(table)
            kernel, arguments = self._on_threads, ctypes.addressof(table)
        steps = self._steps

        def launch(_held: object = held) -> None:
            if self._slice >= steps:
                kernel(arguments, 0, steps)
            else:
                self._run_slices(kernel, arguments)

        return launch

    def _packed(self, addresses: Sequence[int], held: list[object]) -> int:
        """Return the address of an array of pointers, the last to scratch memory of its own."""
        own = list(addresses)
        if self.source.scratch_bytes:
            scratch = Buffer(self.device, dtypes.uint8, self.source.scratch_bytes)
            own.append(scratch.address)
            held.append(scratch)
        packed = self._array(*own)
        held.append(packed)
        return ctypes.addressof(packed)

    def _on_threads(self, table: int, lo: int, hi: int) -> None:
        """Run the steps from `lo` to `hi` of every thread's part, all at once."""
        pool().run(self._code.address, table, self.source.threads, lo, hi)

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

    @cached_property
    def _code(self) -> Code:
        return self._load()

    @cached_property
    def _kernel(self) -> Launch:
        return _Kernel(self._code.address)

    def _run_slices(self, kernel: Launch, arguments: int) -> None:
        """Run slice by slice, and learn from the longest one how many steps a slice may take.

        Slices aim at half the limit and grow eightfold at most: what a few steps took says
        little about many.
        """
        done, length, measured = 0, self._slice, (0, 0.0)
        while done < self._steps:
            upto = min(self._steps, done + length)
            start = time.perf_counter()
            kernel(arguments, done, upto)
            step_s = (time.perf_counter() - start) / (upto - done)
            measured = max(measured, (upto - done, step_s))
            length = min(8 * length, _steps_in_slice(step_s))
            done = upto
        self._slice = _steps_in_slice(measured[1])

    def _check(self, buffers: Sequence[Buffer]) -> None:
        params = self.source.params
        if len(buffers) < len(params):
            raise DeviceError(
                f"cannot launch {self.source.name}",
                f"it takes {len(params)} buffers, and was given {len(buffers)}",
            )
        for slot, (buffer, param) in enumerate(zip(buffers, params, strict=False)):
            if not _fits(buffer, param):
                dtype, size = param
                raise DeviceError(
                    f"cannot launch {self.source.name}",
                    f"argument {slot} is {dtype}[{size}], and was given"
                    f" {buffer.dtype}[{buffer.size}]",
                )


def _steps_in_slice(step_s: float) -> int:
    return max(1, int(SLICE_S / 2 / max(step_s, 1e-12)))


def _fits(buffer: Buffer, param: tuple[DType, int]) -> bool:
    dtype, size = param
    if dtype is dtypes.void:
        return True
    # Lowering may have turned small floats into their bits.
    as_bits = dtype is dtypes.uint16 and buffer.dtype.is_small_float
    return (buffer.dtype is dtype or as_bits) and buffer.size >= size
