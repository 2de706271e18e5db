"""Source: the text of a kernel, and the facts that a runtime needs to load it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as text in the `language` of a device.

    `params` has the dtype and the number of elements of each argument, by slot (dtype void
    for a slot that the kernel never touches); `launch` has the loops of which a launch runs a
    part; `aligned` are the slots whose memory must begin where a block of it may
    (`Memory.alignment_bytes`); `block` is the lowered statement tree, for the emulator. `lines`
    has, for each line of the text, the positions in the linear program of the nodes whose code it
    is (none for a brace or a comment); it is empty where that is unknown, as `linear`, that
    program, is where a user wrote the text.

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

    def __str__(self) -> str:
        return self.text

    @property
    def slots(self) -> list[int]:
        """The slots that the kernel uses, in the order of the parameters of its text."""
        return [slot for slot, (dtype, _) in enumerate(self.params) if dtype.bits]


def signature(params: Iterable[UOp]) -> tuple[tuple[DType, int], ...]:
    """Return (dtype, elements) by slot from PARAMs; a slot without a PARAM is void and empty."""
    by_slot = {p.slot: (p.dtype.scalar, p.length) for p in params}
    slots = range(max(by_slot, default=-1) + 1)
    return tuple(by_slot.get(slot, (dtypes.void, 0)) for slot in slots)
