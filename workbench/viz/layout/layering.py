"""In which layer each node stands: below all its sources, edges short.

What is made short is not the sum of the edges but the way from each source down to its
farthest reader, because the lines of one value run together: so much has to be drawn, and
every bit of it may cross something. A spare node under all readers of a source measures it.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.layout.simplex import Spring, shortest

Edge = tuple[int, int]
LINE, EDGE = 16, 1
"""What a layer of a value's common line, and of a single edge, costs."""


def layers_of(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return a layer (from 0) for each of `count` nodes; edges are (source, target), no cycle."""
    if not count:
        return []
    layers = longest_path(count, edges)
    readers: list[set[int]] = [set() for _ in range(count)]
    for source, target in edges:
        readers[source].add(target)
    springs = [Spring(s, t, 1, EDGE) for s, t in edges]
    for source, below in enumerate(readers):
        if len(below) == 1:
            springs += [Spring(source, t, 1, LINE) for t in below]
        elif below:
            spare = len(layers)
            layers.append(max(layers[t] for t in below))
            springs += [Spring(t, spare, 0, 0) for t in below]
            springs.append(Spring(source, spare, 1, LINE))
    return _from_the_top(count, layers, springs)


def longest_path(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return for each node the length of the longest path to it."""
    lengths = [0] * count
    for node, targets in in_order(count, edges):
        for target in targets:
            lengths[target] = max(lengths[target], lengths[node] + 1)
    return lengths


def in_order(count: int, edges: Sequence[Edge]) -> list[tuple[int, list[int]]]:
    """Return each node with its targets, sources first."""
    targets: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for source, target in edges:
        targets[source].append(target)
        waiting[target] += 1
    ready = [n for n in range(count) if not waiting[n]]
    for node in ready:
        for target in targets[node]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return [(n, targets[n]) for n in ready]


def _from_the_top(
    count: int, layers: Sequence[int], springs: Sequence[Spring]
) -> list[int]:
    """Return short layers; parts that no edge connects begin at layer 0 each."""
    levels = list(layers)
    for part in _parts(len(layers), springs):
        place = {node: i for i, node in enumerate(part)}
        inside = [
            Spring(place[s], place[t], least, weight)
            for s, t, least, weight in springs
            if s in place
        ]
        short = shortest([layers[n] for n in part], inside)
        top = min(short)
        for node, layer in zip(part, short, strict=True):
            levels[node] = layer - top
    return levels[:count]


def _parts(count: int, springs: Sequence[Spring]) -> list[list[int]]:
    beside: list[list[int]] = [[] for _ in range(count)]
    for source, target, _, _ in springs:
        beside[source].append(target)
        beside[target].append(source)
    visited = [False] * count
    parts = []
    for start in range(count):
        if visited[start]:
            continue
        visited[start], part = True, [start]
        for node in part:
            for near in beside[node]:
                if not visited[near]:
                    visited[near] = True
                    part.append(near)
        parts.append(part)
    return parts
