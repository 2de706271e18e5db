"""Functions of a whole kernel, memoised as long as the kernel lives, since opts, menus and searches
call them again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from workbench.ir.node.uop import UOp

T = TypeVar("T")


def memoised(derive: Callable[[UOp], T]) -> Callable[[UOp], T]:
    """Return `derive`, memoised by node. Callers share its result and must not change it. The
    result must not refer to the node itself: neither would ever be freed."""
    cache: WeakKeyDictionary[UOp, T] = WeakKeyDictionary()

    @wraps(derive)
    def derived(node: UOp) -> T:
        if node not in cache:
            cache[node] = derive(node)
        return cache[node]

    return derived
