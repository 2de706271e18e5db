"""What is saved in the place of a widget: a picture, and the page in a frame of its own."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html import escape, unescape
from typing import Any

import pytest
from msgspec.structs import replace

from tests.viz.record.support import plain
from tests.viz.session.support import unpacked, whole
from tests.viz.support import matmul
from workbench.base.context import Context
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import Samples
from workbench.viz.page import document as saved_page
from workbench.viz.page.document import css, packed
from workbench.viz.record.record import build
from workbench.viz.record.reduction import reduced
from workbench.viz.schema.messages import NO_VIEW, ViewState
from workbench.viz.schema.variant import CheckRow
from workbench.viz.session import saved_output, show
from workbench.viz.session.constants import constants
from workbench.viz.session.opt_text import timing_row, timing_text
from workbench.viz.session.saved_output import HIGH, LOW, SavedOutput


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


def frame(html: str) -> str:
    """The document of the frame that has the page."""
    page, *_ = re.findall(r'title="workbench"\s+srcdoc="([^"]*)"', html)
    return unescape(page)


def record_in(html: str) -> Any:
    """The record of a saved output, with the constant parts, which stand with the script."""
    return unpacked(frame(html).partition('id="record">')[2].partition("<")[0])


def test_the_page_in_it_has_the_record_alone() -> None:
    record = build(matmul(), "first")
    output = SavedOutput("<p>picture</p>", '"a" <b>')
    html = output.html(record)
    assert html.count("<p>picture</p>") == 1
    page = frame(html)
    assert page.startswith("<!doctype html>") and page.count(packed(record, constants())) == 1
    assert "<title>&quot;a&quot; &lt;b&gt; - workbench</title>" in page
    assert len(page) - len(packed(record, constants())) < 4000, "script and style stand elsewhere"
    for sandbox in re.findall(r'sandbox="([^"]*)"', html):
        assert "allow-same-origin" not in sandbox, "it cannot reach the notebook"
    themes = {
        scheme: signs
        for signs, scheme in re.findall(
            rf':is\((.*)\) \[data-still="{output.key}"\] iframe{{color-scheme:(\w+)}}', html
        )
    }
    for scheme, sign in (
        ("dark", '[data-jp-theme-light="false"]'), ("light", ".vscode-light"),
        ("dark", '[theme="dark"]'), ("dark", ".dark"),
    ):  # fmt: skip
        assert sign in themes[scheme].split(", ")


def test_the_picture_is_as_high_as_the_page_that_it_waits_for() -> None:
    record = build(matmul(), "first")
    for view, height in ((NO_VIEW, HIGH), (ViewState(only="loops"), LOW)):
        assert f"min-height: {height};" in SavedOutput("", "", view).html(record)
        assert f"{height})" in css()


def test_one_output_carries_script_and_style() -> None:
    output = SavedOutput("", "")
    record = build(matmul(), "first")
    assert "<iframe hidden" not in output.html(record)
    output.carries = True
    (carrier,) = re.findall(r'<iframe hidden[^>]*srcdoc="([^"]*)"', output.html(record))
    assert unescape(carrier) == saved_page.carrier(constants())
    name = saved_page.name(constants())
    assert name in unescape(carrier) and name in frame(output.html(record))


def test_what_all_records_have_stands_once() -> None:
    """Not so what differs in one: a registered rule, a device that is there since."""
    record = build(matmul())
    assert record_in(SavedOutput("", "").html(record)) == plain(record)
    own = json.loads(zlib.decompress(base64.b64decode(packed(record, constants()))))
    assert not own.keys() & constants().fields.keys() and "rules" not in own["panels"]
    assert len(packed(record, constants())) < 0.65 * len(packed(record))
    record.glossary = record.glossary[1:]
    assert record_in(SavedOutput("", "").html(record)) == plain(record)


def worked_on() -> tuple[Any, Any]:
    """A session of several variants, timed, checked and noted, with code and passes of each."""
    ex = matmul()
    session = show.session_of(ex)
    session.complete()
    for opt in ('UPCAST("g1", 4)', 'UPCAST("g0", 3)', 'UNROLL("r0", 2)'):
        reply = session.handle({"id": 1, "do": "apply", "variant": 0, "opt": opt})
        assert reply.ok
        place = reply.result.variant
        session.recorder.complete(place)
        session.handle({"do": "note", "variant": place, "text": f"mine: {opt}"})
    for place, kernel in enumerate(session.kernels):
        row = timing_row(Samples((1e-3 + place * 1e-4,) * 5), kernel.estimates, session.device)
        session.set(place, "timing", row)
    session.set(2, "check", CheckRow(False, "WRONG: 3 of 48 elements"))
    return ex, session


WORK = ("name", "opts", "opt_rows", "timing", "elsewhere", "check", "note", "error")


def test_what_somebody_did_is_saved_however_small_the_budget(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = worked_on()
    record = session.record
    whole = plain(record)
    sizes, lists = [], []
    for most in (10**9, 34_000, 22_000, 10_000, 0):
        monkeypatch.setattr(saved_output, "MOST_BYTES", most)
        html = SavedOutput("", "").html(record)
        saved = record_in(html)
        sizes.append(len(html))
        lists.append(saved.get("left_out", ""))
        for row, was in zip(saved["variants"], whole["variants"], strict=True):
            assert {k: row[k] for k in WORK} == {k: was[k] for k in WORK}
        for row in record.variants:  # without script and frames, as GitHub shows it
            still = html.replace(f'"{escape(frame(html))}"', "")
            assert escape(row.note) in still and escape(", ".join(row.opts)) in still
            assert row.timing and escape(timing_text(row.timing, None)) in still
        assert session.record.variants[2].check.text in still
        line = f"Left out of the saved copy: {lists[-1]}."
        assert (line in unescape(still)) is bool(lists[-1])
    assert plain(record) == whole, "what the session has is as it was"
    assert sizes == sorted(sizes, reverse=True) and len(set(lists)) > 3
    assert lists[0] == "" and "code of 4 variants" in lists[1]
    assert lists[-1].endswith("the rewrites of scheduling, the picture of the plan")


def test_each_device_has_its_own_times_and_answers(publisher: Publisher) -> None:
    """Those of the devices that were chosen before stay, and a prediction is one."""
    _, session = worked_on()
    home, wrong = session.device, CheckRow(False, "WRONG: 3 of 48 elements")
    session.checks[2, home] = wrong
    timing = session.timings[2, home] = session.row(2).timing

    def cells() -> str:
        html = SavedOutput("", "").html(session.record, session)
        note = escape(session.row(2).note)
        return next(row for row in html.split("<tr>") if note in row)

    assert session.handle({"id": 1, "do": "device", "name": "CUDA:H100"}).ok
    assert f"{home}: {wrong.text}" in cells() and "not checked" not in cells()
    session.recorder.add_cost(2)
    cost = session.row(2).cost
    assert cost is not None and timing is not None
    predicted = f"predicted {seconds_text(cost.predicted_s)}, not timed"
    measured = escape(timing_text(timing, session.recorder.speeds))
    assert f"{predicted}<br>{home}: {measured}" in cells()
    assert session.handle({"id": 1, "do": "device", "name": home}).ok
    assert f"CUDA:H100: {predicted}" in cells() and wrong.text in cells()
    assert f"{home}: " not in cells()


def test_what_was_not_there_is_not_named_as_left_out() -> None:
    record = build(matmul(), "first")
    for plan, passes, left in (
        (record.plan, record.passes, {"the rewrites of scheduling", "the picture of the plan"}),
        (record.plan, [], {"the picture of the plan"}),
        (replace(record.plan, nodes=[], edges=[]), [], set()),
    ):
        small = replace(record, plan=plan, passes=passes)
        words = reduced(small, (), 0, constants()).left_out.split(", ")
        assert {w for w in words if w.startswith(("the rewrites", "the picture"))} == left


def test_what_is_looked_at_stays_longest(publisher: Publisher) -> None:
    """Limits are tried one after another, for machines have times and texts of other lengths."""
    _, session = worked_on()
    shown = 2
    kept = set()
    for most in range(60_000, 10_000, -1_000):
        small = unpacked(reduced(session.record, {shown}, most, constants()).record)
        for part in ("passes", "code"):
            rows = [place for place, row in enumerate(small["variants"]) if row[part]]
            if part == "passes":
                assert shown in rows or not rows, most
            assert shown in rows or not any(place > shown for place in rows), (most, part)
            kept.add((part, tuple(rows)))
    assert ("passes", (shown,)) in kept, "it alone has its passes"
    assert any(part == "code" and max(rows, default=-1) == shown for part, rows in kept)


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
    session.renew()
    data, transient, update = publisher.outputs[-1]
    assert update and transient["display_id"] == key
    assert record_in(data["text/html"]) == whole(session)


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
