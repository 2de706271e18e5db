"""Showing an exploration: the live workbench in a notebook, one file, else a picture.

A session is created when an exploration first needs one, and lives as long as the exploration, or
as long as it is in the LRU cache.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from workbench.base.context import LIVE
from workbench.base.display import Bundle
from workbench.base.errors import WorkbenchError
from workbench.base.forking import free_lock
from workbench.viz.exploration import Exploration
from workbench.viz.formatters import exploration_bundle, pane_bundle
from workbench.viz.page import document as page
from workbench.viz.pane import Pane
from workbench.viz.record.record import build
from workbench.viz.schema.messages import ViewState
from workbench.viz.session.jobs import REQUESTED
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.session import Session

PAGE_S = 1.0
"""Seconds for a page to open before work in the background begins."""
NO_VIEW = ViewState()
WIDGET = "application/vnd.jupyter.widget-view+json"
_LOG = logging.getLogger("workbench")
_lock = free_lock()


class LivePage:
    """Shows explorations; see `viz.exploration.Page`."""

    def bundle(self, ex: Exploration) -> Bundle:
        """Return the mimebundle for Jupyter: the widget in a live notebook, and always a static
        picture and text."""
        widget = self._widget(ex, NO_VIEW) if is_live() else {}
        return widget | exploration_bundle(ex, 0.0 if widget else None)

    def pane_bundle(self, pane: Pane) -> Bundle:
        """Return the mimebundle of one pane: the widget with that pane alone, and always text."""
        ex = pane.exploration
        assert isinstance(ex, Exploration)
        return (self._widget(ex, pane.view) if is_live() else {}) | pane_bundle(pane)

    def _widget(self, ex: Exploration, view: ViewState) -> Bundle:
        try:
            bundle = self.to_widget(ex, view)._repr_mimebundle_()
        except Exception:  # the picture does not need it
            _LOG.exception("the workbench cannot be shown; this is its picture")
            return {}
        return {WIDGET: (bundle[0] if isinstance(bundle, tuple) else bundle)[WIDGET]}

    def to_widget(self, ex: Exploration, view: ViewState = NO_VIEW) -> Any:
        """Return a widget of the exploration's session."""
        from workbench.viz.session.widget import Workbench

        session = session_of(ex)
        one = Pane(ex, ex.show).view if ex.show else NO_VIEW
        return Workbench(session, ex.display.view.then(one).then(view))

    def to_html(self, ex: Exploration) -> str:
        """Return the page as one file, with the session's variants, if there is a session."""
        session: Session | None = ex.display.session
        if session is None:
            return page.export_html(build(ex))
        session.complete()
        with session.lock:
            return page.export_html(session.record)

    def baseline(self, ex: Exploration, name: str, run: Callable[[], object]) -> None:
        """Add a baseline; it is timed where the exploration is shown.

        Errors: WorkbenchError for a value that cannot be called, and for one that is not a name.
        """
        hint = 'ex.baseline("numpy", lambda: a @ b)'
        if not isinstance(name, str) or not name:
            because = f"{name!r:.40} is not a text"
            raise WorkbenchError("a baseline must have a name", because, hint)
        if not callable(run):
            because = f"{type(run).__name__} cannot be called"
            raise WorkbenchError(
                f"the baseline {name} is not a function", because, hint
            )
        ex.display.baselines[name] = run
        session: Session | None = ex.display.session
        if session is not None:
            session.jobs.submit(session, session.job({"do": "baseline"}), REQUESTED)

    def select(self, ex: Exploration, view: ViewState) -> None:
        """Change what the widgets of an exploration show."""
        ex.display.view = ex.display.view.then(view)
        session: Session | None = ex.display.session
        for listener in [] if session is None else session.listeners():
            listener.look(view)


def session_of(ex: Exploration) -> Session:
    """Return the session of an exploration, created if necessary."""
    with _lock:
        session: Session | None = ex.display.session
        if session is None:
            session = ex.display.session = Session(ex, measures_ahead=LIVE.value > 1)
            session.begin_after(PAGE_S)
    SESSIONS.use(session)
    return session


def is_live() -> bool:
    """Whether this is a live notebook, with which a widget could communicate."""
    if LIVE.value < 1:
        return False
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
