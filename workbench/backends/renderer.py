"""A renderer without a runtime: a language in which kernels of any machine can be read.

    register(Renderer("SHADER", Language("shader", ..), target, render))

From then on the page has a tab for it, beside those of the devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.memory import Bytes, Memory
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.base.arguments import require
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

Render = Callable[[UOp, tuple[UOp, ...], Target, UOp | None], Source]


class Renderer(DeviceInfo):
    """A device that renders kernels in its language and runs none.

    `render(block, linear, target, tree)` returns the Source of a kernel from its lowered
    statement tree and its linear program; `tree` is the statement tree before operations were
    decomposed. It may raise a WorkbenchError for an operation that the language lacks.
    """

    is_available = False
    renders_anywhere = True
    how_to_get = "a device that runs this language; the text can be read without one"

    def __init__(self, name: str, language: Language, target: Target, render: Render):
        require(name, str, "Renderer: name", '"MINE"')
        require(language, Language, "Renderer: language", "Language(..)")
        require(target, Target, "Renderer: target", 'Device["C"].target')
        self.name, self.language = name, language
        self.about = f"{language.title}, to read"
        self.memory = _NoMemory(name)
        self._own_target, self._render = replace(target, device=name), render

    def _target(self) -> Target:
        return self._own_target

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return self._render(block, linear, self._own_target, tree)

    def load(self, source: Source) -> Program:
        raise _cannot_run(self.name)


class _NoMemory(Memory):
    """The memory of a device that runs nothing: it raises at every use."""

    def __init__(self, name: str):
        self.name = name

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        raise _cannot_run(self.name)

    def free(self, handle: Any) -> None:
        raise _cannot_run(self.name)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        raise _cannot_run(self.name)

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        raise _cannot_run(self.name)

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        raise _cannot_run(self.name)


def _cannot_run(name: str) -> DeviceError:
    because = "it is a renderer: its kernels can be read, and nothing runs them"
    return DeviceError(f"{name} runs no kernels", because, "another device")
