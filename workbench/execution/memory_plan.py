"""The memory plan of a schedule: intermediate values that share memory, and the peak.

An intermediate value lives from the item that computes it to the last item that reads it.
Intermediate values are pieces of one block per device, in which places are used again. A value is
written over another one if its kernel is the last reader of the other value, and reads each element
of it only at the index that it writes. Places are packed, each into the smallest gap. Source of the
idea: the memory planners of XLA and TVM.

Sections: The memory plan of a schedule; Computed values.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from workbench.backends.memory import REFUSED, Buffer, memory_named, size_class, too_large
from workbench.backends.native.host_memory import data_memory
from workbench.base.dtypes import dtypes
from workbench.base.trace import observer, replaced
from workbench.execution.buffers import (
    Array,
    allocated,
    is_overwritten,
    is_unset,
    mark_unset,
    overwriting_count,
    overwritten,
    read,
)
from workbench.execution.capture import is_capturing, note_to_others
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.meaning.sampled import interpret_needed
from workbench.ir.node.construct import constant_of, is_known
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.ir.schedule.by_hand import value_text
from workbench.ir.schedule.in_place import reads_where_it_writes, why_not_in_place
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.schedule.schedule import base

# --------------------------------------------------------------------------------------------------
# The memory plan of a schedule.

EXCESS = 1 / 16
"""Share by which the peak with a block may exceed the peak with separate memory: freed separate
values have many sizes, and the pool reuses each only for values of its size."""


class Piece(NamedTuple):
    """A part of a device's block: the place of a value that items `first` to `last` need. `over` is
    the value that it is written over."""

    device: str
    offset: int
    size_bytes: int
    first: int
    last: int
    over: UOp | None = None


class SharedBlock(NamedTuple):
    """The memory of all pieces of a device, held while items `first` to `last` run."""

    size_bytes: int
    first: int
    last: int


NONE_OVER: Mapping[UOp, UOp | Literal[False]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The `pieces` of intermediate values, and the `blocks` of the devices. `lives` has the first
    and the last item at which a BUFFER has a value, `held_bytes` what is allocated for all values
    at each item, unused parts too. Scratch memory that a kernel needs while it runs is not
    counted."""

    pieces: Mapping[UOp, Piece]
    blocks: Mapping[str, SharedBlock]
    lives: Mapping[UOp, tuple[int, int]]
    held_bytes: tuple[int, ...]

    def live(self, number: int) -> list[UOp]:
        """Return the BUFFERs that have a value while an item runs."""
        return [b for b, (first, last) in self.lives.items() if first <= number <= last]

    @property
    def peak_bytes(self) -> int:
        """The most bytes that are held at an item."""
        return max(self.held_bytes, default=0)

    @property
    def peak(self) -> int:
        """The number of the first item at which `peak_bytes` are held; 0 without items."""
        return self.held_bytes.index(self.peak_bytes) if self.held_bytes else 0

    @property
    def shared_bytes(self) -> int:
        """The bytes of the blocks."""
        return sum(block.size_bytes for block in self.blocks.values())

    @property
    def apart_bytes(self) -> int:
        """The bytes of the pieces, if each had memory of its own."""
        return sum(piece.size_bytes for piece in self.pieces.values())

    def __str__(self) -> str:
        if not self.pieces:
            return f"no values share memory; at most {self.peak_bytes:,} bytes are held"
        return (
            f"{len(self.pieces)} values on the way need {self.shared_bytes:,} bytes instead of "
            f"{self.apart_bytes:,}; at most {self.peak_bytes:,} bytes are held"
        )


NO_PLAN = MemoryPlan({}, {}, {}, ())
"""A plan without values."""


def alignment_of(device: str) -> int:
    """Return the alignment, in bytes, of a piece of a device's memory."""
    memory = memory_named(device)
    return max(memory.alignment_bytes, memory.offset_bytes)


def plan_memory(
    items: Sequence[ScheduleItem],
    inner: Collection[UOp],
    alignment: Callable[[str], int] = alignment_of,
    owner: Callable[[UOp], UOp] = lambda buffer: buffer,
    is_kept: bool = False,
    over: Mapping[UOp, UOp | Literal[False]] = NONE_OVER,
) -> MemoryPlan:
    """Return a plan for the BUFFERs `inner` of intermediate values while `items` run. They share a
    block for each device. If the peak is lower by more than EXCESS without a block, each has memory
    of its own instead, freed after its last reader. With `is_kept`, which keeps the memory for the
    next run, they share a block in any case. `over` has a user's choices: the value that a value is
    written over (False: none); they are legal by `why_not_over`, and need a block. A result that is
    written over a value stays in its part of the block.

    `owner` returns the BUFFER that owns the memory of a BUFFER: for most, the BUFFER itself. Units:
    bytes; a piece begins at a multiple of `alignment(device)`.
    """
    first: dict[UOp, int] = {}
    last: dict[UOp, int] = {}
    for number, item in enumerate(items):
        for buffer in item.buffers:
            last[owner(buffer)] = number
        for buffer in item.outputs:
            first.setdefault(owner(buffer), number)
    outputs = {b for item in items for b in item.outputs if owner(b) is b}
    lives = {b: (first[b], last[b]) for b in first if b in inner}
    results = [b for b, old in over.items() if old is not False and b in first and b not in inner]
    lives.update((b, (first[b], len(items))) for b in results)
    pieces = _placed(items, lives, alignment, owner, over)
    blocks = _blocks(pieces)
    kept = {b: (n, len(items)) for b, n in first.items() if b in outputs and b not in lives}
    every = {**lives, **kept}
    shared = MemoryPlan(
        pieces, blocks, every, _usage(len(items), kept if blocks else every, blocks)
    )
    unshared = MemoryPlan({}, {}, every, _usage(len(items), every, {}))
    most = unshared.peak_bytes * (1 + EXCESS)
    is_needed = is_kept or any(old is not False for old in over.values())
    return shared if is_needed or shared.peak_bytes <= most else unshared


def why_not_over(items: Sequence[ScheduleItem], inner: Collection[UOp], new: UOp, old: UOp) -> str:
    """Return why the value of the BUFFER `new` cannot be written over that of `old`, while `items`
    run in this order; "" if it can. `inner` are the BUFFERs of intermediate values."""
    writer = next((n for n, item in enumerate(items) if new in item.outputs), None)
    if writer is None:
        return "no kernel computes it"
    item = items[writer]
    if not any(old in each.outputs for each in items):
        return "the other is memory of a tensor of yours, which keeps its values"
    if old not in inner:
        return "the other is a result that was asked for, which keeps its values"
    if item.kernel is None:
        return "it is a copy to another device, which cannot be made in place"
    if old in item.outputs or old not in item.inputs:
        return "its kernel does not read the other"
    readers = [n for n, each in enumerate(items) if old in each.inputs]
    if readers[-1] != writer:
        later = items[readers[-1]].nodes[0]
        return f"the other is still needed: the kernel of {value_text(later)} reads it afterwards"
    if (old.device, _nbytes(old)) != (new.device, _nbytes(new)):
        return f"it has {_nbytes(new):,} bytes, and the other has {_nbytes(old):,}"
    return why_not_in_place(item.kernel, item.buffers.index(old), item.buffers.index(new))


class MemoryBlocks:
    """The memory of a plan while its items run; a block is allocated for its first piece."""

    def __init__(self, plan: MemoryPlan):
        self._plan = plan
        self._blocks: dict[str, Buffer] = {}

    def part(self, buffer: UOp) -> Buffer | None:
        """Return the piece of a block for a BUFFER; None if it has memory of its own."""
        piece = self._plan.pieces.get(buffer)
        if piece is None:
            return None
        block = self._blocks.get(piece.device)
        if block is None:
            size = self._plan.blocks[piece.device].size_bytes
            block = self._blocks[piece.device] = Buffer(piece.device, dtypes.uint8, size)
        return block.part(piece.offset, buffer.dtype, buffer.size)

    def end(self, number: int) -> None:
        """Release the blocks that no item after item `number` needs."""
        for device, block in self._plan.blocks.items():
            if block.last == number:
                self._blocks.pop(device, None)


@dataclass(slots=True, eq=False)
class _PackedPlace:
    """A part of a block, used by values of one size that are written over one another."""

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
    chosen: Mapping[UOp, UOp | Literal[False]],
) -> dict[UOp, Piece]:
    """Return the piece of each BUFFER in `lives`, which has its first and its last item."""
    places: dict[UOp, _PackedPlace] = {}
    over: dict[UOp, UOp] = {}
    for number, item in enumerate(items):
        buffers = dict.fromkeys(map(owner, item.buffers))
        dying = [b for b in buffers if b in places and lives[b][1] == number]
        taken = {chosen[b] for b in item.outputs if b in chosen}
        for buffer in item.outputs:
            if buffer not in lives or buffer in places:
                continue
            size = -(-_nbytes(buffer) // (step := alignment(buffer.device))) * step
            place = _PackedPlace(buffer.device, size, *lives[buffer])
            if buffer in chosen:
                old = chosen[buffer] or None
            else:
                free = [b for b in dying if b not in taken]
                old = _over(item, buffer, place, places, free)
            if old is not None:
                dying.remove(old)
                over[buffer], place = old, places[old]
                place.last = lives[buffer][1]
            places[buffer] = place
    every = dict.fromkeys(places.values())
    for device in {place.device for place in every}:
        _assign_offsets([place for place in every if place.device == device])
    return {
        b: Piece(p.device, p.offset, p.size_bytes, *lives[b], over.get(b))
        for b, p in places.items()
    }


def _assign_offsets(places: Sequence[_PackedPlace]) -> None:
    """Give the places of a device the offsets of the tightest of three packings: the largest first;
    in the order of time; and in the order of time, alternating between both ends of the least bytes
    that are needed, which suits a chain of values."""
    by_size = sorted(places, key=lambda p: (-p.size_bytes, p.first))
    in_time = sorted(places, key=lambda p: p.first)
    changes = [0] * (max([p.last for p in places], default=0) + 2)
    for place in places:
        changes[place.first] += place.size_bytes
        changes[place.last + 1] -= place.size_bytes
    live = max(accumulate(changes))
    packings = [_packing(by_size), _packing(in_time), _packing(in_time, live)]
    for place, offset in min(packings, key=_size_of).items():
        place.offset = offset


def _size_of(packing: Mapping[_PackedPlace, int]) -> int:
    return max([offset + p.size_bytes for p, offset in packing.items()], default=0)


def _packing(order: Iterable[_PackedPlace], both_ends_of: int = 0) -> dict[_PackedPlace, int]:
    """Return offsets of places: each in the smallest gap between those that are used at the same
    time, or after them. If `both_ends_of` has a size, every second one is at the end of its gap."""
    packing: dict[_PackedPlace, int] = {}
    packed: list[tuple[int, int, int, int]] = []  # start, end, first, last: by offset
    for number, place in enumerate(order):
        size, first, last = place.size_bytes, place.first, place.last
        low, room, end = 0, 0, 0
        for start, its_end, its_first, its_last in packed:
            if its_first <= last and its_last >= first:
                gap = start - end
                if gap >= size and (gap < room or not room):
                    low, room = end, gap
                if its_end > end:
                    end = its_end
        if not room or size <= both_ends_of - end < room:
            low, room = end, max(size, both_ends_of - end)
        low += (room - size) * (number % 2 if both_ends_of else 0)
        packing[place] = low
        insort(packed, (low, low + size, first, last))
    return packing


def _over(
    item: ScheduleItem,
    buffer: UOp,
    place: _PackedPlace,
    places: Mapping[UOp, _PackedPlace],
    dying: Iterable[UOp],
) -> UOp | None:
    """Return a value of the same size over which an item may write `buffer`; None without one."""
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
    count: int, lives: Mapping[UOp, tuple[int, int]], blocks: Mapping[str, SharedBlock]
) -> tuple[int, ...]:
    """Return the bytes held at each of `count` items: by values with memory of their own, during
    their `lives`, and by blocks."""
    own = [(_nbytes(buffer), *life) for buffer, life in lives.items()]
    changes = [0] * (count + 2)
    for nbytes, first, last in (*own, *blocks.values()):
        changes[first] += size_class(nbytes)
        changes[last + 1] -= size_class(nbytes)
    return tuple(accumulate(changes[:count]))


def _nbytes(buffer: UOp) -> int:
    return buffer.size * buffer.dtype.itemsize


# --------------------------------------------------------------------------------------------------
# Computed values: the memory of each, by its expression.

_SAME_VALUES = frozenset(
    {Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.EXPAND, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH}
)
"""Ops that neither add a value nor drop one."""
_COMPARISONS = frozenset({Ops.CMPEQ, Ops.CMPNE, Ops.CMPLT, Ops.CMPLE})
_CHEAP = MOVEMENT | _SAME_VALUES | {Ops.CAST}
"""Ops that are little work for a processor that has the values."""
_MOST = 1 << 24
"""Most values that `values_at_hand` reads or returns."""
_computed: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
_made_by: WeakKeyDictionary[UOp, RulesInForce] = WeakKeyDictionary()
"""The rules in force when a value was computed, if they were not only the package's own. The value
stands for an equal expression only under the same rules."""
_plain: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""Graphs without DETACH, by the same graphs with it."""


_readable: dict[int, WeakSet[UOp]] = {}
"""Nodes that read no overwritten version, by the number of overwritings when that was checked."""


def mark_computed(nodes: Sequence[UOp], results: Sequence[UOp]) -> None:
    """Note that the values of `nodes` are in memory, in `results`."""
    pairs = zip(without_detach(nodes), results, strict=True)
    _note({plain: result for plain, result in pairs if plain is not result})


def mark_stored(buffers: Mapping[UOp, UOp]) -> None:
    """Note the BUFFER of each value, of graphs without DETACH. Constants in memory are left out:
    all constants of a value are one node."""
    _note({n: b for n, b in buffers.items() if constant_of(n) is None})


def note_unset(items: Iterable[ScheduleItem], stored: Mapping[UOp, UOp]) -> None:
    """Note which BUFFERs of values that `items` compute depend on what empty memory holds. A write
    to a part of it does not count: memory is filled so."""
    if not any(is_unset(b) for item in items for b in item.inputs):
        return
    unset: set[UOp] = set()
    for node in UOp.sink(*stored).toposort():
        sources = node.src
        if node.op is Ops.WHERE and base(sources[2]).op is Ops.BUFFER:
            sources = sources[:2]
        if not unset.isdisjoint(sources) or node.op is Ops.BUFFER and is_unset(node):
            unset.add(node)
    for node in unset.intersection(stored):
        mark_unset(stored[node])


def _note(results: Mapping[UOp, UOp]) -> None:
    _computed.update(results)
    note_to_others([*results, *map(base, results.values())])
    rules = rules_in_force()
    if any(rules):
        _made_by.update(dict.fromkeys(results, rules))
    elif _made_by:
        for node in results:
            _made_by.pop(node, None)


def with_computed(node: UOp, computed: Mapping[UOp, UOp] | None = None) -> UOp:
    """Return the graph with every computed value replaced by its BUFFER, and without DETACH.
    `computed` has the BUFFERs of an earlier time, instead of the present ones."""
    (node,) = without_detach([node])
    changes = computed_below([node]) if computed is None else computed
    return node.substitute(changes) if changes else node


def computed_below(nodes: Sequence[UOp]) -> dict[UOp, UOp]:
    """Return the BUFFERs of the computed values in the graphs of `nodes`, without DETACH."""
    return computed_and_graph(UOp.sink(*without_detach(nodes)))[0]


def computed_and_graph(root: UOp) -> tuple[dict[UOp, UOp], list[UOp]]:
    """Return the BUFFERs of the computed values below `root`, which has no DETACH, and all nodes
    below it down to these, sources first.

    A maximum in memory is left out where its elements are not, and are compared with it: computed
    again, in another kernel, they may be rounded in another way, and none may equal it."""
    left_out: set[UOp] = set()
    while True:
        computed, graph = _computed_and_graph(root, left_out)
        compared = _compared_with_sources(graph, computed) if computed else None
        if not compared:
            return computed, graph
        left_out |= compared


def _computed_and_graph(root: UOp, left_out: Collection[UOp]) -> tuple[dict[UOp, UOp], list[UOp]]:
    computed: dict[UOp, UOp] = {}

    def is_open(node: UOp) -> bool:
        if node in left_out or not _is_computed(node):
            return True
        computed[node] = _computed[node]
        return False

    graph = [*root.toposort(is_open)]
    for node in graph:
        if not node.src and node.op is not Ops.CONST:
            is_open(node)  # the walk asks about nodes with sources only
    return computed, graph[:-1]


def _compared_with_sources(graph: Iterable[UOp], computed: Mapping[UOp, UOp]) -> set[UOp]:
    """Return the computed values that are compared with a value that they are made from, and that
    is to be computed again; those that cannot be are left out."""
    sides = [
        [_moved_from(side, computed) for side in node.src]
        for node in graph
        if node.op in _COMPARISONS
    ]
    pairs = {pair for one, other in sides for pair in ((one, other), (other, one))}
    return {
        value
        for value, source in pairs
        if value in computed
        and source not in computed
        and source.src
        and _is_made_from(value, source, computed)
    }


def _is_made_from(value: UOp, source: UOp, computed: Collection[UOp]) -> bool:
    """Whether a computed value is made from `source`, and can be computed again."""
    below = value.toposort(lambda node: node is value or node not in computed)
    return source in below and not any(map(is_overwritten, below))


def _moved_from(node: UOp, computed: Collection[UOp]) -> UOp:
    """Return the value whose elements those of `node` are, or the first computed one above it."""
    while node.op in MOVEMENT and node not in computed:
        node = node.src[0]
    return node


def require_readable(node: UOp) -> None:
    """Check that a value reads no overwritten version. Errors: WorkbenchError if it does."""
    count, (root,) = overwriting_count(), without_detach([node])
    if count not in _readable:
        _readable.clear()
    readable = _readable.setdefault(count, WeakSet())
    graph = root.toposort(lambda n: n not in readable and not _is_computed(n))
    for below in graph:
        if is_overwritten(below) and not _is_computed(below):
            raise overwritten(below)
    readable.update(graph)


def value_in_memory(node: UOp) -> UOp:
    """Return the BUFFER that has a value, without RESHAPEs; if there is none, the value."""
    return base(with_computed(node))


def results_of(nodes: Sequence[UOp]) -> list[UOp | None]:
    """Return the memory of each value that was computed, None for others."""
    return [_computed.get(n) for n in without_detach(nodes)]


def noted_results(nodes: Iterable[UOp]) -> list[UOp]:
    """Return the memory of those of `nodes` that were computed. DETACH is not removed first."""
    return [_computed[n] for n in nodes if n in _computed]


def is_realized(node: UOp) -> bool:
    """Whether a value is in memory, or is a known constant."""
    under = value_in_memory(node)
    return under.op is Ops.BUFFER or is_known(under)


def to_numpy(node: UOp) -> Array:
    """Return a copy of a realised value, in its shape. Errors: DeviceError if it is too large;
    as `read`, unless it is constant."""
    size_bytes = node.size * node.dtype.itemsize
    data_memory.pool.check_room(size_bytes)
    try:
        return _copied(node)
    except MemoryError as error:
        raise too_large(size_bytes, REFUSED) from error


def _copied(node: UOp) -> Array:
    under = base(node)
    constant = constant_of(under)
    if constant is not None:
        return np.full(node.shape, constant.arg, node.dtype.numpy)
    if is_known(under):
        (values,) = interpret_needed([under], {})
        return np.array(values, node.dtype.numpy).reshape(node.shape)
    return read(under).reshape(node.shape)


def values_at_hand(node: UOp) -> Array | None:
    """Return, in some order, the values of a constant, of memory, or of movement and casts of
    these; values that an EXPAND repeats may be there once. Return None if they must be computed, if
    there are more than `_MOST`, if they depend on what empty memory holds, and while a function is
    captured."""
    while node.op in _SAME_VALUES and not _has_result(node):
        node = node.src[0]
    under, most = node, node.size
    while under.op in _CHEAP and not _has_result(under):
        under = under.src[0]
        most = max(most, under.size)
    result = with_computed(under)
    if is_capturing() or most > _MOST or base(result).op not in (Ops.CONST, Ops.BUFFER):
        return None
    buffers = [n for n in result.toposort() if n.op is Ops.BUFFER]
    if any(is_overwritten(n) or is_unset(n) or allocated(n) is None for n in buffers):
        return None
    memory = {n: read(n).reshape(n.shape) for n in buffers}
    (plain,) = without_detach([node.substitute({under: result})])
    value: np.ndarray[Any, Any] = interpret_tensor(plain, memory)
    return value


def _has_result(node: UOp) -> bool:
    return results_of([node])[0] is not None


def without_detach(roots: Sequence[UOp]) -> list[UOp]:
    """Return graphs without DETACH, which only stops gradients, and computes nothing."""
    is_watched = observer() is not None
    if not is_watched:
        known = [_plain.get(root) for root in roots]
        if None not in known:
            return known  # type: ignore[return-value]  # none of them is None
    simple: dict[UOp, UOp] = {}
    changed: set[UOp] = set()  # most nodes stay
    top = UOp.sink(*roots)  # it may also be a node of these graphs
    graph = top.toposort(lambda n: is_watched or n is top or n not in _plain)
    for node in graph:
        if not is_watched and node in _plain:
            simple[node] = _plain[node]
        elif node.op is Ops.DETACH:
            simple[node] = simple[node.src[0]]
        elif changed.isdisjoint(node.src):
            simple[node] = node
            continue
        else:
            simple[node] = node.rebuild(tuple([simple[s] for s in node.src]))
        changed.add(node)
    replaced(simple)
    for root in roots:
        if simple[root] is not root:
            _plain[root] = simple[root]
    return [simple[root] for root in roots]


def _is_computed(node: UOp) -> bool:
    """Whether a value is in memory, and was computed under the present rules or cannot be computed
    again."""
    result = _computed.get(node)
    if result is None or is_overwritten(base(result)):
        return False
    return _is_of_these_rules(node) or _reads_overwritten(node)


def _is_of_these_rules(node: UOp) -> bool:
    return node not in _made_by or _made_by[node] == rules_in_force()


def _reads_overwritten(node: UOp) -> bool:
    """Whether a value cannot be computed again: something below it was overwritten."""

    def is_kept(below: UOp) -> bool:
        result = _computed.get(below)
        is_there = result is not None and not is_overwritten(base(result))
        return is_there and _is_of_these_rules(below)

    graph = node.toposort(lambda n: n is node or not is_kept(n))
    return any(is_overwritten(n) and not is_kept(n) for n in graph)
