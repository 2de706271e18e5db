"""The capture of a block of code: the items that it ran, for a replay, and its outputs."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field

from workbench.base.interrupts import scope
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.item import ScheduleItem

_capture: ContextVar[Capture | None] = ContextVar("capture", default=None)
_roots: ContextVar[list[UOp] | None] = ContextVar("roots", default=None)
_enclosing: ContextVar[set[UOp] | None] = ContextVar("others", default=None)
_watches: dict[int, set[UOp]] = {}
"""The sets of all `noting_others` blocks that are open, in any thread, by their identity."""


@dataclass(slots=True)
class Capture:
    """The items that have run in a `capturing` block, in order, and BUFFERs that are a piece of
    another one's memory, with their offsets."""

    items: list[ScheduleItem] = field(default_factory=list)
    pieces: dict[UOp, tuple[UOp, int]] = field(default_factory=dict)

    def root(self, node: UOp) -> UOp:
        """Return the BUFFER whose memory a BUFFER uses."""
        while node in self.pieces:
            node = self.pieces[node][0]
        return node

    def reads(self, node: UOp) -> bool:
        """Whether an item reads a BUFFER, or has written over it."""
        return any(self.root(b) is node for item in self.items for b in item.buffers)

    def overwritten(self) -> set[UOp]:
        """Return the BUFFERs over whose memory a later version is written."""
        outputs = [b for item in self.items for b in item.outputs]
        return {self.root(b) for b in outputs if b in self.pieces}

    def overwrites(self, node: UOp) -> bool:
        """Whether an item writes over the memory of a BUFFER."""
        return any(self.root(b) is node for item in self.items for b in item.outputs)


@scope
def capturing() -> Generator[Capture, None, None]:
    """Record the items that run in the block."""
    capture = Capture()
    token = _capture.set(capture)
    try:
        yield capture
    finally:
        _capture.reset(token)


def present_capture() -> Capture | None:
    """Return the capture that items which run now belong to, if there is one."""
    return _capture.get()


def is_capturing() -> bool:
    """Whether items that run now are recorded."""
    return _capture.get() is not None


@scope
def noting_roots() -> Generator[list[UOp], None, None]:
    """Record the outputs that are computed in the block."""
    roots: list[UOp] = []
    token = _roots.set(roots)
    try:
        yield roots
    finally:
        _roots.reset(token)


def note_roots(outputs: Iterable[UOp]) -> None:
    """Note that `outputs` are computed, in the block that records it, if there is one."""
    roots = _roots.get()
    if roots is not None:
        roots.extend(outputs)


@scope
def noting_others() -> Generator[set[UOp], None, None]:
    """Record the values that other threads compute or write while the block runs, and their
    memory."""
    others: set[UOp] = set()
    token = _enclosing.set(others)
    _watches[id(others)] = others
    try:
        yield others
    finally:
        del _watches[id(others)]
        _enclosing.reset(token)


def note_to_others(nodes: Iterable[UOp]) -> None:
    """Note that this thread has computed or written `nodes`, in the blocks of others."""
    if _watches:
        own, nodes = _enclosing.get(), [*nodes]
        for others in [*_watches.values()]:
            if others is not own:
                others.update(nodes)
