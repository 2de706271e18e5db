"""The page in the outputs of a saved notebook: a record for each output, the script and style once.

A page stands in a sandboxed frame, which cannot reach the notebook. One output of the notebook has
a second frame, the carrier, which gives script and style to every frame that asks by its name. The
frames find each other through the window around them, which says no more than that they are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

from workbench.base.cache.folder import key_of
from workbench.viz.page import document

_CARRIER = """<!doctype html><title>script and style of the workbench</title><script>
const parts = "<@parts>";
addEventListener("message", ({ data, source }) => {
  if (data === "<@name>") source?.postMessage({ name: data, parts }, "*");
});
</script>"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title><@title> - workbench</title>
<style>
:root { color-scheme: light dark; }
body { margin: 8px; background: Canvas; color: CanvasText; font: 13px system-ui, sans-serif; }
.wb { --wb-height: calc(100vh - 18px); }
</style></head>
<body><main id="workbench"></main>
<script type="text/plain" id="record"><@record></script>
<script type="module">
const el = document.getElementById("workbench");
function* framesOf(around) {
  for (let i = 0; i < around.length; i++) {
    yield around[i];
    yield* framesOf(around[i]);
  }
}
const packed = await new Promise((settle) => {
  const ask = () => [...framesOf(top)].forEach((frame) => frame.postMessage("<@name>", "*"));
  const again = setInterval(ask, 500);
  const late = setTimeout(() => { el.textContent = "<@waits>"; }, 3000);
  addEventListener("message", ({ data }) => {
    if (data?.name !== "<@name>") return;
    clearInterval(again);
    clearTimeout(late);
    settle(data.parts);
  });
  ask();
});
const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const { script, css, shell } = await new Response(plain).json();
const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
const { default: page } = await import(url);
const style = document.createElement("style");
style.textContent = css;
document.head.append(style);
el.textContent = "";
const traits = {
  record: document.getElementById("record").textContent,
  view: <@view>, live: false, shell: shell, _css: css, _esm: script,
};
const model = {
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes() {}, send() {}, on() {}, off() {},
};
page.render({ model, el });
</script></body></html>
"""
_WAITS = (
    "The script of this page stands once in a notebook, with another workbench: it is not there. "
    "Scroll to the first workbench of the notebook, or run a cell that shows one."
)


def page_frame(title: str, record: str, view: Mapping[str, Any]) -> str:
    """Return the document of a frame that shows a packed record, and opens with `view`."""
    slots = {
        "title": escape(title[:80]), "record": record, "waits": _WAITS, "name": name(),
        "view": json.dumps(view).replace("</", "<\\/"),
    }  # fmt: skip
    return _filled(_PAGE, slots)


@cache
def carrier() -> str:
    """Return the document of the frame that has script and style."""
    return _filled(_CARRIER, {"parts": _parts(), "name": name()})


@cache
def name() -> str:
    """Return the name by which frames ask for script and style: another version has another."""
    return f"workbench-page-{key_of(_parts())[:16]}"


@cache
def _parts() -> str:
    parts = {"script": document.esm(), "css": document.css(), "shell": document.shell()}
    return document.compressed(json.dumps(parts))


def _filled(text: str, slots: Mapping[str, str]) -> str:
    """Return a document with its slots filled; the text of one is not searched for others."""
    parts = re.split(r"<@(\w+)>", text)
    return "".join(slots[p] if i % 2 else p for i, p in enumerate(parts))
