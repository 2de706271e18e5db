"""Whole messages to pages, even while Python ends. A message that is cut off garbles those after
it, which JupyterLab, if it is only restarting the session, reads as messages of the new one.

There are two causes. Jupyter passes a large message's own memory to ZeroMQ instead of a copy, and
when the interpreter ends, that memory is freed, sent or not. And after Jupyter's sending thread has
ended, every thread sends on the shared socket itself.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Generator
from functools import cache

from IPython.core.getipython import get_ipython

from workbench.base.forking import free_rlock
from workbench.base.interrupts import scope

_LOCK = free_rlock()
"""The lock of sending a message, which is reentrant: sending may collect widgets, which send,
too."""
_is_over = False


@scope
def sending() -> Generator[bool, None, None]:
    """Yield whether messages may still be sent; Python does not end within the block."""
    _prepare()
    with _LOCK:
        yield not _is_over


@cache
def _prepare() -> None:
    session = getattr(getattr(get_ipython(), "kernel", None), "session", None)
    if session is not None:
        session.copy_threshold = sys.maxsize  # a copy of a record takes microseconds
    atexit.register(_end)  # runs before the hooks of Jupyter, which registered earlier


def _end() -> None:
    global _is_over
    with _LOCK:
        _is_over = True
