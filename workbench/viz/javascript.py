"""The page's JavaScript, run from Python by V8 in a process of its own: graph layout and drawing.

Sections: Calls of the page's JavaScript from Python, run by V8 in a process of its own; The
layout of a whole graph, and its drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.child_process import ChildProcess, Head, LastingProcess
from workbench.base.errors import WorkbenchError
from workbench.viz.page.document import joined, modules_of, variable

# --------------------------------------------------------------------------------------------------
# Calls of the page's JavaScript from Python, run by V8 in a process of its own.
#
# V8 (the package mini-racer) reserves a large part of a process's address space, so that LLVM's JIT
# in the same process finds no room for a program near its data, and ends the process. In another
# process neither that nor an error in a script can harm the notebook.

PROCESS = Path(__file__).with_name("javascript_process.py")


class JavaScript:
    """A script whose functions can be called. Its process starts at the first call, and again at a
    call after it has ended."""

    def __init__(self, script: str):
        self.script = script
        self._lasting = LastingProcess(_Engine)

    def call(self, function: str, argument: object) -> Any:
        """Return the result of a function (an expression) for an argument; both are JSON.
        Errors: WorkbenchError if V8 is not installed, and for an error of the function.
        """
        request = {"function": function, "argument": argument}
        try:
            reply = self._lasting.converse(lambda: self._ask(request))
        except EOFError:
            because = "the process that runs it has ended"
            raise WorkbenchError("JavaScript gave no answer", because, "again") from None
        if "error" in reply:
            raise WorkbenchError("JavaScript failed", reply["error"])
        return reply["value"]

    def end(self) -> None:
        """End the process, if there is one."""
        self._lasting.end()

    def _ask(self, request: Head) -> Head:
        engine = self._lasting.running()
        if not engine.has_script:
            engine.send({"script": self.script})
            reply, _ = engine.receive()
            if "error" in reply:
                raise _cannot_load(reply["error"])
            engine.has_script = True
        engine.send(request)
        return engine.receive()[0]


class _Engine(ChildProcess):
    """A process with V8, and whether it has evaluated the script."""

    def __init__(self) -> None:
        if find_spec("py_mini_racer") is None:
            raise _cannot_load("the package mini-racer is not installed")
        super().__init__([str(PROCESS)])
        self.has_script = False


def _cannot_load(problem: str) -> WorkbenchError:
    because = f"V8 cannot be loaded: {problem}"
    hint = "pip install mini-racer"
    return WorkbenchError("the graph cannot be laid out", because, hint)


# --------------------------------------------------------------------------------------------------
# The layout of a whole graph, and its drawing: the positions of the nodes of a still picture and of
# a plan, and a still plan as SVG.
#
# Both are the page's own: `workbench/viz/page/layout/whole.js` and `panels/plan/still.js`. One
# script lays all graphs out, and one draws them: in the page without Python, in Python without a
# browser.

_PAGE = Path(__file__).resolve().parent / "page"
LAYOUT, STILL = _PAGE / "layout/whole.js", _PAGE / "panels/plan/still.js"


class Layered(NamedTuple):
    """`x` is the middle of each node, `layer` its layer from the top. `routes` has the points
    (x, layer) of each edge, in the order of the edges: the last point is at the edge's port, and an
    edge without a line of its own has two points. `width` is the width of the whole drawing."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]
    width: float


def layered(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 16.0
) -> Layered:
    """Return the layout of nodes with these widths and acyclic edges (source, target).

    The edges into one target are in the order of its operands.
    Errors: WorkbenchError if V8 is not installed.
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


def still_plan(record: Mapping[str, Any]) -> str:
    """Return the drawing of a plan as SVG, without style; `record` has the parts that `stillPlan`
    needs.
    Errors: WorkbenchError if V8 is not installed.
    """
    return str(_engine().call("stillPlan", record))


@cache
def _engine() -> JavaScript:
    script = joined(modules_of([LAYOUT, STILL]))
    names = f"{{...{variable(LAYOUT)}, ...{variable(STILL)}}}"
    return JavaScript(f"{script}const {{layoutWhole, stillPlan}} = {names};")
