"""Machine code made ahead: other threads compile kernels while this one lowers the next.

Lowering is Python, which one thread runs at a time; a compiler is not, so both go on at once. What
cannot be lowered or compiled is left as it is: the run meets it in its place, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Thread

from workbench.backends.native.thread_pool import cores
from workbench.base.context import BEAM, DEBUG
from workbench.base.interrupts import Uninterrupted
from workbench.base.recording import span
from workbench.base.trace import observer
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner, begin_build

MOST_KERNELS = 256
"""Most kernels that are compiled before the first of them runs: more would push each other out of
the memory of compiled kernels."""
_IN_ORDER = 2
"""The level of DEBUG from which on lines about kernels are printed, in the order of their runs."""


def compile_ahead(items: Iterable[ScheduleItem], tuner: Tuner) -> None:
    """Lower the kernels of `items` with the opts that `tuner` gives them, while other threads
    compile those that are lowered; return when all have their code. Nothing is ahead where somebody
    sees kernels in the order of their runs, and where a search measures times."""
    kernels = dict.fromkeys((i.kernel, i.device) for i in items if i.kernel is not None)
    is_seen = observer() is not None or DEBUG.value >= _IN_ORDER
    if len(kernels) < 2 or is_seen or BEAM.value:
        return
    compilers = _Compilers(cores())
    try:
        with suppress(Exception):
            for kernel, device in islice(kernels, MOST_KERNELS):
                compilers.add(begin_build(tuner(kernel, device), device))
        compilers.finish()
    except BaseException:
        compilers.end()
        raise


class _Compilers:
    """Threads that end the builds that are added, until they are told to finish."""

    def __init__(self, most: int):
        self._is_ended = False
        self._builds = SimpleQueue[Callable[[], object] | None]()
        self._threads: list[Thread] = []
        self._most = most

    def add(self, end_build: Callable[[], object] | None) -> None:
        """Add what ends a build (None: it is built already)."""
        if end_build is None:
            return
        self._builds.put(end_build)
        if len(self._threads) < self._most:
            # a Context for each, as two threads cannot be in one
            thread = Thread(target=copy_context().run, args=(self._compile,), daemon=True)
            with Uninterrupted():  # Ctrl-C in a thread's start would leave a lock of Python's
                thread.start()
            self._threads.append(thread)

    def finish(self) -> None:
        """Return when all that was added is compiled."""
        self._say_finish()
        with span("compile", None):
            for thread in self._threads:
                thread.join()

    def end(self) -> None:
        """Make the threads end after the build that each is in."""
        with Uninterrupted():
            self._is_ended = True
            self._say_finish()

    def _say_finish(self) -> None:
        for _ in range(self._most):  # Ctrl-C may have come before a thread was listed
            self._builds.put(None)

    def _compile(self) -> None:
        while (end_build := self._builds.get()) is not None and not self._is_ended:
            with suppress(Exception):
                end_build()
