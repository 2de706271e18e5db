"""LLVM IR -> a Program that runs in this process.

A launch passes one array of pointers and the steps (lo, hi) of the sliced loop that it does.
A kernel that takes long is launched in slices of at most 50 ms, so that Ctrl-C works in the
middle of it; one that is known to be short is one call, of less than a microsecond.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from workbench.backends.render.source import Source
from workbench.backends.runtime import cache, jit
from workbench.backends.runtime.buffer import Buffer
from workbench.dtypes import DType, dtypes
from workbench.errors import DeviceError

SLICE_S = 0.05
_Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_KEPT_PROGRAMS = 1024


@lru_cache(maxsize=_KEPT_PROGRAMS)
def load(source: Source) -> Program:
    """Return the Program of a Source: the same one for the same text."""
    return Program(source)


class Program:
    """A kernel in machine code: `program(buffers)` runs it, one Buffer per slot.

    Errors: CompileError if LLVM refuses the text; DeviceError for buffers that do not fit.
    """

    def __init__(self, source: Source):
        self.source = source
        self._code = jit.load_object(_object(source.text), source.name)
        self._kernel = _Kernel(self._code.address)
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
        addresses = [b.address for b in buffers]
        held: list[object] = [*buffers]
        if self.source.scratch_bytes:
            scratch = Buffer("LLVM", dtypes.uint8, self.source.scratch_bytes)
            addresses.append(scratch.address)
            held.append(scratch)
        packed = self._array(*addresses)
        held.append(packed)
        arguments, steps, kernel = ctypes.addressof(packed), self._steps, self._kernel

        def launch(_held: object = held) -> None:
            if self._slice >= steps:
                kernel(arguments, 0, steps)
            else:
                self._run_slices(arguments)

        return launch

    @cached_property
    def assembly(self) -> str:
        """The machine's instructions, as text."""
        return jit.compile_assembly(self.source.text)

    def _run_slices(self, arguments: int) -> None:
        """Run slice by slice, and learn from the longest one how many steps a slice may take.

        Slices aim at half the limit and grow eightfold at most: what a few steps took says
        little about many.
        """
        done, length, measured = 0, self._slice, (0, 0.0)
        while done < self._steps:
            upto = min(self._steps, done + length)
            start = time.perf_counter()
            self._kernel(arguments, done, upto)
            step_s = (time.perf_counter() - start) / (upto - done)
            measured = max(measured, (upto - done, step_s))
            length = min(8 * length, _steps_in_slice(step_s))
            done = upto
        self._slice = _steps_in_slice(measured[1])

    def _check(self, buffers: Sequence[Buffer]) -> None:
        params = self.source.params
        if len(buffers) != len(params):
            raise DeviceError(
                f"cannot launch {self.source.name}",
                f"it takes {len(params)} buffers, and was given {len(buffers)}",
            )
        for slot, (buffer, param) in enumerate(zip(buffers, params, strict=True)):
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
    return dtype is dtypes.void or (buffer.dtype is dtype and buffer.size >= size)


def _object(text: str) -> bytes:
    """Return the object file of `text`, from the cache if it is there."""
    host = jit.host()
    key = cache.key_of(text, host.version, host.triple, host.cpu, host.features)
    image = cache.get(key)
    if image is None:
        image = jit.compile_object(text)
        cache.put(key, image)
    return image
