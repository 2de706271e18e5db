"""Non-temporal stores of a kernel: stores that bypass the caches.

A store loads its cache line before it changes the line, and evicts another one: two transfers
besides the one to memory. Non-temporal stores bypass the caches (Intel's optimization manual,
7.4.1). They are faster where a kernel touches more than the last cache holds, and reads at least as
many bytes as it writes; elsewhere they are slower, since the next kernel finds nothing in the cache
(measured: bench/gains.py). They must write whole lines, one store right after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from workbench.backends.program.analysis import alignment, element_type
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.estimates import executed
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

LEAST_BYTES = 16
"""Bytes of a vector: machines have no shorter non-temporal stores."""


def non_temporal_stores(linear: tuple[UOp, ...], target: Target) -> frozenset[UOp]:
    """Return the STOREs of a linear program that are non-temporal on `target`: those that fill
    lines of PARAMs that are written once, never read, and too large to be found in a cache later.
    There are none if the kernel writes more than it reads, or touches too few bytes in all."""
    if not target.non_temporal_bytes:
        return frozenset()
    loaded, stored = _moved(linear)
    read = sum(min(nbytes, _size(place)) for place, nbytes in loaded.items())
    written = sum(min(nbytes, _size(place)) for place, nbytes in stored.items())
    if read < written or read + written <= target.non_temporal_bytes:
        return frozenset()
    return frozenset(  # a masked tail counts as if all of its lanes were written
        store
        for loop, stores in _bodies(linear)
        for store in _in_lines(loop, stores, target)
        if _place(store) not in loaded
        and target.l2_bytes < stored[_place(store)] < 2 * _size(_place(store))
    )


def _bodies(linear: tuple[UOp, ...]) -> Iterator[tuple[UOp | None, list[UOp]]]:
    """Yield the STOREs to PARAMs in each loop's body, with the loop's RANGE; None for a body with
    another loop in it."""
    around: list[tuple[UOp | None, list[UOp]]] = []
    for node in linear:
        if node.op is Ops.LOOP:
            if around:
                around[-1] = (None, around[-1][1])
            around.append((node.src[0], []))
        elif node.op is Ops.ENDLOOP:
            yield around.pop()
        elif node.op is Ops.STORE and around and _place(node).op is Ops.PARAM:
            around[-1][1].append(node)


def _in_lines(loop: UOp | None, stores: Sequence[UOp], target: Target) -> Iterator[UOp]:
    """Yield the STOREs of a body that fill cache lines: adjacent STOREs that make whole lines, or
    that the next step of the loop continues."""
    line_bytes, most = target.line_bytes, target.alignment_bytes
    rows: dict[tuple[UOp, frozenset[tuple[UOp, int]]], list[tuple[int, UOp]]] = {}
    for store in stores:
        nbytes = store.src[1].dtype.itemsize
        if nbytes >= LEAST_BYTES and alignment(store.src[0], most) % min(nbytes, line_bytes) == 0:
            parts, offset = terms(store.place.flat_index)
            key = _place(store), frozenset(parts.items())
            rows.setdefault(key, []).append((offset, store))
    for (_, steps), row in rows.items():
        step = None if loop is None else dict(steps).get(loop)
        for run in _runs(sorted(row, key=lambda pair: pair[0])):
            first, lanes = run[0], sum(s.src[1].dtype.count for s in run)
            whole = lanes * element_type(first.src[0]).itemsize % line_bytes == 0
            begins_line = alignment(first.src[0], most) % line_bytes == 0
            if step == lanes or (whole and begins_line):
                yield from run


def _runs(row: Sequence[tuple[int, UOp]]) -> Iterator[list[UOp]]:
    """Yield STOREs, in order of their offsets, in groups that follow each other without a gap."""
    run: list[UOp] = []
    end = 0
    for offset, store in row:
        if run and offset != end:
            yield run
            run = []
        run.append(store)
        end = offset + store.src[1].dtype.count
    if run:
        yield run


def _moved(linear: tuple[UOp, ...]) -> tuple[Counter[UOp], Counter[UOp]]:
    """Return the bytes that a run loads from each PARAM, and those that it stores to each."""
    loaded: Counter[UOp] = Counter()
    stored: Counter[UOp] = Counter()
    for node, trips, _ in executed(linear):
        if node.op is Ops.LOAD:
            loaded[_place(node)] += trips * node.dtype.itemsize
        elif node.op is Ops.STORE:
            stored[_place(node)] += trips * node.src[1].dtype.itemsize
    return _params(loaded), _params(stored)


def _params(moved: Counter[UOp]) -> Counter[UOp]:
    return Counter({p: n for p, n in moved.items() if p.op is Ops.PARAM})


def _place(access: UOp) -> UOp:
    return access.place.param


def _size(place: UOp) -> int:
    return size_of(place) * element_type(place).itemsize
