"""A panel is a folder: it needs no line anywhere else to be in the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import opened
from tests.viz.record.support import plain
from tests.viz.support import matmul
from workbench.viz.page import document as page
from workbench.viz.record.record import build
from workbench.viz.view import checked_view

PANEL = """import { h } from "../../base/elements.js";

export const panel = { place: "middle", order: 4, title: "Ops", make: opsOf };

function opsOf(app) {
  const el = h("div", { class: "wb-ops" });
  const update = () => {
    el.textContent = `${new Set(app.record.nodes.op).size} ops`;
  };
  return { el, update, focus: () => {}, keys: {} };
}
"""
CACHED = (page.scripts, page.css, page.esm, page._unpack)


@pytest.fixture
def with_panel(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    """The page's folders with another one beside them."""
    folder = tmp_path / "page"
    shutil.copytree(page.FOLDER, folder)
    (folder / "panels" / "ops").mkdir()
    (folder / "panels" / "ops" / "panel.js").write_text(PANEL)
    (folder / "panels" / "ops" / "ops.css").write_text(".wb-ops { padding: 33px; }")
    monkeypatch.setattr(page, "FOLDER", folder)
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()


def test_a_folder_is_a_panel(with_panel: None, browser: Any, tmp_path: Path) -> None:
    ex = matmul()
    record = plain(build(ex))
    path = tmp_path / "page.html"
    path.write_text(page.export_html(record), encoding="utf-8")
    shown = opened(browser, path)
    shown.click(".wb-modes >> text=Ops")
    count = len(set(record["nodes"]["op"]))
    assert shown.inner_text(".wb-ops") == f"{count} ops"
    assert shown.locator(".wb-ops").evaluate("e => getComputedStyle(e).padding") == (
        "33px"
    )
    assert shown.faults == []
    shown.context.close()
    assert page.modes() == ("tune", "rewrites", "plan", "ops")
    asked = {"mode": "ops"}
    assert checked_view(ex, asked) == asked
