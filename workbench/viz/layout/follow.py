"""The layout of the next state of a graph: what was there before stays where it was.

A node keeps its layer unless its sources now reach further down, and its place in the row;
what is new goes where it crosses little between them. New layers at the top get numbers
below 0, so that nothing else has to move for them.
Source: the stable case of Misue, Eades, Lai, Sugiyama 1995, "Layout adjustment and the
mental map" (orthogonal order and nearness kept).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from workbench.viz.layout.arrange import (
    NOTHING,
    WIDE,
    Edge,
    Frame,
    Layout,
    Size,
    Spacing,
    arrange,
    drawn,
)
from workbench.viz.layout.layering import in_order
from workbench.viz.layout.ordering import Rows, inserted
from workbench.viz.layout.proper import Proper, proper


def follow(
    sizes: Sequence[Size],
    edges: Sequence[Edge],
    before: Layout,
    came_from: Sequence[int | None],
    spacing: Spacing = WIDE,
) -> Layout:
    """Return the layout of a graph whose node n was node `came_from[n]` in `before`.

    It is in the frame of `before`: what has not moved has the same coordinates.
    """
    if not sizes:
        return NOTHING
    if all(number is None for number in came_from):
        return arrange(sizes, edges, spacing)
    layers = kept_layers(edges, [_get(before.layer, n) for n in came_from])
    first = min(layers)
    graph = proper([n - first for n in layers], [w for w, _ in sizes], edges)
    anchors = _anchors(graph, first, before, came_from)
    rows = inserted(graph, _rows(graph, anchors), anchors.keys())
    return drawn(
        graph, rows, sizes, edges, spacing, Frame(first, before.pitch, anchors)
    )


def came_from(
    keys: Sequence[Hashable],
    edges: Sequence[Edge],
    keys_before: Sequence[Hashable],
    edges_before: Sequence[Edge],
) -> list[int | None]:
    """Return which node of the state before each node is, or takes the place of; None if new.

    Nodes with equal keys are the same. A rewrite makes all readers of what it changed anew,
    so from the results on up also pairs of operands in the same position are, as long as
    neither is in both states. A new node without operands takes no place: it stands next to
    what reads it.
    """
    place = {key: n for n, key in enumerate(keys_before)}
    found = [place.get(key) for key in keys]
    taken = {n for n in found if n is not None}
    sources, sources_before = _sources(keys, edges), _sources(keys_before, edges_before)
    pairs = list(
        zip(_results(keys, edges), _results(keys_before, edges_before), strict=False)
    )
    for node, old in pairs:
        if found[node] is None and old not in taken and sources[node]:
            found[node] = old
            taken.add(old)
            pairs += zip(sources[node], sources_before[old], strict=False)
    return found


def kept_layers(edges: Sequence[Edge], wanted: Sequence[int | None]) -> list[int]:
    """Return a layer for each node, below its sources: the one wanted or the next that is
    free to it. A node without a wish stands right above its readers."""
    top = min(layer for layer in wanted if layer is not None)
    above_all = top - len(wanted)
    layers = [above_all if layer is None else layer for layer in wanted]
    order = in_order(len(wanted), edges)
    for node, targets in order:
        for target in targets:
            layers[target] = max(layers[target], layers[node] + 1)
    for node, targets in reversed(order):
        if wanted[node] is None and targets:
            layers[node] = min(layers[t] for t in targets) - 1
    used = sorted({layer for layer in layers if layer < top}, reverse=True)
    close = {layer: top - 1 - n for n, layer in enumerate(used)}
    return [close.get(layer, layer) for layer in layers]


def _anchors(
    graph: Proper, first: int, before: Layout, came_from: Sequence[int | None]
) -> dict[int, float]:
    """Return where the vertices stood that were there before, lines at the same height."""
    anchors = {}
    for node, old in enumerate(came_from):
        if old is None:
            continue
        anchors[node] = before.x[old]
        shift = before.layer[old] + 1
        ends = before.lines[old][3::3]
        passed = [(a[0] + b[0]) / 2 for a, b in zip(ends[::2], ends[1::2], strict=True)]
        for dummy in graph.lines[node]:
            place = graph.layer[dummy] + first - shift
            if 0 <= place < len(passed):
                anchors[dummy] = passed[place]
    return anchors


def _rows(graph: Proper, anchors: Mapping[int, float]) -> Rows:
    """Return rows in the order of the anchors, other vertices where their neighbours are."""
    x = dict(anchors)
    for vertices in (range(len(graph.layer)), reversed(range(len(graph.layer)))):
        for vertex in vertices:
            near = [*graph.up[vertex], *(v for v, _ in graph.down[vertex])]
            known = [x[v] for v in near if v in x]
            if vertex not in x and known:
                x[vertex] = sum(known) / len(known)
    rows: Rows = [[] for _ in range(graph.height)]
    for vertex, layer in enumerate(graph.layer):
        rows[layer].append(vertex)
    return [sorted(row, key=lambda v: x.get(v, 0.0)) for row in rows]


def _sources(nodes: Sequence[object], edges: Sequence[Edge]) -> list[list[int]]:
    sources: list[list[int]] = [[] for _ in nodes]
    for source, target in edges:
        sources[target].append(source)
    return sources


def _results(nodes: Sequence[object], edges: Sequence[Edge]) -> list[int]:
    read = {source for source, _ in edges}
    return [n for n in range(len(nodes)) if n not in read]


def _get(values: Sequence[int], place: int | None) -> int | None:
    return None if place is None else values[place]
