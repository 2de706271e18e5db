"""The tensor graph as a still picture: layers from the inputs down, a coloured region per kernel.

It is an SVG inside of an <img>. Some viewers of notebooks remove SVG from HTML (GitHub, JupyterLab
where a notebook is not trusted) but show images. So it has a style sheet, a background and themes
of its own, and a table beside it has the same content.

Sections: Colours of kernels in pictures; The style sheet of the static pictures, one string,
scoped by the class `wb-ex`; The tensor graph as a still picture.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from msgspec import to_builtins

from workbench.base.errors import WorkbenchError
from workbench.viz.javascript import still_plan
from workbench.viz.model.graph import FAMILIES
from workbench.viz.model.words import kernel_number, plural
from workbench.viz.schema.plan import PlanPicture
from workbench.viz.schema.record import LineRow, NodeColumns, Reading
from workbench.viz.still.picture import placed

# --------------------------------------------------------------------------------------------------
# Colours of kernels in pictures: light, different from those of axis kinds, and always with a
# number.
#
# Source: Paul Tol's "light" scheme, for colour-blind readers and dark text.

_KERNELS = (
    "#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00",
)  # fmt: skip


def kernel_colour(number: int) -> str:
    """Return the colour of a kernel by its number; they repeat after eight."""
    return _KERNELS[number % len(_KERNELS)]


# --------------------------------------------------------------------------------------------------
# The style sheet of the static pictures, one string, scoped by the class `wb-ex`.
#
# The class is doubled so that it wins over the host's own rules for tables and text. Colours of the
# text and the ground are the host's where it has variables for them; its sign, or else the system's
# setting, chooses light or dark.

SANS = 'system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif'
LIGHT = {
    "sans": SANS,
    "fg": "#1f2328",
    "muted": "#57606a",
    "bg": "#ffffff",
    "card": "#f6f8fa",
    "line": "#d0d7de",
    "edge": "#8c959f",
}
DARK = {
    "sans": SANS,
    "fg": "#e6edf3",
    "muted": "#a9b4c0",
    "bg": "#111418",
    "card": "#1c2128",
    "line": "#444c56",
    "edge": "#768390",
}
_OF_HOSTS = {
    "fg": ("--jp-content-font-color0", "--vscode-editor-foreground", "--colab-primary-text-color"),
    "bg": (
        "--jp-layout-color1", "--vscode-editor-background", "--colab-primary-surface-color",
    ),
}  # fmt: skip
_PAGE = Path(__file__).parents[1] / "page"
_SIGNS = re.compile(r"^export const (DARK|LIGHT) =\s+'([^']*)'", re.MULTILINE)


def _tokens() -> str:
    return "".join(f"--wb-{name}:{_token(name)};" for name in LIGHT)


def _token(name: str) -> str:
    light, dark = LIGHT[name], DARK[name]
    value = light if light == dark else f"light-dark({light},{dark})"
    for variable in reversed(_OF_HOSTS.get(name, ())):
        value = f"var({variable},{value})"
    return value


def by_host(element: str) -> str:
    """Return rules that show the elements of a selector in the theme of the host, by the signs that
    the page reads; on paper in the light one."""
    signs = dict(_SIGNS.findall((_PAGE / "app/host.js").read_text(encoding="utf-8")))
    return "\n".join(
        [
            f"{element}{{color-scheme:light dark}}",
            f":is({signs['LIGHT']}) {element}{{color-scheme:light}}",
            f":is({signs['DARK']}) {element}{{color-scheme:dark}}",
            f"@media print{{{element}{{color-scheme:light!important}}}}",
        ]
    )


_RULES = """
{font:13px/1.45 var(--wb-sans);
 color:var(--wb-fg);background:var(--wb-bg);padding:8px;text-align:left;max-width:1200px}
 *{box-sizing:border-box}
 code, pre, .m{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
 font-size:12px;background:none;color:inherit}
 .mu{color:var(--wb-muted)}
 .head{display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline;margin:0 0 8px}
 .head .expr{font-size:14px;font-weight:600}
 .head .sum{color:var(--wb-muted)}
 .card{border:1px solid var(--wb-line);border-left:5px solid var(--wb-k,var(--wb-line));
 border-radius:6px;margin:10px 0;padding:8px 10px}
 .title{display:flex;flex-wrap:wrap;gap:2px 10px;align-items:baseline;margin:0 0 4px}
 .title b{font-size:14px}
 .no{display:inline-block;min-width:20px;padding:0 5px;border-radius:10px;text-align:center;
 font-size:12px;font-weight:700;color:#111;background:var(--wb-k)}
 .chip{display:inline-block;min-width:19px;padding:0 4px;border-radius:4px;text-align:center;
 font-size:11px;line-height:16px;font-weight:700;font-family:inherit}
 .scroll{overflow-x:auto;margin:4px 0}
 .capt{color:var(--wb-muted);font-size:12px;margin:2px 0 6px}
 table{border-collapse:collapse;border-spacing:0;margin:0;font-size:12px;color:inherit;
 table-layout:auto}
 tr, tbody tr, tbody tr:nth-child(odd), tbody tr:nth-child(even), tbody tr:hover
 {background:none}
 th, td{border:0;padding:2px 9px;text-align:left;vertical-align:top;
 white-space:nowrap;color:inherit;max-width:none}
 thead th{border-bottom:1px solid var(--wb-line);font-weight:600;vertical-align:bottom}
 thead th .mu{font-weight:400}
 td.n, th.n{text-align:right;font-variant-numeric:tabular-nums}
 td.s{padding-right:3px;font-weight:600}
 td.by{padding-left:3px;color:var(--wb-muted)}
 th.b{border-left:1px solid var(--wb-line)}
 td.s{border-left:1px solid var(--wb-line)}
 td.w{white-space:normal;min-width:180px}
 td.st{padding-top:3px;padding-bottom:3px;white-space:normal}
 td.st pre{margin:0;padding:1px 6px;background:var(--wb-card);border-radius:4px;
 white-space:pre-wrap;display:inline-block;border:0}
 details{margin:3px 0}
 details > summary{cursor:pointer;padding:2px 0}
 details > summary:hover{text-decoration:underline}
 details[open] > summary{font-weight:600}
 .body{margin:2px 0 8px 15px}
 pre.src{margin:0;padding:8px 10px;background:var(--wb-card);border:1px solid var(--wb-line);
 border-radius:4px;overflow:auto;max-height:420px;white-space:pre;line-height:1.4}
 .added{color:light-dark(#1a7f37,#5fd37c)}
 .removed{color:light-dark(#b3261e,#ff9a92)}
 .opts{display:flex;flex-wrap:wrap;gap:4px;margin:2px 0 6px}
 .opts code{border:1px solid var(--wb-line);border-radius:4px;padding:0 5px;
 background:var(--wb-card)}
 .off{color:var(--wb-muted)}
 .bad{font-weight:600;white-space:pre-wrap}
 .legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:2px 0}
 img{display:block;margin:0 auto;max-width:none}
"""


def _scoped(rules: str) -> str:
    """Return rules with SCOPE before every selector; a rule without one is for the element
    itself."""
    blocks = []
    for rule in " ".join(rules.split()).split("}"):
        selectors, brace, body = rule.partition("{")
        if brace:
            named = ",".join(f"{SCOPE} {s.strip()}".strip() for s in selectors.split(","))
            blocks.append(f"{named}{{{body}}}")
    return "\n".join(blocks)


SCOPE = ".wb-ex.wb-ex"
STYLE = "\n".join(
    [
        f"{SCOPE}{{{_tokens()}}}",
        by_host(SCOPE),
        f"@media print{{{SCOPE}{{--wb-fg:{LIGHT['fg']};--wb-bg:{LIGHT['bg']}}}}}",
        _scoped(_RULES),
    ]
)
"""The whole sheet: themes, then rules."""


# --------------------------------------------------------------------------------------------------
# The tensor graph as a still picture.

MOST_NODES = 150
"""Most nodes of a static picture; a sentence replaces a larger one."""


def graph_picture(plan: PlanPicture, nodes: NodeColumns, readings: Sequence[Reading]) -> str:
    """Return a plan without positions as an <img>; or a sentence, where it is too large or cannot
    be laid out."""
    count = len(plan.nodes)
    if count > MOST_NODES:
        return (
            f"<p>The graph has {plural(count, 'node')}, too many for this picture "
            f"(at most {MOST_NODES}). <code>.to_networkx()</code> and "
            "<code>.to_graphviz()</code> have all of it.</p>"
        )
    try:
        plan = placed(plan)
    except WorkbenchError as error:
        return f"<p>{escape(str(error))}</p>"
    data = b64encode(graph_svg(plan, nodes, readings).encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(_alt(plan))}" '
        f'width="{plan.width:.0f}" height="{plan.height:.0f}">'
    )


def graph_rows(
    plan: PlanPicture, nodes: NodeColumns, lines: Sequence[LineRow]
) -> list[tuple[str, str, str, str, str]]:
    """Return the content of the picture as rows, sources first: (value, size, computed from,
    kernels, line)."""
    sources: defaultdict[int, list[str]] = defaultdict(list)
    for edge in plan.edges:
        sources[edge.b].append(plan.nodes[edge.a].label)
    rows = []
    for place, node in enumerate(plan.nodes[:MOST_NODES]):
        kernels = ", ".join(str(kernel_number(k)) for k in node.kernels)
        if node.stored_by is not None:
            kernels += f" (stored by {kernel_number(node.stored_by)})"
        line = "" if node.line < 0 else lines[node.line].where
        size = f"{nodes.shape[node.n] or 'scalar'} {nodes.dtype[node.n]}"
        rows.append((node.label, size, ", ".join(sources[place]), kernels, line))
    return rows


def _alt(plan: PlanPicture) -> str:
    kernels = [f"kernel {kernel_number(row.kernel)} {row.title}" for row in plan.regions]
    words = [f"The tensor graph, {plural(len(plan.nodes), 'node')}", *kernels]
    return "; ".join(words)


SHEET = (_PAGE / "graph/drawing.css").read_text(encoding="utf-8")
_THEME = re.compile(r"^\.wb(?:\[data-theme=\"dark\"\])? \{([^}]*)\}", re.MULTILINE)
_CHOICE = re.compile(r"light-dark\(([^,]+), ([^)]+)\)")
_VALUE = re.compile(r"--wb-([\w-]+): ?([^;]+);")
_RULE = re.compile(r"^(\.wb-g-[^{]*?) \{ ([^}]*)\}", re.MULTILINE)
_VAR = re.compile(r"var\(--wb-([\w-]+)\)")
_CLASS = re.compile(r"wb-g-[\w-]+")
_OF_POINTERS = re.compile(r"(?:cursor|pointer-events): [^;]+; ?")


def graph_svg(plan: PlanPicture, nodes: NodeColumns, readings: Sequence[Reading]) -> str:
    """Return the SVG of a plan with positions."""
    columns = {name: getattr(nodes, name) for name in ("op", "dtype", "shape", "reading")}
    families = [{"family": reading.family} for reading in readings]
    rows = {"plan": plan, "nodes": columns, "readings": families, "families": FAMILIES}
    drawing = still_plan(to_builtins(rows | {"kernels": [], "glossary": []}))
    width, height = plan.width, plan.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><style>{_style(drawing)}</style>'
        f'<rect class="ground" width="100%" height="100%"/>{drawing}</svg>'
    )


def _style(drawing: str) -> str:
    """Return the page's rules for the classes in a drawing, in both themes. The page's style does
    not apply inside an <img>, and some programs that show one know no CSS variables."""
    classes = set(_CLASS.findall(drawing))
    present = [row for row in _rules() if classes.issuperset(row.classes)]
    dark = "".join(row.dark for row in present if row.dark != row.light)
    return f"{''.join(row.light for row in present)}@media(prefers-color-scheme:dark){{{dark}}}"


class _Rule(NamedTuple):
    """A rule for elements that have all of some classes, with the values of both themes."""

    classes: tuple[str, ...]
    light: str
    dark: str


@cache
def _rules() -> list[_Rule]:
    light = dict(_VALUE.findall("".join(_THEME.findall(_CHOICE.sub(r"\1", SHEET))[:1])))
    dark = dict(_VALUE.findall("".join(_THEME.findall(_CHOICE.sub(r"\2", SHEET)))))
    rules = [(".ground", "fill:var(--wb-bg)")]
    for selectors, body in _RULE.findall(SHEET):
        declared = _OF_POINTERS.sub("", body).replace("; ", ";").replace(": ", ":").strip(" ;")
        rules += [
            (each, declared) for each in selectors.split(", ") if declared and ":" not in each
        ]
    return [
        _Rule(
            tuple(_CLASS.findall(selector)),
            f"{selector}{{{_themed(declared, LIGHT | light)}}}",
            f"{selector}{{{_themed(declared, DARK | dark)}}}",
        )
        for selector, declared in rules
    ]


def _themed(declared: str, values: Mapping[str, str]) -> str:
    """Return declarations with the values of a theme in the place of its variables."""
    while "var(" in declared:
        declared = _VAR.sub(lambda name: values[name[1]], declared)
    return declared
