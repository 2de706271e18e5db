"""The tensor graph as a still picture: layers from the inputs down, a coloured region per kernel.

It is an SVG inside of an <img>. Some viewers of notebooks remove SVG from HTML (GitHub, JupyterLab
where a notebook is not trusted) but show images. So it has a style sheet, a background and themes
of its own, and a table beside it has the same content.

Sections: Colours of kernels in pictures; The style sheet of the static pictures, one string,
scoped by the class `wb-ex`; The tensor graph as a still picture.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from workbench.base.errors import WorkbenchError
from workbench.viz.model.graph import (
    FAMILIES,
    GraphEdge,
    GraphNode,
    TensorGraph,
    folded,
    is_cut,
    size_text,
)
from workbench.viz.model.words import kernel_number, plural
from workbench.viz.schema.record import Shape
from workbench.viz.still.picture import Box, Picture, Point, curve, picture, second_line

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
# The class is doubled so that it wins over JupyterLab's own rules for tables and text. Colours are
# JupyterLab's where it is there; elsewhere the reader's system says light or dark.

LIGHT = {
    "fg": "#1f2328",
    "muted": "#57606a",
    "bg": "#ffffff",
    "card": "#f6f8fa",
    "line": "#d0d7de",
    "edge": "#8c959f",
    "tint": "0.55",
    "outline": "#7a838d",
}
DARK = {
    "fg": "#e6edf3",
    "muted": "#a9b4c0",
    "bg": "#111418",
    "card": "#1c2128",
    "line": "#444c56",
    "edge": "#768390",
    "tint": "0.34",
    "outline": "#8b949e",
}
_OF_JUPYTER = {"fg": "--jp-content-font-color0", "bg": "--jp-layout-color1"}


def _tokens(theme: dict[str, str]) -> str:
    scheme = "dark" if theme is DARK else "light"  # which pictures inside follow
    return f"color-scheme:{scheme};" + "".join(
        f"--wb-{name}:" + (f"var({_OF_JUPYTER[name]},{v});" if name in _OF_JUPYTER else f"{v};")
        for name, v in theme.items()
    )


_RULES = """
{font:13px/1.45 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;
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
 .opts{display:flex;flex-wrap:wrap;gap:4px;margin:2px 0 6px}
 .opts code{border:1px solid var(--wb-line);border-radius:4px;padding:0 5px;
 background:var(--wb-card)}
 .off{color:var(--wb-muted)}
 .bad{font-weight:600;white-space:pre-wrap}
 .legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:2px 0}
 img{display:block;margin:0 auto;max-width:none}
"""


def _scoped(rules: str) -> str:
    """Put `.wb-ex.wb-ex` before every selector; a rule without one is for the box itself."""
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
        f"{SCOPE}{{{_tokens(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{{SCOPE}{{{_tokens(DARK)}}}}}",
        f'[data-jp-theme-light="true"] {SCOPE}{{{_tokens(LIGHT)}}}',
        f'[data-jp-theme-light="false"] {SCOPE}{{{_tokens(DARK)}}}',
        _scoped(_RULES),
    ]
)
"""The whole sheet: themes, then rules."""


# --------------------------------------------------------------------------------------------------
# The tensor graph as a still picture.

MOST_NODES = 150
"""Most nodes of a static picture; a sentence replaces a larger one."""


def graph_picture(graph: TensorGraph) -> str:
    """Return the picture of a graph as an <img>, or a sentence where it is too large for one."""
    folded_graph = folded(graph)
    count = len(folded_graph.nodes)
    if count > MOST_NODES:
        return (
            f"<p>The graph has {plural(count, 'node')}, too many for this picture "
            f"(at most {MOST_NODES}). <code>.to_networkx()</code> and "
            "<code>.to_graphviz()</code> have all of it.</p>"
        )
    try:
        graph_drawing = picture(folded_graph)
    except WorkbenchError as error:
        return f"<p>{escape(str(error))}</p>"
    data = b64encode(graph_svg(graph_drawing).encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(_alt(folded_graph))}" '
        f'width="{graph_drawing.width:.0f}" height="{graph_drawing.height:.0f}">'
    )


def graph_rows(graph: TensorGraph) -> list[tuple[str, str, str, str, str]]:
    """Return the content of the picture as rows, sources first: (value, size, computed from,
    kernels, line)."""
    folded_graph = folded(graph)
    labels = {node.number: node.label for node in folded_graph.nodes}
    read: defaultdict[int, list[GraphEdge]] = defaultdict(list)
    for edge in sorted(folded_graph.edges, key=lambda edge: edge.position):
        read[edge.target].append(edge)
    rows = []
    for node in folded_graph.nodes[:MOST_NODES]:
        sources = ", ".join(labels[edge.source] for edge in read[node.number])
        kernels = ", ".join(str(kernel_number(k)) for k in node.kernels)
        if node.stored_by is not None:
            kernels += f" (stored by {kernel_number(node.stored_by)})"
        rows.append((node.label, size_text(node), sources, kernels, node.line))
    return rows


def _alt(graph: TensorGraph) -> str:
    kernels = [f"kernel {kernel_number(i)} {title}" for i, title in enumerate(graph.titles)]
    words = [f"The tensor graph, {plural(len(graph.nodes), 'node')}", *kernels]
    return "; ".join(words)


def _theme(colours: dict[str, str]) -> str:
    """Return the style rules of a theme's colours; graph.css has the same for the page."""
    fg, muted, bg = colours["fg"], colours["muted"], colours["bg"]
    edge = colours["outline"]
    return (
        f".ground{{fill:{bg}}}text{{fill:{fg}}}.small{{fill:{muted}}}.badge{{fill:#111}}"
        f".edge,.node{{stroke:{edge}}}.cut,.stored,.disc{{stroke:{fg}}}"
        f".region{{opacity:{colours['tint']}}}"
        + "".join(f".{f.letter}{{fill:{f.dark if colours is DARK else f.light}}}" for f in FAMILIES)
    )


SVG_STYLE = (
    'text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;'
    "font-size:12px;text-anchor:middle}.small{font-size:10px}.moved{font-size:10.5px}"
    ".badge{font-weight:700;font-size:11px}.edge{fill:none}.edge,.node{stroke-width:1.2}"
    ".edge.cut{stroke-width:2.4}.stored{stroke-width:2}.disc{stroke-width:1.4}"
    f"{_theme(LIGHT)}@media(prefers-color-scheme:dark){{{_theme(DARK)}}}"
)
"""The picture's own style sheet: the page's does not apply inside an <img>."""


def graph_svg(picture: Picture) -> str:
    """Return the SVG of a picture."""
    graph, width, height = picture.graph, picture.width, picture.height
    by_number = {node.number: node for node in graph.nodes}
    parts = [f"<style>{SVG_STYLE}</style>", '<rect class="ground" width="100%" height="100%"/>']
    parts += [
        f'<path class="region" fill="{kernel_colour(kernel)}" d="{path}"/>'
        for kernel, path in enumerate(picture.regions)
    ]
    for edge, route in zip(graph.edges, picture.routes, strict=True):
        parts.append(_edge(edge, by_number, route))
    for node, box in zip(graph.nodes, picture.boxes, strict=True):
        parts.append(_node(node, box))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )


def _edge(edge: GraphEdge, by_number: dict[int, GraphNode], route: Sequence[Point]) -> str:
    source, target = by_number[edge.source], by_number[edge.target]
    kind = "edge cut" if is_cut(source, target) else "edge"
    return f'<path class="{kind}" d="{curve(route)}"/>'


def _node(node: GraphNode, box: Box) -> str:
    x, y, w, h = box
    label, family = escape(node.label), node.family
    kind = f"node {family.letter}" + ("" if node.stored_by is None else " stored")
    shape = outline(family.shape, w, h)
    parts = [f'<path class="{kind}" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>']
    if node.role == "movement":
        parts.append(f'<text class="moved" x="{x:.1f}" y="{y + 3.6:.1f}">{label}</text>')
    else:
        size = escape(second_line(node))
        parts.append(f'<text x="{x:.1f}" y="{y - 2:.1f}">{label}</text>')
        parts.append(f'<text class="small" x="{x:.1f}" y="{y + 11:.1f}">{size}</text>')
    if node.stored_by is not None:
        parts.append(_badge(node.stored_by, x - w / 2, y - h / 2))
    return "".join(parts)


def outline(shape: Shape, width: float, height: float) -> str:
    """Return the outline of a box about the origin, as the page's `graph/paths.js` draws it."""
    x, y = width / 2, height / 2
    cut = min(9, y)
    if shape == "six":
        side = "H", x - cut, "L", x, 0, "L", x - cut, y
        return _path("M", -x + cut, -y, *side, "H", -x + cut, "L", -x, 0)
    if shape == "slant":
        return _path("M", -x + 5, -y, "H", x, "L", x - 5, y, "H", -x)
    if shape == "cut":
        return _path("M", -x, -y, "H", x - cut, "L", x, -y + cut, "V", y, "H", -x)
    if shape == "box":
        return _path("M", -x, -y, "H", x, "V", y, "H", -x)
    r = y if shape == "pill" else 6
    right, down, left, up = (
        ("a", r, r, 0, 0, 1, *to) for to in ((r, r), (-r, r), (-r, -r), (r, -r))
    )
    return _path(
        "M", -x + r, -y, "H", x - r, *right, "V", y - r, *down, "H", -x + r, *left, "V", -y + r, *up
    )  # fmt: skip


def _path(*parts: str | float) -> str:
    """Return the path of letters and numbers, closed; numbers are as JavaScript writes them."""
    text = ""
    for part in parts:
        isolated = not text or text[-1].isalpha() or isinstance(part, str)
        text += ("" if isolated else " ") + (part if isinstance(part, str) else f"{part:g}")
    return f"{text}Z"


def _badge(kernel: int, x: float, y: float) -> str:
    colour = kernel_colour(kernel)
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8.5" class="disc" fill="{colour}"/>'
        f'<text class="badge" x="{x:.1f}" y="{y + 3.5:.1f}">{kernel_number(kernel)}</text>'
    )
