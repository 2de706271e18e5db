"""Where the nodes of a graph go: in layers, sources above, lines crossing little.

Longest path gives the layer; then nodes sink towards what reads them. An edge over several
layers passes through dummies, one chain per source, so that edges of one value run together.
Barycenter sweeps order the layers; least squares under the order gives the coordinates.
Source: Sugiyama, Tagawa and Toda 1981; pool-adjacent-violators for the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SWEEPS = 12
PLACINGS = 8
DUMMY = 6.0


class Layout(NamedTuple):
    """`x` is the middle of each node, `layer` its layer from the top; `routes` are the points
    (x, layer) of each edge, in the order given; `width` is that of the whole drawing."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]
    width: float


def layered(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 16.0
) -> Layout:
    """Return the layout of nodes with these widths and edges (source, target), no cycle."""
    if not widths:
        return Layout((), (), (), 0.0)
    drawing = _Drawing(list(widths), _layers(len(widths), edges))
    chains = drawing.connect(edges)
    drawing.order()
    x = drawing.place(gap)
    left = min(c - w / 2 for c, w in zip(x, drawing.widths, strict=True))
    right = max(c + w / 2 for c, w in zip(x, drawing.widths, strict=True))
    x = [c - left for c in x]
    routes = tuple(tuple((x[n], drawing.layer[n]) for n in chain) for chain in chains)
    count = len(widths)
    return Layout(tuple(x[:count]), tuple(drawing.layer[:count]), routes, right - left)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    targets: list[list[int]] = [[] for _ in range(count)]
    sources = [0] * count
    for source, target in edges:
        targets[source].append(target)
        sources[target] += 1
    layer, waiting = [0] * count, list(sources)
    ready = [n for n in range(count) if not waiting[n]]
    for node in ready:
        for target in targets[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    # sink what hangs on no more edges above than below: no edge becomes longer in sum
    for node in reversed(ready):
        if targets[node] and sources[node] <= len(targets[node]):
            layer[node] = min(layer[target] for target in targets[node]) - 1
    return layer


@dataclass(slots=True)
class _Drawing:
    """The graph with dummies: `up` and `down` are neighbours in the layers beside."""

    widths: list[float]
    layer: list[int]
    up: list[list[int]] = field(default_factory=list)
    down: list[list[int]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)

    def connect(self, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Add the edges, with dummies where they are long; return the nodes along each."""
        self.up = [[] for _ in self.widths]
        self.down = [[] for _ in self.widths]
        shared: dict[tuple[int, int], int] = {}
        chains = []
        for source, target in edges:
            chain = [source]
            for layer in range(self.layer[source] + 1, self.layer[target]):
                if (source, layer) not in shared:
                    shared[source, layer] = self._dummy(layer)
                    self._link(chain[-1], shared[source, layer])
                chain.append(shared[source, layer])
            self._link(chain[-1], target)
            chains.append([*chain, target])
        return chains

    def _dummy(self, layer: int) -> int:
        self.widths.append(DUMMY)
        self.layer.append(layer)
        self.up.append([])
        self.down.append([])
        return len(self.widths) - 1

    def _link(self, source: int, target: int) -> None:
        self.down[source].append(target)
        self.up[target].append(source)

    def order(self) -> None:
        """Order every layer: start as a walk from the results meets the nodes, then sweep."""
        self.rows = [[] for _ in range(max(self.layer) + 1)]
        for node in self._walk():
            self.rows[self.layer[node]].append(node)
        best, fewest = [list(r) for r in self.rows], self._crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            downwards = sweep % 2 == 0
            beside = self.up if downwards else self.down
            for row in self.rows if downwards else reversed(self.rows):
                self._sort(row, beside)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(r) for r in self.rows], crossings
        self.rows = best

    def _walk(self) -> list[int]:
        done: dict[int, None] = {}
        stack = [(n, False) for n in range(len(self.down)) if not self.down[n]][::-1]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if ready:
                done[node] = None
                continue
            stack.append((node, True))
            stack.extend([(s, False) for s in reversed(self.up[node]) if s not in done])
        return list(done)

    def _sort(self, row: list[int], beside: list[list[int]]) -> None:
        """Sort what has neighbours by their mean place; what has none keeps its place."""
        place = self._places()
        means = {
            n: sum(place[m] for m in beside[n]) / len(beside[n])
            for n in row
            if beside[n]
        }
        moved = iter(sorted(means, key=lambda n: (means[n], place[n])))
        row[:] = [next(moved) if n in means else n for n in row]

    def _places(self) -> dict[int, int]:
        return {n: i for row in self.rows for i, n in enumerate(row)}

    def _crossings(self) -> int:
        place = self._places()
        total = 0
        for row in self.rows:
            ends = [p for n in row for p in sorted(place[m] for m in self.down[n])]
            total += _inversions(ends)
        return total

    def place(self, gap: float) -> list[float]:
        """Return the middle of every node: near its neighbours, none overlapping."""
        x = [0.0] * len(self.widths)
        for row in self.rows:
            at = -sum(self.widths[n] + gap for n in row) / 2
            for node in row:
                x[node] = at + self.widths[node] / 2
                at += self.widths[node] + gap
        for sweep in range(PLACINGS):
            beside = self.up if sweep % 2 == 0 else self.down
            if (
                sweep >= PLACINGS - 2
            ):  # at last between both, so that long edges run straight
                beside = [[*u, *d] for u, d in zip(self.up, self.down, strict=True)]
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                self._settle(row, beside, x, gap)
        return x

    def _settle(
        self, row: list[int], beside: list[list[int]], x: list[float], gap: float
    ) -> None:
        offsets, at = [], 0.0
        for place, node in enumerate(row):
            if place:
                at += (self.widths[row[place - 1]] + self.widths[node]) / 2 + gap
            offsets.append(at)
        wanted = []
        for node, offset in zip(row, offsets, strict=True):
            near = [x[m] for m in beside[node]] or [x[node]]
            wanted.append(sum(near) / len(near) - offset)
        for node, level, offset in zip(row, _rising(wanted), offsets, strict=True):
            x[node] = level + offset


def _inversions(values: Sequence[int]) -> int:
    """Return how many pairs stand in the wrong order."""
    counts = [0] * (max(values, default=0) + 2)
    total = 0
    for seen, value in enumerate(values):
        smaller, at = 0, value + 1
        while at > 0:
            smaller += counts[at]
            at -= at & -at
        total += seen - smaller
        at = value + 1
        while at < len(counts):
            counts[at] += 1
            at += at & -at
    return total


def _rising(wanted: Sequence[float]) -> list[float]:
    """Return the rising sequence nearest to `wanted` (least squares)."""
    blocks: list[tuple[float, int]] = []
    for value in wanted:
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, members = blocks.pop()
            total, count = total + before, count + members
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]
