"""The bytes that one run of a kernel loads into a cache, by its loop nest.

There is one rule. If the data of a single step of a loop fit in the cache, the whole loop loads
each line once, since data that the next step uses again are still there. If not, each step loads
the bytes of its body. Each thread has its own caches. A cache selects the set of a line by the low
bits of its address. So lines that are 4 KiB apart, as in a column of a matrix, compete for a few
sets, and take as much of the cache as all that lies between them. Source of the idea: the
capacity-miss models of loop tiling (Ferrante, Sarkar and Thrash, 1991). An Arrival is the order of
lines: side by side, or in short runs far apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from workbench.ir.nest.accesses import MemoryAccess, accesses, lanes_of, size_of
from workbench.ir.nest.estimates import Runs, runs
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate

WAYS = 8
"""Lines of a set, if they are not given."""
Key = tuple[UOp, bool]
"""A buffer, and whether it is written."""
Lines = Counter[Key]


class Arrival(NamedTuple):
    """The order in which a loop nest reads a buffer: `length` elements side by side, then the next
    ones `jump` elements further, `jumps` times in a loop. `jump` is 0 if it is not constant, as
    with loaded indexes; `jump` and `jumps` are 0 if all elements are side by side."""

    length: int
    jump: int
    jumps: int


class Moved(NamedTuple):
    """The bytes of a buffer that a run loads into a cache, and writes back from it."""

    loaded: int
    written: int

    @property
    def bytes(self) -> int:
        """The bytes in both directions."""
        return self.loaded + self.written


class BufferUse(NamedTuple):
    """The lines of one buffer in use: unbroken runs of elements, and the number of their lines."""

    runs: tuple[Runs, ...]
    lines: int
    itemsize: int
    line_bytes: int

    def bytes_of(self, cache_bytes: int, ways: int) -> int:
        """Return the bytes of a cache that the lines occupy, including places that competing lines
        leave unused."""
        total = 0
        for number, length, step in self.runs:
            apart = min(step * self.itemsize, cache_bytes // ways)
            lines = _lines(length * self.itemsize, self.line_bytes)
            total += number * max(self.line_bytes * lines, apart)
        return total


class _Cache(NamedTuple):
    size: int
    ways: int


class Traffic:
    """The bytes that a statement tree moves, for caches of any size with lines of `line_bytes`.
    Stores to the buffers in `non_temporal` bypass them: their lines are not loaded first."""

    def __init__(self, block: UOp, line_bytes: int, non_temporal: Collection[UOp] = ()):
        self.block, self.line_bytes = block, line_bytes
        self.non_temporal = non_temporal
        self._accesses: dict[UOp, tuple[MemoryAccess, ...]] = {}
        self._uses: dict[tuple[UOp, bool], Mapping[Key, BufferUse]] = {}

    def into(self, cache_bytes: int, shared: bool, ways: int = WAYS) -> int:
        """Return the bytes that one run loads into a cache and writes back from it."""
        moved = self.by_buffer(cache_bytes, shared, ways)
        return sum(each.bytes for each in moved.values())

    def by_buffer(self, cache_bytes: int, shared: bool, ways: int = WAYS) -> dict[UOp, Moved]:
        """Return the bytes of each buffer that one run loads into a cache and writes back from it;
        data that fit are in the cache since the run before. If `shared`, all threads share the
        cache, otherwise each has its own."""
        cache = _Cache(cache_bytes, ways)
        lines = self._root(self.block, cache, shared)
        moved: dict[UOp, Moved] = {}
        for buffer in {b for b, _ in lines}:
            read, written = lines[buffer, False], lines[buffer, True]
            # a line is loaded before it is written, and then written back
            loaded = 0 if buffer in self.non_temporal else max(read, written)
            moved[buffer] = Moved(self.line_bytes * loaded, self.line_bytes * written)
        return moved

    @cached_property
    def arrivals(self) -> Mapping[UOp, Arrival]:
        """The order of the elements of each buffer; of different accesses, the shortest runs."""
        shortest: dict[UOp, Arrival] = {}
        for statement, loops in _statements(self.block):
            for access in self._of(statement):
                line = max(1, self.line_bytes // access.buffer.dtype.itemsize)
                arrival = _arrival(access.flat, lanes_of(statement), loops, line)
                shorter = shortest.get(access.buffer)
                if shorter is None or arrival.length < shorter.length:
                    shortest[access.buffer] = arrival
        return shortest

    def _root(self, node: UOp, cache: _Cache, shared: bool) -> Lines:
        """Return the lines that a run moves after an equal run: none if all data fit."""
        below = node.body
        if not shared and len(below) == 1 and _is_threads(below[0]):
            loop = below[0]
            return _times(loop.src[0].extent, self._root(loop, cache, shared))
        if self._fits(node, cache):
            return Counter()
        return self._in_turn(node, cache)

    def _run(self, node: UOp, cache: _Cache) -> Lines:
        """Return the lines that one run of a loop or a statement loads."""
        if node.op is not Ops.LOOP or self._fits(node, cache):
            return Counter({k: h.lines for k, h in self._touched(node, True).items()})
        return _times(node.axis.extent, self._in_turn(node, cache))

    def _in_turn(self, node: UOp, cache: _Cache) -> Lines:
        total: Lines = Counter()
        for part in node.body:
            total.update(self._run(part, cache))
        return total

    def _fits(self, node: UOp, cache: _Cache) -> bool:
        """Whether the data of one step of a loop fit in a cache."""
        most: dict[UOp, int] = {}
        for (buffer, _), footprint in self._touched(node, False).items():
            most[buffer] = max(most.get(buffer, 0), footprint.bytes_of(*cache))
        return sum(most.values()) <= cache.size

    def _touched(self, node: UOp, whole: bool) -> Mapping[Key, BufferUse]:
        """Return the data that a loop or a statement touches in a `whole` run, or in one step."""
        if (node, whole) in self._uses:
            return self._uses[node, whole]
        is_nest = node.op in (Ops.LOOP, Ops.BLOCK)
        below = tree_statements(node) if is_nest else [node]
        inside = {lane for s in below for lane in lanes_of(s)}
        if is_nest:
            inside |= {n.axis for n in node.toposort() if n.op is Ops.LOOP}
        if node.op is Ops.LOOP and not whole:
            inside.discard(node.axis)
        places: dict[Key, list[UOp]] = {}
        for statement in below:
            for access in self._of(statement):
                places.setdefault((access.buffer, access.writes), []).append(access.flat)
        footprints = {
            key: buffer_use(key[0], flats, inside, self.line_bytes) for key, flats in places.items()
        }
        self._uses[node, whole] = footprints
        return footprints

    def _of(self, statement: UOp) -> tuple[MemoryAccess, ...]:
        if statement not in self._accesses:
            self._accesses[statement] = accesses(statement)
        return self._accesses[statement]


def buffer_use(
    buffer: UOp, flats: Sequence[UOp], inside: Collection[UOp], line_bytes: int
) -> BufferUse:
    """Return the lines of a buffer that `flats` touch while the ranges `inside` run."""
    itemsize, size = buffer.dtype.itemsize, size_of(buffer)
    line_runs = runs(flats, inside, max(1, line_bytes // itemsize))
    count = sum(n * _lines(k * itemsize, line_bytes) for n, k, _ in line_runs)
    every = _lines(size * itemsize, line_bytes)
    if count < every:
        return BufferUse(line_runs, count, itemsize, line_bytes)
    return BufferUse((Runs(1, size, 0),), every, itemsize, line_bytes)


def _statements(node: UOp, loops: tuple[UOp, ...] = ()) -> Iterator[tuple[UOp, tuple[UOp, ...]]]:
    """Yield each statement with the axes of its loops, the innermost first."""
    if node.op is Ops.LOOP:
        loops = (node.axis, *loops)
    if node.op not in (Ops.LOOP, Ops.BLOCK):
        yield node, loops
        return
    for part in node.body:
        yield from _statements(part, loops)


def _arrival(index: UOp, lanes: Sequence[UOp], loops: Sequence[UOp], line: int) -> Arrival:
    """Return the order of the elements of an access, for lines of `line` elements."""
    parts, _ = terms(_unclamped(split_gate(index)[0]))
    length = 1
    for stride, lane in sorted((abs(parts.get(r, 0)), r.extent) for r in lanes):
        if 0 < stride <= max(length, line - 1):
            length += stride * (lane - 1)
    for axis in loops:
        if any(atom is not axis and axis in atom.ranges for atom in parts):
            return Arrival(length, 0, axis.extent)
        stride = abs(parts.get(axis, 0))
        if stride > max(length, line - 1):
            return Arrival(length, stride, axis.extent)
        length += stride * (axis.extent - 1)
    return Arrival(length, 0, 0)


def _unclamped(index: UOp) -> UOp:
    """Return an index without its limits: min(r, 255) moves on as r does, but for a few steps."""
    limits = (n for n in index.toposort() if n.op in (Ops.MIN, Ops.MAX) and n.src[1].is_const)
    return index.substitute({node: node.src[0] for node in limits})


def _lines(size_bytes: int, line_bytes: int) -> int:
    return -(-size_bytes // line_bytes)


def _is_threads(node: UOp) -> bool:
    return node.op is Ops.LOOP and node.axis.axis_kind is AxisType.THREAD


def _times(count: int, each: Lines) -> Lines:
    return Counter({key: count * lines for key, lines in each.items()})
