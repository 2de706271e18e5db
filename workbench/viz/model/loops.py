"""The loop nest of a kernel as an ordered list of rows: the loops that opts act on, with their
memory.

A row is a loop, a lane axis (computed together, no loop) or a statement. A loop or lane axis has,
for each buffer, the stride of one step (in elements) and the bytes that one whole run of it
touches, to be compared with the sizes of the caches.

Sections: The loop nest of a kernel as an ordered list of rows; Parts of an exploration as
Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from textwrap import indent

from msgspec.structs import replace

from workbench.backends.device import Device
from workbench.backends.native.machine import MEMORY, cache_ways, caches, level_of, line_bytes
from workbench.base.dtypes import dtypes
from workbench.base.target import Target
from workbench.base.trace import Match, PassRecord, unobserved
from workbench.cost.cache_traffic import WAYS, BufferUse, buffer_use
from workbench.ir.nest.accesses import (
    MemoryAccess,
    accesses,
    buffers_of,
    lanes_of,
    name_of,
    size_of,
    vector_of,
)
from workbench.ir.nest.estimates import strides, touched
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, without
from workbench.ir.schedule.plan import Decision
from workbench.ir.text.program import to_expr
from workbench.kernel.kernel import Kernel, device_call
from workbench.pipeline import stages
from workbench.viz.model.words import brief_bytes, bytes_text, short
from workbench.viz.schema.record import PassRecipe
from workbench.viz.schema.variant import BufferRow, Nest, NestRow, UseRow

# --------------------------------------------------------------------------------------------------
# The loop nest of a kernel as an ordered list of rows.

INDENT = "  "
"""The indentation of statements below a condition."""

MOST_LETTERS = 3
"""Most letters of the name of a cache in a narrow cell."""
Links = Callable[[UOp], tuple[list[int], list[int]]]
"""A function from the RANGE or statement of a row to its nodes and user's lines in a record."""


def unlinked(node: UOp) -> tuple[list[int], list[int]]:
    """Return the links of a row that belongs to no record."""
    return [], []


def kernel_nest(kernel: Kernel, links: Links = unlinked) -> Nest:
    """Return the loop nest of a kernel on its device, with the kernel's rules off.

    Errors: CompileError if the kernel needs more scratch than the device has.
    """
    with without(kernel.rules_off):
        nest = loop_nest(kernel.ast, Device[kernel.device].target, links)
    return named(nest, kernel)


def named(nest: Nest, kernel: Kernel) -> Nest:
    """Return the loop nest of an equal kernel, with the user's names for the buffers of this
    one."""
    users = {f"p{slot}": name for slot, name in enumerate(kernel.names)}
    buffers = [replace(b, user=short(users.get(b.name, ""))) for b in nest.buffers]
    return replace(nest, buffers=buffers)


def loop_nest(kernel: UOp, target: Target, links: Links = unlinked) -> Nest:
    """Return the loop nest of a kernel (a SINK) as lowering for `target` makes it.

    Errors: CompileError if the kernel needs more scratch than the target has.
    """
    with unobserved():
        return tree_nest(stages(kernel, target, upto="tree").tree, links)


def statement_text(statement: UOp) -> str:
    """Return the text of a statement, over one or more lines."""
    return to_expr(UOp(Ops.BLOCK, dtypes.void, (statement,)))


def tree_nest(block: UOp, links: Links = unlinked) -> Nest:
    """Return the loop nest of a statement tree; the output is the first of its buffers."""
    buffers = buffers_of(block)
    reader = _NestReader(buffers, links)
    rows = _body_rows(block.src, [], reader)
    written = {a.buffer for s in tree_statements(block) for a in reader.accesses(s) if a.writes}
    read = {a.buffer for s in tree_statements(block) for a in reader.accesses(s) if not a.writes}
    return Nest([_buffer_row(b, b in written, b in read) for b in buffers], rows)


class _NestReader:
    """Makes rows of statements and axes; the accesses of a statement are computed once."""

    def __init__(self, buffers: Sequence[UOp], links: Links):
        self.buffers, self._links = buffers, links
        self._by_statement: dict[UOp, tuple[MemoryAccess, ...]] = {}

    def accesses(self, statement: UOp) -> tuple[MemoryAccess, ...]:
        if statement not in self._by_statement:
            self._by_statement[statement] = accesses(statement)
        return self._by_statement[statement]

    def statement_row(self, statement: UOp, around: list[NestRow]) -> NestRow:
        """Return a row with the text of a statement, over one or more lines."""
        text = statement_text(statement)
        kinds, links = _kinds(around), self._links(statement)
        return NestRow("statement", len(around), kinds, "", "", 0, False, text, {}, *links)

    def axis_row(
        self, axis: UOp, around: list[NestRow], statements: Sequence[UOp], inside: set[UOp]
    ) -> NestRow:
        """Return a row for an axis around `statements`, with how it uses each buffer; `inside` are
        the axes that one whole run of the axis goes through, `around` the rows around this one."""
        name, kind = axis.axis_name, axis.axis_kind
        is_vector = kind.is_lane and any(vector_of(s) == name for s in statements)
        uses = self._uses(statements, inside, axis, around[-1].uses if around else {})
        return NestRow(
            "lanes" if kind.is_lane else "loop", len(around), _kinds(around), name, kind.name,
            axis.extent, is_vector, "", uses, *self._links(axis),
        )  # fmt: skip

    def _uses(
        self, statements: Sequence[UOp], inside: set[UOp], axis: UOp, outer: dict[str, UseRow]
    ) -> dict[str, UseRow]:
        by_buffer: dict[UOp, list[UOp]] = {b: [] for b in self.buffers}
        for statement in statements:
            for access in self.accesses(statement):
                by_buffer[access.buffer].append(access.flat)
        return {
            name_of(buffer): _use_row(buffer, indexes, inside, axis, outer.get(name_of(buffer)))
            for buffer, indexes in by_buffer.items()
            if indexes
        }


def _body_rows(body: Sequence[UOp], around: list[NestRow], reader: _NestReader) -> list[NestRow]:
    rows: list[NestRow] = []
    group: list[UOp] = []
    for node in body:
        if node.op is Ops.LOOP:
            rows += _group_rows(group, around, reader)
            group = []
            rows += _loop_rows(node, around, reader)
        elif node.op is Ops.BARRIER:
            continue
        elif node.op is Ops.IF:
            rows += _group_rows(group, around, reader)
            group = []
            rows += _condition_rows(node, around, reader)
        elif group and lanes_of(node) != lanes_of(group[0]):
            rows += _group_rows(group, around, reader)
            group = [node]
        else:
            group.append(node)
    return rows + _group_rows(group, around, reader)


def _loop_rows(loop: UOp, around: list[NestRow], reader: _NestReader) -> list[NestRow]:
    axis = loop.axis
    below = tree_statements(loop)
    inside = {n.axis for n in loop.toposort() if n.op is Ops.LOOP}
    inside.update(lane for s in below for lane in lanes_of(s))
    row = reader.axis_row(axis, around, below, inside)
    return [row, *_body_rows(loop.src[1:], [*around, row], reader)]


def _condition_rows(branch: UOp, around: list[NestRow], reader: _NestReader) -> list[NestRow]:
    """Return a row for a condition, and rows for its guarded statements, whose text is indented."""
    row = reader.statement_row(branch, around)
    head = replace(row, text=row.text.split("\n")[0].removesuffix(" {") + ":")
    guarded = _body_rows(branch.body, around, reader)
    return [head, *(replace(r, text=indent(r.text, INDENT)) for r in guarded)]


def _group_rows(group: Sequence[UOp], around: list[NestRow], reader: _NestReader) -> list[NestRow]:
    """Return rows for consecutive statements with the same lanes: their lanes, if a statement
    accesses memory, then the statements."""
    rows: list[NestRow] = []
    if any(reader.accesses(s) for s in group):
        lanes = lanes_of(group[0])
        for place, lane in enumerate(lanes):
            rows.append(reader.axis_row(lane, around, group, set(lanes[place:])))
            around = [*around, rows[-1]]
    return rows + [reader.statement_row(s, around) for s in group]


def _kinds(rows: Sequence[NestRow]) -> list[str]:
    return [row.axis_kind for row in rows]


def _use_row(
    buffer: UOp, indexes: Sequence[UOp], inside: set[UOp], axis: UOp, outer: UseRow | None
) -> UseRow:
    """Return how a loop uses a buffer: the strides of its different accesses, in elements per step
    ("varies": not always the same), and the bytes of the elements that one run touches ("<= ": an
    upper bound). They are among those of the loop around it, whose use is `outer`."""
    count, steps = touched(indexes, inside, size_of(buffer)), strides(indexes, axis)
    size_bytes = count.elements * buffer.dtype.itemsize
    if outer is not None:
        size_bytes = min(size_bytes, outer.n)
    text = ("" if count.exact else "<= ") + bytes_text(size_bytes)
    use = buffer_use(buffer, indexes, inside, line_bytes())
    stride = "varies" if steps is None else ",".join(map(str, steps))
    apart = use.lines * use.line_bytes
    if apart < size_bytes + 2 * use.line_bytes:  # side by side
        level, lines, held = level_of(size_bytes, caches()), "", 0
    else:
        (level, held), lines = _level_of_lines(use), bytes_text(apart)
    cell = [brief_bytes(text), (level or "")[:MOST_LETTERS]]
    return UseRow(stride, text, size_bytes, level, cell, lines, held)


def _level_of_lines(use: BufferUse) -> tuple[str | None, int]:
    """Return the smallest cache that holds all lines of a buffer in use, with the bytes of it that
    they occupy: more than their own where they compete for a few sets."""
    ways = dict(cache_ways())
    for level, size in caches():
        held = use.bytes_of(size, ways.get(level, WAYS))
        if held <= size:
            return level, held
    return (MEMORY if caches() else None), use.lines * use.line_bytes


def _buffer_row(buffer: UOp, written: bool, read: bool) -> BufferRow:
    role = "in and out" if written and read else "out" if written else "in"
    if buffer.op is Ops.DEFINE:
        role = "scratch"
    return BufferRow(name_of(buffer), "", str(buffer.dtype), size_of(buffer), role)


# --------------------------------------------------------------------------------------------------
# Parts of an exploration as Python: a variant, a pass, a match, a decision. The code follows the
# lines that bind `ex` (record/recipe.py); the page joins both, and copies the whole.

REQUESTED = "store-asked"
"""The name of the decision to store a result that the user asked for: it cannot be changed."""
BY_OTHERS = frozenset({REQUESTED, "store-parts", "store-copy"})
"""The names of decisions that cannot be changed themselves: the results that were asked for, and
what a choice by hand about another value makes."""


def kernel_recipe(number: int, kernel: Kernel) -> str:
    """Return code that binds `kernel` to a variant of kernel `number`, after `ex` is bound."""
    off = ", ".join(map(json.dumps, kernel.rules_off))
    call = f"kernel = ex.kernels[{number}]{device_call(kernel)}"
    call += f".without({off})" if off else ""
    if not kernel.applied_opts:
        return f"{call}\n"
    opts = "".join(f"    {opt!r},\n" for opt in kernel.applied_opts)
    return f"from workbench import Opt, OptOps\n\n{call}.apply(\n{opts})\n"


def compiled_passes(device: str, failed: bool = False) -> str:
    """Return an expression for the passes of compiling `kernel`, even if compiling it `failed`."""
    name = json.dumps(device)
    return f"kernel.observed({name})" if failed else f"kernel.compile({name}).passes"


def pass_recipe(passes: str, place: int, record: PassRecord) -> PassRecipe:
    """Return code for the pass at `place` of the expression `passes`, and for its matches."""
    binding = f"found = {passes}[{place}]  # {record.name}\n"
    outcome = "after" if record.error is None else "error"
    return PassRecipe(
        outcome=f"{binding}print(found.{outcome})\n",
        match=[f"{binding}match = found.matches[", f"]\n{_match(record.matches)}"],
    )


def _match(matches: Sequence[Match]) -> str:
    """Return code that prints `match`, one of `matches`; for rules also why it fired."""
    rules = [match.rule for match in matches]
    if any(isinstance(rule, Decision) for rule in rules):
        return "print(match.rule)\n"
    both = 'print(match.rule, match.before, match.after, sep="\\n")\n'
    if not all(isinstance(rule, Rule) for rule in rules):
        return both
    return f"{both}print(ex.why_not(match.rule, match.before, found.name))\n"


def decision_recipe(place: int, decision: Decision) -> str:
    """Return code that prints the decision at `place`, with the code to reverse it as a comment."""
    other = None if decision.forced else not decision.stored
    reversal = f"# the other way: ex = ex.replan({{decision.node: {other}}})\n"
    return (
        f"decision = ex.decisions[{place}]\nprint(decision)\n"
        f"{'' if decision.name in BY_OTHERS else reversal}"
    )
