"""An LRU cache of sessions that only a page refers to.

After `display(explore(y))` only the page refers to the exploration, and Jupyter never removes the
widget of a cell's earlier run. So a widget refers to its session weakly, and this cache holds the
sessions that were used last, at most MOST_SESSIONS, and fewer if their data are large: a session
takes a few megabytes, and the data of its expression any amount.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from workbench.base.interrupts import free_lock
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.viz.session.session import Session

MOST_SESSIONS = 64
LEAST_SESSIONS = 8
"""Sessions that stay in the cache however large their data are."""
MOST_BYTES = 1 << 30
"""Most bytes of the data of more than LEAST_SESSIONS sessions; shared data count once."""


class SessionCache:
    """The sessions that were used last, the latest at the end."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Session, frozenset[UOp]] = OrderedDict()
        self._lock = free_lock()

    def use(self, session: Session) -> None:
        """Add a session as the latest, and drop the oldest if they are too many or too large."""
        with self._lock:
            if session not in self._sessions:
                self._sessions[session] = _memory(session)
            self._sessions.move_to_end(session)
            while self._are_too_many():
                self._sessions.popitem(last=False)

    def drop(self, session: Session) -> None:
        """Drop a session whose last page was closed."""
        with self._lock:
            self._sessions.pop(session, None)

    def clear(self) -> None:
        """Drop all sessions."""
        with self._lock:
            self._sessions.clear()

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session: object) -> bool:
        return session in self._sessions

    def _are_too_many(self) -> bool:
        if len(self) <= LEAST_SESSIONS:
            return False
        buffers = frozenset().union(*self._sessions.values())
        return len(self) > MOST_SESSIONS or sum(map(_size_bytes, buffers)) > MOST_BYTES


def _memory(session: Session) -> frozenset[UOp]:
    nodes = UOp.sink(*session.recorder.exploration.outputs).toposort()
    return frozenset(node for node in nodes if node.op is Ops.BUFFER)


def _size_bytes(buffer: UOp) -> int:
    return math.prod(buffer.shape) * buffer.dtype.itemsize


SESSIONS = SessionCache()
"""The cache of this Python process."""
