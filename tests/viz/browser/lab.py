"""A real JupyterLab for tests: a server in temporary folders, a page in Chromium, a notebook.

One server and one page serve all tests of a run; each test gets a notebook without cells, in
the same Python session, which may have been restarted in between.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import nbformat
import pytest
from nbformat.v4 import new_notebook

from tests.support import PATIENCE_S
from tests.viz.browser.browser import WAIT_MS
from workbench.cli.tour import SOCKET_BYTES

LAB = pytest.mark.timeout(900)
"""Marks of all tests that share the server and the page; the first has to wait for both."""
UP_WITHIN_S = 300
"""So much time has JupyterLab to start, and as much its page to open."""
POLL_MS = 50
"""How often the page is asked: unasked, Playwright has it draw a frame each time."""
IDLE = """() => {
  const panel = window.jupyterapp?.shell.currentWidget, context = panel?.context?.sessionContext;
  const kernel = context?.session?.kernel;
  return panel?.context?.isReady && context.isReady && kernel?.connectionStatus === "connected"
    && kernel.status === "idle";
}"""
OWN = """async (path) => {
  const { shell } = window.jupyterapp;
  for (const panel of [...shell.widgets("main")].filter((w) => w.context?.path !== path)) {
    await panel.context?.sessionContext.shutdown().catch(() => {}); // it may not have begun
    if (panel.context) panel.context.model.dirty = false; // nobody is asked whether to save
    panel.close();
  }
  [...document.querySelectorAll(".jp-Dialog .jp-mod-reject")].forEach((b) => b.click());
  const own = [...shell.widgets("main")].find((w) => w.context?.path === path);
  shell.activateById(own.id);
}"""
"""It waits until the other sessions have ended: until then the server gives one that is ending to
whoever opens the same path, and its Python never answers."""
GIVEN_UP_MODEL = "[anywidget] Failed to initialize model."
"""What anywidget says of a model whose script has not begun within two seconds: the page hears Python
all the same."""
IS_OWN = "(path) => jupyterapp.shell.currentWidget?.context?.path === path"
KERNEL = "jupyterapp.shell.currentWidget.context.sessionContext.session.kernel"
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
"""All else is as JupyterLab comes."""


FEW_SAMPLES = """exec('''
def few_samples():
    from workbench.viz.session import prefetch
    from workbench.viz.session.handlers import baselines, measurement, plan_comparison
    for module in (prefetch, baselines, measurement, plan_comparison):
        module.SAMPLES = 5
    prefetch.MOST_OFFERS = prefetch.AT_ONCE
    prefetch.BUDGET_S = 0.05
few_samples()
''', {})"""
"""Few samples of few offers are enough, where no test compares times."""


@dataclass(frozen=True)
class Lab:
    """A server that answers at `url` and shows the files of `folder`."""

    url: str
    folder: Path


@contextmanager
def server(root: Path, app: str = "jupyterlab") -> Iterator[Lab]:
    """Yield a JupyterLab, or a Notebook, on a free port, that keeps all it writes in `root`, but for
    the sockets of its sessions: their paths have to be short. (Ports are chosen before they are
    bound, and may be taken in between.)"""
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as runtime:
        yield from _server(root, Path(runtime), app)


def _server(root: Path, runtime: Path, app: str) -> Iterator[Lab]:
    folder = root / "notebooks"
    folder.mkdir(parents=True)
    places = {
        "JUPYTER_CONFIG_DIR": root / "config", "JUPYTER_DATA_DIR": root / "data",
        "JUPYTER_RUNTIME_DIR": runtime, "JUPYTERLAB_WORKSPACES_DIR": root / "workspaces",
        "JUPYTERLAB_SETTINGS_DIR": root / "settings", "IPYTHONDIR": root / "ipython",
        "XDG_CACHE_HOME": root / "cache",
        "LIVE": 1,  # what a page measures unasked has a test of its own
    }  # fmt: skip
    _quiet(root)
    command = [
        sys.executable, "-m", app, "--no-browser", "--allow-root",
        "--ip=127.0.0.1", "--port=0", "--IdentityProvider.token=t", *_sockets(runtime),
        "--expose-app-in-browser", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    env = os.environ | {name: str(place) for name, place in places.items()}
    with (root / "log").open("w") as log:
        started = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            yield Lab(_address(started, runtime, root / "log"), folder)
        finally:
            started.terminate()  # it ends its sessions first
            try:
                started.wait(UP_WITHIN_S)
            except subprocess.TimeoutExpired:
                started.kill()


def _sockets(runtime: Path) -> list[str]:
    longest = runtime / f"kernel-{UUID(int=0)}-ipc-5"
    can = hasattr(socket, "AF_UNIX") and len(os.fsencode(longest)) < SOCKET_BYTES
    return ["--KernelManager.transport=ipc"] if can else []


def _quiet(root: Path) -> None:
    """No news, no autosave: nothing of the lab's own may come between a test and its page."""
    off = {"@jupyterlab/apputils-extension:announcements": True}
    _write(root / "config/labconfig/page_config.json", json.dumps({"disabledExtensions": off}))
    for name, values in SETTINGS.items():
        _write(root / f"settings/{name}.jupyterlab-settings", json.dumps(values))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


def _address(started: Any, runtime: Path, log: Path) -> str:
    """Return where the server answers, as soon as it does."""
    until = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < until and started.poll() is None:
        for server_file in runtime.glob("jpserver-*.json"):
            try:
                url: str = json.loads(server_file.read_text())["url"]
                with urllib.request.urlopen(f"{url}api/status?token=t", timeout=60):
                    return url
            except (OSError, ValueError):
                continue  # half written, or not yet listening
        time.sleep(0.1)
    raise AssertionError(f"no server: {log.read_text()[-2000:]}")


HAS_WIDGET = """(at) => {
  const { outputs } = jupyterapp.shell.currentWidget.content.widgets[at].model;
  return outputs.toJSON().some(({ data }) => data?.["application/vnd.jupyter.widget-view+json"]);
}"""
"""Returns whether a cell shows a widget, which may be drawn later."""
SPREAD = ".wb-spread:text-matches('±|busy')"
"""The spread of a variant's time; "busy" where other programs had the cores in each sample."""
CHOOSE = "(page, layout) => page.querySelector(`[data-key=mode-${layout}]`).click()"


class Notebook:
    """A notebook that is open in a page. What a test does goes through the page, as a person's
    doing would; only cells are written directly."""

    def __init__(self, page: Any, lab: Lab):
        self.page, self.lab, self.name = page, lab, ""

    def open(self, name: str = "test.ipynb") -> None:
        """Show a new notebook, and wait for its Python session."""
        spec = {"name": "python3", "display_name": "Python 3"}
        empty = new_notebook(metadata={"kernelspec": spec})
        self.name = name
        nbformat.write(empty, self.lab.folder / name)
        opening_ms = UP_WITHIN_S * 1000
        self.page.goto(f"{self.lab.url}lab/tree/{name}?token=t&reset", timeout=opening_ms)
        self.ready(opening_ms)
        self.page.evaluate("jupyterapp.shell.collapseLeft()")  # room for the notebook

    @contextmanager
    def beside(self, name: str, notebook: Any) -> Iterator[Any]:
        """Show another notebook in a tab of its own; yields what is seen of it."""
        nbformat.write(notebook, self.lab.folder / name)
        self.page.evaluate(
            "async (path) => { await jupyterapp.commands.execute('docmanager:open', {path}); }",
            name,
        )
        try:
            self.ready()
            yield self.page.locator(".jp-NotebookPanel:visible")
        finally:
            self.come_back()

    def come_back(self) -> None:
        """Close whatever else is open, and show the notebook."""
        self.page.evaluate(OWN, self.name)
        self.page.wait_for_function(IS_OWN, arg=self.name, polling=POLL_MS)

    def ready(self, within_ms: int = WAIT_MS) -> None:
        """Wait until the Python session can be asked."""
        self.page.wait_for_function(IDLE, timeout=within_ms, polling=POLL_MS)

    def clear(self) -> None:
        """Take away every cell, and what else an earlier test left, even one that failed."""
        self.come_back()
        self.looks()
        self.page.evaluate("localStorage.clear()")  # panes and layouts as at first
        if self.page.evaluate(f"{KERNEL}.status") == "busy":
            self.page.evaluate(f"{KERNEL}.interrupt()")
        self.ready()
        self.python("__import__('ipywidgets').Widget.close_all()")
        self.python(FEW_SAMPLES)
        self.page.evaluate(
            """() => { const shared = jupyterapp.shell.currentWidget.content.model.sharedModel;
              shared.deleteCellRange(0, shared.cells.length);
              shared.deleteMetadata("widgets"); }"""
        )

    def cell(self, source: str, wait: bool = True, layout: str = "tune") -> Any:
        """Append a cell and run it; return its element, as soon as it has ended if `wait`; its
        workbench then shows a layout."""
        at: int = self.page.evaluate(
            """async ([source, wait]) => {
              const { content } = jupyterapp.shell.currentWidget, shared = content.model.sharedModel;
              const last = shared.cells.at(-1);
              if (!last || last.source) shared.insertCell(shared.cells.length, {cell_type: "code"});
              const at = shared.cells.length - 1;
              shared.cells[at].setSource(source);
              content.activeCellIndex = at;
              content.deselectAll();
              const running = jupyterapp.commands.execute("notebook:run-cell");
              if (wait) await running;
              return at;
            }""",
            [source, wait],
        )
        cell = self.page.locator(f'.jp-Cell[data-windowed-list-index="{at}"]')
        if wait and layout and self.page.evaluate(HAS_WIDGET, at):
            workbench = cell.locator(".wb").first
            workbench.scroll_into_view_if_needed()  # out of sight it has no elements
            workbench.locator(f"[data-key=mode-{layout}]").wait_for(state="attached")
            workbench.evaluate(CHOOSE, layout)
        return cell

    def run(self, at: int, wait: bool = True) -> None:
        """Run a cell again."""
        self.page.evaluate(
            """async ([at, wait]) => {
              const { content } = jupyterapp.shell.currentWidget;
              content.activeCellIndex = at;
              const running = jupyterapp.commands.execute("notebook:run-cell");
              if (wait) await running;
            }""",
            [at, wait],
        )

    def python(self, expression: str) -> str:
        """Return repr of an expression's value in the Python session; no cell is touched. What is
        asked right after a cell that failed, ipykernel aborts with the cells: it is asked again."""
        reply: dict[str, Any] = self.page.evaluate(
            """async (e) => {
              const request = {code: "", silent: true, store_history: false, user_expressions: {e}};
              for (;;) {
                const { content } = await %s.requestExecute(request).done;
                if (content.status !== "aborted") return content.user_expressions.e;
                await new Promise((act) => setTimeout(act, 50));
              } }"""
            % KERNEL,
            expression,
        )
        assert reply["status"] == "ok", f"{reply['ename']}: {reply['evalue']}"
        text: str = reply["data"]["text/plain"]
        return text

    def settle(self) -> None:
        """Wait until the workbench has done all that it does in the background."""
        last = f"jobs.jobs().submit(jobs, iter(()), 9).wait({PATIENCE_S})"
        answer = self.python(
            f"(jobs := __import__('workbench.viz.session.requests', fromlist=['x'])) and {last}"
        )
        assert answer == "True"

    def state(self) -> dict[str, Any]:
        """Return what a key that leaked would change: cells, their sources, selection and mode,
        and the Python session."""
        reply: dict[str, Any] = self.page.evaluate(
            """() => {
              const panel = jupyterapp.shell.currentWidget, { content } = panel;
              const cells = [...content.model.cells];
              return {
                cells: cells.map((c) => [c.type, c.sharedModel.source, c.executionCount]),
                active: content.activeCellIndex, mode: content.mode,
                selected: content.selectedCells.length,
                session: %s.id, path: panel.context.path,
                dialogs: document.querySelectorAll(".jp-Dialog, .lm-CommandPalette-input:focus").length,
                open: [...jupyterapp.shell.widgets("main")].length,
              };
            }"""
            % KERNEL
        )
        return reply

    @contextmanager
    def saving_widgets(self) -> Iterator[None]:
        """Choose "Save Widget State Automatically" in the menu, which is off in a new JupyterLab,
        and again at the end."""
        toggle = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"
        run = f"jupyterapp.commands.execute('{toggle}')"
        self.page.evaluate(run)
        try:
            yield
        finally:
            self.page.evaluate(run)

    def command(self, name: str, **arguments: Any) -> None:
        """Run a command of JupyterLab's, and do not wait for it."""
        self.page.evaluate(
            "([name, args]) => void jupyterapp.commands.execute(name, args)", [name, arguments]
        )

    def looks(self, width: int = 1400, dark: bool = False) -> None:
        """Be as wide as that, in the light theme or the dark one."""
        self.page.set_viewport_size({"width": width, "height": 900})
        theme = f"JupyterLab {'Dark' if dark else 'Light'}"
        self.command("apputils:change-theme", theme=theme)
        light = "false" if dark else "true"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")
