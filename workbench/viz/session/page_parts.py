"""Script and style of the page as one widget that all workbenches of a Python session share.

A widget travels, and is saved, with all that it has. So a workbench has its record, and a script of
some lines that asks the front end's manager of widgets for this one.
"""

from __future__ import annotations

import anywidget
import traitlets

from workbench.base.forking import free_lock
from workbench.viz.page import document as page

LOADER = """const PARTS = { shell: "shell", _css: "_css", _esm: "script" };
const LATEST_MS = 20_000; // a page that is loaded again has its models one after the other
const pages = globalThis[Symbol.for("workbench.pages")] ??= new Map();

async function partsOf(model) {
  const id = model.get("parts").replace("IPY_MODEL_", "");
  const until = Date.now() + LATEST_MS;
  for (;;) {
    try {
      return await model.widget_manager.get_model(id);
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((go) => setTimeout(go, 50));
    }
  }
}

async function pageOf(script) {
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: page } = await import(url);
  URL.revokeObjectURL(url);
  return page;
}

export default {
  async render({ model, el }) {
    const parts = await partsOf(model);
    const script = parts.get("script");
    if (!pages.has(script)) pages.set(script, pageOf(script));
    const get = (name) => name in PARTS ? parts.get(PARTS[name]) : model.get(name);
    return (await pages.get(script)).render({ model: { ...model, get }, el });
  },
};
"""
"""The script of a workbench: that of the page, run once in a window, renders it."""


class PageParts(anywidget.AnyWidget):
    """`script` is the page's module, `shell` the document that a page fills to save itself."""

    _esm = "export default {};\n"
    _css = page.css()
    script = traitlets.Unicode(page.esm()).tag(sync=True)
    shell = traitlets.Unicode(page.shell()).tag(sync=True)


_lock = free_lock()
_parts: list[PageParts] = []


def page_parts() -> PageParts:
    """Return the one widget, made again if all widgets were closed."""
    with _lock:
        if not _parts or _parts[0].comm is None:
            _parts[:] = [PageParts()]
        return _parts[0]
