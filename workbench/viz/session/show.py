"""Showing an exploration: the live workbench in a notebook, otherwise one file or a picture.

A session is created when an exploration first needs one, and lives as long as the exploration, or
as long as it is in the LRU cache. Jupyter's widgets are imported only when one is shown: that takes
longer than all other imports.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from workbench.base.context import LIVE
from workbench.base.errors import WorkbenchError
from workbench.base.files import write_whole
from workbench.base.garbage import fewer_collections
from workbench.base.interrupts import Uninterrupted, free_lock
from workbench.base.terminal import Bundle
from workbench.nn.state.safetensors_file import safe_save
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.tables import Variant, Variants, variants_of
from workbench.viz.files.files import file_text
from workbench.viz.files.load import opened, saved_files
from workbench.viz.files.script import DATA_SUFFIX, SCRIPT_FILE, script_of
from workbench.viz.formatters import exploration_bundle, pane_bundle
from workbench.viz.page import document as page
from workbench.viz.pane import Pane
from workbench.viz.record.recipe import baseline_recipe
from workbench.viz.record.record import build
from workbench.viz.run.run import Run
from workbench.viz.schema.messages import NO_VIEW, ViewState
from workbench.viz.schema.record import PageRecord
from workbench.viz.session.handlers import runs
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.opt_text import timing_text
from workbench.viz.session.requests import REQUESTED
from workbench.viz.session.session import Session
from workbench.viz.still import cards

PAGE_S = 3.0
"""Seconds that a page has to open before work in the background begins."""
WIDGET = "application/vnd.jupyter.widget-view+json"
_LOG = logging.getLogger("workbench")
_lock = free_lock()


class LivePage:
    """The display of explorations: live in a notebook, as a picture or as a file; see `Page`."""

    def bundle(self, ex: Exploration) -> Bundle:
        """Return the mimebundle for Jupyter: the widget in a live notebook, otherwise a static
        picture; both with text."""
        return self._live(ex, NO_VIEW, lambda: exploration_bundle(ex, 0.0)) or (
            exploration_bundle(ex)
        )

    def pane_bundle(self, pane: Pane) -> Bundle:
        """Return the mimebundle of one pane: the widget with that pane alone, and always text."""
        ex = pane.exploration
        assert isinstance(ex, Exploration)
        picture = pane_bundle(pane)
        return self._live(ex, pane.view, lambda: picture) or picture

    def run_bundle(self, run: Run) -> Bundle:
        """Return the mimebundle of a run by itself: in a live notebook the page with the pane Run
        alone; always text."""
        text = str(run)
        still = {"text/html": cards.page(cards.source(text)), "text/plain": text}
        if not is_live() or not run.is_over:
            return still
        try:
            from workbench.viz.session.run_widget import RunWidget

            widget = RunWidget(run.record, shares_parts=not is_in_marimo())
            return still | {WIDGET: _reference(widget, still)[WIDGET]}
        except Exception:  # the text needs no widget
            _LOG.exception("the page of a run cannot be shown; this is its text")
            return still

    def _live(self, ex: Exploration, view: ViewState, picture: Callable[[], Bundle]) -> Bundle:
        """Return the mimebundle of the widget, after publishing the output that is saved with the
        notebook: {} outside of a live notebook, and the picture if the widget fails."""
        if not is_live():
            return {}
        still = picture()
        try:
            if is_in_marimo():
                return _reference(self.to_widget(ex, _one_pane(ex).then(view)), still)
            from workbench.viz.session.saved_output import SavedOutput
            from workbench.viz.session.widget import CELL_OUTPUTS

            title = "workbench" if ex.line is None else ex.line.text
            before = CELL_OUTPUTS.opening_view(len(ex.kernels))
            opens = before.then(ex.display.view).then(_one_pane(ex)).then(view)
            saved = SavedOutput(still["text/html"], title, opens)
            CELL_OUTPUTS.prepare(saved)
            widget = self.to_widget(ex, opens, saved)
            CELL_OUTPUTS.add(widget, saved)
            return _reference(widget, still)
        except Exception:  # the picture needs no widget
            _LOG.exception("the workbench cannot be shown; this is its picture")
            return still

    def to_widget(self, ex: Exploration, view: ViewState | None = None, saved: Any = None) -> Any:
        """Return a widget of the exploration's session, which opens with `view`; `saved` is the
        output that is saved in its place."""
        from workbench.viz.session.widget import Workbench

        opens = ex.display.view.then(_one_pane(ex)) if view is None else view
        return Workbench(session_of(ex), opens, saved, shares_parts=not is_in_marimo())

    def to_html(self, ex: Exploration) -> str:
        """Return the page as one file, with the session's variants, if there is a session."""
        session: Session | None = ex.display.session
        with fewer_collections():
            record = self.record(ex)
            with nullcontext() if session is None else session.lock:
                return page.export_html(record, _one_pane(ex))

    def record(self, ex: Exploration) -> PageRecord:
        """Return the complete record: the session's, if there is a session."""
        session: Session | None = ex.display.session
        if session is None:
            return build(ex)
        session.complete()
        return session.record

    def to_file(self, ex: Exploration) -> str:
        """Return the text of the exploration's file."""
        return file_text(ex)

    def to_script(self, ex: Exploration, path: Path | None) -> str:
        """Return the text of the exploration's script; with a path, write it, and its data beside
        it, and return the path. The data come first: if they cannot be written, nothing is."""
        if path is None:
            return script_of(ex, "program").text

        def written() -> str:
            script = script_of(ex, path.stem)
            safe_save(script.data, path.with_suffix(DATA_SUFFIX))
            return script.text

        return str(write_whole(path, SCRIPT_FILE, written))

    def run(self, ex: Exploration, device: str, repeat: int) -> Run:
        """Return the run of repeated rounds of the kernels, which the page shows, too."""
        return runs.run_of(ex, ex.display.session, device, repeat)

    def from_file(self, path: Path) -> Exploration:
        """Return the exploration of a file. Errors: WorkbenchError, as of `load`."""
        return opened(path, self)

    def saved_files(self, folder: Path) -> list[Path]:
        """Return the files of a folder that hold explorations, the latest first."""
        return saved_files(folder)

    def baseline(self, ex: Exploration, name: str, run: Callable[[], object]) -> None:
        """Add a baseline, and queue its timing if the exploration has a session.

        Errors: WorkbenchError if `name` is not a text, or empty, or if `run` cannot be called.
        """
        hint = baseline_recipe(ex)
        if not isinstance(name, str) or not name:
            because = f"{name!r:.40} is not a text"
            raise WorkbenchError("a baseline must have a name", because, hint)
        if not callable(run):
            because = f"{type(run).__name__} cannot be called"
            raise WorkbenchError(f"the baseline {name:.40} is not a function", because, hint)
        ex.display.baselines[name] = run
        session: Session | None = ex.display.session
        if session is not None:
            session.jobs.submit(session, session.job({"do": "baseline"}), REQUESTED)

    def variants(self, ex: Exploration, deleted: bool = False) -> Variants:
        """Return the variants of an exploration's session, with `deleted` also deleted ones;
        without a session the kernels without opts."""
        session: Session | None = ex.display.session
        if session is None:
            return variants_of(ex.kernels, ex.display)
        with session.lock:
            speeds = session.recorder.speeds
            rows = (
                Variant(
                    place, row.kernel, row.name, session.kernels[place],
                    timing_text(row.timing, speeds) if row.timing else "", ex.display,
                )
                for place, row in enumerate(session.record.variants)
                if deleted or not row.deleted
            )  # fmt: skip
            return Variants(rows, ex.display)

    def ask(self, ex: Exploration, do: str, **fields: Any) -> Any:
        """Return the result of a request of the page of an exploration.

        Errors: WorkbenchError, as the page would show it.
        """
        session = session_of(ex)
        with Uninterrupted():  # half a change would leave the record wrong
            reply = session.handle({"do": do, **fields})
            session.is_asked_by_code = True
        if reply.error is not None:
            raise reply.error.as_error()
        return reply.result

    def select(self, ex: Exploration, view: ViewState) -> None:
        """Set the selection of an exploration, and of its widgets."""
        ex.display.view = ex.display.view.then(view)
        session: Session | None = ex.display.session
        for listener in [] if session is None else session.listeners():
            listener.select(view)


def _reference(widget: Any, still: Bundle) -> Bundle:
    """Return the mimebundle of a widget. Its HTML for front ends without widgets is empty, because
    the picture is an output of its own."""
    bundle = widget._repr_mimebundle_()
    reference = (bundle[0] if isinstance(bundle, tuple) else bundle)[WIDGET]
    return {WIDGET: reference, "text/html": "", "text/plain": still["text/plain"]}


def _one_pane(ex: Exploration) -> ViewState:
    """Return the view of the one pane that an exploration shows, if it shows only one."""
    return Pane(ex, ex.show).view if ex.show else NO_VIEW


def session_of(ex: Exploration) -> Session:
    """Return the session of an exploration, created if necessary."""
    with _lock:
        session: Session | None = ex.display.session
        if session is None:
            session = ex.display.session = Session(ex, prefetches=LIVE.value > 1)
            session.begin_after(PAGE_S)
    SESSIONS.use(session)
    return session


def is_live() -> bool:
    """Whether this is a live notebook, with which a widget could communicate."""
    if LIVE.value < 1:
        return False
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None or is_in_marimo()


def is_in_marimo() -> bool:
    """Whether this is a notebook of marimo's, which needs no IPython."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())
