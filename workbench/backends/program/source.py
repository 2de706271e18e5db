"""Source: the text of a kernel, and the facts that a runtime needs to load it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.uop import UOp

MOST_CHARACTERS = 1 << 22
"""A compiler takes minutes for a longer text, and no kernel of a person has one."""
_UNREADABLE = re.compile("\\A\ufeff|[\0\ud800-\udfff]")
"""Characters that not every compiler reads: a NUL ends the text for many, which say nothing of the
rest, UTF-8 has no half of a pair, and NVRTC refuses a byte order mark, which is invisible."""


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as text in the `language` of a device.

    `params` has the dtype and the number of elements of each argument, by slot (dtype void
    for a slot that the kernel never touches); `launch` has the loops of which a launch runs a
    part; `aligned` are the slots whose memory must begin where a block of it may
    (`Memory.alignment_bytes`); `block` is the lowered statement tree, for the emulator. `lines`
    has, for each line of the text, the positions in the linear program of the nodes whose code it
    is (none for a brace or a comment); it is empty where that is unknown, as `linear`, that
    program, is where a user wrote the text. `original` is the Source whose text was edited, None
    for one that was not; `is_handwritten` says that a user wrote the kernel.

    Errors: CompileError for a text that no compiler reads as it is shown.
    Units: shared_bytes is the memory of a group that a launch gives it, 0 where its arrays have
    their sizes in the text; scratch_bytes is the scratch memory that a launch passes; 0 where it
    is on the kernel's stack.
    """

    name: str
    language: str
    text: str
    params: tuple[tuple[DType, int], ...]
    scratch_bytes: int = 0
    launch: LaunchShape = LaunchShape()
    aligned: tuple[int, ...] = ()
    block: UOp | None = None
    lines: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)
    linear: tuple[UOp, ...] = field(default=(), compare=False, repr=False)
    shared_bytes: int = 0
    original: Source | None = field(default=None, compare=False, repr=False)
    is_handwritten: bool = False

    def __post_init__(self) -> None:
        require_readable(self.text)

    def edited(self, text: str) -> Source:
        """Return it with an edited text."""
        return replace(self, text=text, lines=(), linear=(), original=self)

    def __str__(self) -> str:
        return self.text

    @property
    def slots(self) -> list[int]:
        """The slots that the kernel uses, in the order of the parameters of its text."""
        return [slot for slot, (dtype, _) in enumerate(self.params) if dtype.bits]


def require_readable(text: str) -> None:
    """Errors: CompileError for a text with a character that no compiler reads, and a long one."""
    fault = None if text.isascii() and "\0" not in text else _UNREADABLE.search(text)
    if fault is not None:
        line = text.count("\n", 0, fault.start()) + 1
        half = f"has half a character, U+{ord(fault[0]):X}"
        names = {"\0": "has a NUL", "\ufeff": "begins with a byte order mark"}
        name = names.get(fault[0], half)
        because = f"line {line} {name}: what is read is not what is shown"
        hint = f"line {line} without it"
        raise CompileError("read", because, hint=hint, line=line)
    if len(text) > MOST_CHARACTERS:
        because = f"the text has {len(text):,} characters, and a compiler gets {MOST_CHARACTERS:,}"
        raise CompileError("read", because, hint="a shorter text, or other opts")


def signature(params: Iterable[UOp]) -> tuple[tuple[DType, int], ...]:
    """Return (dtype, elements) by slot from PARAMs; a slot without a PARAM is void and empty."""
    by_slot = {p.slot: (p.dtype.scalar, p.length) for p in params}
    slots = range(max(by_slot, default=-1) + 1)
    return tuple(by_slot.get(slot, (dtypes.void, 0)) for slot in slots)
