"""Which outputs of a kernel are written past the caches.

A store brings its cache line in before it changes it, and throws out another line that somebody
may want: two moves more than the one that is needed, of what goes back to memory anyway. Machines
have stores that leave the caches alone ("non-temporal": Intel's optimization manual, 7.4.1). They
pay where a kernel touches more than the last cache holds and reads at least what it writes;
elsewhere they lose, for the next kernel finds nothing in the cache (measured: bench/streams.py).
"""

from __future__ import annotations

import math
from collections import Counter

from workbench.backends.render.survey import (
    ALIGNMENT_BYTES,
    element_type,
    elements,
    memory,
)
from workbench.ir.affine import divisor
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.target import Target


def streamed(linear: tuple[UOp, ...], target: Target) -> frozenset[UOp]:
    """Return the PARAMs of a linear program that are written once, in whole lines but for edges,
    never read, and better kept out of the caches of `target`."""
    if not target.stream_bytes:
        return frozenset()
    loaded, stored = _moved(linear)
    read = sum(min(nbytes, _size(place)) for place, nbytes in loaded.items())
    written = sum(min(nbytes, _size(place)) for place, nbytes in stored.items())
    if read < written or read + written <= target.stream_bytes:
        return frozenset()
    in_lines = {
        memory(n.src[0]) for n in linear if n.op is Ops.STORE and fills_lines(n)
    }
    return frozenset(
        place
        for place in in_lines.intersection(stored).difference(loaded)
        if target.l2_bytes < stored[place] <= _size(place)
    )


def fills_lines(store: UOp) -> bool:
    """Return whether a STORE writes whole cache lines, if its memory begins with one."""
    address, value, *_ = store.src
    starts = divisor(address.src[1]) * element_type(address).itemsize
    return math.gcd(starts, value.dtype.itemsize) % ALIGNMENT_BYTES == 0


def _moved(linear: tuple[UOp, ...]) -> tuple[Counter[UOp], Counter[UOp]]:
    """Return the bytes that a run loads from each PARAM, and those that it stores."""
    loaded: Counter[UOp] = Counter()
    stored: Counter[UOp] = Counter()
    trips = [1]
    for node in linear:
        if node.op is Ops.LOOP:
            trips.append(trips[-1] * node.src[0].extent)
        elif node.op is Ops.ENDLOOP:
            trips.pop()
        elif node.op is Ops.LOAD:
            loaded[memory(node.src[0])] += trips[-1] * node.dtype.itemsize
        elif node.op is Ops.STORE:
            stored[memory(node.src[0])] += trips[-1] * node.src[1].dtype.itemsize
    return _params(loaded), _params(stored)


def _params(moved: Counter[UOp]) -> Counter[UOp]:
    return Counter({p: n for p, n in moved.items() if p.op is Ops.PARAM})


def _size(place: UOp) -> int:
    return elements(place) * element_type(place).itemsize
