"""The order of items in which fewer bytes are live at once.

Among the items that can run next, the one comes first that adds the fewest bytes: what it writes,
less the values that it is the last to read. So a kernel that computes the gradient of a weight runs
as soon as it can, and frees what only it still needed of the forward pass. Source of the idea: list
scheduling for register pressure (Goodman and Hsu 1988).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from heapq import heapify, heappop, heappush

from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem


def ordered_for_memory(
    items: Sequence[ScheduleItem],
    inner: Collection[UOp],
    owner: Callable[[UOp], UOp] = lambda buffer: buffer,
) -> tuple[ScheduleItem, ...]:
    """Return `items` in an order that frees the BUFFERs `inner` of intermediate values early. Each
    reads and leaves the same values as before. `owner` returns the BUFFER that owns the memory of a
    BUFFER. Where several items add as many bytes, the first of the old order comes first."""
    live = _LiveBytes(items, inner, owner)
    after = _successors(items, owner)
    waiting = [0] * len(items)
    for later in after:
        for n in later:
            waiting[n] += 1
    ready = [(live.added[n], n) for n, count in enumerate(waiting) if not count]
    heapify(ready)
    order: dict[int, None] = {}
    while ready:
        added, n = heappop(ready)
        if n in order or added != live.added[n]:
            continue  # an entry of earlier, when it would have freed less
        order[n] = None
        changed = [m for m in live.run(n) if not waiting[m]]
        for m in after[n]:
            waiting[m] -= 1
            if not waiting[m]:
                changed.append(m)
        for m in changed:
            heappush(ready, (live.added[m], m))
    return tuple([items[n] for n in order])


class _LiveBytes:
    """The bytes that each item would add now to the live intermediate values."""

    def __init__(
        self, items: Sequence[ScheduleItem], inner: Collection[UOp], owner: Callable[[UOp], UOp]
    ):
        self._uses: dict[UOp, set[int]] = {}
        """The items that still use the memory of each value."""
        self._used: list[list[UOp]] = []
        self.added = [0] * len(items)
        for n, item in enumerate(items):
            used = [b for b in dict.fromkeys(map(owner, item.buffers)) if b in inner]
            self.added[n] = sum(_nbytes(b) for b in used if b not in self._uses)
            self._used.append(used)
            for buffer in used:
                self._uses.setdefault(buffer, set()).add(n)
        for buffer, uses in self._uses.items():
            if len(uses) == 1:
                self.added[next(iter(uses))] -= _nbytes(buffer)

    def run(self, n: int) -> list[int]:
        """Take item `n` as run; return the items that add fewer bytes from now on, since each is
        the last that uses a value."""
        changed = []
        for buffer in self._used[n]:
            uses = self._uses[buffer]
            uses.discard(n)
            if len(uses) == 1:
                (last,) = uses
                self.added[last] -= _nbytes(buffer)
                changed.append(last)
        return changed


def _successors(
    items: Sequence[ScheduleItem], owner: Callable[[UOp], UOp]
) -> list[dict[int, None]]:
    """Return, for each item, the items that must run after it: those that read what it writes, and
    those that write what it reads or writes."""
    after: list[dict[int, None]] = [{} for _ in items]
    writer: dict[UOp, int] = {}
    readers: dict[UOp, list[int]] = {}
    for n, item in enumerate(items):
        written = dict.fromkeys(map(owner, item.outputs))
        for buffer in dict.fromkeys([*map(owner, item.buffers), *written]):
            if buffer in writer:
                after[writer[buffer]][n] = None
            readers.setdefault(buffer, []).append(n)
        for buffer in written:
            for reader in readers[buffer]:
                if reader != n:
                    after[reader][n] = None
            writer[buffer], readers[buffer] = n, []
    return after


def _nbytes(buffer: UOp) -> int:
    return buffer.size * buffer.dtype.itemsize
