"""The workbenches in the outputs of a notebook, each as long as its output exists.

Jupyter keeps a widget whose output it has replaced: it is saved with the notebook, and its session
goes on. So a cell that is run again closes the widgets of its earlier runs, and `clear_output`
those that it clears; the next ones open as these were left. One output carries the script and style
for all that are saved: another one takes over where it is replaced, or its cell deleted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import ipywidgets  # type: ignore[import-untyped]
from IPython.core.getipython import get_ipython
from msgspec import convert

from workbench.viz.schema.messages import NO_VIEW, ViewState
from workbench.viz.session.saved_output import SavedOutput
from workbench.viz.session.widget import Workbench

LASTING_VIEW = ("mode", "kernel", "language")
"""What a workbench takes over from the one that it replaces: variants have other places there."""
MOST_CELLS = 64
"""Cells whose views are kept, those that ran last."""
MOST_OUTPUTS = 256
"""Output widgets of which it is known in which cell they were filled, the latest."""
MOST_VIEWS = 16
"""Views of one cell that are kept, of the workbenches that it showed first."""
SETTLES_S = 5.0
"""Seconds that a new carrier has to be shown before a page that cannot find it is believed."""


class DisplayPlace(NamedTuple):
    """Where something is displayed: a cell, the message that Python is at work for, whether that
    runs the cell, and the Output widget that captures it; "" for none."""

    cell: str
    run: str
    is_run: bool
    output: str

    @property
    def is_saved(self) -> bool:
        """Whether a notebook is saved with what is displayed."""
        return self.is_run and not self.output


@dataclass(eq=False, slots=True)
class _WidgetOutput:
    """A workbench that a place shows, with what is saved of it."""

    place: DisplayPlace
    widget: Workbench
    saved: SavedOutput


class CellOutputs:
    """The outputs of one Python session."""

    def __init__(self) -> None:
        self._outputs: list[_WidgetOutput] = []
        self._views: dict[str, list[Mapping[str, Any]]] = {}
        """Of each cell the lasting views of its last run, the cell that ran last at the end."""
        self._cells: dict[str, str] = {}
        """Of each Output widget the cell that first displayed a workbench in it."""
        self._carrier_since = 0.0
        self._shell: Any = None

    def opening_view(self, kernels: int) -> ViewState:
        """Close what the place of this display showed in earlier runs; return the view with which
        a workbench of that many kernels opens there."""
        self._listen()
        place = self._place()
        self._outputs = [e for e in self._outputs if e.widget.comm is not None]
        self._close_earlier(place)
        views = self._views.get(place.cell, [])
        number = sum(each.place == place for each in self._outputs)
        lasting = dict(views[number]) if number < len(views) else {}
        if lasting.get("kernel", 0) >= kernels:
            lasting.pop("kernel")
        return convert(lasting, ViewState) if lasting else NO_VIEW

    def prepare(self, saved: SavedOutput) -> None:
        """Have an output carry the script and style, if no other one does."""
        if self._place().is_saved and self._carrier() is None:
            self._carry(saved)

    def add(self, widget: Workbench, saved: SavedOutput) -> None:
        """Add a workbench that is displayed now."""
        self._outputs.append(_WidgetOutput(self._place(), widget, saved))
        widget.observe(lambda _: self._lacks_parts(widget), "lacks_parts")

    # what happens to outputs

    def _listen(self) -> None:
        shell = get_ipython()
        if shell is None or shell is self._shell:
            return
        self._shell = shell
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)
        if hasattr(shell.display_pub, "register_hook"):
            shell.display_pub.register_hook(self._on_message)

    def _before(self, _: object) -> None:
        self._close_earlier(self._place())
        deleted = set(_parent().get("metadata", {}).get("deletedCells", []))
        for cell in deleted:
            self._views.pop(cell, None)
        for each in self._outputs:
            if each.place.cell in deleted:
                each.saved.carries = False
                each.place = each.place._replace(is_run=False)  # it is not saved

    def _after(self, _: object) -> None:
        """Save the workbenches that code has changed, or that no page shows: in a notebook that is
        executed without a browser only what is sent while a cell runs reaches the outputs.
        """
        for each in self._outputs:
            each.widget.renew_where_unheard()
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

    def _lacks_parts(self, widget: Workbench) -> None:
        """Have the output of a page carry script and style: it did not find those of another one,
        whose output was cleared."""
        mine = next((each for each in self._outputs if each.widget is widget), None)
        if mine is None or not widget.lacks_parts or not mine.place.is_saved:
            return
        carrier = self._carrier()
        if carrier is not None:
            if time.monotonic() - self._carrier_since < SETTLES_S:
                return
            carrier.saved.carries = False
        self._carry(mine.saved)
        mine.saved.publish_again()

    def _place(self) -> DisplayPlace:
        """Return where something is displayed now."""
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
    """Drop the entries that were added first, so that `most` are left."""
    for key in [*entries][: max(0, len(entries) - most)]:
        del entries[key]


def _is_cleared(output: DisplayPlace, place: DisplayPlace) -> bool:
    """Whether clearing the output of a place takes away what is shown."""
    if place.output:
        return output.output == place.output
    return output == place


def _output_widgets() -> list[Any]:
    """Return the Output widgets; one that captures has the message that it does so for."""
    every = list(getattr(ipywidgets.widgets.widget, "_instances", {}).values())
    return [each for each in every if isinstance(each, ipywidgets.Output) and each.msg_id]


def _parent() -> Mapping[str, Any]:
    """Return the message that Python is at work for."""
    get_parent = getattr(get_ipython(), "get_parent", None)
    return (get_parent and get_parent()) or {}


CELL_OUTPUTS = CellOutputs()
"""The outputs of this Python session."""
