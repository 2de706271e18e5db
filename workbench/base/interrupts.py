"""Ctrl-C, deferred until a write or a launch in progress is complete; locks and forks.

with Uninterrupted(): ...     a block that Ctrl-C does not interrupt
@scope                        a generator function as a `with` block that always sets and resets
_ = [*raised_after()]         the last line of a finalizer, for Ctrl-C that came during it

Sections: Ctrl-C, deferred until a write or a launch in progress is complete; Forked processes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import copy
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ContextDecorator
from functools import partial, wraps
from threading import Lock, RLock
from types import FrameType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload
from weakref import WeakSet

# --------------------------------------------------------------------------------------------------
# Ctrl-C, deferred until a write or a launch in progress is complete.

# The functions of signal turn numbers into enums, which takes ten times as long.
_handler_of: Any = _signal.getsignal
_handle: Any = _signal.signal
_SIGINT = int(signal.SIGINT)


P = ParamSpec("P")

T = TypeVar("T")


class Uninterrupted:
    """A block that Ctrl-C does not interrupt: KeyboardInterrupt is raised at the end of the block.

    Only the main thread receives Ctrl-C. A handler that was not installed from Python cannot be
    restored, so it is left in place. Cost: some 3 us.
    """

    __slots__ = ("_before", "_is_pressed")

    def __init__(self) -> None:
        self._is_pressed = False
        self._before: Any = None

    def __enter__(self) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            self._before = _handler_of(_SIGINT)
            if self._before is not None:
                _handle(_SIGINT, self._note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is None:
            return
        if _handler_of(_SIGINT) == self._note:  # unless the block has set another handler
            _handle(_SIGINT, self._before)
        if self._is_pressed:
            signal.raise_signal(_SIGINT)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_pressed = True


class DynamicScope(ContextDecorator, Generic[T]):
    """A `with` block, or a decorator of functions, which sets something and resets it.

    `begin` returns a generator that sets it, yields the block's value once, and resets it in a
    `finally`; neither part opens a scope, or takes long. Ctrl-C during the first part is raised
    after that is undone, Ctrl-C during the second part after its end. Python raises
    KeyboardInterrupt even before the first statement of `__exit__`, so our handler is installed as
    long as a block is open; between the two parts it passes Ctrl-C on. Cost: some 5 us.
    """

    def __init__(self, begin: Callable[[], Generator[T, None, None]]):
        self._begin = begin
        self._open: list[tuple[Generator[T, None, None], _Handler, bool]] = []

    def _recreate_cm(self) -> Self:
        """Return a scope for one call of a decorated function: several threads may call that."""
        other = copy.copy(self)
        other._open = []
        return other

    def __enter__(self) -> T:
        handler, is_own = _Handler.installed()
        block = self._begin()
        try:
            value = next(block)
            self._open.append((block, handler, is_own))
        except BaseException:
            _uninstall(handler, is_own)
            raise
        try:
            # No signal is handled between the last test of `is_pressed` and the return.
            while handler.is_pressed:
                handler.pass_on()
        except BaseException:
            self._open.pop()
            block.close()
            _uninstall(handler, is_own)
            raise
        return value

    def __exit__(self, *error: object) -> None:
        block, handler, is_own = self._open.pop()
        try:
            block.close()
        finally:
            _uninstall(handler, is_own)
            while handler.is_pressed:
                handler.pass_on()


def scope(function: Callable[P, Generator[T, None, None]]) -> Callable[P, DynamicScope[T]]:
    """Return a function that returns the DynamicScope of a generator function's call."""

    @wraps(function)
    def scope_of(*args: P.args, **kwargs: P.kwargs) -> DynamicScope[T]:
        return DynamicScope(partial(function, *args, **kwargs))

    return scope_of


def raised_after() -> Iterator[None]:
    """Return an iterator that, when it is used up, raises Ctrl-C in the code that runs next.

    Python drops an exception that leaves `__del__`, and tests for signals after each call. A list
    of the iterator is made without a call, so the next test is in the code in which the object
    died. (One test remains, before the first statement of `__del__`: there Ctrl-C is lost.)
    """
    return map(_thread.interrupt_main, (signal.SIGINT,))


_SCOPE_CODE = {DynamicScope.__enter__.__code__, DynamicScope.__exit__.__code__}
"""The code in which a scope begins or ends."""


class _Handler:
    """The handler of Ctrl-C while a scope is open; `before` is the handler that it replaces."""

    __slots__ = ("before", "is_pressed")

    def __init__(self, before: Any):
        self.before, self.is_pressed = before, False

    @staticmethod
    def installed() -> tuple[_Handler, bool]:
        """Return the installed handler of scopes, and whether this call installed it."""
        if threading.get_ident() != threading.main_thread().ident:
            return _NO_HANDLER, False
        before = _handler_of(_SIGINT)
        if isinstance(before, _Handler):
            return before, False
        if not callable(before):  # Ctrl-C is ignored, or ends the process
            return _NO_HANDLER, False
        own = _Handler(before)
        _handle(_SIGINT, own)
        return own, True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code not in _SCOPE_CODE:
            frame = frame.f_back
        if frame is None:
            self.before(number, frame)
        else:
            self.is_pressed = True

    def pass_on(self) -> None:
        """Handle Ctrl-C that came while a scope began or ended."""
        self.is_pressed = False
        self.before(_SIGINT, None)


_NO_HANDLER = _Handler(None)
"""The handler that is never installed: in other threads, and where Ctrl-C calls no function."""


def _uninstall(handler: _Handler, is_own: bool) -> None:
    """Restore the handler before the scope, unless another one was set. A generator may end its
    block in another thread, which cannot set a handler: then this one stays, and passes Ctrl-C
    on."""
    is_main = threading.get_ident() == threading.main_thread().ident
    if is_own and is_main and _handler_of(_SIGINT) is handler:
        _handle(_SIGINT, handler.before)


# --------------------------------------------------------------------------------------------------
# Forked processes: locks that are free in the child, and no fork in the middle of native code.
#
# A fork copies one thread, and every lock as it is: a lock of another thread stays locked in the
# child for ever, and its data may be inconsistent. So
#
#     LOCK = free_lock()           is free in the child: for data that is consistent at any moment
#     with no_fork: ...            no fork meanwhile: for calls and imports of native libraries
#     computed = once(function)    a cached property without a lock

no_fork = RLock()
"""While a thread holds it, other threads that fork wait. Take no other lock while you hold it."""
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

    cached_property has, up to Python 3.11, one lock for all objects: a fork copies it, and two
    threads never compute at once. Here two threads may compute the same value; the first one stays.
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
