"""Graphs to lay out in the page, what crosses in a drawing, and how far a rewrite moves nodes.

data/*.json holds graphs: labels, sizes, edges (source, target) in the order of operands, and
`dot_crossings`, what Graphviz 2.43 draws of them (edges that share an end left out; it knows
no ports, and so has none of the crossings that the order of operands asks for).

The layout is that of the page, so all of this asks its functions: in V8 (`Functions`), or in a
page in Chromium where text is measured, or time (`functions_page`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.tools.kernels import EXAMPLES, TARGETS
from tests.viz.browser.browser import new_page
from tests.viz.record.support import plain
from workbench.base.trace import PassRecord, observe
from workbench.ir.lower.lower import lower
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.glossary import glossary_rows
from workbench.viz.javascript import JavaScript
from workbench.viz.model.graph import FAMILIES
from workbench.viz.model.lines import UserLines
from workbench.viz.model.passes import is_replayable
from workbench.viz.page.document import joined, variable
from workbench.viz.page.document import modules as page_modules
from workbench.viz.record.nodes import Lines, Nodes, Texts
from workbench.viz.record.passes import PassRows
from workbench.viz.record.rules import RuleRows

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
STILL = {"whole": 0.95, "near": 0.93}
"""The share of rewrites that must move what they left alone by less than a layer, by what is
drawn: the whole state, or what is near the change, where a long chain that comes between two
nodes is a greater part of it all."""
BUILDERS = frozenset({"rangeify", "statement-tree", "linearize"})
"""Passes of one function, whose steps make a state of another kind piece by piece: ranges come
between neighbours, and statements go into loops."""
STILL_WHILE_BUILDING = 0.85
"""The share of their steps that must move what they left alone by less than a layer."""
FAR = 7
"""Rewrites of `records` that may move what they left alone by a layer or more. Six of them, one of
`expand-functions` and five of `decompose`, put a dozen layers of arithmetic between two neighbours:
one of the two has to move by half of those at least, whatever the layout. (While EXP was written
out in the tensor graph there was no `expand-functions`, and six was enough.)"""
BOX_HEIGHT = 34
"""Pixels; in the page every box is as high."""
TILE = (Opt(OptOps.UPCAST, "g1", 16), Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.LOCAL, "g0", 8))

Edge = tuple[int, int]
Point = tuple[float, float]

_DRAW = """([widths, edges, height]) => {
  const slots = widths.map(() => 0);
  const listed = edges.map(([a, b]) => ({a, b, slot: slots[b]++}));
  for (const edge of listed) edge.slots = slots[edge.b];
  const graph = {nodes: widths.map((w, key) => ({key, w, h: height})), edges: listed};
  const begun = performance.now();
  const {places, routes} = layoutGraph(graph);
  return {ms: performance.now() - begun, places,
    pieces: routes.map((points) => points &&
      points.slice(1).map((to, i) => linePath([points[i], to])))};
}"""
_MOVES = """(record) => {
  const samples = ({points}) => points.slice(1).flatMap(([X, Y], i) => {
    const [[x, y], parts] = [points[i], Math.ceil(Math.abs(X - points[i][0]) / 4) + 8];
    const at = (a, b, c, d, t) => {
      const u = 1 - t;
      return u ** 3 * a + 3 * u * u * t * b + 3 * u * t * t * c + t ** 3 * d;
    };
    return [...Array(parts).keys()].map((k) => {
      const middle = (y + Y) / 2;
      return [at(x, x, X, X, k / parts), at(y, middle, middle, Y, k / parts)];
    });
  });
  // all edges, the stubs, the lines through a box, the points of lines, and those of them that lie
  // on a line between two other boxes
  const crowded = ({nodes, edges}) => {
    const lines = edges.filter(({points, state}) => points && state !== "gone");
    const [cells, ways] = [new Map(), lines.map(samples)];
    const cell = ([x, y]) => `${Math.round(x / 3)} ${Math.round(y / 3)}`;
    ways.forEach((way, i) => way.forEach((point) => {
      const found = cells.get(cell(point)) ?? new Set();
      cells.set(cell(point), found.add(i));
    }));
    const isElse = (i, j) => lines[i].a !== lines[j].a && lines[i].b !== lines[j].b;
    const on = ways.map((way, i) =>
      way.filter((point) => [...cells.get(cell(point))].some((j) => isElse(i, j))).length);
    const through = ways.filter((way, i) => nodes.some((node, n) =>
      n !== lines[i].a && n !== lines[i].b && way.some(([x, y]) =>
        Math.abs(x - node.x) < node.w / 2 - 1 && Math.abs(y - node.y) < node.h / 2 - 1)));
    const all = ways.reduce((sum, way) => sum + way.length, 0);
    return [edges.length, edges.filter(({points}) => !points).length, through.length, all,
      on.reduce((sum, n) => sum + n, 0)];
  };
  const {nodes, passes} = withReadings(record);
  const moves = [];
  for (const pass of passes) {
    for (const view of ["whole", "near"]) {
      const timeline = new Timeline(nodes, pass);
      let before = new Map();
      for (let k = view === "whole" ? 0 : 1; k <= timeline.steps.length; k++) {
        const scene = view === "whole" ? wholeScene(timeline, k) : changeScene(timeline, k);
        const drawing = placedDrawing(record, scene, before);
        const now = new Map(drawing.nodes.map((node) => [node.key, node]));
        const far = [...now].filter(([key]) => before.has(key)).map(([key, {x, y}]) => {
          const was = before.get(key);
          return Math.max(Math.abs(x - was.x), Math.abs(y - was.y)) / PITCH;
        });
        const overlaps = drawing.nodes.flatMap((p, i) => drawing.nodes.slice(0, i).filter((q) =>
          Math.abs(p.x - q.x) < (p.w + q.w) / 2 - 0.1 &&
          Math.abs(p.y - q.y) < (p.h + q.h) / 2 - 0.1));
        if (before.size) {
          moves.push([view, pass.name, Math.max(0, ...far), overlaps.length, ...crowded(drawing)]);
        }
        before = now;
      }
    }
  }
  return moves;
}"""


@dataclass(frozen=True)
class Sample:
    widths: list[float]
    edges: list[Edge]
    dot_crossings: int


@dataclass(frozen=True)
class Drawing:
    """What the page draws: where the nodes are, and per edge the SVG paths of its pieces, from
    bend to bend; None for an edge of which there is only a stub. `ms` is how long it took."""

    places: list[Point]
    pieces: list[list[str] | None]
    ms: float

    @property
    def stubs(self) -> int:
        return self.pieces.count(None)


@dataclass(frozen=True)
class Move:
    """How far one rewrite moved what is drawn before and after it: the most, in layers. `view`:
    "whole" state, or what is "near" the change; `overlaps` counts boxes that stand on others,
    `stubs` the `edges` that are drawn as such, `through` those that run through boxes; of the
    `points` of all lines some lie `on` a line between other boxes."""

    view: str
    name: str
    most: float
    overlaps: int
    edges: int
    stubs: int
    through: int
    points: int
    on: int


class Functions:
    """The functions of the page without a page, in V8, for what asks nothing of a document; used as
    a page of playwright is. What is handed in and what comes back is JSON."""

    def __init__(self) -> None:
        self._script = JavaScript("globalThis.performance = Date;" + functions_script())

    def evaluate(self, function: str, argument: object = None) -> Any:
        whole = f"(argument) => ({function})(argument) ?? null"
        return self._script.call(whole, argument)


def functions_page(browser: Any) -> Any:
    """Return an offline page with the functions of the page as globals."""
    page = new_page(browser, offline=True)
    page.add_script_tag(content=functions_script())
    return page


def functions_script() -> str:
    """Return the scripts of the page, with what their modules export as globals."""
    modules = page_modules()
    exports = ", ".join(variable(module.path) for module in modules)
    return joined(modules) + f"Object.assign(globalThis, {exports});\n"


def sample(name: str) -> Sample:
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    edges = [(source, target) for source, target in data["edges"]]
    return Sample(data["widths"], edges, data["dot_crossings"])


def drawn(page: Any, widths: Sequence[float], edges: Sequence[Edge]) -> Drawing:
    """Return a graph as the page draws it."""
    layout = page.evaluate(_DRAW, [list(widths), list(edges), BOX_HEIGHT])
    places = [(place["x"], place["y"]) for place in layout["places"]]
    return Drawing(places, layout["pieces"], layout["ms"])


def drawn_crossings(drawing: Drawing) -> int:
    """Return how often the lines of a drawing cross; where lines run together they are one."""
    curves = {piece for pieces in drawing.pieces for piece in pieces or ()}
    polylines = [flat(curve) for curve in sorted(curves)]
    pieces = np.concatenate([np.hstack([p[:-1], p[1:]]) for p in polylines])
    owner = np.repeat(np.arange(len(polylines)), [len(p) - 1 for p in polylines])
    low = np.minimum(pieces[:, :2], pieces[:, 2:])
    high = np.maximum(pieces[:, :2], pieces[:, 2:])
    total = 0
    for place in range(len(pieces)):
        near = (low[place + 1 :] < high[place]) & (high[place + 1 :] > low[place])
        others = place + 1 + np.flatnonzero(near.all(axis=1))
        others = others[owner[others] != owner[place]]
        one, rest = pieces[place], pieces[others]
        total += int((_apart(one, rest) & _apart(rest, one)).sum())
    return total


def lines_through_boxes(drawing: Drawing, widths: Sequence[float]) -> int:
    """Return how many pieces of lines run through a box."""
    x, y = np.array(drawing.places).T
    count = 0
    for piece in {piece for pieces in drawing.pieces for piece in pieces or ()}:
        curve = flat(piece)[1:-1]
        beside = np.abs(curve[:, :1] - x) < np.array(widths) / 2 - 1
        count += bool((beside & (np.abs(curve[:, 1:] - y) < BOX_HEIGHT / 2 - 1)).any())
    return count


def flat(path: str, steps: int = 8) -> np.ndarray:
    """Return an SVG path of one cubic piece as a polyline."""
    numbers = [float(word) for word in re.findall(r"-?[\d.]+", path)]
    corners = np.array(numbers).reshape(4, 2)
    t = np.linspace(0, 1, steps + 1)[:, None]
    basis = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return np.array(sum(b * corner for b, corner in zip(basis, corners, strict=True)))


def _apart(line: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Whether the ends of `pieces` are on different sides of `line` (either may be many)."""
    x, y, to_x, to_y = line.T
    sides = [(to_x - x) * (pieces.T[k + 1] - y) - (to_y - y) * (pieces.T[k] - x) for k in (0, 2)]
    return sides[0] * sides[1] < 0


def moves(page: Any) -> list[Move]:
    """Return, for each rewrite of `records`, how far it moves nodes, in both views of it."""
    nodes = Nodes(Lines(), UserLines())
    passes = PassRows(nodes, Texts(), RuleRows())
    passes.add(list(records()), None)
    columns = {
        "nodes": nodes.columns,
        "readings": nodes.readings.listed,
        "families": FAMILIES,
        "passes": passes.listed,
        "glossary": list(glossary_rows()),
    }
    return [Move(*row) for row in page.evaluate(_MOVES, plain(columns))]


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
    passes = [*(record for ex in explored for record in ex.passes), *watching.records]
    yield from (record for record in passes if is_replayable(record))


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
    yield _ones(10, 6).permute(1, 0).reshape(4, 15)[:, ::2].sum(axis=1)
    yield _ones(2, 3, 12, 12).max_pool2d(2)
    yield Tensor.arange(60).reshape(4, 15) % 7 // 2


def _ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


LARGE = ("chain", "skips", "hub", "fan")


def large(kind: str, count: int) -> list[tuple[int, int]]:
    """Return the edges of a graph of one of the LARGE kinds."""
    pick = random.Random(0)
    if kind == "fan":
        return [(0, i) for i in range(1, count)]
    edges = [(i, i + 1) for i in range(count - 1)]
    if kind == "skips":
        edges += [(pick.randrange(i), i) for i in range(2, count)]
    if kind == "hub":
        edges += [(0, i) for i in range(2, count)]
    return edges
