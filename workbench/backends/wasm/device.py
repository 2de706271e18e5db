"""The WASM device: WebAssembly, which browsers run, and here wasmtime."""

from __future__ import annotations

from importlib.util import find_spec

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.backends.wasm.memory import WasmMemory
from workbench.backends.wasm.module import STACK_BYTES
from workbench.base.forking import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class WasmDevice(DeviceInfo):
    """WebAssembly with vectors of 128 bits."""

    name = "WASM"
    about = "WebAssembly, as browsers run it, through wasmtime"
    extra = "wasm"
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
        return all(find_spec(name) is not None for name in ("wasmtime", "llvmlite"))

    def _target(self) -> Target:
        return Target(self.name, vector_bytes=16, vector_registers=16)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        with no_fork:
            from workbench.backends.wasm.render import render
        return render(linear, self.target)

    def page_module(self, source: Source) -> bytes:
        with no_fork:
            from workbench.backends.wasm.module import module_of
        return module_of(source)

    def load(self, source: Source) -> Program:
        if not self.is_available:
            raise self.missing()
        with no_fork:
            from workbench.backends.wasm.runtime import load
        return load(source, self.wasm_memory)


DEVICE = WasmDevice()
