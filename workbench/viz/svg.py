"""The tensor graph as inline SVG: layers from the inputs down, a coloured region per kernel.

A region is the union of thick strokes along the kernel's edges and of patches behind its
nodes, all of one colour in one group, so it needs no geometry of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from workbench.viz.layout import Layout, layered
from workbench.viz.model.graph import (
    GraphEdge,
    GraphNode,
    TensorGraph,
    folded,
    size_text,
)
from workbench.viz.model.words import bytes_text, plural, shape_text
from workbench.viz.palette import kernel_colour

MOST_NODES = 150
"""Above this a static picture shows nothing; the words say so."""
LAYER, NODE, SMALL, MARGIN, GAP = 60, 36, 20, 18, 24.0


def graph_svg(graph: TensorGraph) -> str:
    """Return the picture of a graph, or a sentence where it is too large for one."""
    shown = folded(graph)
    if len(shown.nodes) > MOST_NODES:
        return (
            f"<p>The graph has {plural(len(shown.nodes), 'node')}, too many for this picture "
            f"(at most {MOST_NODES}). <code>.to_networkx()</code> and "
            "<code>.to_graphviz()</code> have all of it.</p>"
        )
    places = {node.number: i for i, node in enumerate(shown.nodes)}
    widths = [_width(node) for node in shown.nodes]
    ends = [(places[e.source], places[e.target]) for e in shown.edges]
    return _Picture(shown, places, widths, layered(widths, ends, GAP)).svg()


def _width(node: GraphNode) -> float:
    if node.role == "movement":
        return max(40.0, 5.9 * len(node.label) + 14)
    longest = max(6.9 * len(node.label), 6.0 * len(_below(node)))
    return max(52.0, longest + 22)


def _below(node: GraphNode) -> str:
    """Return a node's second line: its shape, and its dtype where it is not a result of ours."""
    shape = shape_text(node.shape)
    return f"{shape} {node.dtype}" if node.role == "input" else shape


@dataclass(frozen=True, slots=True)
class _Picture:
    graph: TensorGraph
    places: dict[int, int]
    widths: Sequence[float]
    layout: Layout

    def svg(self) -> str:
        width = self.layout.width + 2 * MARGIN
        height = (max(self.layout.layer, default=0) + 1) * LAYER + 6
        parts = [self._region(k) for k in range(len(self.graph.titles))]
        routes = zip(self.graph.edges, self.layout.routes, strict=True)
        parts += [self._edge(e, r) for e, r in routes]
        parts += [self._node(n) for n in self.graph.nodes]
        named = escape(f"tensor graph: {plural(len(self.graph.nodes), 'node')}")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{named}" '
            f'width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
        )

    def _at(self, node: GraphNode) -> tuple[float, float]:
        place = self.places[node.number]
        return self.layout.x[place] + MARGIN, _y(self.layout.layer[place])

    def _size(self, node: GraphNode) -> tuple[float, float]:
        height = SMALL if node.role == "movement" else NODE
        return self.widths[self.places[node.number]], height

    def _region(self, kernel: int) -> str:
        """Return the coloured ground under everything a kernel computes."""
        colour = kernel_colour(kernel)
        inside = {n.number for n in self.graph.nodes if n.kernels[:1] == (kernel,)}
        parts = []
        for node in self.graph.nodes:
            if node.number in inside:
                (x, y), (w, h) = self._at(node), self._size(node)
                parts.append(
                    f'<rect x="{x - w / 2 - 8:.1f}" y="{y - h / 2 - 7:.1f}" '
                    f'width="{w + 16:.1f}" height="{h + 14:.1f}" rx="11"/>'
                )
        for edge, route in zip(self.graph.edges, self.layout.routes, strict=True):
            if edge.source in inside and edge.target in inside:
                parts.append(
                    f'<path d="{self._path(edge, route)}" fill="none" '
                    f'stroke="{colour}" stroke-width="26" stroke-linecap="round"/>'
                )
        return f'<g class="region" fill="{colour}">{"".join(parts)}</g>'

    def _path(self, edge: GraphEdge, route: Sequence[tuple[float, int]]) -> str:
        nodes = self.graph.nodes
        start = self._size(nodes[self.places[edge.source]])[1] / 2
        end = self._size(nodes[self.places[edge.target]])[1] / 2
        (x, layer), *others = route
        y = _y(layer) + start
        words = [f"M{x + MARGIN:.1f} {y:.1f}"]
        for place, (next_x, next_layer) in enumerate(others):
            is_last = place == len(others) - 1
            next_y = _y(next_layer) - (end if is_last else NODE / 2)
            middle = (y + next_y) / 2
            words.append(
                f"C{x + MARGIN:.1f} {middle:.1f} {next_x + MARGIN:.1f} {middle:.1f} "
                f"{next_x + MARGIN:.1f} {next_y:.1f}"
            )
            x, y = next_x, next_y
            if not is_last:  # straight past the nodes of a layer between
                y += NODE
                words.append(f"V{y:.1f}")
        return "".join(words)

    def _edge(self, edge: GraphEdge, route: Sequence[tuple[float, int]]) -> str:
        source = self.graph.nodes[self.places[edge.source]]
        target = self.graph.nodes[self.places[edge.target]]
        cut = source.stored_by is not None and source.stored_by not in target.kernels
        kind = "edge cut" if cut else "edge"
        x, y = route[-1][0] + MARGIN, _y(route[-1][1]) - self._size(target)[1] / 2
        tip = f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.5 -6h7z"/>'
        moved = (
            f"<title>{bytes_text(source.size_bytes)} through memory</title>"
            if cut
            else ""
        )
        return f'<path class="{kind}" d="{self._path(edge, route)}">{moved}</path>{tip}'

    def _node(self, node: GraphNode) -> str:
        (x, y), (w, h) = self._at(node), self._size(node)
        hint = "<title>" + escape(_hint(node, self.graph.titles)) + "</title>"
        label = escape(node.label)
        if node.role == "movement":
            box = _box("node", x, y, w, h, 10, ' stroke-dasharray="3 2"')
            words = f'<text class="small" x="{x:.1f}" y="{y + 4:.1f}">{label}</text>'
            return f"<g>{hint}{box}{words}</g>"
        kind = "input" if node.role == "input" else "node"
        kind += "" if node.stored_by is None else " stored"
        parts = [
            hint,
            _box(kind, x, y, w, h, 16 if node.role == "input" else 5),
            f'<text x="{x:.1f}" y="{y - 2:.1f}">{label}</text>',
            f'<text class="small" x="{x:.1f}" y="{y + 12:.1f}">{escape(_below(node))}</text>',
        ]
        if node.stored_by is not None:
            parts.append(_badge(node.stored_by, x - w / 2, y - h / 2))
        return f"<g>{''.join(parts)}</g>"


def _y(layer: int) -> float:
    return layer * LAYER + LAYER / 2 + 3


def _box(
    kind: str,
    x: float,
    y: float,
    width: float,
    height: float,
    corner: float,
    more: str = "",
) -> str:
    return (
        f'<rect class="{kind}" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="{corner}"{more}/>'
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
