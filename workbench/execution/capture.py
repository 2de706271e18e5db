"""The capture of a block of code: the items that it ran, for a replay, and its outputs.

Sections: The capture of a block of code; Placement of a new version of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from workbench.base.interrupts import scope
from workbench.base.situation import Situational
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.in_place import narrowed, reads_where_it_writes
from workbench.ir.schedule.plan import ScheduleItem

# --------------------------------------------------------------------------------------------------
# The capture of a block of code.

_capture = Situational["Capture | None"]("capture", None)
_roots: ContextVar[list[UOp] | None] = ContextVar("roots", default=None)
_enclosing: ContextVar[set[UOp] | None] = ContextVar("enclosing", default=None)
_watches: dict[int, set[UOp]] = {}
"""The sets of all open `noting_others` blocks, in all threads, by their id."""


@dataclass(slots=True)
class Capture:
    """The items that ran in a `capturing` block, in order. `pieces` has the BUFFERs that are a
    piece of another one's memory, with that BUFFER and their offset in it."""

    items: list[ScheduleItem] = field(default_factory=list)
    pieces: dict[UOp, tuple[UOp, int]] = field(default_factory=dict)

    def root(self, node: UOp) -> UOp:
        """Return the BUFFER that owns the memory of a BUFFER."""
        while node in self.pieces:
            node = self.pieces[node][0]
        return node

    def reads(self, node: UOp) -> bool:
        """Whether an item reads or writes the memory of a BUFFER."""
        return any(self.root(b) is node for item in self.items for b in item.buffers)

    def overwritten(self) -> set[UOp]:
        """Return the BUFFERs whose memory an item overwrites with a later version."""
        outputs = [b for item in self.items for b in item.outputs]
        return {self.root(b) for b in outputs if b in self.pieces}

    def overwrites(self, node: UOp) -> bool:
        """Whether an item writes the memory of a BUFFER."""
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
    """Return the capture that is recording in this context, or None."""
    return _capture.get()


def is_capturing() -> bool:
    """Whether a capture is recording in this context."""
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
    """Add computed `outputs` to the list of the `noting_roots` block, if there is one."""
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


def is_watched() -> bool:
    """Whether a `noting_others` block is open in some thread."""
    return bool(_watches)


def note_to_others(nodes: Iterable[UOp]) -> None:
    """Add `nodes`, which this thread has computed or written, to the sets of other threads."""
    if _watches:
        own, nodes = _enclosing.get(), [*nodes]
        for others in [*_watches.values()]:
            if others is not own:
                others.update(nodes)


# --------------------------------------------------------------------------------------------------
# Placement of a new version of memory: over the old one, or in memory of its own.
#
# The kernel that computes a new version may write it in place if nothing reads the old version
# afterwards, and if the kernel reads each element before it writes it, at the same index. Kernels
# that read the old version run first. If one of them depends on the new version, that is a cycle,
# and the new version gets other memory: the values are right, but one more buffer is needed. Source
# of the idea: buffer donation in XLA.


@dataclass(slots=True)
class Placement:
    """The items in the order in which they run. `over` has the old BUFFER for each new one that is
    written over its memory; `refused` has the reason why others are not."""

    items: tuple[ScheduleItem, ...]
    over: dict[UOp, UOp] = field(default_factory=dict)
    refused: dict[UOp, str] = field(default_factory=dict)


def place(
    items: Sequence[ScheduleItem],
    targets: Mapping[UOp, UOp],
    is_needed: Callable[[UOp], bool],
    names: Callable[[UOp], Collection[UOp]],
) -> Placement:
    """Return which new versions are written over old ones. `targets` maps the BUFFER of each new
    version to that of the old one; `is_needed` says whether an old version may be read after all
    items have run, and `names` returns the BUFFERs on its memory."""
    order = _Order(items)
    placement = Placement(tuple(items))
    for new, old in targets.items():
        reason = _refusal(order, new, old, is_needed)
        if reason:
            placement.refused[new] = reason
        else:
            order.reused.update(names(old))
            order.read_first(old, new)
            order.narrow(new, old)
            placement.over[new] = old
    if placement.over:
        placement.items = order.sorted()
    return placement


def _refusal(order: _Order, new: UOp, old: UOp, is_needed: Callable[[UOp], bool]) -> str:
    """Return why `new` cannot be written over `old`; "" if it can."""
    writer = order.writers.get(new)
    if writer is None:
        return "no kernel computes it"
    if (old.device, old.dtype, old.size) != (new.device, new.dtype, new.size):
        return "the old value has another device, dtype or size"
    if old in order.reused:
        return "another value is written over the old one"
    if is_needed(old):
        return "the old value is still needed"
    item = order.items[writer]
    if old in item.buffers:
        if item.kernel is None:
            return "a copy cannot be made in place"
        slots = item.buffers.index(old), item.buffers.index(new)
        if not reads_where_it_writes(item.kernel, *slots):
            return "its kernel would read elements that it has overwritten"
    if order.depends(order.readers(old) - {writer}, writer):
        return "a kernel that reads the old value reads the new one, too: a cycle"
    return ""


class _Order:
    """The dependencies between items: which must run after which."""

    def __init__(self, items: Sequence[ScheduleItem]):
        self.items = list(items)
        self.reused: set[UOp] = set()
        self.writers = {b: n for n, item in enumerate(items) for b in item.outputs}
        self._readers: dict[UOp, set[int]] = {}
        self._after: list[set[int]] = [set() for _ in items]
        """For each item, the items that must run after it."""
        for n, item in enumerate(items):
            for buffer in item.inputs:
                self._readers.setdefault(buffer, set()).add(n)
                if buffer in self.writers:
                    self._after[self.writers[buffer]].add(n)

    def readers(self, buffer: UOp) -> set[int]:
        """Return the items that read a BUFFER."""
        return self._readers.get(buffer, set())

    def depends(self, later: set[int], earlier: int) -> bool:
        """Whether one of the items `later` must run after `earlier`."""
        stack, visited = [earlier], {earlier}
        while stack and later:
            for n in self._after[stack.pop()] - visited:
                if n in later:
                    return True
                visited.add(n)
                stack.append(n)
        return False

    def read_first(self, old: UOp, new: UOp) -> None:
        """Make all items that read `old` run before the item that writes `new` over it."""
        writer = self.writers[new]
        for reader in self.readers(old) - {writer}:
            self._after[reader].add(writer)

    def narrow(self, new: UOp, old: UOp) -> None:
        """Make the item that writes `new` over `old` leave out the elements that do not change."""
        writer = self.writers[new]
        item = self.items[writer]
        if old in item.inputs:
            self.items[writer] = narrowed(item, old)

    def sorted(self) -> tuple[ScheduleItem, ...]:
        """Return the items in order: each as early as its dependencies allow."""
        waiting = [0] * len(self.items)
        for after in self._after:
            for n in after:
                waiting[n] += 1
        ready = [n for n, count in enumerate(waiting) if not count]
        heapify(ready)
        order = []
        while ready:
            n = heappop(ready)
            order.append(self.items[n])
            for later in self._after[n]:
                waiting[later] -= 1
                if not waiting[later]:
                    heappush(ready, later)
        return tuple(order)
