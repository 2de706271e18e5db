"""Graphs to lay out, what crosses in a drawing, and how far a rewrite moves nodes.

data/*.json holds graphs: labels, sizes, edges (source, target) in the order of operands, and
`dot_crossings`, what Graphviz 2.43 draws of them (edges that share an end left out; it knows
no ports, and so has none of the crossings that the order of operands asks for).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.kernels import EXAMPLES, TARGETS
from workbench.ir.lower.lower import lower
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.uop import UOp
from workbench.tensor.tensor import Tensor
from workbench.trace import PassRecord, observe
from workbench.viz import explore
from workbench.viz.layout import Layout, arrange, came_from, follow
from workbench.viz.model.rewrites import is_replayable, state

DATA = Path(__file__).parent / "data"
BOUNDS = {
    "F100": 2.0,
    "F500": 1.5,
    "softmax-lowered": 2.0,
    "convolution-upcast": 2.0,
    "attention-tensors": 2.0,
    "chains-and-diamonds": 2.0,
}
"""How many times dot's crossings each graph of data/ may have."""
TILE = (
    Opt(OptOps.UPCAST, "g1", 16),
    Opt(OptOps.UPCAST, "g0", 4),
    Opt(OptOps.LOCAL, "g0", 8),
)

Size = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Sample:
    labels: list[str]
    sizes: list[Size]
    edges: list[Edge]
    dot_crossings: int


def sample(name: str) -> Sample:
    held = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    sizes = list(zip(held["widths"], held["heights"], strict=True))
    edges = [(source, target) for source, target in held["edges"]]
    return Sample(held["labels"], sizes, edges, held["dot_crossings"])


def drawn_crossings(layout: Layout) -> int:
    """Return how often the curves of a layout cross as they are drawn."""
    curves = [c for c in layout.lines if c] + [b.points for b in layout.branches]
    polylines = [_flat(curve) for curve in curves]
    pieces = np.concatenate([np.hstack([p[:-1], p[1:]]) for p in polylines])
    owner = np.repeat(np.arange(len(polylines)), [len(p) - 1 for p in polylines])
    low, high = (
        np.minimum(pieces[:, :2], pieces[:, 2:]),
        np.maximum(pieces[:, :2], pieces[:, 2:]),
    )
    total = 0
    for place in range(len(pieces)):
        near = (low[place + 1 :] < high[place]) & (high[place + 1 :] > low[place])
        others = place + 1 + np.flatnonzero(near.all(axis=1))
        others = others[owner[others] != owner[place]]
        one, rest = pieces[place], pieces[others]
        total += int((_apart(one, rest) & _apart(rest, one)).sum())
    return total


def curves_through_nodes(layout: Layout, sizes: Sequence[Size]) -> int:
    """Return how many curves run through a node."""
    x, y = np.array(layout.x), np.array(layout.y)
    width, height = np.array(sizes).T
    count = 0
    for points in [c for c in layout.lines if c] + [b.points for b in layout.branches]:
        curve = _flat(points)[1:-1]
        beside = np.abs(curve[:, :1] - x) < width / 2
        count += bool((beside & (np.abs(curve[:, 1:] - y) < height / 2)).any())
    return count


def _flat(points: Sequence[tuple[float, float]], steps: int = 8) -> np.ndarray:
    """Return a curve of cubic pieces as a polyline."""
    corners = np.array(points)
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    basis = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    pieces = [
        sum(b * corner for b, corner in zip(basis, corners[i : i + 4], strict=True))
        for i in range(0, len(corners) - 1, 3)
    ]
    return np.vstack([*pieces, corners[-1:]])


def _apart(line: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Whether the ends of `pieces` are on different sides of `line` (either may be many)."""
    x, y, to_x, to_y = line.T
    sides = [
        (to_x - x) * (pieces.T[k + 1] - y) - (to_y - y) * (pieces.T[k] - x)
        for k in (0, 2)
    ]
    return sides[0] * sides[1] < 0


def plain_graph(root: UOp) -> tuple[list[UOp], list[Size], list[Edge]]:
    """Return the nodes of a graph but its constants, their sizes, and the edges."""
    nodes = [node for node in root.toposort() if not node.is_const]
    place = {node: i for i, node in enumerate(nodes)}
    edges = [(place[s], i) for n, i in place.items() for s in n.src if s in place]
    return nodes, [(max(44.0, 7.0 * len(n.op.name) + 18), 28.0) for n in nodes], edges


def records() -> Iterator[PassRecord]:
    """Yield the passes with rewrites of the tour's kernels, the tests' own and some more."""
    explored = [explore(tensor) for tensor in _tensors()]
    tile = explored[0].kernels[1].ast
    with observe() as watching:
        for opt in TILE:
            tile, _ = apply_opt(tile, opt, TARGETS["LLVM"])
        kernels = [kernel.ast for ex in explored for kernel in ex.kernels]
        for graph in [tile, *kernels, *(e.graph for e in EXAMPLES.values())]:
            lower(graph, TARGETS["LLVM"])
    found = [*(record for ex in explored for record in ex.passes), *watching.records]
    yield from (record for record in found if is_replayable(record))


def _tensors() -> Iterator[Tensor]:
    """Yield the tour's two expressions, and some in which other rules fire."""
    squares = _ones(64, 1280)
    distance = (squares * squares).sum(axis=0) - 2 * (_ones(512, 64) @ squares)
    yield distance.argmin(axis=1)
    rows = _ones(512, 8, 8).pad(((0, 0), (1, 1), (0, 0)))
    yield (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4
    padded = _ones(64, 64).pad(((0, 0), (1, 2))) / 4
    yield (padded - padded.max(axis=1, keepdim=True)).exp2()
    yield _ones(8, 8)[Tensor([1, 2, 3])]
    yield Tensor.cat(_ones(4, 4), _ones(4, 4), dim=1).flip(0)
    yield (_ones(16, 8) @ _ones(12, 8).T / 8**0.5).softmax(-1) @ _ones(12, 8)
    yield _ones(2, 3, 16, 16).conv2d(_ones(4, 3, 3, 3), padding=1)
    yield _ones(8, 16).std(axis=1)


def _ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


@dataclass(frozen=True)
class Moves:
    """How far one rewrite moved what it left alone: the most, in layers; `nodes` it had."""

    rule: str
    most: float
    nodes: int


def moves() -> Iterator[Moves]:
    """Yield, for each rewrite of each record, how far it moves nodes."""
    for record in records():
        nodes, sizes, edges = plain_graph(state(record, 0))
        layout = arrange(sizes, edges)
        for number, match in enumerate(record.matches, 1):
            now, sizes, now_edges = plain_graph(state(record, number))
            old = came_from(now, now_edges, nodes, edges)
            new = follow(sizes, now_edges, layout, old)
            places = {node: i for i, node in enumerate(nodes)}
            common = [(i, places[n]) for i, n in enumerate(now) if n in places]
            far = [
                max(abs(new.x[i] - layout.x[k]), abs(new.y[i] - layout.y[k]))
                for i, k in common
            ]
            yield Moves(
                repr(match.rule), max(far, default=0.0) / layout.pitch, len(now)
            )
            nodes, edges, layout = now, now_edges, new
