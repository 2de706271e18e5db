"""The page: hand-written ES modules and style sheets, joined for a widget or for one HTML file.

`panels/` has a folder for each panel, with its script and its style; beside it stand the folders
that panels share. The scripts are joined in the order of their imports, so that neither building
nor installing a page needs another program. Every widget and file contains them, so they are
compressed, as the record is; the browser unpacks the source, without comments, and runs it.

Sections: ES modules joined into one script; The page; The page in the outputs of a saved
notebook.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from workbench.base.cache import key_of
from workbench.viz.model.graph import style_rules
from workbench.viz.schema.messages import NO_VIEW, ViewState
from workbench.viz.schema.record import PageRecord

# --------------------------------------------------------------------------------------------------
# ES modules joined into one script: each becomes a function, in the order of imports.
#
# Modules use a part of the language that can be joined without a parser: an import is `import { a,
# b as c } from "./other.js";`, an export stands before a function, a class or a constant. A name
# without export is local to its module.

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*?|class|const) (\w+)\b)", re.MULTILINE)
_OTHER_IMPORTS = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One file: `body` has neither imports nor exports; `imports` are (names, path)."""

    path: Path
    imports: tuple[tuple[str, Path], ...]
    exports: tuple[str, ...]
    body: str


def modules_of(entries: Sequence[Path]) -> list[Module]:
    """Return `entries` and the modules that they import, each after those that it imports.

    Errors: ValueError for a cycle of imports, and for an import that is written in another way.
    """
    listed: dict[Path, Module] = {}

    def visit(path: Path, readers: tuple[Path, ...]) -> None:
        if path in readers:
            circle = [*readers[readers.index(path) :], path]
            raise ValueError(" -> ".join(p.name for p in circle) + " is a cycle")
        if path not in listed:
            module = _read(path)
            for _, target in module.imports:
                visit(target, (*readers, path))
            listed[path] = module

    for entry in entries:
        visit(entry.resolve(), ())
    return list(listed.values())


def joined(modules: Sequence[Module]) -> str:
    """Return the modules as one script; `variable(path)` has the exports of a module.

    Errors: ValueError for two modules with the same variable.
    """
    names = Counter(variable(module.path) for module in modules)
    if double := [name for name, number in names.items() if number > 1]:
        raise ValueError(f"two modules are {' and '.join(double)}")
    return "\n".join(_as_function(module) for module in modules)


def variable(path: Path) -> str:
    """Return the variable of a joined script that has the exports of a module. Its name includes
    two folders, since each panel may have a `node/node.js`."""
    return "$" + "$".join([*path.parts[-3:-1], path.stem])


def _read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    imports = [(names, (path.parent / target).resolve()) for names, target in _IMPORT.findall(text)]
    exports = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    if rest := _OTHER_IMPORTS.search(body):
        raise ValueError(f"{path.name}: cannot join {rest[0]!r}")
    return Module(path, tuple(imports), tuple(exports), body)


def _as_function(module: Module) -> str:
    head = "".join(
        f"const {{{names.replace(' as ', ': ')}}} = {variable(target)};\n"
        for names, target in module.imports
    )
    return (
        f"const {variable(module.path)} = (() => {{\n{head}{module.body}"
        f"return {{ {', '.join(module.exports)} }};\n}})();\n"
    )


# --------------------------------------------------------------------------------------------------
# The page.

FOLDER = Path(__file__).parent
_COMMENTS = re.compile(
    r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//(?!#)[^\n]*)\n|/\*\* @[^\n]*?\*/ ", re.MULTILINE | re.DOTALL
)
"""Comments on lines of their own, and types within a line; but not `//# sourceURL`, the name for
debuggers."""
_STYLE_COMMENTS = re.compile(r"^/\*.*?\*/\n+|[ \t]*/\*.*?\*/", re.MULTILINE | re.DOTALL)
_PANEL = re.compile(r"^export const panel = \{(.*?)\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'\b(place|order): "?(\w+)')
_LAYOUT = re.compile(r'^    name: "(\w+)",\n    title:', re.MULTILINE)

EXPORT = "export default page;\n"
"""The end of the module that anywidget loads."""
_UNPACK = """const packed = "{packed}";
const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
const plain = new Response(bytes).body.pipeThrough(new DecompressionStream("deflate"));
const text = await new Response(plain).text();
const url = URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }}));
const {{ default: page }} = await import(url);
URL.revokeObjectURL(url);
"""
# A widget model for a file without Jupyter. The page is saved as the document that was loaded.
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
.wb {{ --wb-height: calc(100vh - 18px); --wb-alone: var(--wb-height); }}
</style><style id="style">{css}</style></head>
<body><main id="workbench"></main>
<script type="text/plain" id="record">{record}</script>
<script type="module">
{unpack}{shim}</script></body></html>
"""


def panels() -> list[Path]:
    """Return the `panel.js` of every panel, by the names of their folders."""
    return sorted(FOLDER.glob("panels/*/panel.js"))


def modes() -> tuple[str, ...]:
    """Return the names of the layouts of the page: its own, then those of panels in the middle, in
    their order.

    Errors: ValueError for a panel without {place, order}.
    """
    own = _LAYOUT.findall((FOLDER / "board" / "layouts.js").read_text(encoding="utf-8"))
    fields = {path.parent.name: _fields(path) for path in panels()}
    middle = [name for name, row in fields.items() if row["place"] == "middle"]
    return (*own, *sorted(middle, key=lambda name: int(fields[name]["order"])))


def _fields(path: Path) -> dict[str, str]:
    """Return the place and the order of a panel, as its script exports them."""
    panel = _PANEL.search(path.read_text(encoding="utf-8"))
    row = dict(_FIELD.findall(panel[1])) if panel else {}
    if row.keys() != {"place", "order"}:
        raise ValueError(f"{path} must export a panel with a place and an order")
    return row


@cache
def modules() -> Sequence[Module]:
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
    """Return the style sheets as one, without comments: the folders in the order of their scripts,
    then the rules for kinds of axes, from their table."""
    folders = dict.fromkeys(module.path.parent for module in modules())
    sheets = [sheet for folder in folders for sheet in sorted(folder.glob("*.css"))]
    texts = [_STYLE_COMMENTS.sub("", s.read_text(encoding="utf-8")) for s in sheets]
    return "\n".join([*texts, style_rules()])


@dataclass(frozen=True, eq=False)
class Constants:
    """Parts of a record that are the same in all of them, such as the glossary: a notebook has them
    once, with the script. `sections` are those of panels."""

    fields: Mapping[str, Any]
    sections: Mapping[str, Any]

    def plain(self) -> dict[str, Any]:
        """Return them as the page gets them."""
        return {"fields": self.fields, "sections": self.sections}


def packed(record: PageRecord, constants: Constants | None = None) -> str:
    """Return a record in the form that the page reads: base64 of zlib-compressed JSON; without the
    parts that are as in `constants`, or that the record lacks yet.

    Errors: ValueError where a number is not finite, which JSON lacks.
    """
    plain = to_builtins(record)
    if constants is not None:
        _take_out(plain, constants.fields)
        _take_out(plain["panels"], constants.sections)
    return compressed(_json(plain))


def _take_out(plain: dict[str, Any], constant: Mapping[str, Any]) -> None:
    for name, value in constant.items():
        if name in plain and (plain[name] is None or _json(plain[name]) == _json(value)):
            del plain[name]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def export_html(record: PageRecord, view: ViewState = NO_VIEW) -> str:
    """Return one HTML file that shows a record offline: the same page, without a Python session. It
    opens with `view`."""
    return document_of(record.expr.text, packed(record), view)


def document_of(title: str, record: str, view: ViewState = NO_VIEW) -> str:
    """Return the file of `export_html` for a title and a packed record."""
    return _document(escape(title[:80]), css(), record, _unpack(), view)


@cache
def shell() -> str:
    """Return the document of `export_html` with slots, which a page fills to save itself."""
    return _document("<@title>", "<@css>", "<@record>", "<@script>", None)


def _document(title: str, style: str, record: str, unpack: str, view: ViewState | None) -> str:
    """Return a document; with `view` None it has a slot for the view."""
    opens = json.dumps(to_builtins(view)).replace("</", "<\\/")
    shim = _SHIM if view is None else _SHIM.replace("<@view>", opens, 1)
    return _PAGE.format(title=title, css=style, record=record, unpack=unpack, shim=shim)


@cache
def _unpack() -> str:
    # indentation means nothing: in a template of several lines the breaks are inside of ${..}
    bare = re.sub(r"^ +", "", _COMMENTS.sub("", scripts()), flags=re.MULTILINE)
    return _UNPACK.format(packed=compressed(bare, zlib.Z_BEST_COMPRESSION))


def compressed(text: str, level: int = 6) -> str:
    """Return a text as base64 of zlib's deflate."""
    return base64.b64encode(zlib.compress(text.encode(), level)).decode("ascii")


# --------------------------------------------------------------------------------------------------
# The page in the outputs of a saved notebook: a record for each output, the script and style once.
#
# A page stands in a sandboxed frame, which cannot reach the notebook. One output of the notebook
# has a second frame, the carrier. It sends script, style and the constant parts of records to every
# frame that asks for them by name. The frames find each other through the window around them, which
# lists its frames and reveals nothing else. A frame of another version asks by another name: where
# no carrier of that version answers it, it gets a script that says so.

_CARRIER = """<!doctype html><title>script and style of the workbench</title><script>
const parts = "<@parts>", notice = "<@notice>";
addEventListener("message", ({ data, source }) => {
  if (/^workbench-page-[0-9a-f]+$/.test(data) && data !== "<@name>") {
    const answer = { name: data, parts: notice };
    setTimeout(() => source?.postMessage(answer, "*"), 2000); // its own carrier is faster
  }
  if (data === "<@name>") source?.postMessage({ name: data, parts }, "*");
  if (data === "<@name>?") source?.postMessage({ name: "<@name>" }, "*"); // it is here
});
</script>"""
_SAVED_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title><@title> - workbench</title>
<style>
:root { color-scheme: light dark; }
:root[theme="light"] { color-scheme: light; }
:root[theme="dark"] { color-scheme: dark; }
body { margin: 8px; background: Canvas; color: CanvasText; font: 13px system-ui, sans-serif; }
.wb { --wb-height: calc(100vh - 18px); --wb-alone: var(--wb-height); }
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
    if (data?.name !== "<@name>" || !data.parts) return;
    clearInterval(again);
    clearTimeout(late);
    settle(data.parts);
  });
  ask();
});
const plainOf = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Response(bytes).body.pipeThrough(new DecompressionStream("deflate"));
  return new Response(plain).json();
};
const { script, css, shell, constants } = await plainOf(packed);
const record = document.getElementById("record").textContent;
const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
const { default: page } = await import(url);
const style = document.createElement("style");
style.textContent = css;
document.head.append(style);
el.textContent = "";
const traits = {
  record, constants, view: <@view>, live: false, shell, _css: css, _esm: script,
};
const model = {
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes() {}, send() {}, on() {}, off() {},
};
page.render({ model, el });
</script></body></html>
"""
_OTHER_VERSION = (
    "This workbench was saved by another version than the workbenches that ran since: run its cell "
    "again to see it."
)
_WAITS = (
    "The script of this page stands once in a notebook, with another workbench: it is not there. "
    "Scroll to the first workbench of the notebook, or run a cell that shows one."
)


def page_frame(title: str, record: str, view: Mapping[str, Any], constants: Constants) -> str:
    """Return the document of a frame that shows a record, packed without `constants`; it opens with
    `view`."""
    slots = {
        "title": escape(title[:80]), "record": record, "waits": _WAITS, "name": name(constants),
        "view": json.dumps(view).replace("</", "<\\/"),
    }  # fmt: skip
    return _filled(_SAVED_PAGE, slots)


@cache
def carrier(constants: Constants) -> str:
    """Return the document of the frame that has script, style and the constant parts of records."""
    script = f"export default {{ render({{ el }}) {{ el.textContent = {_OTHER_VERSION!r}; }} }};"
    notice = compressed(json.dumps({"script": script, "css": "", "shell": "", "constants": {}}))
    slots = {"parts": _parts(constants), "name": name(constants), "notice": notice}
    return _filled(_CARRIER, slots)


@cache
def name(constants: Constants) -> str:
    """Return the name by which frames ask for script and style; it differs between versions."""
    return f"workbench-page-{key_of(_parts(constants))[:16]}"


@cache
def _parts(constants: Constants) -> str:
    parts = {"script": esm(), "css": css(), "shell": shell(), "constants": constants.plain()}
    return compressed(json.dumps(parts))


def _filled(text: str, slots: Mapping[str, str]) -> str:
    """Return a document with its slots filled; text in a slot is not searched for slots."""
    parts = re.split(r"<@(\w+)>", text)
    return "".join(slots[p] if i % 2 else p for i, p in enumerate(parts))
