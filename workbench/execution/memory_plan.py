"""The memory plan of a schedule: intermediate values that share memory, and the peak.

A value on the way lives from the item that computes it to the last one that reads it. Such values
are pieces of one block a device, whose places are used again. A value takes the place of one that
dies with it, where the kernel reads each element of that one only at the index that it writes; the
places are packed, each into the smallest gap. Source of the idea: the memory planners of XLA and
TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.backends.memory import Buffer, memory_named, size_class
from workbench.base.dtypes import dtypes
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.in_place import reads_where_it_writes
from workbench.ir.schedule.plan import ScheduleItem

EXCESS = 1 / 16
"""Part by which the peak of a block may exceed that of values apart: what these free is of many
sizes, and the pool keeps it for values of the same ones."""


class Piece(NamedTuple):
    """A part of a device's block: the place of a value that items `first` to `last` need. `over` is
    the value whose place it takes while that is read."""

    device: str
    offset: int
    size_bytes: int
    first: int
    last: int
    over: UOp | None = None


class SharedBlock(NamedTuple):
    """Memory that the pieces of a device are in, held while items `first` to `last` run."""

    size_bytes: int
    first: int
    last: int


class ItemMemory(NamedTuple):
    """The memory of an item: `live` are the BUFFERs with a value while it runs, of those that the
    schedule computes; `held_bytes` all that is allocated for them, unused parts too."""

    live: tuple[UOp, ...]
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The `pieces` of values on the way, the `blocks` that they are in by device, and what is held
    at each item. Scratch memory that a kernel needs while it runs is not counted."""

    pieces: Mapping[UOp, Piece]
    blocks: Mapping[str, SharedBlock]
    items: tuple[ItemMemory, ...]

    @property
    def peak_bytes(self) -> int:
        """Most bytes that are held at an item."""
        return max([item.held_bytes for item in self.items], default=0)

    @property
    def peak(self) -> int:
        """The number of the first item at which that is held."""
        sizes = [item.held_bytes for item in self.items]
        return sizes.index(max(sizes)) if sizes else 0

    @property
    def apart_bytes(self) -> int:
        """Bytes of the pieces, if each had memory of its own."""
        return sum(piece.size_bytes for piece in self.pieces.values())

    def __str__(self) -> str:
        shared_bytes = sum(b.size_bytes for b in self.blocks.values())
        if not self.pieces:
            return f"no values share memory; at most {self.peak_bytes:,} bytes are held"
        return (
            f"{len(self.pieces)} values on the way need {shared_bytes:,} bytes instead of "
            f"{self.apart_bytes:,}; at most {self.peak_bytes:,} bytes are held"
        )


NO_PLAN = MemoryPlan({}, {}, ())
"""That of no values."""


def alignment_of(device: str) -> int:
    """Return the multiple of bytes at which a piece of a device's memory may begin."""
    memory = memory_named(device)
    return max(memory.alignment_bytes, memory.offset_bytes)


def plan_memory(
    items: Sequence[ScheduleItem],
    inner: Collection[UOp],
    alignment: Callable[[str], int] = alignment_of,
    owner: Callable[[UOp], UOp] = lambda buffer: buffer,
    is_kept: bool = False,
) -> MemoryPlan:
    """Return where the BUFFERs of values on the way, `inner`, are while `items` run: together in a
    block, or, where much less is held at the peak then, each in memory of its own that is freed
    with its last reader. With `is_kept`, they keep their memory for the next run, so they are
    together.

    `owner` is the BUFFER whose memory another one uses: itself for most. Units: bytes; a piece
    begins at a multiple of `alignment(device)`.
    """
    first: dict[UOp, int] = {}
    last: dict[UOp, int] = {}
    for number, item in enumerate(items):
        for buffer in item.buffers:
            last[owner(buffer)] = number
        for buffer in item.outputs:
            first.setdefault(owner(buffer), number)
    lives = {b: (first[b], last[b]) for b in first if b in inner}
    pieces = _placed(items, lives, alignment, owner)
    blocks = _blocks(pieces)
    shared = MemoryPlan(pieces, blocks, _usage(items, lives, blocks, owner))
    unshared = MemoryPlan({}, {}, _usage(items, lives, {}, owner))
    most = unshared.peak_bytes * (1 + EXCESS)
    return shared if is_kept or shared.peak_bytes <= most else unshared


class MemoryBlocks:
    """The memory of a plan while its items run: blocks are allocated with the first of their
    pieces."""

    def __init__(self, plan: MemoryPlan):
        self._plan = plan
        self._blocks: dict[str, Buffer] = {}

    def part(self, buffer: UOp) -> Buffer | None:
        """Return the piece that a BUFFER is; None where it has memory of its own."""
        piece = self._plan.pieces.get(buffer)
        if piece is None:
            return None
        block = self._blocks.get(piece.device)
        if block is None:
            size = self._plan.blocks[piece.device].size_bytes
            block = self._blocks[piece.device] = Buffer(piece.device, dtypes.uint8, size)
        return block.part(piece.offset, buffer.dtype, buffer.size)

    def end(self, number: int) -> None:
        """Let go of the blocks that no item after this one needs."""
        for device, block in self._plan.blocks.items():
            if block.last == number:
                self._blocks.pop(device, None)


@dataclass(slots=True, eq=False)
class _PackedPlace:
    """A part of a block that values of one size use, one written over the other."""

    device: str
    size_bytes: int
    first: int
    last: int
    offset: int = 0


def _placed(
    items: Sequence[ScheduleItem],
    lives: Mapping[UOp, tuple[int, int]],
    alignment: Callable[[str], int],
    owner: Callable[[UOp], UOp],
) -> dict[UOp, Piece]:
    """Return the piece of each BUFFER in `lives`, which has the items that it lives through."""
    places: dict[UOp, _PackedPlace] = {}
    over: dict[UOp, UOp] = {}
    for number, item in enumerate(items):
        buffers = dict.fromkeys(map(owner, item.buffers))
        dying = [b for b in buffers if b in places and lives[b][1] == number]
        for buffer in item.outputs:
            if buffer not in lives or buffer in places:
                continue
            size = -(-_nbytes(buffer) // (step := alignment(buffer.device))) * step
            place = _PackedPlace(buffer.device, size, *lives[buffer])
            old = _over(item, buffer, place, places, dying)
            if old is not None:
                dying.remove(old)
                over[buffer], place = old, places[old]
                place.last = lives[buffer][1]
            places[buffer] = place
    every = dict.fromkeys(places.values())
    for device in {place.device for place in every}:
        _settle([place for place in every if place.device == device])
    return {
        b: Piece(p.device, p.offset, p.size_bytes, *lives[b], over.get(b))
        for b, p in places.items()
    }


def _settle(places: Sequence[_PackedPlace]) -> None:
    """Give the places of a device their offsets: the tightest of three packings. The largest come
    first; or they come in time; or in time, at both ends of what is needed at least, which suits a
    chain of values."""
    by_size = sorted(places, key=lambda p: (-p.size_bytes, p.first))
    in_time = sorted(places, key=lambda p: p.first)
    starts = {p.first for p in places}
    live = [sum(p.size_bytes for p in places if p.first <= n <= p.last) for n in starts]
    packings = [_packing(by_size), _packing(in_time), _packing(in_time, max(live, default=0))]
    for place, offset in min(packings, key=_size_of).items():
        place.offset = offset


def _size_of(packing: Mapping[_PackedPlace, int]) -> int:
    return max([offset + p.size_bytes for p, offset in packing.items()], default=0)


def _packing(order: Iterable[_PackedPlace], both_ends_of: int = 0) -> dict[_PackedPlace, int]:
    """Return offsets of places: each in the smallest gap between those that are used at the same
    time, or after them; every second one at the end of its gap where there is an end."""
    packing: dict[_PackedPlace, int] = {}
    for number, place in enumerate(order):
        gaps, end = [], 0
        beside = [p for p in packing if p.first <= place.last and place.first <= p.last]
        for other in sorted(beside, key=packing.__getitem__):
            gaps.append((end, packing[other]))
            end = max(end, packing[other] + other.size_bytes)
        gaps.append((end, both_ends_of))
        fits = [(high - low, low) for low, high in gaps if high - low >= place.size_bytes]
        room, low = min(fits, default=(place.size_bytes, end))
        packing[place] = low + (room - place.size_bytes) * (number % 2 if both_ends_of else 0)
    return packing


def _over(
    item: ScheduleItem,
    buffer: UOp,
    place: _PackedPlace,
    places: Mapping[UOp, _PackedPlace],
    dying: Iterable[UOp],
) -> UOp | None:
    """Return a value of the same size, in place of which an item may write `buffer`."""
    if item.kernel is None:
        return None
    slot, kernel = item.buffers.index(buffer), item.kernel
    for old in dying:
        same = old.device == place.device and places[old].size_bytes == place.size_bytes
        if same and old in item.inputs:
            if reads_where_it_writes(kernel, item.buffers.index(old), slot):
                return old
    return None


def _blocks(pieces: Mapping[UOp, Piece]) -> dict[str, SharedBlock]:
    blocks: dict[str, SharedBlock] = {}
    for piece in pieces.values():
        size, first, last = blocks.get(piece.device, SharedBlock(0, piece.first, piece.last))
        end = piece.offset + piece.size_bytes
        blocks[piece.device] = SharedBlock(
            max(size, end), min(first, piece.first), max(last, piece.last)
        )
    return blocks


def _usage(
    items: Sequence[ScheduleItem],
    lives: Mapping[UOp, tuple[int, int]],
    blocks: Mapping[str, SharedBlock],
    owner: Callable[[UOp], UOp],
) -> tuple[ItemMemory, ...]:
    """Return the memory of each item, values on the way being in `blocks`, or apart where there are
    none."""
    results: dict[UOp, None] = {}
    rows = []
    for number, item in enumerate(items):
        results.update((b, None) for b in item.outputs if owner(b) is b and b not in lives)
        live = [b for b, (first, last) in lives.items() if first <= number <= last]
        own = results if blocks else (*live, *results)
        nbytes = sum(size_class(_nbytes(b)) for b in own)
        nbytes += sum(
            size_class(b.size_bytes) for b in blocks.values() if b.first <= number <= b.last
        )
        rows.append(ItemMemory((*live, *results), nbytes))
    return tuple(rows)


def _nbytes(buffer: UOp) -> int:
    return buffer.size * buffer.dtype.itemsize
