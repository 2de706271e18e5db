"""The page: hand-written ES modules and style sheets, joined for a widget or for one HTML file.

`panels/` has a folder for each panel, with its script and its style; beside it stand the folders
that panels share. The scripts are joined in the order of their imports
(`workbench/viz/page/bundle.py`), so neither making nor installing a page needs another program.
Every widget and file contains them, so they are compressed, as the record is; the browser unpacks
and runs the source, without its comments.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from html import escape
from pathlib import Path

from msgspec import to_builtins

from workbench.viz.model.kinds import style_rules
from workbench.viz.page.bundle import Module, joined, modules_of, variable
from workbench.viz.schema.messages import NO_VIEW, ViewState
from workbench.viz.schema.record import PageRecord

FOLDER = Path(__file__).parent
_COMMENTS = re.compile(
    r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//(?!#)[^\n]*)\n|/\*\* @[^\n]*?\*/ ", re.MULTILINE | re.DOTALL
)
"""Comments on lines of their own, and types within a line; not the name for debuggers, which begins
with //#."""
_STYLE_COMMENTS = re.compile(r"^/\*.*?\*/\n+|[ \t]*/\*.*?\*/", re.MULTILINE | re.DOTALL)
_PANEL = re.compile(r"^export const panel = \{(.*?)\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'\b(place|order): "?(\w+)')

EXPORT = "export default page;\n"
"""The end of the module that anywidget loads."""
_UNPACK = """const packed = "{packed}";
const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const text = await new Response(plain).text();
const url = URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }}));
const {{ default: page }} = await import(url);
URL.revokeObjectURL(url);
"""
# A widget model for a file without Jupyter. The document as it came is what the page is saved as.
_SHIM = """
const [record, css] = ["record", "style"].map((id) => document.getElementById(id).textContent);
const file = "<!doctype html>\\n" + document.documentElement.outerHTML;
const slot = "view: <" + "@view>, live"; // filled in this file already
const shell = file.replace(record, "<@record>").replace(/view: \\{.*\\}, live/, slot);
const traits = { record, view: <@view>, live: false, shell, _css: css };
const model = {
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes() {}, send() {}, on() {}, off() {},
};
page.render({ model, el: document.getElementById("workbench") });
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} - workbench</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 8px; background: Canvas; }}
.wb {{ --wb-height: calc(100vh - 18px); }}
</style><style id="style">{css}</style></head>
<body><main id="workbench"></main>
<script type="text/plain" id="record">{record}</script>
<script type="module">
{unpack}{shim}</script></body></html>
"""


def panels() -> list[Path]:
    """Return the scripts that make panels: a folder that has one is a panel, by its name."""
    return sorted(FOLDER.glob("panels/*/panel.js"))


def modes() -> tuple[str, ...]:
    """Return the names of the panels that stand in the middle, in their order.

    Errors: ValueError for a panel without {place, order}.
    """
    fields = {path.parent.name: _fields(path) for path in panels()}
    middle = [name for name, row in fields.items() if row["place"] == "middle"]
    return tuple(sorted(middle, key=lambda name: int(fields[name]["order"])))


def _fields(path: Path) -> dict[str, str]:
    """Return the place and the order of a panel, as its script exports them."""
    panel = _PANEL.search(path.read_text(encoding="utf-8"))
    row = dict(_FIELD.findall(panel[1])) if panel else {}
    if row.keys() != {"place", "order"}:
        raise ValueError(f"{path} must export a panel with a place and an order")
    return row


def modules() -> list[Module]:
    """Return the modules of the page, each after those that it imports."""
    return modules_of([FOLDER / "main.js", *panels()])


@cache
def scripts() -> str:
    """Return the modules of this folder as one ES module: `export default {render}`."""
    listed = [f'{{ name: "{path.parent.name}", ...{variable(path)}.panel }}' for path in panels()]
    return (
        joined(modules())
        + f"export default {variable(FOLDER / 'main.js')}.page([{', '.join(listed)}]);\n"
        + "//# sourceURL=workbench.js\n"
    )


@cache
def esm() -> str:
    """Return a module that unpacks the scripts and exports the same, for anywidget."""
    return _unpack() + EXPORT


@cache
def css() -> str:
    """Return the style sheets as one, without comments: those of a folder stand where its first
    script does; those of the kinds of axes come from their table."""
    folders = dict.fromkeys(module.path.parent for module in modules())
    sheets = [sheet for folder in folders for sheet in sorted(folder.glob("*.css"))]
    texts = [_STYLE_COMMENTS.sub("", s.read_text(encoding="utf-8")) for s in sheets]
    return "\n".join([*texts, style_rules()])


def packed(record: PageRecord) -> str:
    """Return a record as the page reads it: base64 of zlib-compressed JSON.

    Errors: ValueError where a number is not finite, which JSON lacks.
    """
    plain = to_builtins(record)
    return compressed(json.dumps(plain, separators=(",", ":"), allow_nan=False))


def export_html(record: PageRecord, view: ViewState = NO_VIEW) -> str:
    """Return one HTML file that shows a record offline: the same page, no Python session. It opens
    with `view`."""
    return document_of(record.expr.text, packed(record), view)


def document_of(title: str, record: str, view: ViewState = NO_VIEW) -> str:
    """Return the same file of a packed record."""
    return _document(escape(title[:80]), css(), record, _unpack(), view)


@cache
def shell() -> str:
    """Return the document of `export_html` with slots, which a page fills to save itself."""
    return _document("<@title>", "<@css>", "<@record>", "<@script>", None)


def _document(title: str, style: str, record: str, unpack: str, view: ViewState | None) -> str:
    """Return a document; without a view it has a slot for that, too."""
    opens = json.dumps(to_builtins(view)).replace("</", "<\\/")
    shim = _SHIM if view is None else _SHIM.replace("<@view>", opens, 1)
    return _PAGE.format(title=title, css=style, record=record, unpack=unpack, shim=shim)


@cache
def _unpack() -> str:
    # a text of several lines has its breaks in a ${..}, so none depends on its indentation
    bare = re.sub(r"^ +", "", _COMMENTS.sub("", scripts()), flags=re.MULTILINE)
    return _UNPACK.format(packed=compressed(bare, zlib.Z_BEST_COMPRESSION))


def compressed(text: str, level: int = 6) -> str:
    """Return a text as base64 of zlib's deflate."""
    return base64.b64encode(zlib.compress(text.encode(), level)).decode("ascii")
