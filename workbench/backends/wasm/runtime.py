"""The WASM runtime: LLVM IR to a Program that wasmtime runs in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers import llvm
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.refusal import errors_in, require_arguments
from workbench.backends.llvm_ir.locations import with_locations
from workbench.backends.native.assembly import AsmLine, readable
from workbench.backends.program.source import Source
from workbench.backends.wasm.engine import engine
from workbench.backends.wasm.memory import WasmMemory
from workbench.backends.wasm.module import EXPORT, ISA, module_of
from workbench.base.errors import DeviceError
from workbench.base.forking import once
from workbench.base.interrupts import raised_after
from workbench.base.libraries import library

KEPT_PROGRAMS = 1024


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source, memory: WasmMemory) -> WasmProgram:
    """Return the Program of a Source, the same one for the same text."""
    return WasmProgram(source, memory)


class WasmProgram:
    """A kernel in WebAssembly, compiled (or read from the cache) at construction.

    Errors: CompileError if LLVM refuses the text.
    """

    def __init__(self, source: Source, memory: WasmMemory):
        self.source, self.memory = source, memory
        with errors_in(source):
            self.module = module_of(source)
        """The bytes that a browser runs, too."""

    @once
    def kernel(self) -> Any:
        """The function of addresses, compiled for this processor."""
        kernel = engine().instance(self.module)[EXPORT]
        count = len(kernel.type(engine().store).params)
        with errors_in(self.source):
            more = int(self.source.scratch_bytes > 0)
            require_arguments("wasm", count, self.source, more)
        return kernel

    def require_code(self) -> None:
        """Errors: CompileError."""
        _ = self.kernel

    @once
    def assembly(self) -> str:
        """WebAssembly's instructions, as text."""
        return in_child(llvm.assembly_of, self.source.text, ISA)

    @once
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions without directives, each with its line of the source."""
        return readable(in_child(llvm.assembly_of, with_locations(self.source.text), ISA))

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> WasmLaunch:
        return WasmLaunch(self, buffers)


class WasmLaunch:
    """A kernel and its memory, with scratch memory of its own where it needs some."""

    def __init__(self, program: WasmProgram, buffers: Sequence[Buffer]):
        source = program.source
        self.program, self.buffers = program, [*buffers]
        self.slots = source.slots
        pool = program.memory.pool
        size = source.scratch_bytes
        self._scratch = pool.acquire(size) if size else None
        self._find()

    def _find(self) -> None:
        place = self.program.memory.place
        addresses = [self.buffers[slot].address for slot in self.slots]
        if self._scratch is not None:
            addresses.append(self._scratch.address)
        self._arguments = [place(address) for address in addresses]

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
        self._find()

    def __call__(self, wait: bool = True) -> None:
        try:
            self.program.kernel(engine().store, *self._arguments)
        except library("wasmtime").Trap as error:
            what = f"the kernel {self.program.source.name} was stopped"
            raise DeviceError(what, str(error).strip().splitlines()[-1].strip()) from None

    def __del__(self) -> None:
        scratch = getattr(self, "_scratch", None)
        if scratch is not None:
            try:
                self.program.memory.pool.release(scratch)
            except KeyboardInterrupt:
                _ = [*raised_after()]
