"""Ctrl-C, deferred until what must be whole is whole."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# The functions of signal turn numbers into enums, which takes ten times as long.
_handler_of: Any = _signal.getsignal
_handle: Any = _signal.signal
_SIGINT = int(signal.SIGINT)


class Uninterrupted:
    """A block that Ctrl-C does not interrupt: it is raised at the end of the block.

    Only the main thread receives Ctrl-C; a handler outside of Python cannot be restored, so it is
    left as it is. It takes some 3 us.
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
        _handle(_SIGINT, self._before)
        if self._is_pressed:
            signal.raise_signal(_SIGINT)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_pressed = True
