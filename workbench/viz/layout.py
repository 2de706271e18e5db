"""The layered layout of a graph as a whole: where the nodes of a still picture, and of a plan, go.

It is the page's own: `workbench/viz/static/layout/whole.js`, run by V8 in this process (the
package mini-racer, which is loaded when the first graph is laid out). One engine lays all graphs
out; the page does so without Python, and Python without a browser.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.forking import no_fork
from workbench.viz.bundle import joined, modules_of, variable

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

MODULE = (Path(__file__).parent / "static/layout/whole.js").resolve()
MOST_BYTES = 1 << 30
"""Above this V8 ends what it runs, with an error; without a limit it would end the process."""


class Layered(NamedTuple):
    """`x` is the middle of each node, `layer` its layer from the top; `routes` are the points
    (x, layer) of each edge, in the order given, the last at its port (an edge that no line
    stands for has but two); `width` is that of the whole drawing."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]
    width: float


def layered(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 16.0
) -> Layered:
    """Return the layout of nodes with these widths and edges (source, target), no cycle.

    The edges into one target are in the order of its operands.
    Errors: WorkbenchError where the engine is not installed.
    """
    graph = {"widths": list(widths), "edges": list(edges), "gap": gap}
    whole = _engine(os.getpid()).call("layoutWhole", graph, max_memory=MOST_BYTES)
    x, layer = whole["x"], whole["layer"]
    # a line once, of which its edges are parts: a hub's are as long as the graph is deep
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
def _engine(process: int) -> MiniRacer:
    """Return V8 with the page's layout in it; a forked process has one of its own.

    It begins in a thread that no event loop runs in. Otherwise it would take that loop for its
    own, and wait, while a cell of a notebook runs, for what only the end of the cell lets go on.
    """
    with no_fork, ThreadPoolExecutor(1) as thread:
        return thread.submit(_started).result()


def _started() -> MiniRacer:
    try:
        from py_mini_racer import MiniRacer
    except (ImportError, OSError) as error:
        raise WorkbenchError(
            "the graph cannot be laid out",
            f"V8 cannot be loaded: {error}",
            "pip install mini-racer",
        ) from error
    engine = MiniRacer()
    # never freed: a forked process would wait for threads that only its parent has
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    script = joined(modules_of([MODULE]))
    engine.eval(f"{script}const {{layoutWhole}} = {variable(MODULE)};")
    return engine
