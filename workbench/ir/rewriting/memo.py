"""Memos of what was made of kernels under the rules in force."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from workbench.base.interrupts import free_lock
from workbench.ir.rewriting.rewrite import rules_in_force

T = TypeVar("T")
MOST_ENTRIES = 1024


class Memo(Generic[T]):
    """What was made of a kernel and what else decides it (a device, a target), by these and the
    rules in force; the last entries are kept.

    Nothing is locked while a value is made: two threads may make one at once, and the first stays;
    what fails, or is ended by Ctrl-C, leaves no entry.
    """

    def __init__(self, most: int = MOST_ENTRIES):
        self.entries: dict[Hashable, T] = {}
        self._most, self._lock = most, free_lock()

    def value(self, of: Hashable, make: Callable[[], T], is_seen: bool = False) -> T:
        """Return the entry for `of`, which `make` makes if there is none; where an observer is to
        see how (`is_seen`), it is made in any case."""
        rules = rules_in_force()
        key = of, rules
        entry = self.entries.get(key)
        if entry is not None and not is_seen:
            return entry
        value = make()
        if rules != rules_in_force():
            return value  # a rule was added meanwhile, and may have been used
        with self._lock:
            self.entries[key] = entry = self.entries.pop(key, value)  # the newest
            while len(self.entries) > self._most:
                del self.entries[next(iter(self.entries))]
            return entry
