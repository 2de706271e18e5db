"""What is derived of a whole kernel, memoised as long as the kernel lives: opts, menus and
searches ask for the same again and again, and each answer takes a walk through the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from workbench.ir.node.uop import UOp

T = TypeVar("T")


def memoised(derive: Callable[[UOp], T]) -> Callable[[UOp], T]:
    """Return `derive`, which answers a second time what it answered the first. Whoever asks shares
    the answer and must not change it. The answer must not hold the node itself: neither would
    ever be freed."""
    cache: WeakKeyDictionary[UOp, T] = WeakKeyDictionary()

    @wraps(derive)
    def derived(node: UOp) -> T:
        if node not in cache:
            cache[node] = derive(node)
        return cache[node]

    return derived
