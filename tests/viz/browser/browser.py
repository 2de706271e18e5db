"""Chromium for tests: it is started once for each process, and shows pages. Playwright drives the
system's browser.

What the page does at once, in answer to a click, a key or a message, can be read at once. For
what comes later there are `expect`, which tries again until it is so, and `drawn`. Later comes, too,
the `inner_text` of a row of a list: it is "" until the browser has drawn a frame with the row in sight
(`content-visibility: auto`); `text_content` and `expect` do not need that.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from workbench.viz.page.document import css, esm, packed, scripts, shell
from workbench.viz.session.constants import constants

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",  # WebGPU without a GPU
)  # fmt: skip
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows: a page takes a fourth less of the processor than in the others."""
WAIT_MS = 120_000
"""A machine that has much else to do is slow; what never comes fails all the same."""
_SESSION = """<!doctype html><html lang="en"><meta charset="utf-8"><title>workbench</title>
<style id="style">{css}</style>
<input id="outside" aria-label="outside"><div id="workbench"></div>
<script type="text/plain" id="record">{record}</script>
<script type="module">
{scripts}
const [record, css] = ["record", "style"].map((id) => document.getElementById(id).textContent);
const constants = {constants};
const traits = {{
  record, constants, view: {{}}, live: true, shell: {shell}, _css: css, _esm: {esm},
}};
const heard = {{}};
window.sent = [];
window.hear = (message) => heard["msg:custom"].forEach((act) => act(message));
window.show = (view) => {{ traits.view = view; heard["change:view"].forEach((act) => act()); }};
const model = {{
  get: (name) => traits[name], set: (name, value) => {{ traits[name] = value; }},
  save_changes() {{}}, on: (name, act) => (heard[name] ??= []).push(act), off() {{}},
  send: (message) => {{
    sent.push(message);
    const reply = {{ id: message.id, ok: true, error: null, result: null, patch: null }};
    if (message.do === "ping" && !window.mute) queueMicrotask(() => hear(reply));
  }},
}};
page.render({{ model, el: document.getElementById("workbench") }});
</script>"""

COPIED = """() => {
  const keep = (text) => { window.copied = text; return Promise.resolve(); };
  Object.defineProperty(navigator, "clipboard", { value: { writeText: keep } });
}"""
"""From now on `copied` is what the page copied last."""

NODES_IN_SIGHT = """(which) => [...document.querySelectorAll(".wb-rw g.wb-g-node")].filter((node) => node.matches(which))
  .map((node) => {
    const { x, y, width, height } = node.querySelector(".wb-g-box").getBoundingClientRect();
    return [node, x + width / 2, y + height / 2];
  }).filter(([node, x, y]) => node.contains(document.elementFromPoint(x, y))).map(([, x, y]) => [x, y])"""
"""Returns the middles of the boxes of some nodes, of those that can be clicked."""

FAINT = """() => {
  const rgb = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.querySelectorAll(".wb-g-svg text")) {
    const box = e.parentNode.querySelector(e.parentNode.matches(".wb-g-badge") ? "circle" : ".wb-g-box, rect");
    if (!box || e.matches(".wb-g-sign") || !e.getClientRects().length) continue;
    const [a, b] = [e, box].map((part) => light(rgb(getComputedStyle(part).fill)));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${e.className.baseVal}: ${e.textContent} ${contrast}`);
  }
  for (const e of document.querySelectorAll(".wb *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.offsetParent) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${e.className}: ${e.textContent.slice(0, 20)} ${contrast}`);
  }
  return faint;
}"""
"""Returns the texts whose colour is too near to what is behind it, by the formula of WCAG 2; of
pictures, those on a box or a ground of their own."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser with no way to any network; its `free_pages` are those that no test has.

    Skips, with the reason, where there is none; fails instead where CI is set.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        path, reason = None, "playwright is not installed"
    else:
        reason = "no Chromium on PATH"
    if path is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=[*FLAGS], timeout=2 * WAIT_MS
        )
        browser.free_pages = []
        try:
            yield browser
        finally:
            browser.close()


def new_page(browser: Any, **options: Any) -> Any:
    """Return a page in a context of its own, which has time; its `.faults` are errors that nobody
    caught."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(WAIT_MS)
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    return page


def drawn(page: Any) -> None:
    """Wait until what was planned for the next frame is done, and sizes that changed are known."""
    page.evaluate(
        "() => new Promise((act) => requestAnimationFrame(() => requestAnimationFrame(act)))"
    )


def opened(browser: Any, path: Path, width: int = 1400, dark: bool = False) -> Any:
    """Return a page that shows a file offline, as if it were new: one that is free, where there is
    one, because a context and its process take longer to start than the file to load."""
    page = browser.free_pages.pop() if browser.free_pages else _offline_page(browser)
    page.set_viewport_size({"width": width, "height": 700})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(path.as_uri())
    page.wait_for_selector(".wb")
    return page


def _offline_page(browser: Any) -> Any:
    page = new_page(browser, offline=True)
    page.on("request", lambda r: _local(page, r.url))
    page.has_own_clock = False
    return page


def stop_clock(page: Any) -> None:
    """From now on a test can move the time of the page forward, or pause it; until then it goes on.
    No other test gets the page."""
    page.has_own_clock = True
    page.clock.install()


def leave(browser: Any, page: Any) -> None:
    """Let another test have the page; fail on errors that nobody caught."""
    if page.has_own_clock:
        faults = page.faults
        page.context.close()
    else:
        for key in ("Alt", "Control", "Meta", "Shift"):
            page.keyboard.up(key)
        page.mouse.up()
        page.mouse.move(-1, -1)  # nothing is under it
        page.evaluate("localStorage.clear()")  # the next test finds panes as they are at first
        page.goto("about:blank")
        faults, page.faults = page.faults, []
        browser.free_pages.append(page)
    assert faults == []


def shown(browser: Any, folder: Path, html: str, mode: str = "", **more: Any) -> Iterator[Any]:
    """Yield the page of some HTML, from disk, in the mode that a key leads to, else in Tune; in the
    end, fail on errors that nobody caught."""
    path = folder / "page.html"
    tune = html.replace("view: {}", "view: { mode: 'tune' }")
    path.write_text(html if mode else tune, encoding="utf-8")
    page = opened(browser, path, **more)
    if mode:
        page.click(".wb-header", position={"x": 4, "y": 4})
        page.keyboard.press(mode)
    yield page
    leave(browser, page)


def _local(page: Any, url: str) -> None:
    if not url.startswith(("about:", "file:", "blob:", "data:")):
        page.faults.append(f"asked for {url}")


def session_page(record: dict[str, Any]) -> str:
    """Return a page over a model that a test answers for: `sent`, `hear(message)`, `show(view)`."""
    named = scripts().replace("export default", "const page =")
    texts = (json.dumps(t).replace("</", "<\\/") for t in (shell(), esm(), constants().plain()))
    shell_text, esm_text, same = texts
    return _SESSION.format(
        css=css(), record=packed(record), scripts=named, shell=shell_text, esm=esm_text,
        constants=same,
    )  # fmt: skip
