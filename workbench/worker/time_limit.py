"""A time limit on running a kernel.

Long kernels are launched in slices, between which Python handles signals. So an alarm ends a slow
kernel that the runtime can slice; any other one runs until the parent ends this process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from types import FrameType

from workbench.base.interrupts import scope


class OverTime(Exception):
    """A kernel ran longer than its limit."""


@scope
def within(seconds: float) -> Generator[None, None, None]:
    """Raise OverTime in the block after `seconds`, in the main thread of a system with alarms;
    elsewhere there is no limit."""
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
