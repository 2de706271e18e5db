"""The widget as Jupyter sees it, without a browser; and what is shown where there is none."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import finish_jobs, unpacked
from tests.viz.support import array, matmul
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.viz import explore
from workbench.viz.page import document as page
from workbench.viz.session import show
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.requests import jobs
from workbench.viz.session.widget import page_parts


@pytest.fixture(autouse=True)
def apart(nothing_saved: Path, no_timer: None) -> Iterator[None]:
    SESSIONS.clear()
    with Context(LIVE=1):
        yield
    jobs().close()


class Shown:
    """A widget and what it sent."""

    def __init__(self, ex: Any, monkeypatch: pytest.MonkeyPatch):
        self.widget = ex.to_widget()
        self.sent: list[Any] = []
        monkeypatch.setattr(self.widget, "send", lambda m, b=None: self.sent.append(plain(m)))

    def ask(self, **request: Any) -> Any:
        """Send a request as the page does; return the reply, which may come later."""
        self.widget._handle_custom_msg({"id": 3, **request}, [])
        finish_jobs(jobs())
        return next(m for m in reversed(self.sent) if m.get("id") == 3)


def test_the_widget_carries_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    view = Shown(ex, monkeypatch)
    state = view.widget.get_state()
    assert state["live"] is True and state["view"] == {}
    assert unpacked(state["record"])["headline"] == ex.headline
    # sent, and saved, with each workbench: 3,315 characters, of which 1,257 draw the page in an
    # output that JupyterLab has given up, and 337 say whether a cell runs
    assert "export default" in state["_esm"] and len(state["_esm"]) < 3500
    assert state["parts"] == f"IPY_MODEL_{page_parts().model_id}"
    parts = page_parts().get_state()
    assert parts["script"] == page.esm() and ".wb" in parts["_css"]


def test_script_and_style_travel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ex, x = matmul(), array(4, 4)
    widgets = [ex.to_widget(), ex.to_widget(), explore(x + x).to_widget()]
    assert len({widget.parts for widget in widgets}) == 1
    for widget in widgets:
        others = {k: v for k, v in widget.get_state().items() if k != "record"}
        assert len(str(others)) < 5000
    widgets[0].parts.close()  # as Widget.close_all() does
    assert ex.to_widget().parts.comm is not None


def test_in_marimo_each_widget_carries_script_and_style(monkeypatch: pytest.MonkeyPatch) -> None:
    """marimo closes a shared widget when the cell that made it runs again."""
    notebook = SimpleNamespace(running_in_notebook=lambda: True)
    monkeypatch.setitem(sys.modules, "marimo", notebook)
    ex = matmul()
    bundle = ex._repr_mimebundle_()
    widget = ex.to_widget()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] != widget.model_id
    state = widget.get_state()
    assert state["parts"] is None and state["still"] == ""
    carried, parts = state["carried"], page_parts().get_state()
    assert carried == {name: parts[name] for name in ("script", "shell", "_css", "constants")}


def test_requests_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    view = Shown(ex, monkeypatch)
    reply = view.ask(do="apply", variant=0, opt='UPCAST("g1", 4)')
    number = reply["result"]["variant"]
    assert reply["patch"]["append"]["variants"][0]["opts"] == ['UPCAST("g1", 4)']
    reply = view.ask(do="measure", variants=[0, number])
    assert reply["ok"] and reply["result"] == {"variants": [0, number]}
    assert any(m.get("status", {}).get("task") == "measure" for m in view.sent)
    assert not view.ask(do="dance")["ok"]
    record = unpacked(view.widget.record)
    assert record["variants"][number]["timing"], "it is renewed for pages that open later"
    view.widget._handle_custom_msg(["nonsense"], [])
    assert view.sent[-1]["error"]


def test_two_widgets_of_one_exploration_show_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    first, second = Shown(ex, monkeypatch), Shown(ex, monkeypatch)
    first.ask(do="note", variant=0, text="seen")
    patches = [m["patch"] for m in second.sent if m.get("patch")]
    assert [["variants", 0, "note"], "seen"] in [s for patch in patches for s in patch["set"]]
    assert not any("id" in m for m in second.sent), "the reply goes to who asked"


def test_select_moves_the_view() -> None:
    ex = matmul()
    widget = ex.to_widget()
    ex.select(mode="plan", kernel=0)
    assert widget.view == {"mode": "plan", "kernel": 0}
    assert ex.to_widget().view == widget.view, "and that of a later one"


def test_one_pane() -> None:
    x = array(4, 4)
    widget = explore(x + x, show="rewrites").to_widget()
    assert widget.view == {"only": "rewrites", "mode": "rewrites"}
    with pytest.raises(WorkbenchError, match="there are accesses, code, gpu, loops, memory, plan"):
        explore(x + x, show="everything")


def test_a_dropped_exploration_frees_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    view = Shown(ex, monkeypatch)
    session = weakref.ref(ex.display.session)
    finish_jobs(jobs())
    SESSIONS.clear()  # as when others are shown
    del ex
    gc.collect()
    assert session() is None
    assert view.ask(do="note", variant=0, text="x")["error"]["try"] == "run the cell again"


def test_a_notebook_shows_the_widget_and_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    assert set(ex._repr_mimebundle_()) == {"text/html", "text/plain"}, "nobody listens"
    monkeypatch.setattr(show, "is_live", lambda: True)
    bundle = ex._repr_mimebundle_()
    assert set(bundle) == {show.WIDGET, "text/html", "text/plain"}
    assert bundle[show.WIDGET]["model_id"]
    monkeypatch.setattr(show.LivePage, "to_widget", lambda *_: 1 / 0)
    assert set(ex._repr_mimebundle_()) == {"text/html", "text/plain"}, "the picture stays"


def test_what_has_no_kernel_is_shown_as_others_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(show, "is_live", lambda: True)
    bundle = explore(array(3, 3).realize())._repr_mimebundle_()
    assert set(bundle) == {show.WIDGET, "text/html", "text/plain"}
    assert not caplog.records, "no failure is told"


def test_one_file(tmp_path: Path) -> None:
    ex = matmul()
    path = ex.to_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "https://" not in text
    with Context(LIVE=1):
        session = show.session_of(ex)
    session.handle({"do": "note", "variant": 0, "text": "kept"})
    html = ex.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    packed = html.partition('id="record">')[2].partition("<")[0]
    record = unpacked(packed)
    assert record["variants"][0]["note"] == "kept" and len(record["variants"]) == 2


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    ex, folder = matmul(), tmp_path / "pages"
    folder.mkdir()
    for path in (folder, folder / "missing" / "page.html", None):
        with pytest.raises(WorkbenchError, match="cannot write") as caught:
            ex.to_html(path)  # type: ignore[arg-type]
        assert caught.value.because and caught.value.hint
    assert list(folder.iterdir()) == []


def test_a_baseline_is_a_function() -> None:
    with pytest.raises(WorkbenchError, match="cannot be called"):
        matmul().baseline("numpy", 3)  # type: ignore[arg-type]


def test_looking_in_a_terminal_loads_no_widgets() -> None:
    script = (
        "import sys; from workbench import Tensor, explore; ex = explore(Tensor([1.0]) + 1);"
        "str(ex); ex._repr_mimebundle_(); print(sorted({'anywidget', 'ipywidgets', 'IPython'}"
        " & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_widget_hears_of_a_guess_and_python_of_one_in_the_page() -> None:
    a = array(8, 8)
    ex = explore(a + 1.0, ask="kernels")
    widget = ex.to_widget()
    assert "guess" not in widget.view and ex.waits
    ex.guess(2)
    assert widget.view["guess"] == "2" and not ex.waits
    ex.display.guess = None
    widget.view = {"mode": "tune", "guess": "4"}
    assert ex.display.guess == "4" and "you said 4, it is 1" in str(ex)
