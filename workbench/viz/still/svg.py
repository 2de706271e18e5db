"""The tensor graph as a still picture: layers from the inputs down, a coloured region per kernel.

It is an SVG inside of an <img>. Some viewers of notebooks remove SVG from HTML (GitHub, JupyterLab
where a notebook is not trusted) but show images. So it has a style sheet, a background and themes
of its own, and a table beside it has the same content.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from workbench.base.errors import WorkbenchError
from workbench.viz.model.graph import (
    GraphEdge,
    GraphNode,
    TensorGraph,
    folded,
    is_cut,
    size_text,
)
from workbench.viz.model.words import kernel_number, plural
from workbench.viz.still.palette import kernel_colour
from workbench.viz.still.picture import Box, Picture, Point, curve, picture, second_line
from workbench.viz.still.style import DARK, LIGHT

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
    kernels = [
        f"kernel {kernel_number(i)} {title}" for i, title in enumerate(graph.titles)
    ]
    words = [f"The tensor graph, {plural(len(graph.nodes), 'node')}", *kernels]
    return "; ".join(words)


def _theme(colours: dict[str, str]) -> str:
    """Return the style rules of a theme's colours."""
    fg, muted, bg = colours["fg"], colours["muted"], colours["bg"]
    card, edge = colours["card"], colours["edge"]
    return (
        f".ground,.node{{fill:{bg}}}text{{fill:{fg}}}.small{{fill:{muted}}}.badge{{fill:#111}}"
        f".edge{{stroke:{edge}}}.tip{{fill:{edge}}}.node,.input{{stroke:{edge}}}"
        f".input{{fill:{card}}}.cut,.stored{{stroke:{fg}}}.region{{opacity:{colours['tint']}}}"
    )


STYLE = (
    'text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;'
    "font-size:12px;text-anchor:middle}.small{font-size:10.5px}"
    ".badge{font-weight:700;font-size:11px}.edge{fill:none;stroke-width:1.3}"
    ".edge.cut{stroke-width:2.4}.stored{stroke-width:2}"
    f"{_theme(LIGHT)}@media(prefers-color-scheme:dark){{{_theme(DARK)}}}"
)
"""The picture's own style sheet: the page's does not apply inside an <img>."""


def graph_svg(picture: Picture) -> str:
    """Return the SVG of a picture."""
    graph, width, height = picture.graph, picture.width, picture.height
    by_number = {node.number: node for node in graph.nodes}
    parts = [
        f"<style>{STYLE}</style>",
        '<rect class="ground" width="100%" height="100%"/>',
    ]
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


def _edge(
    edge: GraphEdge, by_number: dict[int, GraphNode], route: Sequence[Point]
) -> str:
    source, target = by_number[edge.source], by_number[edge.target]
    kind = "edge cut" if is_cut(source, target) else "edge"
    x, y = route[-1]
    tip = f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.5 -6h7z"/>'
    return f'<path class="{kind}" d="{curve(route)}"/>{tip}'


def _node(node: GraphNode, box: Box) -> str:
    x, y, w, h = box
    label = escape(node.label)
    if node.role == "movement":
        rect = _rect("node", box, 10, ' stroke-dasharray="3 2"')
        words = f'<text class="small" x="{x:.1f}" y="{y + 4:.1f}">{label}</text>'
        return rect + words
    kind = "input" if node.role == "input" else "node"
    kind += "" if node.stored_by is None else " stored"
    parts = [
        _rect(kind, box, 16 if node.role == "input" else 5),
        f'<text x="{x:.1f}" y="{y - 2:.1f}">{label}</text>',
        f'<text class="small" x="{x:.1f}" y="{y + 12:.1f}">{escape(second_line(node))}</text>',
    ]
    if node.stored_by is not None:
        parts.append(_badge(node.stored_by, x - w / 2, y - h / 2))
    return "".join(parts)


def _rect(kind: str, box: Box, corner: float, more: str = "") -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner}"{more}/>'
    )


def _badge(kernel: int, x: float, y: float) -> str:
    colour = kernel_colour(kernel)
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="{colour}" stroke="#111"/>'
        f'<text class="badge" x="{x:.1f}" y="{y + 4:.1f}">{kernel_number(kernel)}</text>'
    )
