"""How many bytes one run of a kernel brings into a cache, from its loop nest alone.

One rule does it. What a single step of a loop touches either fits the cache or does not. If it
fits, the whole loop brings each line that it touches once: what the next step uses again is
still there. If not, each step brings what its body brings. Threads have caches of their own.
Source of the idea: the capacity-miss models of loop tiling (Ferrante, Sarkar and Thrash, 1991).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workbench.backends.runtime.machine import LINE_BYTES
from workbench.ir.accesses import Access, accesses, lanes_of, size_of
from workbench.ir.axis import AxisType
from workbench.ir.footprint import lines
from workbench.ir.loops import tree_statements
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp

Lines = Counter[tuple[UOp, bool]]
"""Cache lines by (buffer, whether they are written)."""


class Traffic:
    """What a statement tree moves, for caches of any size."""

    def __init__(self, block: UOp):
        self.block = block
        self._accesses: dict[UOp, tuple[Access, ...]] = {}
        self._held: dict[tuple[UOp, bool], Lines] = {}

    def into(self, cache_bytes: int, shared: bool) -> int:
        """Return the bytes that one run brings into a cache, and takes back from it; runs follow
        each other, so that what fits is there already. `shared` by all threads, or one each."""
        return LINE_BYTES * _moved(self._root(self.block, cache_bytes, shared))

    @property
    def held_bytes(self) -> int:
        """All that one run touches."""
        return LINE_BYTES * _size(self._body(self.block))

    def _root(self, node: UOp, cache_bytes: int, shared: bool) -> Lines:
        """Return what a run moves, where the run before left all that fits."""
        below = _below(node)
        if not shared and len(below) == 1 and _is_threads(below[0]):
            loop = below[0]
            return _times(loop.src[0].extent, self._root(loop, cache_bytes, shared))
        if LINE_BYTES * _size(self._body(node)) <= cache_bytes:
            return Counter()
        return self._in_turn(node, cache_bytes)

    def _run(self, node: UOp, cache_bytes: int) -> Lines:
        """Return what one run of a loop, or of a statement, brings in."""
        if node.op is not Ops.LOOP:
            return self._whole(node)
        if LINE_BYTES * _size(self._body(node)) <= cache_bytes:
            return self._whole(node)
        return _times(node.src[0].extent, self._in_turn(node, cache_bytes))

    def _in_turn(self, node: UOp, cache_bytes: int) -> Lines:
        total: Lines = Counter()
        for part in _below(node):
            total.update(self._run(part, cache_bytes))
        return total

    # what is touched

    def _whole(self, node: UOp) -> Lines:
        """Return the lines that one run of a loop or statement touches."""
        return self._touched(node, True)

    def _body(self, node: UOp) -> Lines:
        """Return the lines that one step of a loop touches."""
        return self._touched(node, False)

    def _touched(self, node: UOp, whole: bool) -> Lines:
        found = self._held.get((node, whole))
        if found is not None:
            return found
        is_nest = node.op in (Ops.LOOP, Ops.BLOCK)
        below = tree_statements(node) if is_nest else [node]
        inside = {lane for s in below for lane in lanes_of(s)}
        if is_nest:
            inside |= {n.src[0] for n in node.toposort() if n.op is Ops.LOOP}
        if node.op is Ops.LOOP and not whole:
            inside.discard(node.src[0])
        places: dict[tuple[UOp, bool], list[UOp]] = {}
        for statement in below:
            for access in self._of(statement):
                key = access.buffer, access.writes
                places.setdefault(key, []).append(access.flat)
        found = Counter()
        for (buffer, writes), indexes in places.items():
            line = max(1, LINE_BYTES // buffer.dtype.itemsize)
            count = lines(indexes, inside, size_of(buffer), line)
            found[buffer, writes] = count
        self._held[node, whole] = found
        return found

    def _of(self, statement: UOp) -> tuple[Access, ...]:
        if statement not in self._accesses:
            self._accesses[statement] = accesses(statement)
        return self._accesses[statement]


def _below(node: UOp) -> Sequence[UOp]:
    return node.src[1:] if node.op is Ops.LOOP else node.src


def _is_threads(node: UOp) -> bool:
    return node.op is Ops.LOOP and node.src[0].axis_kind is AxisType.THREAD


def _times(count: int, each: Lines) -> Lines:
    return Counter({key: count * lines for key, lines in each.items()})


def _size(held: Lines) -> int:
    """Return the lines that must be held at once: one that is read and written is one."""
    return sum(max(held[b, False], held[b, True]) for b in {b for b, _ in held})


def _moved(held: Lines) -> int:
    """Return the lines that move: those written come in first, and go back."""
    written = sum(count for (_, writes), count in held.items() if writes)
    return _size(held) + written
