"""The widget by the front end of anywidget itself, outside of JupyterLab.

anywidget and ipywidgets install scripts for other hosts: the models, the views and their manager. A
plain page loads them; of a notebook it has what they ask for, and its messages go to ipywidgets in
this process and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import pytest
import widgetsnbextension
from comm.base_comm import BaseComm

from tests.support import eventually
from tests.viz.browser.browser import new_page
from workbench import Context, Tensor, explore
from workbench.viz.schema.messages import ViewState
from workbench.viz.session import widget as widgets
from workbench.viz.session.show import session_of
from workbench.viz.session.widget import Workbench

IPYWIDGETS = Path(widgetsnbextension.__file__).parent / "static/extension.js"
ANYWIDGET = Path(anywidget.__file__).parent / "nbextension/index.js"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>page</title><script>
const timers = new Set(), { setInterval, clearInterval } = window;
window.setInterval = (...given) => {
  const timer = setInterval(...given);
  timers.add(timer);
  return timer;
};
window.clearInterval = (timer) => {
  timers.delete(timer);
  clearInterval(timer);
};
const silent = new Proxy(function () {}, {
  get: (_, name) => (name === "prototype" ? {} : silent), apply: () => silent, construct: () => silent,
});
const modules = { module: { uri: "extension.js" } };
let defined;
const define = (names, make) => { defined = make(...names.map((name) => modules[name])); };
const requirejs = (names, act) => act(...names.map((name) => modules[name] ?? silent));
requirejs.config = () => {};
Object.assign(window, { require: requirejs, requirejs });

const comms = {}, sent = [], asked = [], open = {};
class Comm {
  constructor(id) { this.comm_id = id; comms[id] = this; }
  on_msg(act) { this.hear = act; }
  on_close(act) { this.end = act; }
  send(data, callbacks) { sent.push([this.comm_id, data]); asked.push(callbacks); return "message"; }
  close() { delete comms[this.comm_id]; }
}
const control = { on_msg: (act) => { control.hear = act; }, on_close() {}, close() {}, send() {
  const data = { method: "update_states", states: {}, buffer_paths: [] }; // a new Python session
  queueMicrotask(() => control.hear({ content: { data }, buffers: [] }));
} };
const comm_manager = {
  register_target: (name, act) => { open[name] = act; },
  new_comm: (target, data, callbacks, metadata, id, buffers) => control,
};
const kernel = { comm_manager, is_connected: () => true };
comm_manager.kernel = kernel;
const notebook = {
  kernel, metadata: {}, get_cells: () => [], keyboard_manager: silent, events: silent, container: silent,
};
const Jupyter = { version: "6.5.7", notebook, notification_area: silent, menubar: silent };
const OutputArea = function () {};
OutputArea.prototype.register_mime_type = (type, act) => { window.renderOutput = act; };
Object.assign(modules, {
  "base/js/namespace": Jupyter, "base/js/events": silent, "notebook/js/outputarea": { OutputArea },
});

const hear = {
  comm_open: (id, data, metadata) =>
    open["jupyter.widget"](new Comm(id), { content: { data }, metadata }),
  comm_msg: (id, data) => comms[id]?.hear({ content: { data }, buffers: [], parent_header: {} }),
  comm_close: (id) => comms[id]?.end({}),
};
const idle = { content: { execution_state: "idle" } };
const answered = () => asked.splice(0).forEach((callbacks) => callbacks?.iopub?.status?.(idle));
const show = (model_id) => {
  const area = document.createElement("div");
  area[0] = area; // jQuery's elements are lists
  const output = {
    keyboard_manager: silent, create_output_subarea: () => area,
    handle_output() {}, handle_clear_output() {},
  };
  renderOutput.call(output, { model_id }, {}, document.querySelector("main"));
};
</script></head><body><ul><li><a id="help_menu"></a></li></ul><main></main></body></html>"""
"""What the scripts ask a notebook for. A name that they only tell something is `silent`."""
TELL = """async (text) => {
  const [type, ...given] = JSON.parse(text); // as text: Playwright walks through an argument
  await hear[type](...given);
}"""


class Host:
    """A plain page whose widgets are those of this process."""

    def __init__(self, page: Any):
        self.page = page
        self.messages: list[tuple[str, str, Any, Any]] = []
        self.comms: dict[str, BaseComm] = {}

    def comm(self, **given: Any) -> BaseComm:
        """Return a comm whose messages the page gets."""
        host = self

        class Comm(BaseComm):
            def publish_msg(
                self, msg_type: str, data: Any = None, metadata: Any = None, *_: Any, **__: Any
            ) -> None:
                host.comms[self.comm_id] = self
                host.messages.append((msg_type, self.comm_id, data, metadata))

        return Comm(**given)

    def pass_on(self) -> None:
        """Pass on the messages of both sides."""
        for number, data in self.page.evaluate("sent.splice(0)"):
            message = {"content": {"data": data}, "buffers": [], "parent_header": {}}
            self.comms[number].handle_msg(message)
        while self.messages:
            self.page.evaluate(TELL, json.dumps(self.messages.pop(0)))
        self.page.evaluate("answered()")

    def until(self, is_so: Callable[[], object]) -> None:
        """Pass on messages until something is so."""

        def is_so_now() -> object:
            self.pass_on()
            return is_so()

        eventually(is_so_now)


@contextmanager
def plain_page(browser: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Yield a page with the scripts of ipywidgets and anywidget."""
    page = new_page(browser, viewport={"width": 1400, "height": 900}, color_scheme="dark")
    path = folder / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    page.goto(path.as_uri())
    page.add_script_tag(path=IPYWIDGETS)
    page.evaluate("modules['@jupyter-widgets/base'] = defined; defined.load_ipython_extension()")
    page.add_script_tag(path=ANYWIDGET)
    page.evaluate("modules.anywidget = defined")
    host = Host(page)
    monkeypatch.setattr("ipywidgets.comm.create_comm", host.comm)
    monkeypatch.setattr(widgets, "_parts", [])  # another one, with a comm to this page
    yield host
    page.context.close()


def test_it_is_drawn_by_the_front_end_of_anywidget(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_saved: Path
) -> None:
    """It has the theme of the system, both sides hear each other, and closed it leaves nothing."""
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))
    ex = explore((x @ x).relu())
    with plain_page(browser, tmp_path, monkeypatch) as host, Context(LIVE=1):
        page, said = host.page, list[str]()
        page.on("console", lambda message: said.append(message.text))
        session = session_of(ex)
        widget = Workbench(session, ViewState(mode="tune"))
        host.pass_on()
        page.evaluate("(id) => show(id)", widget.model_id)
        wb = page.locator(".wb")
        host.until(lambda: wb.get_attribute("data-mode") == "tune" if wb.count() else False)
        assert wb.get_attribute("data-theme") == "dark"
        assert page.locator("[class*='jp-']").count() == 0, "nothing is JupyterLab's here"
        offer = wb.locator(".wb-offer [data-key^=apply]").first
        host.until(offer.is_visible)
        offer.click()
        chosen = wb.locator(".wb-variant[aria-selected=true]:not([data-key=variant-0])")
        host.until(chosen.is_visible)
        host.until(lambda: widget.view.get("variant") == len(session.kernels) - 1)
        ex.select(mode="plan")
        host.until(lambda: wb.get_attribute("data-mode") == "plan")
        wb.locator("[data-key=mode-rules]").click()
        host.until(lambda: widget.view["mode"] == "rules")
        widget.close()
        host.until(lambda: not wb.count())
        assert page.evaluate("timers.size") == 0
        assert said == [] and page.faults == []
