"""Readable text of the IR: graphs, statement trees, and linear programs line by line.

    for r0 in 4 (reduce):
      As[l0*16 + l1] = p1[g0*1024 + l0*64 + l1 + r0*16]
      barrier

A value stands in the line that uses it, unless it is used again or the line would be long.

Sections: Readable text of the IR; The readable text of a linear program, line by line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.phrases import ATOM, LEAVES, LOOSE, TENSOR, Part, Phrase, phrase, typed
from workbench.ir.text.printer import NodeNames, to_text

# --------------------------------------------------------------------------------------------------
# Readable text of the IR: infix operators, indexes in brackets, loops indented.
#
#     s3 = REDUCE(add, p1[g0*512 + r0] * p2[r0*512 + g1], r0)
#     STORE(p0[g0*512 + g1], max(s3, 0.0))  END g0 g1
#
# Shared values and long ones get a name and a line of their own, so the text grows with the graph
# and not with the expression it stands for. It is for reading and for diffs; `printer.py` has the
# text that parses back, `phrases.py` the phrase of each node.

SHORT = 24
"""Most characters of an index that is repeated where it is used."""
LONG = 90
"""Most characters of an expression that has no line of its own."""
Text = tuple[str, int]
"""A text and how tightly it binds."""


def to_expr(ir: UOp | Sequence[UOp]) -> str:
    """Return readable text of a graph of any level (for a linear program, its `to_text`)."""
    if not isinstance(ir, UOp):
        return to_text(ir)
    if ir.op is Ops.BLOCK:
        return "\n".join(line for line, _ in tree_lines(ir))
    nodes = ir.toposort()
    shapes = any(n.op in TENSOR for n in nodes)
    writer = TreeWriter(NodeNames(), shapes)
    lines = _header(ir, list(nodes), writer)
    roots = ir.src if ir.op is Ops.SINK else (ir,)
    writer.count(nodes)
    for root in roots:
        lines += [*writer.lines_before(root), _root_line(root, writer)]
    return "\n".join(lines)


def _header(ir: UOp, nodes: list[UOp], writer: TreeWriter) -> list[str]:
    """Return a line per buffer and per axis of a whole kernel, and its loop order."""
    lines = []
    whole = ir.arg is not None and ir.op in (Ops.SINK, Ops.BLOCK)
    if whole:
        lines.append(f"kernel {ir.arg.name}")
    leaves = [n for n in nodes if n.op in LEAVES]
    place = {name: i for i, name in enumerate(ir.arg.order)} if whole else {}
    leaves.sort(key=lambda n: (n.op is Ops.RANGE, _rank(n, place)))
    for node in leaves:
        name = writer.names.give(node)
        if node.op is Ops.BUFFER:
            lines.append(f"{name} = BUFFER {node.device} {typed(node)}")
        elif whole and node.op is Ops.PARAM:
            lines.append(f"{name} = PARAM {node.slot} {node.dtype}[{node.length}]")
        elif whole and node.op is Ops.RANGE and (ir.op is Ops.SINK or node.axis_kind.is_lane):
            lines.append(f"{name} = RANGE {node.extent} {node.axis_kind.words}")
        elif whole and node.op is Ops.DEFINE:
            sizes = "".join(f"[{n}]" for n in node.memory_shape)
            lines.append(f"{name} = DEFINE {node.space} {node.dtype}{sizes}")
    if whole and place:
        lines.append("order " + " ".join(place))
    if whole and not ir.arg.work_groups:
        lines.append("no work-groups")
    return lines


def _rank(node: UOp, place: dict[str, int]) -> int:
    if node.op is Ops.PARAM:
        return node.slot
    return place.get(node.axis_name, len(place)) if node.op is Ops.RANGE else 0


def _root_line(root: UOp, writer: TreeWriter) -> str:
    if parts := phrase(root).root:
        return writer.filled(root, parts)
    words = writer.words(root)
    if writer.shapes and root.dtype is not dtypes.void and root not in writer.names.by_node:
        return f"{typed(root)} = {words}"
    return words


def tree_lines(block: UOp) -> list[tuple[str, UOp | None]]:
    """Return the lines of a statement tree, each with its loop or statement (None for the header
    and closing braces); each statement names its own shared values."""
    writer = TreeWriter(NodeNames(), shapes=False)
    header = _header(block, list(block.toposort()), writer)
    lines: list[tuple[str, UOp | None]] = [(line, None) for line in header]
    stack: list[tuple[UOp | None, int]] = [(s, 0) for s in reversed(block.src)]
    while stack:
        node, depth = stack.pop()
        pad = "  " * depth
        if node is None:
            lines.append((f"{pad}}}", None))
            continue
        own = phrase(node)
        if own.body is not None:
            for head in node.src[: own.body]:
                writer.count(head.toposort())
                lines += [(pad + line, node) for line in writer.lines_before(head)]
            lines.append((pad + writer.filled(node, own.statement), node))
            stack.append((None, depth))
            stack.extend([(s, depth + 1) for s in reversed(node.src[own.body :])])
            continue
        writer.count(node.toposort())
        lines += [(pad + line, node) for line in writer.lines_before(node)]
        parts = own.statement
        words = writer.filled(node, parts) if parts else writer.words(node)
        lines.append((pad + words, node))
    return lines


def statement_lines(block: UOp) -> dict[UOp, tuple[str, ...]]:
    """Return the lines of each STORE and ACCUMULATE of a statement tree, as `to_expr` has them."""
    writer = TreeWriter(NodeNames(), shapes=False)
    _header(block, list(block.toposort()), writer)
    lines_by_node: dict[UOp, tuple[str, ...]] = {}
    for node in tree_statements(block):
        writer.count(node.toposort())
        before = writer.lines_before(node)
        target, sign, value, *_lanes = phrase(node).statement
        statement = writer.filled(node, (target, sign, value))
        lines_by_node[node] = (*before, statement)
    return lines_by_node


class TreeWriter:
    """Writes nodes, sources first, and decides which get lines of their own."""

    def __init__(self, names: NodeNames, shapes: bool):
        self.names, self.shapes = names, shapes
        self._texts: dict[UOp, Text] = {}
        self._uses: Counter[UOp] = Counter()

    def count(self, graph: dict[UOp, None]) -> None:
        """Start a graph: nodes that it uses twice will get names."""
        self._texts = {}
        self._uses = Counter(s for node in graph for s in node.src)

    def words(self, node: UOp, tight: int = LOOSE) -> str:
        """Return a node's text, in parentheses if it binds less than `tight`."""
        words, binds = self._texts.get(node) or (self.names.give(node), ATOM)
        return words if binds >= tight else f"({words})"

    def filled(self, node: UOp, parts: Sequence[Part]) -> str:
        """Return parts of a node's phrase with the texts of its sources."""
        words = []
        for part in parts:
            if isinstance(part, str):
                words.append(part)
                continue
            source, tight, signed = part
            fill = self._signed if signed else self.words
            words.append(fill(node.src[source], tight))
        return "".join(words)

    def _signed(self, node: UOp, tight: int) -> str:
        """Return the sign and the text of the right side of a sum: `a + -b` reads `a - b`."""
        negated = phrase(node).negated
        if negated and node not in self.names.by_node:
            return f"- {self.filled(node, negated)}"
        return f"+ {self.words(node, tight)}"

    def lines_before(self, root: UOp) -> list[str]:
        """Return the lines that name the nodes `root` uses; afterwards `words(root)` can stand
        alone."""
        lines = []
        for node in root.toposort(lambda n: n not in self._texts):
            if node in self._texts:
                continue
            if node.op in LEAVES:
                self._texts[node] = self.names.give(node), ATOM
                continue
            own = phrase(node)
            words, binds = self.filled(node, own.parts), own.binds
            if self.has_line(node, own, words) and (node is not root or self._uses[node]):
                name = self.names.give(node)
                of = f": {typed(node)}" if self.shapes else ""
                lines.append(f"{name}{of} = {words}")
                words, binds = name, ATOM
            self._texts[node] = words, binds
        return lines

    def has_text(self, node: UOp) -> bool:
        """Whether a node has a text already."""
        return node in self._texts

    def set_text(self, node: UOp, words: str, binds: int) -> None:
        """Set the text of a node, and how tightly it binds."""
        self._texts[node] = words, binds

    def has_line(self, node: UOp, own: Phrase, words: str) -> bool:
        """Whether a node, of which `words` is the text, gets a name and a line of its own."""
        if own.line == "never":
            return False
        if own.line == "always" or len(words) > LONG:
            return True
        is_short = own.line == "shared and long" and len(words) <= SHORT
        return self._uses[node] > 1 and not is_short


# --------------------------------------------------------------------------------------------------
# The readable text of a linear program, line by line.

_OPENS = frozenset({Ops.LOOP, Ops.IF})
_CLOSES = frozenset({Ops.ENDLOOP, Ops.ENDIF})
_NO_LINE = frozenset({Ops.BLOCK, Ops.DEFINE, *_CLOSES})
_STATEMENTS = frozenset({Ops.STORE, Ops.SET, Ops.BARRIER, Ops.SPECIAL, Ops.LOOP, Ops.IF})


class ProgramLine(NamedTuple):
    """A line inside of `depth` loops and IFs. `positions` are steps of the program: the loads in
    the line, in order, and at the end the node that the line is of. `name` is the value or the
    register that it computes; "" for none. `number` is that of a line of source text, from 1 (0: it
    is none)."""

    text: str
    depth: int
    positions: tuple[int, ...]
    name: str = ""
    number: int = 0


def line_at(lines: Sequence[ProgramLine], position: int) -> int | None:
    """Return the number of the line that has a step, or else the step after it; None for a step
    that no line has, or follows."""
    ends = ((place, number) for number, line in enumerate(lines) for place in line.positions)
    return min((each for each in ends if each[0] >= position), default=(0, None))[1]


def program_lines(linear: Sequence[UOp]) -> list[ProgramLine]:
    """Return the lines of a linear program. A load stands in the line that uses it, if that is the
    only use and no other statement comes before it."""
    return list(_ProgramWriter(tuple(linear)).lines())


class _ProgramWriter:
    def __init__(self, linear: tuple[UOp, ...]):
        self.linear = linear
        self._writer = TreeWriter(NodeNames(), shapes=False)
        self._writer.count(dict.fromkeys(linear))
        self._named_loads = _named_loads(linear)
        self._loads: dict[UOp, tuple[int, ...]] = {}
        """The positions of the loads in the text of a node."""
        registers = {s for n in linear for s in n.src if s.op is Ops.REG}
        self._registers = Counter(register.name for register in registers)

    def lines(self) -> Iterator[ProgramLine]:
        """Yield the lines in order."""
        depth = 0
        for position, node in enumerate(self.linear):
            depth -= node.op in _CLOSES
            if node.op not in _NO_LINE:
                yield from self._line(position, node, depth)
            depth += node.op in _OPENS

    def _line(self, position: int, node: UOp, depth: int) -> Iterator[ProgramLine]:
        writer, own = self._writer, phrase(node)
        for source in node.src:
            self._read(source)
        inside = [p for s in node.src for p in self._loads.get(s, ())]
        inside += [position] if node.op is Ops.LOAD else []
        if node.op in _STATEMENTS:
            text = writer.filled(node, own.statement or own.parts)
            name = writer.words(node.src[0]) if node.op is Ops.SET else ""
            yield ProgramLine(text, depth, (*inside, position), name)
            return
        words = writer.filled(node, own.parts)
        if self._has_line(node, own, words):
            name = writer.names.give(node)
            places = tuple(dict.fromkeys((*inside, position)))
            yield ProgramLine(f"{name} = {words}", depth, places, name)
            writer.set_text(node, name, ATOM)
            return
        writer.set_text(node, words, own.binds)
        self._loads[node] = tuple(dict.fromkeys(inside))

    def _has_line(self, node: UOp, own: Phrase, words: str) -> bool:
        if node.op is Ops.LOAD:
            return node in self._named_loads
        if node.op is Ops.WMMA:
            return True
        return self._writer.has_line(node, own, words)

    def _read(self, root: UOp) -> None:
        """Set the texts of nodes that are no steps of the program: axes, memory, constants."""
        writer = self._writer
        for node in root.toposort(lambda n: not writer.has_text(n)):
            if writer.has_text(node):
                continue
            own = phrase(node)
            if node.op is Ops.REG:
                several = self._registers[node.name] > 1
                lane = f"[{node.first_lane}]" if several else ""
                writer.set_text(node, node.name + lane, ATOM)
            elif node.op in LEAVES:
                writer.set_text(node, writer.names.give(node), ATOM)
            else:
                writer.set_text(node, writer.filled(node, own.parts), own.binds)


def _named_loads(linear: Sequence[UOp]) -> set[UOp]:
    """Return the loads that get lines of their own: those with several uses, and those with a
    statement between them and their use."""
    statement = 0
    statements: dict[UOp, int] = {}
    named: set[UOp] = set()
    users: Counter[UOp] = Counter()
    inside: dict[UOp, set[UOp]] = {}
    for node in linear:
        loads = {load for s in node.src for load in inside.get(s, ())}
        if node.op is Ops.LOAD:
            statements[node] = statement
            loads.add(node)
        users.update(s for s in node.src if s.op is Ops.LOAD)
        named |= {load for load in loads if statements[load] != statement}
        if node.op in _STATEMENTS:
            statement += 1
        else:
            inside[node] = loads
    return named | {load for load, count in users.items() if count > 1}
