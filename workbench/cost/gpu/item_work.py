"""The work of a work-item without its memory accesses, and its registers.

Sections: The instructions of operations; The work of a work-item; The registers of a work-item.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore
from workbench.ir.nest.accesses import async_stores
from workbench.ir.nest.estimates import executed
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import CASTS, ELEMENTWISE, OPS, Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The instructions of operations in machine code.
#
# Source of the counts: the SASS of NVRTC 13.5 for sm_90, on the path of ordinary numbers. A
# division is an approximate reciprocal, five multiply-adds and a check; very large and very small
# numbers take another path, a call. GPUs of other makers are assumed to be similar.

SPECIAL_FUNCTION = "special function"
"""The kind of operations for which a unit has few lanes: approximate reciprocals, roots, powers of
2, and conversions between floats and integers."""
INTEGER = "int32"
"""The kind of operations on integers, conditions and bits."""
MOST_BYTES = 16
"""The maximal number of bytes that a work-item loads or stores in one instruction."""


class Instructions(NamedTuple):
    """The instructions of an operation by kind: arithmetic on floats, on integers and conditions,
    special functions, and others, such as jumps and checks, which only take a turn to begin."""

    floats: int
    integers: int
    special: int
    others: int = 0

    @property
    def total(self) -> int:
        """The instructions of all kinds."""
        return sum(self)


FUNCTIONS: Mapping[Ops, Instructions] = {
    Ops.FDIV: Instructions(5, 0, 1, 4),
    Ops.RECIP: Instructions(3, 3, 1, 3),
    Ops.SQRT: Instructions(5, 2, 1, 3),
    Ops.EXP2: Instructions(2, 1, 1),
    Ops.LOG2: Instructions(17, 9, 1),
    Ops.SIN: Instructions(11, 9, 1, 4),
    Ops.COS: Instructions(11, 10, 1, 4),
    Ops.TRUNC: Instructions(0, 0, 1),
}
"""By operation, on float32; others take one instruction, or one for each of their slots."""


def instructions_of(node: UOp) -> Instructions:
    """Return the instructions of an operation for one lane of its value."""
    of_function = FUNCTIONS.get(node.op)
    if of_function is not None:
        return of_function
    slots = 1 if node.op in (Ops.MAX, Ops.MIN) else max(1, OPS[node.op].slots)
    is_float = node.dtype.is_float or node.dtype.is_bool and node.src[0].dtype.is_float
    return Instructions(slots, 0, 0) if is_float else Instructions(0, slots, 0)


def computes(node: UOp, in_loop: bool = False) -> bool:
    """Whether a node takes instructions, accesses of memory aside. In a loop, an index that is a
    sum of steps takes none: compilers unroll the loop, and add a constant in the instruction that
    uses the address."""
    if node.dtype.kind == "index":
        if node.op not in ELEMENTWISE or node.src[-1].op is Ops.CONST:
            return False  # an address may include a constant
        return not (in_loop and _is_sum_of_steps(node))
    return node.op in ELEMENTWISE and node.op not in CASTS or node.op is Ops.HREDUCE


def _is_sum_of_steps(index: UOp) -> bool:
    parts, _ = terms(index)
    return all(part.op is Ops.RANGE for part in parts)


def merged_loads(node: UOp, loops: Sequence[UOp]) -> int:
    """Return how many steps of the innermost of `loops` load shared memory with one instruction:
    compilers unroll the loop, and know the alignment of shared arrays. 1 for other nodes."""
    if node.op is not Ops.LOAD or not loops or not _is_shared(node.place.param):
        return 1
    item_bytes = node.dtype.itemsize
    steps, axis = MOST_BYTES // item_bytes, loops[-1]
    parts, constant = terms(node.place.src[1])
    if steps < 2 or parts.get(axis) != node.dtype.count or axis.extent % steps:
        return 1
    whole = steps * node.dtype.count
    others = [factor for part, factor in parts.items() if part is not axis]
    while steps > 1 and any(factor % whole for factor in (*others, constant)):
        steps, whole = steps // 2, whole // 2
    return steps


def _is_shared(memory: UOp) -> bool:
    return memory.op is Ops.DEFINE and memory.space == "shared"


# --------------------------------------------------------------------------------------------------
# The work of a work-item, without its memory accesses.

LOOP_INSTRUCTIONS = 3
"""Instructions of each step of a loop: count, compare, jump."""
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class ItemWork:
    """The work of one work-item in one run. `operations` counts operations by the dtype of their
    values, or SPECIAL_FUNCTION. The rest is the work of its warp: `products` counts multiply-adds
    of tensor cores by the format of their operands, `shuffles` the words that each lane passes to
    others, and `instructions` all instructions."""

    operations: Mapping[str, float]
    products: Mapping[str, float]
    shuffles: float
    instructions: float


class NodeWork(NamedTuple):
    """The work of a node in one execution, and `times`, its executions by a work-item."""

    node: UOp
    times: int
    work: ItemWork


def item_work(linear: Sequence[UOp]) -> ItemWork:
    """Return the work of a work-item in a linear program."""
    operations, products = dict[str, float](), dict[str, float]()
    shuffles = instructions = 0.0
    for _, times, work in node_work(linear):
        _add(operations, work.operations, times)
        _add(products, work.products, times)
        shuffles += times * work.shuffles
        instructions += times * work.instructions
    return ItemWork(operations, products, shuffles, instructions)


def _add(totals: dict[str, float], counts: Mapping[str, float], times: int) -> None:
    for name, number in counts.items():
        totals[name] = totals.get(name, 0) + times * number


def node_work(linear: Sequence[UOp]) -> Iterator[NodeWork]:
    """Yield the work of each node of a linear program, in order. A LOOP has the instructions of its
    steps; IF and ENDIF have none, and are left out with ENDLOOP."""
    rest = executed(tuple(linear))
    loops = list[UOp]()
    for node in linear:
        if node.op is Ops.LOOP:
            loops.append(node.axis)
            steps = math.prod(axis.extent for axis in loops)
            yield NodeWork(node, steps, ItemWork({}, {}, 0, LOOP_INSTRUCTIONS))
        elif node.op is Ops.ENDLOOP:
            loops.pop()
        elif node.op not in (Ops.IF, Ops.ENDIF):
            _, trips, share = next(rest)
            yield NodeWork(node, math.ceil(trips * share), _work(node, loops))


NO_WORK = ItemWork({}, {}, 0, 0)


def _work(node: UOp, loops: Sequence[UOp]) -> ItemWork:
    if node.op in (Ops.LOAD, Ops.STORE):
        value = node.src[1] if node.op is Ops.STORE else node
        parts = max(1, -(-value.dtype.itemsize // MOST_BYTES))
        return ItemWork({}, {}, 0, parts / merged_loads(node, loops))
    if node.op is Ops.BARRIER:
        return ItemWork({}, {}, 0, 1)
    if node.op is Ops.WARP_SHUFFLE:
        words = _words(node.dtype)
        return ItemWork({}, {}, words, words)
    if node.op is Ops.WMMA:
        core: TensorCore = node.arg
        return ItemWork({}, {core.operand_format: core.m * core.n * core.k}, 0, 1)
    if not computes(node, bool(loops)):
        return NO_WORK
    each, count = instructions_of(node), node.dtype.count
    by_kind = {
        _float_kind(node): each.floats * count,
        INTEGER: each.integers * count,
        SPECIAL_FUNCTION: each.special * count,
    }
    operations = {kind: number for kind, number in by_kind.items() if number}
    return ItemWork(operations, {}, 0, each.total * count)


def _float_kind(node: UOp) -> str:
    dtype = (node.src[0] if node.dtype.is_bool else node).dtype
    return dtype.scalar.name if dtype.is_float else INTEGER


def _words(dtype: DType) -> int:
    """Return the 32-bit words of a value in a lane."""
    return max(1, dtype.scalar.itemsize // WORD_BYTES) * dtype.count


# --------------------------------------------------------------------------------------------------
# The registers of a work-item, estimated from its linear program until a compiler reports them.
#
# A value lives from its instruction to its last use; a value from before a loop that is used in the
# loop lives until the loop ends. Values that could be computed again cheaply, such as the numbers
# of work-items, count like others. Source of the idea: MaxLive of linear-scan register allocation
# (Poletto and Sarkar, 1999).

FIXED = 8
"""Registers that compilers need besides values: addresses of arguments, the stack, predicates."""
REGISTER_BYTES = 4
UNROLLED = 32
"""The maximal number of steps of an innermost loop whose loads compilers begin together."""
FOR_LOADS = 60
"""Compilers begin them together while that needs at most this many registers, and a unit still has
room for two groups; as NVRTC 13.5 does for sm_90."""
FOR_VECTORS = 32
"""The same for loads of vectors: fewer are in flight."""
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
    unless that is 0."""
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
    numbers = (n for n in linear if n.op is Ops.SPECIAL and n.role == "item")
    return math.prod(n.axis.extent for n in numbers)


def _loads_in_flight(linear: Sequence[UOp]) -> int:
    """Return the most registers for values that later steps of an innermost loop load from global
    memory; an asynchronous copy to shared memory needs none."""
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
    """Return the positions at which each value begins, and ends."""
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
    """Return the next values of accumulators, and the values from which they are computed, step by
    step: each takes the register of the one before, which is not read again."""
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
    """Return the values that a node reads, also those within an address or a broadcast."""
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
