"""The wasmtime engine: its store, and the one memory of all kernels."""

from __future__ import annotations

import atexit
import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.backends.memory import Bytes
from workbench.backends.wasm.module import STACK_BYTES
from workbench.base.libraries import library

PAGE_BYTES = 1 << 16
"""The unit of memory."""
MOST_PAGES = 1 << 16
"""All that addresses of 32 bits reach."""
FIRST_PAGES = 64
"""The memory before anything is allocated, but for the stack."""


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
        """Where the memory begins in this process."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the memory."""
        return int(self.memory.data_len(self.store))

    def grow(self, size_bytes: int) -> None:
        """Let the memory have at least as many bytes. Errors: MemoryError."""
        pages = -(-(size_bytes - self.size_bytes) // PAGE_BYTES)
        if pages > 0:
            try:
                self.memory.grow(self.store, pages)
            except library("wasmtime").WasmtimeError as error:
                because = "WebAssembly has at most 4 GiB of memory"
                raise MemoryError(because) from error

    def view(self, begin: int, size_bytes: int) -> Bytes:
        """Return some bytes of the memory as an array."""
        kind = ctypes.c_uint8 * size_bytes
        return np.ctypeslib.as_array(kind.from_address(self.address + begin))

    def instance(self, module: bytes) -> Any:
        """Return the kernel of a module, as a function of addresses."""
        wasmtime = library("wasmtime")
        code = wasmtime.Module(self.engine, module)
        is_memory = (isinstance(i.type, wasmtime.MemoryType) for i in code.imports)
        imports = [self.memory if memory else self.stack for memory in is_memory]
        return wasmtime.Instance(self.store, code, imports).exports(self.store)

    def close(self) -> None:
        """Free all, in order; at the end of the process nothing would."""
        self.store.close()
        self.engine.close()


@lru_cache(maxsize=1)
def engine() -> WasmEngine:
    """Return the engine of this process. Errors: WorkbenchError without wasmtime."""
    wasm = WasmEngine()
    atexit.register(wasm.close)
    return wasm
