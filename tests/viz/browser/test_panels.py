"""A panel is a folder: it needs no line anywhere else to be in the page, with a section of the
record, and to print as text."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support import ROOT
from tests.viz.browser.browser import opened
from tests.viz.record.support import exported, plain
from tests.viz.session.support import Page, done, session_of, unpacked
from tests.viz.support import matmul
from workbench import explore
from workbench.base.errors import WorkbenchError
from workbench.viz.exploration.exploration import checked_view
from workbench.viz.page import document as page
from workbench.viz.page import panel, panels
from workbench.viz.record.record import Recorder, build
from workbench.viz.schema.record import PageRecord

PYTHON = '''"""The ops of the kernels, and how often each stands there."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.viz.page.panel import Panel, kernels_text


class OpCount(Struct):
    """An op, how often it stands in the kernels, and a node that has it."""

    op: str
    count: int
    node: int


def _counts(nodes: list[UOp]) -> Counter[str]:
    return Counter(node.op.name for node in nodes)


def rows(ex, nodes):
    every = [node for kernel in ex.kernels for node in kernel.ast.toposort()]
    first = {node.op.name: node for node in reversed(every)}
    return [OpCount(op, n, nodes.add(first[op])) for op, n in _counts(every).items()]


def text(ex, kernels):
    return kernels_text(ex, kernels, _kernel_text)


def _kernel_text(place: int, kernel: Kernel) -> str:
    counts = _counts(kernel.ast.toposort())
    return "\\n".join(f"  {op}: {n}" for op, n in counts.items())


PANEL = Panel(pane="ops", mode="ops", text=text, section=rows)
'''
SCRIPT = """import { h, refill } from "../../base/elements.js";

export const panel = { place: "middle", order: 4, title: "Ops", make: opsOf };

function opsOf(app, section) {
  const el = h("div", { class: "wb-ops" });
  const row = ({ op, count, node }) =>
    h("p", { onclick: () => app.select({ node }) }, `${op}: ${count}`);
  const update = () => refill(el, ...section().map(row));
  return { el, update, focus: () => {}, keys: {} };
}
"""
CACHED = (page.modules, page.scripts, page.css, page.esm, page._unpack, panel.modules)


@pytest.fixture
def with_panel(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    """The page's folders with another one beside them."""
    folder = tmp_path / "page"
    shutil.copytree(page.FOLDER, folder)
    (folder / "panels" / "ops").mkdir()
    (folder / "panels" / "ops" / "panel.py").write_text(PYTHON)
    (folder / "panels" / "ops" / "panel.js").write_text(SCRIPT)
    (folder / "panels" / "ops" / "ops.css").write_text(".wb-ops { padding: 33px; }")
    monkeypatch.setattr(page, "FOLDER", folder)
    both = [*panels.__path__, str(folder / "panels")]
    monkeypatch.setattr(panels, "__path__", both)
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()
    for name in [n for n in sys.modules if n.startswith(f"{panels.__name__}.ops")]:
        del sys.modules[name]


def test_a_folder_is_a_panel(with_panel: None, browser: Any, tmp_path: Path) -> None:
    ex = matmul()
    path = ex.to_html(tmp_path / "page.html")
    rows = plain(build(ex))["panels"]["ops"]["data"]
    shown = opened(browser, path)
    shown.click(".wb-modes >> text=Ops")
    lines = [f"{row['op']}: {row['count']}" for row in rows]
    assert shown.inner_text(".wb-ops").split() == " ".join(lines).split()
    assert shown.locator(".wb-ops").evaluate("e => getComputedStyle(e).padding") == ("33px")
    assert shown.faults == []
    shown.context.close()
    assert page.modes()[:4] == ("board", "tune", "rewrites", "plan")
    assert "ops" in page.modes()
    asked = {"mode": "ops"}
    assert plain(checked_view(ex, asked)) == asked


def test_it_stands_alone(with_panel: None, browser: Any, tmp_path: Path) -> None:
    ex = matmul()
    path = ex.to_html(tmp_path / "page.html")
    view = f"view: {json.dumps(plain(ex.pane('ops').view))}"
    path.write_text(path.read_text("utf-8").replace("view: {}", view), "utf-8")
    shown = opened(browser, path)
    assert shown.is_visible(".wb-ops") and shown.faults == []
    for other in (".wb-kernels", ".wb-code-pane", ".wb-strip", ".wb-modes"):
        assert not shown.is_visible(other), other
    shown.context.close()


def test_its_section_is_of_the_record(with_panel: None) -> None:
    ex = matmul()
    record = plain(build(ex))
    msgspec.convert(record, PageRecord)
    rows = record["panels"]["ops"]["data"]
    assert rows and record["panels"]["ops"]["error"] is None
    for row in rows:
        assert record["nodes"]["op"][row["node"]] == row["op"]
    with session_of(ex) as session:
        live = Page(session)
        assert live.record["panels"]["ops"] is None, "it is not looked at first"
        session.complete()
        assert live.record["panels"]["ops"]["data"] == rows, "a patch brings it"
        node = record["plan"]["decisions"][0]["node"]
        done(session, "replan", node=node, store=True)
        begun = next(m for m in live.messages if (m.get("result") or {}).get("record"))
        record = unpacked(begun["result"]["record"])
        assert record["panels"]["ops"] is None, "another plan has another"
        session.complete()
        assert live.record["panels"]["ops"]["data"]


def test_it_prints(with_panel: None) -> None:
    ex = matmul()
    text = str(ex.pane("ops"))
    assert "kernel 1: " in text and "\n  REDUCE: 1" in text
    assert str(ex.pane("ops", 0)) == text
    assert plain(ex.pane("ops", 0).view) == {"only": "ops", "mode": "ops", "kernel": 0}
    alone = explore(*ex.tensors, show="ops")
    assert str(alone).split("\n")[1:] == text.split("\n")[1:]


def test_what_is_no_pane_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="there is no pane 'lops'") as error:
        matmul().pane("lops")
    assert 'ex.pane("loops")' in str(error.value)


def test_the_page_has_its_types(with_panel: None) -> None:
    script = ROOT / "scripts" / "page_types.py"
    spec = importlib.util.spec_from_file_location("page_types", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = module.files()
    [text] = [text for path, text in files.items() if path.parent.name == "ops"]
    assert "export interface OpCount {\n  op: string;" in text
    assert "OpCount" not in files[module.FILE]


@pytest.mark.parametrize("value", ["1 / 0", "float('nan')", "{1, object()}"])
def test_an_error_in_a_section_is_one_of_the_panel(
    with_panel: None, browser: Any, tmp_path: Path, monkeypatch: Any, value: str
) -> None:
    wrong = panel.Panel("ops", "ops", panel.panels()["ops"].text, lambda *_: eval(value))
    monkeypatch.setattr(panel.modules()["ops"], "PANEL", wrong)
    record = plain(build(matmul()))
    row = record["panels"]["ops"]
    assert row["data"] is None and row["error"]["what"]
    assert record["variants"][0]["offers"], "all else is there"
    path = tmp_path / "page.html"
    path.write_text(exported(record), encoding="utf-8")
    shown = opened(browser, path)
    shown.click(".wb-modes >> text=Ops")
    assert row["error"]["what"] in shown.inner_text(".wb-board [role=alert]")
    shown.click(".wb-modes >> text=Tune")
    assert shown.is_visible(".wb-nest-pane") and shown.faults == []
    shown.context.close()


def test_a_section_that_is_not_built_yet(with_panel: None, browser: Any, tmp_path: Path) -> None:
    recorder = Recorder(matmul())
    recorder.first()
    path = tmp_path / "page.html"
    path.write_text(page.export_html(recorder.record), encoding="utf-8")
    shown = opened(browser, path)
    shown.click(".wb-modes >> text=Ops")
    assert "written before Python had built this" in shown.inner_text(".wb-board")
    assert not shown.is_visible("[aria-label=memory]"), "nor is there one below, empty"
    assert shown.faults == []
    shown.context.close()
