"""Tables of a record: nodes, lines and texts, each once; and the states of a pass.

Rows refer to each other by place. Nodes are columns (a list per field), sources before users. The
label of a node is written once, when it is added. Nothing here is recursive: graphs are thousands
of nodes deep.

Sections: Tables of a record; The states of a pass, one per rewrite, each computed from the one
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.base.source import SourceLine
from workbench.base.trace import Match
from workbench.check.node_values import is_lowered, value_source
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.text.printer import own_name
from workbench.viz.model.graph import label_of, number_text
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import shape_text, short
from workbench.viz.record.offers import Readings
from workbench.viz.schema.record import LineRow, NodeColumns, ValuesOf

# --------------------------------------------------------------------------------------------------
# Tables of a record.

MOST_TEXT = 2000
"""Most characters of a text in a row; a longer one is cut, and its length is added."""


class Texts:
    """The table of the texts of passes, each once."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._places: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Return the place of `text`."""
        place = self._places.setdefault(text, len(self.listed))
        if place == len(self.listed):
            self.listed.append(text)
        return place


class Lines:
    """The table of lines of the user's code, by cell, or by file name without its folder."""

    def __init__(self) -> None:
        self.listed: list[LineRow] = []
        self._places: dict[SourceLine, int] = {}

    def add(self, line: SourceLine | None) -> int | None:
        """Return the place of a line, None for no line."""
        if line is None:
            return None
        if line not in self._places:
            self._places[line] = len(self.listed)
            self.listed.append(LineRow(str(line), bounded(line.text)))
        return self._places[line]

    def chain(self, line: SourceLine) -> list[int]:
        """Return the place of a line, then those of the lines in functions that it called."""
        return [place for one in (line, *line.inner) if (place := self.add(one)) is not None]

    def inner(self, line: SourceLine | None) -> list[int]:
        """Return the places of the lines in functions that `line` called."""
        called = () if line is None else line.inner
        return [place for inner in called if (place := self.add(inner)) is not None]


def unlisted(node: UOp) -> int:
    """Return -1, the place of a node in printed rows: these have no table of nodes."""
    return -1


class Nodes:
    """Every UOp of a record, as columns."""

    def __init__(self, lines: Lines, user_lines: UserLines, items: Iterable[ScheduleItem] = ()):
        self.columns = NodeColumns([], [], [], [], [], [], [], [], [])
        self.readings = Readings()
        self._places: dict[UOp, int] = {}
        self._order: list[UOp] = []
        self._lowered: set[UOp] = set()
        self._above_gradients: set[UOp] = set()
        self._lines, self._user_lines = lines, user_lines
        self._memory = memory_names(items, user_lines)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, node: UOp) -> bool:
        return node in self._places

    def at(self, place: int) -> UOp:
        """Return the node at a place."""
        return self._order[place]

    def family(self, place: int) -> str:
        """Return the letter of the family of the node at a place."""
        return self.readings.listed[self.columns.reading[place]].family

    def add(self, root: UOp) -> int:
        """Return the place of `root`; if it is new, it and the new nodes below it are added."""
        places = self._places
        if root not in places:
            for node in root.toposort(lambda n: n not in places):
                if node not in places:
                    self._append(node)
        return places[root]

    def add_all(self, roots: Iterable[UOp]) -> list[int]:
        """Return the places of several nodes."""
        return [self.add(root) for root in roots]

    def _append(self, node: UOp) -> None:
        shape = shape_text(lengths) if (lengths := node.shape) else ""
        arg = bounded(node_arg(node))
        is_memory = node.op is Ops.BUFFER
        name = self._memory.get(node) or self._user_lines.name(node) if is_memory else ""
        label = short(name or node_label(node, self._user_lines.on))
        columns = self.columns
        columns.op.append(node.op.name)
        columns.dtype.append("" if node.dtype is dtypes.void else str(node.dtype))
        columns.shape.append(shape)
        columns.arg.append(arg)
        columns.src.append([self._places[s] for s in node.src])
        columns.label.append(label)
        values = self._values(node)
        columns.reading.append(self.readings.add(node, arg, shape, label, values))
        columns.lines.append(list(map(self._lines.chain, self._user_lines.of(node))))
        columns.causes.append([])
        self._places[node] = len(self._places)
        self._order.append(node)

    def _values(self, node: UOp) -> ValuesOf:
        """Return how the values of a node can be computed; its sources must be added before."""
        if is_lowered(node.op) or not self._lowered.isdisjoint(node.src):
            self._lowered.add(node)
        if node.op is Ops.GRADIENT or not self._above_gradients.isdisjoint(node.src):
            self._above_gradients.add(node)
            return "none"
        source = value_source(node)
        if source is None:
            return "none"
        return "lowered" if source in self._lowered else ""


def memory_names(items: Iterable[ScheduleItem], lines: UserLines) -> dict[UOp, str]:
    """Return a name for each memory that a schedule writes: the user's name of the value, "copy",
    or "result of kernel 2"."""
    names: dict[UOp, str] = {}
    kernels = 0
    for item in items:
        kernels += item.kernel is not None
        what = "copy" if item.kernel is None else f"result of kernel {kernels}"
        for node, buffer in zip(item.nodes, item.outputs, strict=True):
            names[buffer] = lines.name(node) or what
    return names


def node_label(node: UOp, on: str = "") -> str:
    """Return the label of a node of any level, a word or two: "p1", "g0 x512", "max"; `on` is the
    device that kernels are for, where that is another than the tensors'."""
    name = own_name(node)
    if node.op is Ops.RANGE:
        return f"{name} \u00d7{node.src[0].arg}"
    if node.op is Ops.LOOP:
        return f"for {node.axis.axis_name}"
    if node.op in (Ops.REDUCE, Ops.ACCUMULATE):
        return f"{node.op.name.lower()} {arg_text(node.combines)}"
    return name or label_of(node, on)


def node_arg(node: UOp) -> str:
    """Return a node's argument as text, without the number of a BUFFER, which differs in every
    session."""
    if node.op is Ops.CONST:
        return number_text(node)
    if node.op is Ops.CUSTOM:
        return f"{node.name}, output {node.output}"
    is_memory = node.op is Ops.BUFFER
    return arg_text((node.device, node.buffer_shape) if is_memory else node.arg)


def arg_text(arg: Any) -> str:
    """Return the readable text of a node's argument: "" for none, "add (1,)", "g0 GLOBAL"."""
    if arg is None:
        return ""
    if isinstance(arg, tuple) and any(isinstance(a, (Enum, str, tuple)) for a in arg):
        return " ".join(filter(None, map(arg_text, arg)))
    if isinstance(arg, Ops):
        return arg.name.lower()
    if isinstance(arg, Enum):
        return arg.name
    return str(arg) if isinstance(arg, (str, DType)) else repr(arg)


def bounded(text: str) -> str:
    """Return `text`; a very long one is cut, and its length is added."""
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}\u2026 ({len(text):,} characters)"


# --------------------------------------------------------------------------------------------------
# The states of a pass, one per rewrite, each computed from the one before.
#
# Each node has a value in the present state: the node rebuilt over the values of its sources or,
# where a match replaces the rebuilt node, the value of its replacement. One more match changes the
# values of the nodes that it replaces and of the nodes above these, and only they are computed
# again. `workbench.ir.rewriting.rewrite.replay` returns the same states, each computed from the
# beginning.


class States:
    """A graph under rewriting: `root` is its state after the matches applied so far."""

    def __init__(self, start: UOp):
        self._start = start
        self._changes: dict[UOp, UOp] = {}
        self._values: dict[UOp, UOp] = {}
        self._rebuilt: dict[UOp, UOp] = {}
        """Per node: the node rebuilt over the values of its sources."""
        self._origins: defaultdict[UOp, set[UOp]] = defaultdict(set)
        """The inverse: per rebuilt node, the nodes that it was rebuilt from."""
        self._readers: defaultdict[UOp, set[UOp]] = defaultdict(set)
        """Per node: the nodes whose value depends on its value."""
        self._settle((start,))

    @property
    def root(self) -> UOp:
        """The present state."""
        return self._values[self._start]

    def apply(self, match: Match) -> UOp:
        """Return the state after one more match, which becomes `root`."""
        self._changes[match.before] = match.after
        stale = self._above(self._origins[match.before])
        for node in stale:
            del self._values[node]
        self._settle(stale)
        return self.root

    def _above(self, nodes: Iterable[UOp]) -> set[UOp]:
        """Return the nodes, and all nodes whose values depend on theirs."""
        dependents = set(nodes)
        stack = list(dependents)
        while stack:
            above = self._readers[stack.pop()] - dependents
            dependents |= above
            stack += above
        return dependents

    def _settle(self, nodes: Iterable[UOp]) -> None:
        """Compute the missing values of nodes, and of the nodes that they depend on."""
        begun: set[UOp] = set()  # a cycle of matches would not end without it
        stack: list[tuple[UOp, UOp | None]] = [(node, None) for node in nodes]
        while stack:
            node, replacement = stack.pop()
            if node in self._values:
                continue
            if replacement is not None:
                self._values[node] = self._values.get(replacement, self._rebuilt[node])
                continue
            missing = [s for s in node.src if s not in self._values]
            if missing and node not in begun:
                stack += [(node, None), *((s, None) for s in missing)]
                continue
            replacement = self._changes.get(self._rebuild(node))
            if replacement is None or node in begun:
                self._values[node] = self._rebuilt[node]
            else:
                begun.add(node)
                self._readers[replacement].add(node)
                stack += [(node, replacement), (replacement, None)]

    def _rebuild(self, node: UOp) -> UOp:
        """Rebuild a node over the values of its sources; store the result and return it."""
        for source in node.src:
            self._readers[source].add(node)
        rebuilt = node.rebuild(tuple([self._values.get(s, s) for s in node.src]))
        before = self._rebuilt.get(node)
        if before is not None:
            self._origins[before].discard(node)
        self._rebuilt[node] = rebuilt
        self._origins[rebuilt].add(node)
        return rebuilt
