"""No scene of the page has a serious finding of axe-core, or a short text that nothing explains: the
scenes that a reader comes to beyond those of access/ and words/. Each is visited in one theme and at one
width, and in a long run a few at every width in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import LONG
from tests.tools.compiler import needs_c
from tests.viz.browser.browser import drawn, leave, opened, session_page
from tests.viz.browser.page.support import Record
from tests.viz.browser.scans import scenes
from tests.viz.browser.scans.acts import press
from tests.viz.browser.scans.records import asked, many_kernels, timed, unpriced
from tests.viz.browser.scans.scan import THEMES, barriers, unexplained
from tests.viz.record.support import exported
from tests.viz.support import softmax

EXPORTED = {"rules": scenes.RULES, "code": scenes.CODE, "export": scenes.EXPORT}
LIVE = {"live": scenes.LIVE, "editor": scenes.EDITOR, "silent": scenes.SILENT}
INJECTED = """() => {
  const label = Object.assign(document.createElement("p"), { textContent: "qzx" });
  label.style.cssText = "position: fixed; top: 0; left: 0; color: #bbb; background: #fff; z-index: 9";
  document.querySelector(".wb").append(label);
}"""
"""Puts a word there that is faint, and that nothing explains."""
SPOIL = """(style) => {
  const lines = document.createElement("pre");
  lines.style.cssText = "position: fixed; inset: 0 auto auto 0; color: #000; background: #fff; z-index: 9";
  const line = (word, style) => `<div class="line" style="${style}"><span>${word}</span></div>`;
  lines.innerHTML = line("good", "") + line("good", "") + line("faint", style) + line("faint", style);
  document.querySelector(".wb").append(lines);
}"""
FAINT_LINES = ["color: #bbb", "background: #222", "opacity: 0.3"]
"""Puts four lines of one class there, of which the last two are faint in the same way."""


@pytest.fixture(scope="module")
def record() -> Record:
    return timed(softmax())


@pytest.fixture
def findings(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return what both scans find in the scenes of some HTML, by scene."""
    pages = []

    def scan(
        html: str, visited: scenes.Scenes, width: int = 953, themes: Sequence[str] = ("light",)
    ) -> dict[str, dict[str, list[str]]]:
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page = opened(browser, path, width=width)
        pages.append(page)
        by_scene = {}
        for name, acts in visited.items():
            for act in acts:
                act(page)
            drawn(page)
            by_scene[name] = barriers(page, themes)
            if words := unexplained(page):
                by_scene[name]["words"] = words
        return {name: texts for name, texts in by_scene.items() if texts}

    yield scan
    for page in pages:
        leave(browser, page)


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_page(findings: Any, record: Record, name: str) -> None:
    theme = "dark" if name == "code" else "light"
    assert findings(exported(record), EXPORTED[name], themes=[theme]) == {}


@needs_c
@pytest.mark.skipif(not LONG, reason="in the long profile")
@pytest.mark.parametrize("width", [800, 1400])
def test_at_other_widths(findings: Any, record: Record, width: int) -> None:
    assert findings(exported(record), scenes.RULES, width, THEMES) == {}
    assert findings(session_page(record), scenes.EDITOR, width, THEMES) == {}


def test_heat_where_no_tool_knows_what_instructions_cost(findings: Any, record: Record) -> None:
    assert findings(exported(unpriced(record)), scenes.HEAT, themes=THEMES) == {}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_c if n == "editor" else ()) for n in LIVE]
)
def test_a_page_of_a_session(findings: Any, record: Record, name: str) -> None:
    assert findings(session_page(record), LIVE[name], themes=["dark"]) == {}


def test_many_kernels(findings: Any) -> None:
    assert findings(exported(many_kernels()), scenes.MANY) == {}


@pytest.mark.parametrize("question", scenes.QUESTIONS)
def test_a_question(findings: Any, question: str) -> None:
    assert findings(exported(asked(question)), scenes.QUESTIONS[question]) == {}


def test_what_is_wrong_is_reported(findings: Any, record: Record) -> None:
    """Scans of nothing would find nothing; after what was wrong is gone, it is no more reported."""
    spoilt = (press("5"), lambda page: page.evaluate(INJECTED))
    mended = (lambda page: page.evaluate("document.querySelector('.wb > p').remove()"),)
    html = exported(record)
    reported = findings(html, {"spoilt": spoilt, "mended": mended}, themes=THEMES)
    assert reported.keys() == {"spoilt"}
    assert all("color-contrast" in str(reported["spoilt"][t]) for t in ("dark", "light"))
    assert [text.split(" in ")[0] for text in reported["spoilt"]["words"]] == ["qzx"]


def test_contrast_is_of_each_look(browser: Any, record: Record, tmp_path: Path) -> None:
    """A text unlike its neighbours is reported, whatever makes it faint: its own colour, the box
    that it is in, opacity; of neighbours that are alike, one."""
    path = tmp_path / "page.html"
    path.write_text(exported(record), encoding="utf-8")
    page = opened(browser, path)
    press("1")(page)
    for style in FAINT_LINES:
        page.evaluate(SPOIL, style)
        findings = barriers(page, ["light"])
        assert len(findings["light"]) == 1 and "faint" in findings["light"][0], style
        page.evaluate("document.querySelector('.wb > pre').remove()")
        assert barriers(page, ["light"]) == {}
    leave(browser, page)
