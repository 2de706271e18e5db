"""What is saved in the place of a widget: a picture, and the page in a frame of its own."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from tests.viz.support import matmul
from workbench.base.context import Context
from workbench.viz.page.document import packed
from workbench.viz.record.record import build
from workbench.viz.session import saved_output, show
from workbench.viz.session.saved_output import SavedOutput


class Publisher:
    """What Jupyter would show."""

    def __init__(self) -> None:
        self.outputs: list[tuple[Any, Any, bool]] = []

    def publish(self, data: Any, transient: Any, update: bool) -> None:
        self.outputs.append((data, transient, update))


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch, no_timer: None) -> Publisher:
    """Everything is as in a live notebook."""
    publisher = Publisher()
    shell = type("Shell", (), {"display_pub": publisher})
    monkeypatch.setattr(saved_output, "get_ipython", lambda: shell)
    monkeypatch.setattr(show, "is_live", lambda: True)
    return publisher


def test_the_page_in_it_is_the_exported_one() -> None:
    record = packed(build(matmul(), "first"))
    output = SavedOutput("<p>picture</p>", '"a" <b>')
    html = output.html(record)
    assert html.count("<p>picture</p>") == 1
    (page,) = re.findall(r'srcdoc="([^"]*)"', html)
    page = unescape(page)
    assert page.startswith("<!doctype html>") and page.count(record) == 1
    assert "<title>&quot;a&quot; &lt;b&gt; - workbench</title>" in page
    (sandbox,) = re.findall(r'sandbox="([^"]*)"', html)
    assert "allow-same-origin" not in sandbox, "it cannot reach the notebook"
    for is_light, scheme in (("true", "light"), ("false", "dark")):
        theme = f'[data-jp-theme-light="{is_light}"] [data-still="{output.key}"] iframe'
        assert f"{theme} {{ color-scheme: {scheme}; }}" in html


def test_a_large_page_is_not_saved_in_a_cell() -> None:
    output = SavedOutput("<p>picture</p>", "")
    html = output.html("x" * saved_output.MOST_BYTES)
    assert "<iframe" not in html and "<p>picture</p>" in html


def test_two_outputs_of_which_one_stays(publisher: Publisher) -> None:
    ex = matmul()
    with Context(LIVE=1):
        bundle = ex._repr_mimebundle_()
    assert bundle is not None and bundle[show.WIDGET]["model_id"]
    assert bundle["text/html"] == "" and bundle["text/plain"] == str(ex)
    ((data, transient, update),) = publisher.outputs
    key = transient["display_id"]
    assert set(data) == {"text/html"} and not update
    assert f'data-still="{key}"' in data["text/html"] and "<img" in data["text/html"]
    session = ex.display.session
    session.handle({"id": 1, "do": "note", "variant": 0, "text": "mine"})
    session._renew()
    data, transient, update = publisher.outputs[-1]
    assert update and transient["display_id"] == key
    assert packed(session.record) in unescape(data["text/html"])


def test_where_no_widget_can_be_there_is_the_picture(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no widgets here")

    monkeypatch.setattr(show.LivePage, "to_widget", fails)
    with Context(LIVE=1):
        bundle = matmul()._repr_mimebundle_()
    assert bundle is not None and set(bundle) == {"text/html", "text/plain"}
    assert "<img" in bundle["text/html"] and publisher.outputs == []
