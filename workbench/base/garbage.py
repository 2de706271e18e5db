"""Fewer runs of the garbage collector while a large graph is made."""

from __future__ import annotations

import gc
from collections.abc import Generator

from workbench.base.interrupts import free_lock, scope

OBJECTS = 50_000
"""New objects after which the collector runs, instead of Python's 700. A node is some 600 bytes, so
that garbage takes 30 MB at most until it is found; of nodes hardly any is in cycles."""
_lock = free_lock()
_inside = 0
_usual = gc.get_threshold()


@scope
def fewer_collections() -> Generator[None, None, None]:
    """Let the collector run rarely in the block, in all threads: each run walks all young nodes of
    the graph, which took a quarter of the scheduling of 470 kernels. A threshold that code in the
    block sets stays as it sets it."""
    global _inside, _usual
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < OBJECTS:
                gc.set_threshold(OBJECTS, *_usual[1:])
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and gc.get_threshold()[0] == OBJECTS:
                gc.set_threshold(*_usual)
