"""Cells that are run again: the widgets of their earlier runs go, and what was done stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ipywidgets  # type: ignore[import-untyped]
import pytest

from tests.viz.session.test_saved_output import record_in
from tests.viz.support import array
from workbench import Opt, OptOps
from workbench.base.context import Context
from workbench.viz import explore
from workbench.viz.session import saved_output, show
from workbench.viz.session import widget as cell_outputs
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.requests import jobs
from workbench.viz.session.widget import CellOutputs, PageParts, Workbench


class Notebook:
    """What Python sees of Jupyter: messages that run cells, and what it publishes."""

    def __init__(self) -> None:
        self.parent: dict[str, Any] = {}
        self.outputs: dict[str, str] = {}
        self.acts: dict[str, Callable[[Any], None]] = {}
        self.hook: Callable[[Any], Any] = lambda message: message
        self.runs = 0
        self.shell = SimpleNamespace(
            events=SimpleNamespace(register=self.acts.__setitem__),
            display_pub=SimpleNamespace(
                publish=self.publish, register_hook=lambda hook: setattr(self, "hook", hook)
            ),
            get_parent=lambda: self.parent,
        )

    def publish(self, data: Any, transient: Any, update: bool) -> None:
        assert update is (transient["display_id"] in self.outputs)
        self.outputs[transient["display_id"]] = data["text/html"]

    def run(self, cell: str, do: Callable[[], Any], deleted: tuple[str, ...] = ()) -> Any:
        """Run a cell that does something."""
        metadata = {"cellId": cell, "deletedCells": [*deleted]}
        self._hear("execute_request", metadata)
        self.acts.get("pre_run_cell", lambda _: None)(None)
        result = do()
        self.acts.get("post_run_cell", lambda _: None)(None)
        return result

    def call_back(self, do: Callable[[], Any]) -> Any:
        """Do something as when a button is pressed."""
        self._hear("comm_msg", {})
        return do()

    def clear_output(self) -> None:
        self.hook({"header": {"msg_type": "clear_output"}})

    def capture(self, output: Any) -> None:
        """Have an Output widget capture what the present message displays, or None do so."""
        for each in (self.output, output):
            if each is not None:
                each.msg_id = "" if output is None else self.parent["header"]["msg_id"]
        self.output = output

    output: Any = None

    def _hear(self, kind: str, metadata: dict[str, Any]) -> None:
        self.runs += 1
        header = {"msg_id": f"message {self.runs}", "msg_type": kind}
        self.parent = {"header": header, "metadata": metadata}

    def carriers(self) -> list[str]:
        """The keys of the outputs that carry script and style."""
        return [key for key, html in self.outputs.items() if "<iframe hidden" in html]


@pytest.fixture
def notebook(
    monkeypatch: pytest.MonkeyPatch, nothing_saved: Path, no_timer: None
) -> Iterator[Notebook]:
    notebook = Notebook()
    ipywidgets.Widget.close_all()
    SESSIONS.clear()
    for module in (cell_outputs, saved_output):
        monkeypatch.setattr(module, "get_ipython", lambda: notebook.shell)
    monkeypatch.setattr(cell_outputs, "CELL_OUTPUTS", CellOutputs())
    monkeypatch.setattr(show, "is_live", lambda: True)
    with Context(LIVE=1):
        yield notebook
    jobs().close()
    ipywidgets.Widget.close_all()


def widgets(kind: type = Workbench) -> list[Any]:
    every = ipywidgets.widgets.widget._instances.values()
    return [each for each in every if isinstance(each, kind)]


def shown(n: int = 4) -> Any:
    """An exploration that was displayed just now."""
    ex = explore(array(n, 4) + 1.0)
    assert show.WIDGET in ex._repr_mimebundle_()
    return ex


def test_a_cell_that_is_run_again_replaces_its_widgets(notebook: Notebook) -> None:
    notebook.run("other", shown)
    for times in range(24):
        count = 1 + times % 3  # a loop that displays several
        notebook.run("again", lambda n=count: [shown(4 + i) for i in range(n)])
        assert len(widgets()) == 1 + count
        assert len(widgets(PageParts)) == 1 and len(SESSIONS) == 1 + count
        assert len(widgets(ipywidgets.Layout)) == 2 + count
    notebook.run("again", lambda: None)
    assert len(widgets()) == 1, "it shows none any more"
    notebook.run("other", shown)
    assert len(widgets()) == 1


def test_the_new_widget_opens_as_the_old_one_was_left(notebook: Notebook) -> None:
    notebook.run("cell", lambda: [shown(4), shown(5)])
    first, second = widgets()
    first.view = {"mode": "tune", "kernel": 7, "help": True}
    second.view = {"mode": "rewrites", "kernel": 0, "language": "asm", "step": 3}
    notebook.run("cell", lambda: [shown(4), shown(5), shown(6)])
    assert [each.view for each in widgets()] == [
        {"mode": "tune"},
        {"mode": "rewrites", "kernel": 0, "language": "asm"},
        {},
    ]


def test_what_is_kept_of_earlier_runs_is_bounded(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the cells that ran last, of the first workbenches of each: views, and what shows them."""
    outputs = cell_outputs.CELL_OUTPUTS
    for name, most in (("MOST_CELLS", 3), ("MOST_VIEWS", 2), ("MOST_OUTPUTS", 4)):
        monkeypatch.setattr(cell_outputs, name, most)

    def show_some() -> None:
        for _ in range(3):
            shown()

    for number in range(6):
        for _ in range(2):
            notebook.run(f"cell {number}", show_some)
    assert list(outputs._views) == ["cell 3", "cell 4", "cell 5"]
    assert {len(views) for views in outputs._views.values()} == {2}
    notebook.run("cell 3", lambda: None)
    assert list(outputs._views) == ["cell 4", "cell 5", "cell 3"]
    notebook.run("other", lambda: None, deleted=("cell 4",))
    assert list(outputs._views) == ["cell 5", "cell 3"]

    def captured() -> None:
        notebook.capture(ipywidgets.Output())
        shown()
        notebook.capture(None)

    for _ in range(8):
        notebook.run("captures", captured)
    assert len(outputs._cells) == 4


def test_what_was_done_is_carried_to_the_new_widget(notebook: Notebook) -> None:
    ex = notebook.run("cell", shown)
    kernel = ex.kernels[0]
    (axis,) = kernel.axes[:1]
    made = ex.add(kernel.apply(Opt(OptOps.UPCAST, axis.name, 4)), "mine")
    ex.display.session.handle({"do": "note", "variant": made.place, "text": "good"})
    again = notebook.run("cell", shown)
    session = again.display.session
    for _ in session._prefetch(measures=False):
        pass
    (row,) = [row for row in session.record.variants if row.name == "mine"]
    assert row.note == "good"


def test_an_exploration_that_is_shown_again_goes_on(notebook: Notebook) -> None:
    ex = notebook.run("cell", shown)
    session = ex.display.session
    notebook.run("cell", ex._repr_mimebundle_)
    assert ex.display.session is session and len(widgets()) == 1
    session.handle({"do": "note", "variant": 0, "text": "later"})
    session.renew()
    html = notebook.outputs[widgets()[0].still]
    assert record_in(html)["variants"][0]["note"] == "later"


def test_what_an_output_widget_shows_goes_when_it_is_cleared(notebook: Notebook) -> None:
    out = ipywidgets.Output()

    def into(output: Any, clears: bool) -> None:
        notebook.capture(output)
        if clears:
            notebook.clear_output()
        shown()
        notebook.capture(None)

    notebook.run("cell", lambda: [shown(), into(out, False)])
    assert len(widgets()) == 2
    for _ in range(5):
        notebook.call_back(lambda: into(out, True))
        assert len(widgets()) == 2, "what the cell itself shows stays"
    notebook.call_back(lambda: into(out, False))
    assert len(widgets()) == 3, "that is shown below the other"
    notebook.run("cell", lambda: into(ipywidgets.Output(), False))
    assert len(widgets()) == 1


def test_clearing_in_a_loop(notebook: Notebook) -> None:
    def loop() -> None:
        for _ in range(5):
            notebook.clear_output()
            shown()

    notebook.run("cell", loop)
    assert len(widgets()) == 1


def test_one_output_carries_script_and_style(notebook: Notebook) -> None:
    notebook.run("first", shown)
    notebook.run("second", lambda: [shown(), shown()])
    first, second, third = (each.still for each in widgets())
    assert notebook.carriers() == [first]
    del notebook.outputs[first]
    notebook.run("first", shown)
    (fourth,) = (w.still for w in widgets() if w.still not in (second, third))
    assert notebook.carriers() == [fourth]
    del notebook.outputs[fourth]
    notebook.run("first", lambda: None)
    assert notebook.carriers() == [third], "another output takes over"
    notebook.run("first", shown)
    assert notebook.carriers() == [third]
    del notebook.outputs[second], notebook.outputs[third]
    notebook.run("another", shown, deleted=("second",))
    assert len(notebook.carriers()) == 1


def test_a_page_that_finds_no_carrier_becomes_one(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("first", shown)
    notebook.run("second", shown)
    first, second = widgets()
    second.lacks_parts = True
    assert notebook.carriers() == [first.still], "it may not be drawn yet"
    monkeypatch.setattr(cell_outputs, "CARRIER_LOADS_S", 0.0)
    second.lacks_parts = False
    del notebook.outputs[first.still]  # all outputs were cleared, and this run
    second.lacks_parts = True
    assert notebook.carriers() == [second.still]


def test_an_output_that_is_captured_carries_nothing(notebook: Notebook) -> None:
    def captured() -> None:
        notebook.capture(ipywidgets.Output())
        shown()
        notebook.capture(None)

    notebook.run("cell", captured)
    assert notebook.carriers() == []
    notebook.run("other", shown)
    assert len(notebook.carriers()) == 1


def test_what_a_cell_adds_is_saved_when_the_cell_ends(notebook: Notebook) -> None:
    ex = notebook.run("first", shown)
    kernel = ex.kernels[0]
    (key,) = notebook.outputs
    opt = Opt(OptOps.UPCAST, kernel.axes[0].name, 4)

    def add() -> None:
        ex.add(kernel.apply(opt), "mine 77")

    assert "mine 77" not in notebook.outputs[key]
    notebook.run("second", add)
    assert "mine 77" in notebook.outputs[key]
    names = [row["name"] for row in record_in(notebook.outputs[key])["variants"]]
    assert "mine 77" in names
