"""The user's own line: captured once in the front end, kept beside the graph.

`record(node)` notes which line outside this package made a node. The note lives in a side
table, not in the node: equal nodes from two lines stay one node, and the first line wins.
Nothing here knows what a node is beyond its `src` and whether it is a constant.
"""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class Node(Protocol):
    """What the table needs of a graph node: weakly referable, hashed by identity."""

    @property
    def src(self) -> tuple[Any, ...]: ...

    @property
    def is_const(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's code: `name` is a file's path or a cell ("In[3]")."""

    name: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.name)}:{self.line}"

    @property
    def where(self) -> str:
        """The line as errors name it: "In[7], line 3"."""
        return f"{os.path.basename(self.name)}, line {self.line}"


_LINES: WeakKeyDictionary[Node, SourceLine] = WeakKeyDictionary()
_KNOWN: dict[tuple[str, int], SourceLine] = {}
_IS_CELL: dict[str, bool] = {}


def here() -> SourceLine | None:
    """Return the nearest line outside this package on the call stack; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    return _line(frame.f_code.co_filename, frame.f_lineno)


_PACKAGE = os.path.dirname(here.__code__.co_filename) + os.sep


def record(node: Node) -> None:
    """Note the user's line for `node` and for all below it that no line is known for yet.

    Leaves below it (constants, host memory) are shared between lines, so they get none.
    """
    if node in _LINES or node.is_const:
        return
    line = here()
    if line is None:
        return
    _LINES[node] = line
    stack = list(node.src)
    while stack:
        below = stack.pop()
        if below.src and below not in _LINES:
            _LINES[below] = line
            stack.extend(below.src)


def carry(old: Node, node: Node) -> None:
    """Give `node`, which takes the place of `old`, the line of `old`, unless it has one."""
    line = _LINES.get(old)
    if line is not None and node not in _LINES and not node.is_const:
        _LINES[node] = line


def source_of(node: Node) -> SourceLine | None:
    """Return the line that first made `node`, or None if it was not made by a user's line."""
    return _LINES.get(node)


def _line(filename: str, number: int) -> SourceLine:
    name = _cell_name(filename) or filename
    known = _KNOWN.get((name, number))
    if known is None:
        text = linecache.getline(filename, number).strip()
        known = _KNOWN[name, number] = SourceLine(name, number, text)
    return known


def _cell_name(filename: str) -> str | None:
    """Return "In[3]" for the file name that IPython gives a cell's code.

    The number is asked for each time, because running a cell again keeps the file name.
    """
    is_cell = _IS_CELL.get(filename)
    if is_cell is False:
        return None
    label = _ipython_label(filename)
    if is_cell is None:
        _IS_CELL[filename] = label is not None
    return label


def _ipython_label(filename: str) -> str | None:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return None
    named = shell.compile.format_code_name(filename)
    return None if named is None else str(named[1]).replace(" ", "")
