"""Messages to pages stay whole while Python ends. What is cut off garbles the messages behind it,
and JupyterLab, which is only restarting the session, takes them for messages of the new one.

Two things would cut them off. Jupyter lends a large message's own memory to ZeroMQ instead of
a copy, and when the interpreter ends, that memory is freed, sent or not. And as soon as
Jupyter's sending thread has ended, whoever sends does so on the shared socket itself.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from IPython.core.getipython import get_ipython

from workbench.base.forking import free_rlock

_LOCK = free_rlock()
"""Held while a message is handed over. Handing over may collect widgets, which send, too."""
_is_over = False


@contextmanager
def sending() -> Iterator[bool]:
    """Hand out whether messages may still be sent, and keep Python from ending meanwhile."""
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
