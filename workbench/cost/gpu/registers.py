"""How many registers a work-item needs, by its linear program alone: an estimate, until a compiler
says it.

A value lives from its instruction to its last use; one from before a loop, and used in it, lives
until the loop ends. Values that are computed once and are cheap, numbers of work-items among them,
count as others do. Source of the idea: MaxLive of linear-scan register allocation (Poletto and
Sarkar, 1999).
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FIXED = 8
"""Registers that compilers use beside the values: addresses of arguments, the stack, predicates."""
REGISTER_BYTES = 4
UNROLLED = 4
"""Steps of an innermost loop whose loads compilers begin together."""
MOST_FOR_LOADS = 24
"""Registers that they spend on that."""
_NO_VALUE = frozenset(
    {
        Ops.BLOCK, Ops.CONST, Ops.LANES, Ops.STORE, Ops.SET, Ops.DEFINE, Ops.BARRIER, Ops.IF,
        Ops.ENDIF, Ops.LOOP, Ops.ENDLOOP, Ops.SPECIAL, Ops.PARAM, Ops.AFTER, Ops.INDEX,
        Ops.BROADCAST,
    }
)  # fmt: skip


def estimated_registers(linear: Sequence[UOp], most: int = 0) -> int:
    """Return about how many 32-bit registers a work-item of a linear program needs; at most `most`,
    where that is not 0."""
    begins, ends = _lives(linear)
    change = [0] * (len(linear) + 1)
    for node, begin in begins.items():
        size = registers_of(node)
        change[begin] += size
        change[ends.get(node, begin)] -= size
    live = greatest = 0
    for step in change:
        live += step
        greatest = max(greatest, live)
    for_loads = min(MOST_FOR_LOADS, (UNROLLED - 1) * _loaded_in_loops(linear))
    needed = FIXED + greatest + for_loads
    return min(needed, most) if most else needed


def registers_of(node: UOp) -> int:
    """Return the registers of a value."""
    if node.dtype.kind == "index":
        return 1
    return max(1, -(-node.dtype.itemsize // REGISTER_BYTES))


def _loaded_in_loops(linear: Sequence[UOp]) -> int:
    """Return the registers that one step of an innermost loop loads, at most."""
    most = loaded = 0
    for node in linear:
        if node.op is Ops.LOOP:
            loaded = 0
        elif node.op is Ops.LOAD:
            loaded += registers_of(node)
        elif node.op is Ops.ENDLOOP:
            most, loaded = max(most, loaded), 0
    return most


def _lives(linear: Sequence[UOp]) -> tuple[dict[UOp, int], dict[UOp, int]]:
    """Return where each value begins, and where its life ends."""
    begins: dict[UOp, int] = {}
    ends: dict[UOp, int] = {}
    loops = _loops(linear)
    # the next value of an accumulator takes the register of the one before
    updates = {n.src[1] for n in linear if n.op is Ops.SET and n.src[0] in n.src[1].src}
    for place, node in enumerate(linear):
        if node.op is Ops.SET:
            begins.setdefault(node.src[0], place)
        elif node.op in (Ops.LOOP, Ops.SPECIAL):
            begins[node.axis] = place
        elif node.op not in _NO_VALUE and node not in updates:
            begins[node] = place
        for value in _used(node):
            if value in begins:
                around = [
                    end for begin, end in loops if begins[value] < begin < place <= end
                ]
                ends[value] = max(ends.get(value, 0), place, *around)
    return begins, ends


def _used(node: UOp) -> Sequence[UOp]:
    """Return the values that a node reads: through an address, and a vector of one value."""
    values: list[UOp] = []
    for source in node.src:
        if source.op in (Ops.INDEX, Ops.BROADCAST, Ops.AFTER):
            values += _used(source)
        else:
            values.append(source)
    return values


def _loops(linear: Sequence[UOp]) -> list[tuple[int, int]]:
    loops: list[tuple[int, int]] = []
    opened: list[int] = []
    for place, node in enumerate(linear):
        if node.op is Ops.LOOP:
            opened.append(place)
        elif node.op is Ops.ENDLOOP:
            loops.append((opened.pop(), place))
    return loops
