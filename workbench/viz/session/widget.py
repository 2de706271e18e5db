"""The workbench as a Jupyter widget, which only passes messages to and from a session.

Requests arrive on the main thread. Quick ones are answered there; those that run kernels become
jobs, so that cells can run.
"""

from __future__ import annotations

import weakref
from typing import Any

import anywidget
import traitlets
from ipywidgets import widget_serialization  # type: ignore[import-untyped]
from msgspec import to_builtins

from workbench.base.interrupts import Uninterrupted
from workbench.viz.page import saved_page
from workbench.viz.schema.messages import Message, ViewState
from workbench.viz.schema.variant import ErrorWords
from workbench.viz.session.jobs import REQUESTED
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.messages import sending
from workbench.viz.session.page_parts import LOADER, PageParts, page_parts
from workbench.viz.session.saved_output import SavedOutput
from workbench.viz.session.session import Session, reply_to

DISCONNECTED = ErrorWords(
    "this workbench is no longer connected",
    "its exploration was dropped, and many others were used since",
    "run the cell again",
)


class Workbench(anywidget.AnyWidget):
    """A widget of a session. `record` is the packed record, base64 of compressed JSON; `view` is
    the selection; `live` says that a Python session is behind it; `parts` has script and style;
    `still` is the key of the saved output, which the page hides, and `lacks_parts` says that the
    page finds no output that has script and style for the saved ones, by the name `parts_name`."""

    _esm = LOADER
    record = traitlets.Unicode().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)
    still = traitlets.Unicode().tag(sync=True)
    lacks_parts = traitlets.Bool(False).tag(sync=True)
    parts_name = traitlets.Unicode(saved_page.name()).tag(sync=True)
    parts = traitlets.Instance(PageParts).tag(sync=True, **widget_serialization)

    def __init__(self, session: Session, view: ViewState, saved: SavedOutput | None = None):
        still = "" if saved is None else saved.key
        super().__init__(
            record=session.packed(), view=to_builtins(view), still=still, parts=page_parts()
        )
        self._session = weakref.ref(session)
        self._saved, self._is_heard = saved, False
        if saved is not None:
            saved.publish(session)
            session.listen(saved)
        self.observe(self._save_selection, "view")
        self.on_msg(self._message_received)
        session.listen(self)

    def close(self) -> None:
        """Take the widget away from all pages; a session without listeners stops its work."""
        session = self._session()
        if session is not None:
            session.dismiss(self)
            if self._saved is not None:
                session.dismiss(self._saved)
            if not session.listeners():
                session.rest()
                SESSIONS.drop(session)
        layout = self.layout
        super().close()
        layout.close()  # a widget of its own, which ipywidgets would leave in the notebook

    def renew_where_unheard(self) -> None:
        """Save the record as it is now, if no page is connected, or code has changed it."""
        session = self._session()
        if session is not None and (session.is_asked_by_code or not self._is_heard):
            session.renew()

    def tell(self, message: Message) -> None:
        """Send a message to the page."""
        with sending() as may:
            if may:
                self.send(to_builtins(message))

    def renew(self, record: str) -> None:
        """Update the record for pages that open later, and for saved notebooks."""
        with sending() as may:
            if may:
                self.record = record

    def look(self, view: ViewState) -> None:
        """Set the selection."""
        with sending() as may:
            if may:
                self.view = {**self.view, **to_builtins(view)}

    def _save_selection(self, change: Any) -> None:
        """Remember the selection of the page, for the saved output, and what was guessed: text
        prints all from then on.
        """
        if self._saved is not None:
            self._saved.watch(change["new"])
        session = self._session()
        guess = change["new"].get("guess")
        if session is not None and isinstance(guess, str):
            session.recorder.exploration.display.guess = guess

    def _message_received(self, _: Any, content: Any, buffers: Any) -> None:
        with Uninterrupted():  # half an answer is none, and half a change is wrong for good
            self._answer(content)

    def _answer(self, content: Any) -> None:
        self._is_heard = True
        session = self._session()
        if session is None:
            self.tell(reply_to(content, None, DISCONNECTED))
            return
        SESSIONS.use(session)
        session.begin()  # the page is open, and has drawn its record
        if session.is_quick(content):
            session.handle(content, self)
        else:
            session.jobs.submit(session, session.job(content, self), REQUESTED)
