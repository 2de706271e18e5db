"""The layered layout of a whole graph: positions of the nodes of a still picture, and of a plan.

It is the page's own: `workbench/viz/page/layout/whole.js`, run by V8 (see `javascript.py`). One
engine lays all graphs out; the page does so without Python, and Python without a browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from workbench.viz.javascript import JavaScript
from workbench.viz.page.document import joined, modules_of, variable

MODULE = (Path(__file__).parent / "page/layout/whole.js").resolve()


class Layered(NamedTuple):
    """`x` is the middle of each node, `layer` its layer from the top; `routes` are the points
    (x, layer) of each edge, in the order of `edges`, the last at its port (an edge without a line
    of its own has two points); `width` is that of the whole drawing."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]
    width: float


def layered(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 16.0
) -> Layered:
    """Return the layout of nodes with these widths and acyclic edges (source, target).

    The edges into one target are in the order of its operands.
    Errors: WorkbenchError where the engine is not installed.
    """
    graph = {"widths": list(widths), "edges": list(edges), "gap": gap}
    whole = _engine().call("layoutWhole", graph)
    x, layer = whole["x"], whole["layer"]
    # edges that share a line are drawn once: a hub's lines are as long as the graph is deep
    lines = [
        tuple((at, top + down) for down, at in enumerate([first, *line]))
        for first, top, line in zip(x, layer, whole["lines"], strict=True)
    ]
    routes = tuple(
        (*lines[source][: 1 + (chain or 0)], (port, layer[target]))
        for (source, target), port, chain in zip(
            edges, whole["ports"], whole["chains"], strict=True
        )
    )
    return Layered(tuple(x), tuple(layer), routes, whole["width"])


@cache
def _engine() -> JavaScript:
    script = joined(modules_of([MODULE]))
    return JavaScript(f"{script}const {{layoutWhole}} = {variable(MODULE)};")
