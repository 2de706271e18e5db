"""The WASM device: WebAssembly, which wasmtime runs here, and a browser in a page.

Sections: WebAssembly memory; The WASM device; The wasmtime engine; The WASM runtime.
"""

from __future__ import annotations

import atexit
import ctypes
from bisect import insort
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from workbench.backends.compilers import compilers
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.refusal import errors_in, require_arguments
from workbench.backends.contract import KEPT_PROGRAMS, DeviceInfo, Program
from workbench.backends.llvm_ir.loops import with_locations
from workbench.backends.memory import Buffer, Bytes
from workbench.backends.native.host_memory import HostMemory
from workbench.backends.native.program import AsmLine, readable
from workbench.backends.program.text import Language, Source
from workbench.backends.wasm.wasm_module import EXPORT, ISA, STACK_BYTES, module_of
from workbench.base.errors import DeviceError
from workbench.base.installation import library
from workbench.base.interrupts import free_lock, no_fork, once, raised_after
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# WebAssembly memory: one block, whose pieces are numpy arrays.


class WasmMemory(HostMemory):
    """Memory of WebAssembly. A handle is an array of bytes; `address` returns its address in this
    process, which `wasm_address` turns into the one in WebAssembly. Freed pieces are used again."""

    shares_host_memory = False  # not the memory that other devices have

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int]] = []  # freed pieces: their beginnings and ends
        self._end = STACK_BYTES
        self._lock = free_lock()

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Bytes:
        size = -(-max(1, size_bytes) // alignment_bytes) * alignment_bytes
        with self._lock:
            begin = self._begin(size)
            engine().grow(begin + size)
            self._end = max(self._end, begin + size)
        return engine().view(begin, size_bytes)

    def _begin(self, size: int) -> int:
        for number, (begin, end) in enumerate(self._gaps):
            if end - begin >= size:
                del self._gaps[number]
                if end - begin > size:
                    insort(self._gaps, (begin + size, end))
                return begin
        return self._end

    def free(self, handle: Bytes) -> None:
        begin = self.wasm_address(self.address(handle))
        size = -(-max(1, handle.size) // self.alignment_bytes) * self.alignment_bytes
        with self._lock:
            insort(self._gaps, (begin, begin + size))
            joined: list[tuple[int, int]] = []
            for gap in self._gaps:
                if joined and joined[-1][1] == gap[0]:
                    joined[-1] = joined[-1][0], gap[1]
                else:
                    joined.append(gap)
            self._gaps = joined

    def adopt(self, data: Bytes) -> None:
        """Return None: other memory is not WebAssembly's."""

    def wasm_address(self, address: int) -> int:
        """Return the WebAssembly address of an address in this process."""
        return address - engine().address

    def available_bytes(self) -> int | None:
        return (4 << 30) - self._end


# --------------------------------------------------------------------------------------------------
# The WASM device.


class WasmDevice(DeviceInfo):
    """WebAssembly with vectors of 128 bits."""

    name = "WASM"
    about = "WebAssembly, as browsers run it, through wasmtime"
    extra = "wasm"
    packages = ("wasmtime", "llvmlite")
    rank = 94
    runs_in_page = True
    page_stack_bytes = STACK_BYTES
    language = Language(
        "WASM",
        "LLVM IR of a function for WebAssembly",
        comment=";.*$",
        word=r"\b(?:define|br|label|load|store|fmul|fadd|phi|ret|icmp|getelementptr|call"
        r"|attributes|select)\b",
        head="^define void ",
    )

    def __init__(self) -> None:
        self.wasm_memory = self.memory = WasmMemory()

    @property
    def is_available(self) -> bool:
        return all(find_spec(name) is not None for name in self.packages)

    def _target(self) -> Target:
        return Target(self.name, vector_bytes=16, vector_registers=16)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        with no_fork:
            from workbench.backends.wasm.wasm_module import render
        return render(linear, self.target)

    def page_module(self, source: Source) -> bytes:
        return module_of(source)

    def load(self, source: Source) -> Program:
        if not self.is_available:
            raise self.missing()
        return load(source, self.wasm_memory)


DEVICE = WasmDevice()


# --------------------------------------------------------------------------------------------------
# The wasmtime engine: its store, and the one memory of all kernels.

PAGE_BYTES = 1 << 16
"""The unit in which memory grows."""
MOST_PAGES = 1 << 16
"""The pages that addresses of 32 bits reach."""
FIRST_PAGES = 64
"""The pages of the memory at the beginning, the stack among them."""


class WasmEngine:
    """The engine with its store, and memory that grows in place."""

    def __init__(self) -> None:
        wasmtime = library("wasmtime")
        config = wasmtime.Config()
        config.memory_reservation = MOST_PAGES * PAGE_BYTES
        config.memory_may_move = False
        self.engine = wasmtime.Engine(config)
        self.store = wasmtime.Store(self.engine)
        limits = wasmtime.Limits(FIRST_PAGES, MOST_PAGES)
        self.memory = wasmtime.Memory(self.store, wasmtime.MemoryType(limits))
        number = wasmtime.GlobalType(wasmtime.ValType.i32(), True)
        top = wasmtime.Val.i32(STACK_BYTES)
        self.stack = wasmtime.Global(self.store, number, top)
        begin = self.memory.data_ptr(self.store)
        self.address = ctypes.addressof(begin.contents)
        """The address of the memory in this process."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the memory."""
        return int(self.memory.data_len(self.store))

    def grow(self, size_bytes: int) -> None:
        """Grow the memory to at least this size. Errors: MemoryError."""
        pages = -(-(size_bytes - self.size_bytes) // PAGE_BYTES)
        if pages > 0:
            try:
                self.memory.grow(self.store, pages)
            except library("wasmtime").WasmtimeError as error:
                because = "WebAssembly has at most 4 GiB of memory"
                raise MemoryError(because) from error

    def view(self, begin: int, size_bytes: int) -> Bytes:
        """Return an array over bytes of the memory."""
        kind = ctypes.c_uint8 * size_bytes
        return np.ctypeslib.as_array(kind.from_address(self.address + begin))

    def instance(self, module: bytes) -> Any:
        """Return the exports of a module: under EXPORT its kernel, a function of addresses."""
        wasmtime = library("wasmtime")
        code = wasmtime.Module(self.engine, module)
        is_memory = (isinstance(i.type, wasmtime.MemoryType) for i in code.imports)
        imports = [self.memory if memory else self.stack for memory in is_memory]
        return wasmtime.Instance(self.store, code, imports).exports(self.store)

    def close(self) -> None:
        """Free the store, then the engine: at the end of the process nothing else would."""
        self.store.close()
        self.engine.close()


@lru_cache(maxsize=1)
def engine() -> WasmEngine:
    """Return the engine of this process. Errors: WorkbenchError without wasmtime."""
    wasm = WasmEngine()
    atexit.register(wasm.close)
    return wasm


# --------------------------------------------------------------------------------------------------
# The WASM runtime: LLVM IR to a Program that wasmtime runs in this process.


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
        """The module, which a browser can run, too."""

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
        """Compile for this processor now. Errors: CompileError."""
        _ = self.kernel

    @once
    def assembly(self) -> str:
        """WebAssembly's instructions, as text."""
        return in_child(compilers.assembly_of, self.source.text, ISA)

    @once
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions without directives, each with its line of the source."""
        return readable(in_child(compilers.assembly_of, with_locations(self.source.text), ISA))

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> WasmLaunch:
        return WasmLaunch(self, buffers)


class WasmLaunch:
    """A kernel bound to its memory, with scratch memory of its own where it needs some."""

    def __init__(self, program: WasmProgram, buffers: Sequence[Buffer]):
        source = program.source
        self.program, self.buffers = program, [*buffers]
        self.slots = source.slots
        pool = program.memory.pool
        size = source.scratch_bytes
        self._scratch = pool.acquire(size) if size else None
        self._set_arguments()

    def _set_arguments(self) -> None:
        wasm_address = self.program.memory.wasm_address
        addresses = [self.buffers[slot].address for slot in self.slots]
        if self._scratch is not None:
            addresses.append(self._scratch.address)
        self._arguments = [wasm_address(address) for address in addresses]

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
        self._set_arguments()

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
