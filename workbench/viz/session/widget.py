"""The workbench as a Jupyter widget, which only passes messages to and from a session.

Requests arrive on the main thread. Quick ones are answered there; those that run kernels become
jobs, so that cells can run.

Sections: Script and style of the page as one widget that all workbenches of a Python session
share; The widget; The workbenches in the outputs of a notebook, each as long as its output exists.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import anywidget
import ipywidgets  # type: ignore[import-untyped]
import traitlets
from IPython.core.getipython import get_ipython
from ipywidgets import widget_serialization
from msgspec import convert, to_builtins

from workbench.base.interrupts import Uninterrupted, free_lock
from workbench.viz.page import document as page
from workbench.viz.schema.messages import NO_VIEW, Message, ViewState
from workbench.viz.schema.variant import ErrorWords
from workbench.viz.session.constants import constants
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.requests import REQUESTED
from workbench.viz.session.saved_output import SavedOutput
from workbench.viz.session.session import Session, heed_interrupts, reply_to, sending

# --------------------------------------------------------------------------------------------------
# Script and style of the page as one widget that all workbenches of a Python session share.
#
# A widget is sent, and saved, with all of its traits. So a workbench has only its record and a
# short script, which fetches this widget from the widget manager of the front end. marimo closes a
# widget when the cell that made it runs again: there each workbench carries script and style.

_lock = free_lock()
LOADER = """const PARTS = { shell: "shell", _css: "_css", _esm: "script", constants: "constants" };
const LATEST_MS = 20_000; // a page that is loaded again has its models one after the other
const pages = globalThis[Symbol.for("workbench.pages")] ??= new Map();

async function partsOf(model) {
  const id = model.get("parts").replace("IPY_MODEL_", "");
  const until = Date.now() + LATEST_MS;
  for (;;) {
    try {
      return await model.widget_manager.get_model(id);
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((go) => setTimeout(go, 50));
    }
  }
}

async function pageOf(script) {
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: page } = await import(url);
  URL.revokeObjectURL(url);
  return page;
}

// JupyterLab waits two seconds for the model of an output that it restores. Where the browser is
// busy it looks too late, says "model not found" though the model is there, and never looks again.
// So a model that begins looks for such outputs for a while, and draws its page there itself; one
// that is drawn was found.
const NOT_FOUND = ".jp-OutputArea-output.jupyter-widgets:not(:has(*))"; // a text, and no widget
const SEEKS_MS = 60_000;
const SEEKS_EVERY_MS = 500;
const drawn = new Set(); // the keys of their stills

function* outputsNotFound(key) {
  for (const still of key ? document.querySelectorAll(`[data-still="${key}"]`) : []) {
    const output = still.closest(".jp-OutputArea-child")?.nextElementSibling;
    yield* output?.querySelectorAll(`:scope > ${NOT_FOUND}`) ?? [];
  }
}

function drawWhereNotFound(model) {
  const ends = [];
  const seek = () => {
    for (const output of outputsNotFound(model.get("still"))) {
      const el = document.createElement("div");
      output.replaceChildren(el);
      ends.push(render({ model, el }));
    }
  };
  const until = Date.now() + SEEKS_MS;
  const isOver = () => Date.now() > until || drawn.has(model.get("still"));
  const look = () => isOver() ? clearInterval(timer) : seek();
  const timer = setInterval(look, SEEKS_EVERY_MS);
  return async () => {
    clearInterval(timer);
    for (const end of ends) (await end)?.();
  };
}

async function render({ model, el }) {
  drawn.add(model.get("still"));
  const carried = model.get("carried");
  const parts = carried?.script ? { get: (name) => carried[name] } : await partsOf(model);
  if (carried?._css) { // beside the page, which may stand in a shadow tree
    el.append(Object.assign(document.createElement("style"), { textContent: carried._css }));
  }
  const script = parts.get("script");
  if (!pages.has(script)) pages.set(script, pageOf(script));
  const act = (name) => (...values) => model[name](...values); // a model may be of a class
  const acts = ["set", "save_changes", "send", "on", "off"].map((name) => [name, act(name)]);
  const get = (name) => name in PARTS ? parts.get(PARTS[name]) : model.get(name);
  const isRunning = ({ textContent }) => textContent.includes("*");
  const prompts = () => [...el.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt") ?? []];
  const isWorking = () => // in JupyterLab, whose status is that of the latest message
    model.widget_manager?.kernel?.status === "busy" || prompts().some(isRunning);
  const own = { ...Object.fromEntries(acts), get, isWorking };
  return (await pages.get(script)).render({ model: own, el });
}

export default { initialize: ({ model }) => drawWhereNotFound(model), render };
"""
"""The script of a workbench. It runs the page's script, once in a window, which renders it."""


class PageParts(anywidget.AnyWidget):
    """Script and style of the page; `shell` is the document that a page fills to save itself;
    `constants` are the parts that are the same in all records."""

    _esm = "export default {};\n"
    _css = page.css()
    script = traitlets.Unicode(page.esm()).tag(sync=True)
    shell = traitlets.Unicode(page.shell()).tag(sync=True)
    constants = traitlets.Dict().tag(sync=True)


_parts: list[PageParts] = []


def page_parts() -> PageParts:
    """Return the widget of script and style, a new one if all widgets were closed."""
    with _lock:
        if not _parts or _parts[0].comm is None:
            _parts[:] = [PageParts(constants=constants().plain())]
        return _parts[0]


def carried_parts() -> dict[str, Any]:
    """Return the parts for a widget that carries them itself."""
    own = {"script": page.esm(), "shell": page.shell(), "_css": page.css()}
    return own | {"constants": constants().plain()}


# --------------------------------------------------------------------------------------------------
# The widget.

DISCONNECTED = ErrorWords(
    "this workbench is no longer connected",
    "its exploration was dropped, and many others were used since",
    "run the cell again",
)


class Workbench(anywidget.AnyWidget):
    """A widget of a session. `record` is the packed record (base64 of compressed JSON), `view` the
    selection, `live` whether a Python session answers, `parts` the widget of script and style.
    `still` is the key of the saved output, which the page hides. The page sets `lacks_parts` when
    it finds no saved output that carries script and style under the name `parts_name`. `carried`
    has the parts where the widget carries them itself, by their names in PageParts."""

    _esm = LOADER
    record = traitlets.Unicode().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)
    still = traitlets.Unicode().tag(sync=True)
    lacks_parts = traitlets.Bool(False).tag(sync=True)
    parts_name = traitlets.Unicode().tag(sync=True)
    parts = traitlets.Instance(PageParts, allow_none=True).tag(sync=True, **widget_serialization)
    carried = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        session: Session,
        view: ViewState,
        saved: SavedOutput | None = None,
        shares_parts: bool = True,
    ):
        still = "" if saved is None else saved.key
        name = "" if saved is None else page.name(constants())
        super().__init__(
            record=session.packed(), view=to_builtins(view), still=still, parts_name=name,
            parts=page_parts() if shares_parts else None,
            carried={} if shares_parts else carried_parts(),
        )  # fmt: skip
        self._session = weakref.ref(session)
        self._saved, self._has_page = saved, False
        if saved is not None:
            saved.publish(session)
            session.listen(saved)
        self.observe(self._save_selection, "view")
        self.on_msg(self._message_received)
        session.listen(self)

    def close(self) -> None:
        """Remove the widget from all pages. A session without listeners stops its work in the
        background, and leaves the LRU cache."""
        session = self._session()
        if session is not None:
            session.dismiss(self)
            if self._saved is not None:
                session.dismiss(self._saved)
            if not session.listeners():
                session.stop_background()
                SESSIONS.drop(session)
        layout = self.layout
        super().close()
        layout.close()  # a widget of its own, which ipywidgets would leave in the notebook

    def renew_if_unseen(self) -> None:
        """Update the saved record, if no page has connected, or code of a cell has changed it."""
        session = self._session()
        if session is not None and (session.is_asked_by_code or not self._has_page):
            session.renew()

    def receive(self, message: Message) -> None:
        """Send a message to the page."""
        with sending() as is_open:
            if is_open:
                self.send(to_builtins(message))

    def renew(self, record: str) -> None:
        """Update the record for pages that open later, and for saved notebooks."""
        with sending() as is_open:
            if is_open:
                self.record = record

    def select(self, view: ViewState) -> None:
        """Set the selection."""
        with sending() as is_open:
            if is_open:
                self.view = {**self.view, **to_builtins(view)}

    def _save_selection(self, change: Any) -> None:
        """Pass the page's selection to the saved output, and a guess to the exploration, whose text
        hides no answer from then on.
        """
        if self._saved is not None:
            self._saved.watch(change["new"])
        session = self._session()
        guess = change["new"].get("guess")
        if session is not None and isinstance(guess, str):
            session.recorder.exploration.display.guess = guess

    def _message_received(self, _: Any, content: Any, buffers: Any) -> None:
        with Uninterrupted():  # half a change would leave the record wrong
            self._answer(content)

    def _answer(self, content: Any) -> None:
        self._has_page = True
        session = self._session()
        if session is None:
            self.receive(reply_to(content, None, DISCONNECTED))
            return
        SESSIONS.use(session)
        session.begin()  # the page is open, and has drawn its record
        if session.is_quick(content):
            session.handle(content, self)
        else:
            session.jobs.submit(session, session.job(content, self), REQUESTED)
            heed_interrupts(getattr(get_ipython(), "kernel", None))


# --------------------------------------------------------------------------------------------------
# The workbenches in the outputs of a notebook, each as long as its output exists.
#
# Jupyter keeps a widget after it has replaced its output: the widget is saved with the notebook,
# and its session goes on. So running a cell again closes the widgets of its earlier runs, and
# `clear_output` closes those that it clears; the next ones open with the same view. One output
# carries the script and style for all saved ones. Another output takes over when that one is
# replaced, or its cell is deleted.

LASTING_VIEW = ("mode", "kernel", "language")
"""Fields of the view that a workbench takes over from the one that it replaces; not the variant,
whose position may have changed."""
MOST_CELLS = 64
"""Most cells whose views are kept: those that ran last."""
MOST_OUTPUTS = 256
"""Most Output widgets whose cell is kept: the latest."""
MOST_VIEWS = 16
"""Most views of one cell that are kept: those of its first workbenches."""
CARRIER_LOADS_S = 5.0
"""Seconds that a new carrier may take to load: a page that does not find it yet is ignored."""


class DisplayPlace(NamedTuple):
    """Where something is displayed: the id of the cell, the id of the message that Python handles,
    whether that message runs the cell, and the id of the Output widget that captures the display.
    An id is "" where there is none."""

    cell: str
    run: str
    is_run: bool
    output: str

    @property
    def is_saved(self) -> bool:
        """Whether a display at this place is saved with the notebook."""
        return self.is_run and not self.output


@dataclass(eq=False, slots=True)
class _WidgetOutput:
    """A workbench, the place where it is displayed, and its saved output."""

    place: DisplayPlace
    widget: Workbench
    saved: SavedOutput


class CellOutputs:
    """The outputs of one Python session."""

    def __init__(self) -> None:
        self._outputs: list[_WidgetOutput] = []
        self._views: dict[str, list[Mapping[str, Any]]] = {}
        """The lasting views of each cell's last run; the cell that ran last is at the end."""
        self._cells: dict[str, str] = {}
        """The cell that first filled each Output widget."""
        self._carrier_since = 0.0
        self._shell: Any = None

    def opening_view(self, kernels: int) -> ViewState:
        """Close the workbenches of earlier runs of this cell; return the view with which the next
        one, of `kernels` kernels, opens."""
        self._listen()
        place = self._place()
        self._outputs = [e for e in self._outputs if e.widget.comm is not None]
        self._close_earlier(place)
        views = self._views.get(place.cell, [])
        number = sum(each.place == place for each in self._outputs)
        lasting = dict(views[number]) if number < len(views) else {}
        if lasting.get("kernel", 0) >= kernels:
            lasting.pop("kernel", None)  # it is kernel 0 of none
        return convert(lasting, ViewState) if lasting else NO_VIEW

    def prepare(self, saved: SavedOutput) -> None:
        """Let `saved` carry script and style, if it is saved with the notebook and no other output
        does."""
        if self._place().is_saved and self._carrier() is None:
            self._carry(saved)

    def add(self, widget: Workbench, saved: SavedOutput) -> None:
        """Add a workbench that is displayed now, with its saved output."""
        self._outputs.append(_WidgetOutput(self._place(), widget, saved))
        widget.observe(lambda _: self._take_over_parts(widget), "lacks_parts")

    # events of outputs

    def _listen(self) -> None:
        shell = get_ipython()
        if shell is None or shell is self._shell:
            return
        self._shell = shell
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)
        if hasattr(shell.display_pub, "register_hook"):
            shell.display_pub.register_hook(self._on_message)

    def _before_cell(self, _: object) -> None:
        self._close_earlier(self._place())
        deleted = set(_parent().get("metadata", {}).get("deletedCells", []))
        for cell in deleted:
            self._views.pop(cell, None)
        for each in self._outputs:
            if each.place.cell in deleted:
                each.saved.carries = False
                each.place = each.place._replace(is_run=False)  # it is not saved

    def _after_cell(self, _: object) -> None:
        """Update the outputs of workbenches that code has changed, or that no page shows: when a
        notebook is executed without a browser, only messages sent while a cell runs reach its
        outputs. Without a carrier, let the last output carry script and style.
        """
        for each in self._outputs:
            each.widget.renew_if_unseen()
        if self._carrier() is None:
            for each in [e for e in self._outputs if e.place.is_saved][-1:]:
                self._carry(each.saved)
                each.saved.publish_again()

    def _on_message(self, message: Any) -> Any:
        if message["header"]["msg_type"] == "clear_output":
            place = self._place()
            self._close([each for each in self._outputs if _is_cleared(each.place, place)])
        return message

    def _close_earlier(self, place: DisplayPlace) -> None:
        if place.cell and place.is_run:
            earlier = [
                each
                for each in self._outputs
                if each.place.cell == place.cell and each.place.run != place.run
            ]
            if earlier:
                self._keep_views(place.cell, earlier)
            self._close(earlier)

    def _keep_views(self, cell: str, outputs: list[_WidgetOutput]) -> None:
        self._views.pop(cell, None)
        self._views[cell] = [
            {name: view[name] for name in LASTING_VIEW if name in view}
            for view in (each.widget.view for each in outputs[:MOST_VIEWS])
        ]
        _drop_first(self._views, MOST_CELLS)

    def _close(self, closed: list[_WidgetOutput]) -> None:
        self._outputs = [each for each in self._outputs if each not in closed]
        for each in closed:
            each.widget.close()

    # the carrier of script and style

    def _carrier(self) -> _WidgetOutput | None:
        return next((each for each in self._outputs if each.saved.carries), None)

    def _carry(self, saved: SavedOutput) -> None:
        saved.carries, self._carrier_since = True, time.monotonic()

    def _take_over_parts(self, widget: Workbench) -> None:
        """Let the output of a page carry script and style: the page did not find the carrier, whose
        output may have been cleared."""
        mine = next((each for each in self._outputs if each.widget is widget), None)
        if mine is None or not widget.lacks_parts or not mine.place.is_saved:
            return
        carrier = self._carrier()
        if carrier is not None:
            if time.monotonic() - self._carrier_since < CARRIER_LOADS_S:
                return
            carrier.saved.carries = False
        self._carry(mine.saved)
        mine.saved.publish_again()

    def _place(self) -> DisplayPlace:
        """Return the place at which a display would appear now."""
        parent = _parent()
        header, run = (parent.get("header", {}), parent.get("header", {}).get("msg_id", ""))
        is_run = header.get("msg_type") == "execute_request"
        cell = parent.get("metadata", {}).get("cellId", "")
        output = next((o.model_id for o in _output_widgets() if o.msg_id == run), "")
        if output and is_run:
            self._cells.setdefault(output, cell)
            _drop_first(self._cells, MOST_OUTPUTS)
        elif output:
            cell = self._cells.get(output, "")
        return DisplayPlace(cell, run, is_run, output)


def _drop_first(entries: dict[str, Any], most: int) -> None:
    """Drop the oldest entries, so that at most `most` are left."""
    for key in [*entries][: max(0, len(entries) - most)]:
        del entries[key]


def _is_cleared(output: DisplayPlace, place: DisplayPlace) -> bool:
    """Whether `clear_output` at `place` removes `output`."""
    if place.output:
        return output.output == place.output
    return output == place


def _output_widgets() -> list[Any]:
    """Return the Output widgets that capture now: `msg_id` is the message whose output they get."""
    every = list(getattr(ipywidgets.widgets.widget, "_instances", {}).values())
    return [each for each in every if isinstance(each, ipywidgets.Output) and each.msg_id]


def _parent() -> Mapping[str, Any]:
    """Return the message that Python handles now; {} outside of Jupyter."""
    get_parent = getattr(get_ipython(), "get_parent", None)
    return (get_parent and get_parent()) or {}


CELL_OUTPUTS = CellOutputs()
"""The outputs of this Python session."""
