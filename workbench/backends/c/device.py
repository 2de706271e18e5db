"""The C device. A fork waits for an import: in a child, a module that is half imported would stay
so."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec

from workbench.backends.contract import Program
from workbench.backends.native.processor import Processor, compiled_target, processor_target
from workbench.backends.program.handwritten import Declaration
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.forking import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class CDevice(Processor):
    """The processor, through a C compiler; the C can be read without one."""

    name = "C"
    about = "this machine's processor, through its C compiler"
    extra = "c"
    needs = "or a cc, clang or gcc on PATH"
    aliases = ("CLANG", "GCC")
    rank = 20
    renders_anywhere = True
    takes_text = True
    language = Language(
        "C",
        "C, in which every kernel can be read",
        comment="//.*$",
        word=r"\b(?:for|if|else|return|const|void|float|double|long|int|static|inline|typedef"
        r"|struct|union|__kernel|__local|__global)\b",
        head='^(?:__kernel |extern "C" )?void ',
    )

    @property
    def is_available(self) -> bool:
        with no_fork:
            from workbench.backends.c.compiler import find_compiler

        with suppress(DeviceError):  # of a $CC: a launch raises it
            return find_compiler() is not None and find_spec("llvmlite") is not None
        return False

    def _target(self) -> Target:
        if find_spec("llvmlite") is None:
            return processor_target(self.name)
        # Compilers differ in their support of float16 and in their syntax of non-temporal stores;
        # all of them have integers and plain stores. Intrinsics are one processor's.
        return replace(
            compiled_target(self.name),
            conversions=(),
            non_temporal_bytes=0,
            tensor_cores=(),
            no_tensor_cores="C has no words for the products of one processor",
        )

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        with no_fork:
            from workbench.backends.c.render import render

        return render(block, linear, self.target, tree)

    def declaration(self, text: str) -> Declaration:
        from workbench.backends.c.handwritten import declaration

        return declaration(text)

    def framed(self, kernel: UOp) -> Source:
        from workbench.backends.c.handwritten import framed

        return framed(kernel)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.c.runtime import load
        return load(source)


DEVICE = CDevice()
