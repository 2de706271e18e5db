"""The registers of a work-item, estimated from its linear program until a compiler reports them.

A value lives from its instruction to its last use; one from before a loop, and used in it, lives
until the loop ends. Values that are computed once and are cheap, numbers of work-items among them,
count as others do. Source of the idea: MaxLive of linear-scan register allocation (Poletto and
Sarkar, 1999).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from workbench.ir.nest.accesses import async_stores
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FIXED = 8
"""Registers that compilers use beside the values: addresses of arguments, the stack, predicates."""
REGISTER_BYTES = 4
UNROLLED = 32
"""Steps of an innermost loop whose loads compilers begin together, at most."""
FOR_LOADS = 60
"""Registers up to which they do so, where a unit has room for two groups then: as NVRTC 13.5 does
for sm_90."""
FOR_VECTORS = 32
"""The same where a load is a vector: fewer are in flight."""
UNIT_REGISTERS = 1 << 16
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
    needed = FIXED + greatest
    has_vectors = any(n.op is Ops.LOAD and n.dtype.count > 1 for n in linear)
    room = FOR_VECTORS if has_vectors else FOR_LOADS
    room = min(room, UNIT_REGISTERS // 2 // _items(linear))
    needed = max(needed, min(needed + _loads_in_flight(linear), room))
    return min(needed, most) if most else needed


def registers_of(node: UOp) -> int:
    """Return the registers of a value."""
    if node.dtype.kind == "index":
        return 1
    return max(1, -(-node.dtype.itemsize // REGISTER_BYTES))


def _items(linear: Sequence[UOp]) -> int:
    """Return the work-items of a group."""
    numbers = (n for n in linear if n.op is Ops.SPECIAL and n.role == "item")
    return math.prod(n.axis.extent for n in numbers)


def _loads_in_flight(linear: Sequence[UOp]) -> int:
    """Return the registers for what other steps of an innermost loop load from global memory, at
    most; a copy to shared memory that goes on by itself takes none."""
    copies = {store.src[1] for store in async_stores(linear)}
    most, loaded, steps = 0, 0, 1
    for node in linear:
        if node.op is Ops.LOOP:
            loaded, steps = 0, min(UNROLLED, node.axis.extent)
        elif node.op is Ops.LOAD and node not in copies:
            is_global = node.place.param.op is Ops.PARAM
            loaded += registers_of(node) if is_global else 0
        elif node.op is Ops.ENDLOOP:
            most, loaded, steps = max(most, (steps - 1) * loaded), 0, 1
    return most


def _lives(linear: Sequence[UOp]) -> tuple[dict[UOp, int], dict[UOp, int]]:
    """Return where each value begins, and where its life ends."""
    begins: dict[UOp, int] = {}
    ends: dict[UOp, int] = {}
    loops = _loops(linear)
    updates = _updates(linear)
    for place, node in enumerate(linear):
        if node.op is Ops.SET:
            begins.setdefault(node.src[0], place)
        elif node.op in (Ops.LOOP, Ops.SPECIAL):
            begins[node.axis] = place
        elif node.op not in _NO_VALUE and node not in updates:
            begins[node] = place
        for value in _used(node):
            if value in begins:
                around = [end for begin, end in loops if begins[value] < begin < place <= end]
                ends[value] = max(ends.get(value, 0), place, *around)
    return begins, ends


def _updates(linear: Sequence[UOp]) -> set[UOp]:
    """Return the next values of accumulators, and the values on the way there: each takes the
    register of the one before, which is read no more."""
    uses = Counter(value for node in linear for value in _used(node))
    updates: set[UOp] = set()
    for node in linear:
        if node.op is not Ops.SET:
            continue
        value, path = node.src[1], list[UOp]()
        while value is not node.src[0] and uses[value] == 1:
            path.append(value)
            before = [s for s in value.src if s is node.src[0]]
            before = before or [s for s in value.src[-1:] if s.op is value.op]
            if not before:
                path.clear()
                break
            (value,) = before[:1]
        if value is node.src[0]:
            updates.update(path)
    return updates


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
