"""A limit of time on running a kernel, for as far as it listens; and no limit for a moment.

Kernels that take long are launched in slices, and between two of them Python looks for
signals. So an alarm ends a slow kernel that the runtime can slice; one that it cannot is the
business of whoever waits for this process, and may end it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OverTime(Exception):
    """A kernel ran for longer than it was given."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OverTime in the block when it has taken `seconds`: in the main thread, where the
    system has alarms; elsewhere there is no limit."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise OverTime(f"more than {seconds:.3g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block: a process that is half started has nobody who
    would end it. Only the main thread hears of Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    if (
        not is_main or signal.getsignal(signal.SIGINT) is None
    ):  # not Python's to put back
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
