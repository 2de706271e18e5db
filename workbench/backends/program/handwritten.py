"""Source text that a user wrote: the parameters of its function, and its kernel (an EXTERN) as a
Source.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.backends.program.source import Source, signature
from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves


class DeclaredArgument(NamedTuple):
    """An argument of a function: memory of a dtype, which it writes, or only reads."""

    name: str
    dtype: DType
    is_written: bool


class Declaration(NamedTuple):
    """What the text of a function says of it."""

    name: str
    arguments: tuple[DeclaredArgument, ...]


class CopiedArgument(NamedTuple):
    """An argument, by its slot, that begins with the contents of another slot."""

    slot: int
    begins_as: int
    size_bytes: int


def slots_of(kernel: UOp) -> tuple[list[int], list[CopiedArgument]]:
    """Return the slots that the function of a kernel takes, in order, and those that begin with the
    contents of others."""
    (code, *_) = leaves([kernel], Ops.EXTERN)
    starts = code.arg.starts
    count = len(code.src) - len(starts)
    arguments, others = code.src[:count], code.src[count:]
    copies = [
        CopiedArgument(arguments[place].slot, other.slot, other.length * other.dtype.itemsize)
        for place, other in zip(starts, others, strict=True)
    ]
    return [argument.slot for argument in arguments], copies


def source_of(kernel: UOp, name: str, language: str, text: str) -> Source:
    """Return the Source of a kernel whose whole text is here: a launch runs it once."""
    params = signature(leaves([kernel], Ops.PARAM))
    return Source(name, language, text, params, is_handwritten=True)
