"""Links from code and loops to nodes, as rows of a record, which the page highlights.

The link of a line of code has the axes around it, the nodes of the program that it computes, and
the user's lines; that of an instruction also has the lines of source that it was compiled from. The
origin of a node is in its own row: `causes`, each one step back.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import Language
from workbench.base.source import SourceLine
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.compiled import compiled as compiled_from
from workbench.kernel.kernel import Compiled, Kernel
from workbench.pipeline import FIRST_OF_LOWERING, Recorded, recorded, require_core
from workbench.viz.listing.instructions import Statements
from workbench.viz.model.ancestry import WHOLE
from workbench.viz.model.provenance import Links, Origin
from workbench.viz.record import passes
from workbench.viz.record.nodes import Lines, Nodes
from workbench.viz.schema.record import CauseRow
from workbench.viz.schema.variant import CodeLink

MOST_NODES = 12
"""Most nodes of a link, and most causes of a node."""
MOST_OF_STATEMENT = 32
"""Most nodes of the link of a statement in a loop nest."""


@dataclass(frozen=True, slots=True)
class Linker:
    """The builder of the links of one compilation; rows that they refer to are added to the
    record."""

    links: Links
    nodes: Nodes
    lines: Lines
    passes: tuple[int | None, ...]
    """The place in the record of every pass before the code; None for one that the record lacks."""
    statements: Statements
    _places: dict[int, tuple[tuple[SourceLine, ...], list[int]]] = field(default_factory=dict)
    """Lines and their places, by the identity of the tuple of lines: equal lines are one tuple (see
    `Links`), and hashing it takes longer than the rest of a link."""

    def elsewhere(self, compiled: Compiled) -> Linker | None:
        """Return the linker of the same program in another language; None if it is another
        program."""
        if compiled.built.linear != self.links.linear:
            return None
        return replace(self, links=replace(self.links, positions=compiled.built.source.lines))

    def source(self) -> list[CodeLink | None]:
        """Return the link of every line of the source; None for a brace or a comment. The first and
        the last line of a loop have the user's lines of its whole body."""
        links = [
            self._link(self.links.of_line(number), places) if places else None
            for number, places in enumerate(self.links.positions, 1)
        ]
        code_links = [link for link in links if link is not None]
        for places, link in zip(self.links.positions, links, strict=True):
            if link is not None and self._is_loop(places):
                depth = len(link.axes)
                inside = [k for k in code_links if k.axes[:depth] == link.axes]
                lines = (line for other in inside for line in other.lines)
                link.lines = list(dict.fromkeys(lines))
        return links

    def _is_loop(self, places: Sequence[int]) -> bool:
        linear = self.links.linear
        return any(linear[p].op in (Ops.LOOP, Ops.ENDLOOP) for p in places)

    def assembly(self, code: Sequence[AsmLine]) -> list[CodeLink | None]:
        """Return the link of every line of the assembly; None for a label, and for an instruction
        of unknown origin."""
        links: list[CodeLink | None] = []
        for line, origin in zip(code, self.links.of_assembly(code), strict=True):
            number = line.source_line or 0
            places = self.links.positions[number - 1] if number else ()
            is_known = bool(places or origin.axes)
            link = self._link(origin, places) if is_known else None
            if link is not None and number:
                link.source = [number]
            links.append(link)
        return links

    def _link(self, origin: Origin, places: Sequence[int]) -> CodeLink:
        program = dict.fromkeys(self.links.linear[p] for p in places)
        nodes = self.nodes.add_all(list(program)[:MOST_NODES])
        statement = self.statements.of([self.links.linear[p] for p in sorted(places)])
        return CodeLink(list(origin.axes), nodes, self._lines(origin), [], statement)

    def tree(self, lines: Sequence[tuple[str, UOp | None]]) -> list[CodeLink | None]:
        """Return the link of every line of a statement tree; None for a line without a node, such
        as a brace."""
        nodes = {node for _, node in lines if node is not None}
        numbers = self.statements.of_tree(self.links, nodes)
        links: list[CodeLink | None] = []
        for _, node in lines:
            if node is None:
                links.append(None)
                continue
            places, user_lines = self.statement(node)
            axes = sorted(r.axis_name for r in node.ranges)
            axes += [r.axis_name for r in _own_range(node)]
            number = numbers.get(node)
            links.append(CodeLink(axes, places[:MOST_NODES], user_lines, [], number))
        return links

    def statement(self, node: UOp) -> tuple[list[int], list[int]]:
        """Return the places of a statement's nodes, and of the user's lines that it comes from."""
        origin = self.links.below(node)
        kernel = islice(origin.kernel, MOST_OF_STATEMENT)
        return self.nodes.add_all((node, *kernel)), self._lines(origin)

    def causes(self, known: Container[UOp] = ()) -> Iterator[tuple[int, list[CauseRow]]]:
        """Yield each node of the record that has causes, with these: the rewrite or pass, and the
        node before. Where the record lacks that node, the cause is a node further back. `known`
        nodes are left out if all their causes are in the base of the ancestry."""
        cache: dict[UOp, list[CauseRow]] = {}
        ancestry = self.links.ancestry
        for node in ancestry:
            if node in self.nodes and (node not in known or ancestry.has_own(node)):
                rows = self._back(node, cache)
                if rows:
                    yield self.nodes.add(node), rows[:MOST_NODES]

    def _back(self, node: UOp, cache: dict[UOp, list[CauseRow]]) -> list[CauseRow]:
        if node in cache:
            return cache[node]
        cache[node] = rows = []
        for place, number, _, source in self.links.ancestry.causes(node):
            row_place = self.passes[place]
            if number > passes.MOST_REWRITES:  # that rewrite is not listed
                number = WHOLE
            if row_place is not None and source in self.nodes:
                rows.append(CauseRow(row_place, number, self.nodes.add(source)))
                continue
            for row in self._back(source, cache):
                if row_place is not None and number >= row.number:
                    row = CauseRow(row_place, number, row.node)
                rows.append(row)
        return rows

    def _lines(self, origin: Origin) -> list[int]:
        memoised = self._places.get(id(origin.lines))
        if memoised is None:
            places = [self.lines.add(line) for line in origin.lines]
            memoised = origin.lines, [place for place in places if place is not None]
            self._places[id(origin.lines)] = memoised
        return list(memoised[1])


def _own_range(node: UOp) -> tuple[UOp, ...]:
    return node.src[:1] if node.op is Ops.LOOP else ()


def readable(kernel: Kernel, device: str = "", language: Language | None = None) -> Recorded:
    """Return a kernel up to its source in `language` (None: the one that `device` runs), with the
    records of its passes. `device` need not be available here ("": the device in whose language all
    kernels can be read).

    Errors: CompileError for a tile of a tensor core that the device does not have.
    """
    reader = device or Device.reader.name
    require_core(kernel.ast, reader)
    with without(kernel.rules_off):
        return recorded(kernel.ast, reader, upto="source", language=language)


def writers(device: str, language: str) -> Iterator[tuple[DeviceInfo, Language | None]]:
    """Yield the devices that may write a kernel in a language: its own, or one whose language all
    kernels can be read in; last its own in the language that it runs."""
    info, reader = Device[device], Device.reader
    own = next((each for each in info.languages if each.name == language), None)
    if own is None and reader.language is not None and reader.language.name == language:
        yield reader, None
    elif own is None and (renderer := Device.renderer_of(language)):
        yield renderer
    yield info, own


def loaded(kernel: Kernel, source: Recorded) -> Compiled:
    """Return a kernel compiled from its `readable` source, with the records of its passes."""
    reader = Device.reader.name
    with without(kernel.rules_off):
        _, opts = recorded(kernel.original, reader, "kernel", kernel.applied_opts)
        program, load = recorded(source[0], reader)
    record = program, (*opts, *source[1], *load)
    return compiled_from(reader, record, kernel.estimates)


def to_read(compiled: Compiled, source: Recorded, device: str = "") -> Compiled:
    """Return a compiled kernel with its `readable` source in the language of a device ("": as in
    `readable`), and the passes that led to that."""
    reader = device or Device.reader.name
    stages, passes = source
    is_same = compiled.built.source.language == stages.source.language
    if compiled.device == reader and is_same:
        return compiled
    opts = takewhile(lambda p: p.name not in FIRST_OF_LOWERING, compiled.passes)
    return replace(compiled, device=reader, built=stages, passes=(*opts, *passes))
