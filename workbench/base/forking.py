"""Forked processes: locks that are free in the child, and no fork in the middle of native code.

A fork copies one thread, and every lock as it is: a lock of another thread stays locked in the
child for ever, and its data may be inconsistent. So

    LOCK = free_lock()           is free in the child: for what is whole between two steps of Python
    with no_fork: ...            a fork waits: for libraries of machine code, and imports of them
    computed = once(function)    a cached property without a lock
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, RLock
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

T = TypeVar("T")

no_fork = RLock()
"""While a thread holds it, other threads that fork wait. Within, take no other lock."""
_locks: WeakSet[Any] = WeakSet()


def free_lock() -> Lock:
    """Return a Lock that is free in a forked child."""
    lock = Lock()
    _locks.add(lock)
    return lock


def free_rlock() -> RLock:
    """Return an RLock that is free in a forked child."""
    lock = RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release
    )
    os.register_at_fork(after_in_child=_free_all)


class once(Generic[T]):
    """A property that is computed on first use, like functools.cached_property.

    That one has, up to Python 3.11, one lock for all objects: a fork copies it, and two threads
    never compute at once. Here two threads may compute the same value; the first one stays.
    """

    def __init__(self, function: Callable[[Any], T]):
        self._function, self._name = function, function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> once[T]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> T | once[T]:
        if owner is None:
            return self
        value: T = vars(owner).setdefault(self._name, self._function(owner))
        return value
