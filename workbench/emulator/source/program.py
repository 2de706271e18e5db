"""A linear program that was read from a text, with the lines of the text."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.emulator.conduct import Conduct
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import ProgramLine


@dataclass(frozen=True)
class TextProgram:
    """A program from a text in `language`: its steps, the lines of the text that have steps, and
    what the steps leave open."""

    language: str
    linear: tuple[UOp, ...]
    lines: tuple[ProgramLine, ...]
    conduct: Conduct
