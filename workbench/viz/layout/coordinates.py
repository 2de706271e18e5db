"""How far from the left each vertex stands: lines short and straight, nothing overlapping.

What is made small is the sum over the lines of weight * (horizontal extent) squared, under
the order of each row; lines along dummies weigh most, so that long ones run straight. Row
by row, down and up, each is put where its lines to the rows beside are best.

Source: Gansner, Koutsofios, North, Vo 1993 (the sum and the weights); the best positions of
one row are an isotonic regression, found by pooling adjacent violators (Ayer et al. 1955).
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.layout.proper import Proper

SWEEPS = 10
NODES, MIXED, DUMMIES = 1.0, 2.0, 8.0
"""How much a line weighs, by what its ends are."""

Pull = tuple[int, float, float]
"""A vertex beside, how far from it one wants to be, and the weight of that."""


def placed(graph: Proper, rows: Sequence[Sequence[int]], gap: float) -> list[float]:
    """Return the middle of each vertex."""
    x = _packed(graph, rows, gap)
    up, down = _pulls(graph)
    both = [[*u, *d] for u, d in zip(up, down, strict=True)]
    for sweep in range(SWEEPS):
        # at last between both, so that what the last sweep left behind is not bent
        beside = both if sweep >= SWEEPS - 2 else (up, down)[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(graph, row, beside, x, gap)
    return x


def sides(graph: Proper, x: Sequence[float]) -> tuple[float, float]:
    """Return how far left and right the drawing reaches."""
    halves = [width / 2 for width in graph.width]
    left = min(c - half for c, half in zip(x, halves, strict=True))
    return left, max(c + half for c, half in zip(x, halves, strict=True))


def _packed(graph: Proper, rows: Sequence[Sequence[int]], gap: float) -> list[float]:
    x = [0.0] * len(graph.layer)
    for row in rows:
        at = -sum(graph.width[v] + gap for v in row) / 2
        for vertex in row:
            x[vertex] = at + graph.width[vertex] / 2
            at += graph.width[vertex] + gap
    return x


def _pulls(graph: Proper) -> tuple[list[list[Pull]], list[list[Pull]]]:
    up: list[list[Pull]] = [[] for _ in graph.layer]
    down: list[list[Pull]] = [[] for _ in graph.layer]
    for vertex, above in enumerate(graph.up):
        for source, port in zip(above, graph.port[vertex], strict=True):
            dummies = (vertex >= graph.nodes) + (source >= graph.nodes)
            weight = (NODES, MIXED, DUMMIES)[dummies]
            shift = port * graph.width[vertex]
            up[vertex].append((source, -shift, weight))
            down[source].append((vertex, shift, weight))
    return up, down


def _settle(
    graph: Proper,
    row: Sequence[int],
    beside: Sequence[Sequence[Pull]],
    x: list[float],
    gap: float,
) -> None:
    """Put a row where it is best, given the vertices beside."""
    offsets, targets = [], []
    at = before = 0.0
    for vertex in row:
        half = graph.width[vertex] / 2
        at += before + half
        before = half + gap
        offsets.append(at)
        total, weight = x[vertex] * 0.01, 0.01
        for near, shift, strength in beside[vertex]:
            total += (x[near] + shift) * strength
            weight += strength
        targets.append((total / weight - at, weight))
    for vertex, level, offset in zip(row, rising(targets), offsets, strict=True):
        x[vertex] = level + offset


def rising(targets: Sequence[tuple[float, float]]) -> list[float]:
    """Return the rising sequence nearest to (value, weight), by weighted squares."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in targets:
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, members = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + members
        blocks.append((mean, weight, count))
    return [mean for mean, _, count in blocks for _ in range(count)]
