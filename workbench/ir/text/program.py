"""The readable text of a linear program, line by line.

    for r0 in 4 (reduce):
      As[l0*16 + l1] = p1[g0*1024 + l0*64 + l1 + r0*16]
      barrier

What a line computes on the way stands in it, unless it is used again or the line would be long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.phrases import ATOM, LEAVES, Phrase, phrase
from workbench.ir.text.printer import NodeNames
from workbench.ir.text.readable import TreeWriter

_OPENS = frozenset({Ops.LOOP, Ops.IF})
_CLOSES = frozenset({Ops.ENDLOOP, Ops.ENDIF})
_NO_LINE = frozenset({Ops.BLOCK, Ops.DEFINE, *_CLOSES})
_STATEMENTS = frozenset({Ops.STORE, Ops.SET, Ops.BARRIER, Ops.SPECIAL, Ops.LOOP, Ops.IF})


class ProgramLine(NamedTuple):
    """A line, `depth` loops deep. `positions` are those in the program of the loads that stand in
    it, in order, and at the end that of the node whose line it is. `name` is that of the value or
    the register that it computes, "" where it computes none."""

    text: str
    depth: int
    positions: tuple[int, ...]
    name: str = ""


def program_lines(linear: Sequence[UOp]) -> list[ProgramLine]:
    """Return the lines of a linear program. A load stands in the line that uses it where that is
    the next one that does anything."""
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
        """Learn how nodes read that have no place in the program: axes, memory, constants."""
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
    """Return the loads that get lines of their own: those that are used several times, or after
    another statement than the next."""
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
