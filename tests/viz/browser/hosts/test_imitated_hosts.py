"""The widget in pages that imitate VS Code and Colab, which cannot be installed from pip: their DOM, and
their signs and variables of a theme, as their documents describe them.

Both show outputs in a frame that is as high as its contents, and have no class of JupyterLab's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.viz.browser.browser import drawn, new_page
from tests.viz.record.support import plain
from workbench import Context, Tensor, explore
from workbench.viz.schema.messages import NO_VIEW
from workbench.viz.session.saved_output import SavedOutput
from workbench.viz.session.show import session_of
from workbench.viz.session.widget import Workbench


class Host(NamedTuple):
    """A host in a theme: attributes of <html> and <body>, its style, the DOM around an output, with a
    place for its contents, and the ground and the text that the page should have."""

    html: str
    body: str
    style: str
    output: str
    ground: str
    text: str


VSCODE = """body { margin: 0; padding: 0 20px; color: var(--vscode-editor-foreground); background: transparent; }
img, video { max-width: 100%; max-height: 100%; }
code, kbd { color: #d7ba7d; background-color: #80808033; padding: 1px 3px; border-radius: 4px; }
table { border: 1px solid #8888; } th, td { padding: 8px; text-align: right; background: #8884; }
"""
VSCODE_OUTPUT = (
    '<div id="container"><div class="cell_container"><div class="output_container">'
    '<div class="output" output-mime-type="{mime}">{output}</div></div></div></div>'
)
COLAB_OUTPUT = (
    '<div class="output-id-1"><div class="output_subarea output_html">{output}</div></div>'
)
SET = ":root {{ --vscode-editor-background: {}; --vscode-editor-foreground: {}; }}"
HOSTS = {
    "vscode-dark": Host(
        "", 'class="vscode-dark" data-vscode-theme-kind="vscode-dark"',
        SET.format("#1f1f1f", "#cccccc") + VSCODE, VSCODE_OUTPUT,
        "rgb(31, 31, 31)", "rgb(204, 204, 204)",
    ),
    "vscode-light": Host(
        "", 'class="vscode-light" data-vscode-theme-kind="vscode-light"',
        SET.format("#fdfdfd", "#3b3b3b") + VSCODE, VSCODE_OUTPUT,
        "rgb(253, 253, 253)", "rgb(59, 59, 59)",
    ),
    "vscode-high-contrast-light": Host(
        "", 'class="vscode-high-contrast-light vscode-high-contrast"'
        ' data-vscode-theme-kind="vscode-high-contrast-light"',
        SET.format("#ffffff", "#292929") + VSCODE, VSCODE_OUTPUT,
        "rgb(255, 255, 255)", "rgb(41, 41, 41)",
    ),
    "colab-dark": Host(
        'theme="dark"', "",
        ":root { --colab-primary-surface-color: #383838; --colab-primary-text-color: #e3e3e3; }",
        COLAB_OUTPUT, "rgb(56, 56, 56)", "rgb(227, 227, 227)",
    ),
    "colab-light": Host(
        'theme="light"', "", "body { margin: 0; }", COLAB_OUTPUT,
        "rgb(255, 255, 255)", "rgb(31, 35, 40)",
    ),
}  # fmt: skip
"""Each beside a system of the other theme: its own sign has to decide."""

_FRAME = """<!doctype html><html lang="en" {html}><head><meta charset="utf-8"><title>output</title>
<style>{style}</style></head><body {body}>
<input id="outside" aria-label="outside">{widget}{still}
<script type="module">
window.google = {google};
window.leaked = [];
addEventListener("keydown", ({{ key }}) => leaked.push(key));
const states = {states};
const models = {{}};
const modelOf = (state, heard = {{}}) => {{
  const hear = (message) => heard["msg:custom"]?.forEach((act) => act(message));
  return {{
    get: (name) => state[name], set: (name, value) => {{ state[name] = value; }},
    save_changes() {{}}, on: (name, act) => (heard[name] ??= []).push(act), off() {{}},
    send: (message) => {{
      const reply = {{ id: message.id, ok: true, error: null, result: null, patch: null }};
      if (message.do === "ping" && !window.mute) queueMicrotask(() => hear(reply));
    }},
    widget_manager: {{ get_model: async (id) => {{
      if (!states[id]) throw new Error("model not found");
      const style = document.createElement("style");
      style.textContent = states[id]._css; // as anywidget does
      document.head.append(style);
      return models[id] ??= modelOf(states[id]);
    }} }},
  }};
}};
const script = new Blob([states.widget._esm], {{ type: "text/javascript" }});
const {{ default: widget }} = await import(URL.createObjectURL(script));
const el = document.getElementById("widget");
const heard = {{}};
window.tell = (event) => heard[event]?.forEach((act) => act());
const close = await widget.render({{ model: modelOf(states.widget, heard), el }});
window.leave = () => {{ close(); el.replaceChildren(); }};
</script></body></html>"""
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>notebook</title></head>
<body style="margin: 0; background: {ground}"><iframe id="frame" title="outputs" srcdoc="{frame}"
style="display: block; width: 100%; height: 1400px; border: 0"></iframe>
<script>
const frame = document.getElementById("frame");
const fit = () => {{ frame.style.height = `${{frame.contentDocument.body.scrollHeight + 40}}px`; }};
frame.onload = () => new ResizeObserver(fit).observe(frame.contentDocument.body);
</script></body></html>"""


@pytest.fixture(scope="module")
def states() -> Iterator[tuple[dict[str, Any], str]]:
    """The states of the widget and of its parts by their ids, and the saved output beside it."""
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))
    ex = explore((x @ x).relu())
    with Context(LIVE=1):
        session = session_of(ex)
        saved = SavedOutput("<p>the still picture</p>", "matmul", NO_VIEW)
        widget = Workbench(session, NO_VIEW, saved)
        parts = plain(widget.parts.get_state())
        own = plain({name: value for name, value in widget.get_state().items() if name != "layout"})
        yield {"widget": own, widget.parts.model_id: parts}, saved.html(session.record)
        widget.close()


def host_page(name: str, states: dict[str, Any], still: str) -> str:
    """Return a page of a host with the widget, and the saved output below it."""
    host = HOSTS[name]
    output = host.output.replace("{mime}", "text/html")
    frame = _FRAME.format(
        html=host.html, body=host.body, style=host.style,
        widget=output.replace("{output}", '<div id="widget"></div>'),
        still=output.replace("{output}", still),
        google="{ colab: {} }" if "colab" in name else "undefined",
        states=json.dumps(states).replace("</", "<\\/"),
    )  # fmt: skip
    return _PAGE.format(ground=host.ground, frame=escape(frame))


def shown(browser: Any, folder: Path, name: str, states: tuple[dict[str, Any], str]) -> Any:
    """Return a page of a host, whose system has the other theme."""
    path = folder / f"{name}.html"
    path.write_text(host_page(name, *states), encoding="utf-8")
    scheme = "light" if "dark" in name else "dark"
    page = new_page(browser, viewport={"width": 1400, "height": 900}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.frame_locator("#frame").locator(".wb-header").wait_for()
    return page


LOOKS = """(wb) => {
  const { color, backgroundColor, colorScheme } = getComputedStyle(wb);
  return [backgroundColor, color, colorScheme, wb.getBoundingClientRect().height];
}"""


OPENED = """() => {
  const fold = document.querySelector("[data-still] details");
  fold.open = true;
  const page = () => fold.querySelector("iframe").srcdoc;
  return new Promise((act) => fold.addEventListener("toggle", () => act(page())));
}"""
"""Opens the fold of the saved page; returns the page."""


def test_each_host_has_its_theme(browser: Any, tmp_path: Path, states: Any) -> None:
    for name, host in HOSTS.items():
        page = shown(browser, tmp_path, name, states)
        frame = page.frame_locator("#frame")
        wb = frame.locator(".wb")
        scheme = "dark" if name.endswith("dark") else "light"
        *looks, height = wb.evaluate(LOOKS)
        assert looks == [host.ground, host.text, scheme], name
        for _ in range(5):
            drawn(page)
        assert wb.evaluate(LOOKS)[-1] == height <= 900, "a frame that follows it does not grow"
        still = frame.locator("text=the still picture")
        assert still.is_hidden(), name
        wb.focus()
        for key in ("j", "a", "d", "?", "Escape", "Control+Enter"):
            page.keyboard.press(key)
        content = page.frames[1]
        assert content.evaluate("leaked") == [], "a notebook has shortcuts of these keys"
        page.keyboard.press("Control+s")
        assert "s" in content.evaluate("leaked"), "but saving is the host's"
        content.evaluate("leave()")
        assert still.is_visible(), "the picture stands in for the page"
        assert f"<html theme={scheme} " in content.evaluate(OPENED), "and the page in its frame"
        assert page.faults == []
        page.context.close()


def test_the_theme_follows_the_host(browser: Any, tmp_path: Path, states: Any) -> None:
    page = shown(browser, tmp_path, "vscode-light", states)
    content = page.frames[1]
    content.evaluate("document.body.className = 'vscode-dark'")
    page.frame_locator("#frame").locator(".wb[data-theme=dark]").wait_for()
    page.context.close()


def test_a_dead_session_is_a_sentence(browser: Any, tmp_path: Path, states: Any) -> None:
    """Without an answer, after a restart, and after the widget was closed."""
    page = shown(browser, tmp_path, "colab-light", states)
    content, silent = page.frames[1], page.frame_locator("#frame").locator(".wb-silent")
    assert silent.is_hidden()
    content.evaluate("() => { window.mute = true; tell('comm_live_update'); }")
    silent.get_by_text("Python was restarted").wait_for()
    remedy = "Browsing still works; to apply, time or check, run the cell again."
    assert remedy in silent.inner_text()
    content.evaluate("tell('comm:close')")
    silent.get_by_text("Python closed this workbench").wait_for()
    page.context.close()
