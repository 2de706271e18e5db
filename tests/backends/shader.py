"""Renderers for tests: a language of one line an op, and one that fails."""

from __future__ import annotations

from typing import Any

from workbench import Renderer
from workbench.backends.program.text import Language, Source
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


def shader(block: UOp, linear: tuple[UOp, ...], target: Target, tree: UOp | None) -> Source:
    """A language of one line an op, that knows no POW and no file of this package."""
    lines = [f"shader {target.vector_bytes}", *(n.op.name.lower() for n in linear)]
    where = ((), *((place,) for place in range(len(linear))))
    return Source("main", "SHADER", "\n".join(lines), (), lines=where)


def fails(block: UOp, linear: tuple[UOp, ...], target: Target, tree: UOp | None) -> Source:
    raise KeyError("no such op")


def a_renderer(render: Any) -> Renderer:
    language = Language("Shader", "a shading language", "#.*$", r"\b(?:load|store)\b")
    return Renderer("SHADER", language, Target("", vector_bytes=16), render)
