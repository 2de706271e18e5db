"""The tensor graph as inline SVG: layers from the inputs down, a coloured region per kernel."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from workbench.viz.model.graph import (
    GraphEdge,
    GraphNode,
    TensorGraph,
    folded,
    is_cut,
    size_text,
)
from workbench.viz.model.words import bytes_text, plural
from workbench.viz.palette import kernel_colour
from workbench.viz.picture import Box, Picture, Point, curve, picture, second_line

MOST_NODES = 150
"""Above this a static picture shows nothing; the words say so."""


def graph_svg(graph: TensorGraph) -> str:
    """Return the picture of a graph, or a sentence where it is too large for one."""
    shown = folded(graph)
    if len(shown.nodes) > MOST_NODES:
        return (
            f"<p>The graph has {plural(len(shown.nodes), 'node')}, too many for this picture "
            f"(at most {MOST_NODES}). <code>.to_networkx()</code> and "
            "<code>.to_graphviz()</code> have all of it.</p>"
        )
    return _svg(picture(shown))


def _svg(drawn: Picture) -> str:
    graph, width, height = drawn.graph, drawn.width, drawn.height
    by_number = {node.number: node for node in graph.nodes}
    parts = [
        f'<path class="region" fill="{kernel_colour(kernel)}" d="{path}"/>'
        for kernel, path in enumerate(drawn.regions)
    ]
    for edge, route in zip(graph.edges, drawn.routes, strict=True):
        parts.append(_edge(edge, by_number, route))
    for node, box in zip(graph.nodes, drawn.boxes, strict=True):
        parts.append(_node(node, box, graph.titles))
    named = escape(f"tensor graph: {plural(len(graph.nodes), 'node')}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{named}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )


def _edge(
    edge: GraphEdge, by_number: dict[int, GraphNode], route: Sequence[Point]
) -> str:
    source, target = by_number[edge.source], by_number[edge.target]
    cut = is_cut(source, target)
    kind = "edge cut" if cut else "edge"
    x, y = route[-1]
    tip = f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.5 -6h7z"/>'
    moved = (
        f"<title>{bytes_text(source.size_bytes)} through memory</title>" if cut else ""
    )
    return f'<path class="{kind}" d="{curve(route)}">{moved}</path>{tip}'


def _node(node: GraphNode, box: Box, titles: Sequence[str]) -> str:
    x, y, w, h = box
    hint = "<title>" + escape(_hint(node, titles)) + "</title>"
    label = escape(node.label)
    if node.role == "movement":
        rect = _rect("node", box, 10, ' stroke-dasharray="3 2"')
        words = f'<text class="small" x="{x:.1f}" y="{y + 4:.1f}">{label}</text>'
        return f"<g>{hint}{rect}{words}</g>"
    kind = "input" if node.role == "input" else "node"
    kind += "" if node.stored_by is None else " stored"
    parts = [
        hint,
        _rect(kind, box, 16 if node.role == "input" else 5),
        f'<text x="{x:.1f}" y="{y - 2:.1f}">{label}</text>',
        f'<text class="small" x="{x:.1f}" y="{y + 12:.1f}">{escape(second_line(node))}</text>',
    ]
    if node.stored_by is not None:
        parts.append(_badge(node.stored_by, x - w / 2, y - h / 2))
    return f"<g>{''.join(parts)}</g>"


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
        f'<text class="badge" x="{x:.1f}" y="{y + 4:.1f}">{kernel}</text>'
    )


def _hint(node: GraphNode, titles: Sequence[str]) -> str:
    words = [f"{node.op} {size_text(node)}, {bytes_text(node.size_bytes)}"]
    words += [f"kernel {k}: {titles[k]}" for k in node.kernels]
    return "\n".join([*words, *([node.line] if node.line else [])])
