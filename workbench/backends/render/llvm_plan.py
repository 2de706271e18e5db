"""What the LLVM renderer must know of a linear program before it writes the first line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.dtypes import DType, dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import Storage, UOp
from workbench.target import Target

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """The findings of one walk.

    `params` and `scratch` (arrays, with their offset in scratch memory) are in order of
    appearance; `carried` has, for the position of each LOOP, the registers whose value goes
    round it; `folded` are sums that live on in the offset of an address only; `names` has the
    register that a value is computed for.

    Units: scratch_bytes and zero_bytes (what the widest load under a condition reads).
    """

    params: tuple[UOp, ...]
    scratch: dict[UOp, int]
    scratch_bytes: int
    on_stack: bool
    sliced: UOp | None
    threads: int
    carried: dict[int, tuple[UOp, ...]]
    folded: frozenset[UOp]
    names: dict[UOp, UOp]
    zero_bytes: int


def survey(linear: tuple[UOp, ...], target: Target) -> Plan:
    """Walk a linear program once and return what the renderer needs to know."""
    scratch, scratch_bytes = _scratch(linear)
    gated = [n for n in linear if n.op is Ops.LOAD and len(n.src) > 1]
    sliced = [n.src[0] for n in linear if n.op is Ops.LOOP and n.arg == "sliced"]
    threads = [
        n.src[0].extent for n in linear if n.op is Ops.LOOP and n.arg == "thread"
    ]
    zeros = [n.dtype.itemsize for n in gated if n.src[1].dtype.count == 1]
    return Plan(
        params=_params(linear),
        scratch=scratch,
        scratch_bytes=scratch_bytes,
        on_stack=scratch_bytes <= target.stack_bytes,
        sliced=sliced[0] if sliced else None,
        threads=threads[0] if threads else 1,
        carried=_carried(linear),
        folded=_folded(linear),
        names={n.src[1]: n.src[0] for n in linear if n.op is Ops.SET},
        zero_bytes=max(ALIGNMENT_BYTES, *zeros) if zeros else 0,
    )


def memory(node: UOp) -> UOp:
    """Return the PARAM or DEFINE that an address points into; AFTER only orders."""
    while node.op in (Ops.INDEX, Ops.AFTER):
        node = node.src[0]
    return node


def split_offset(index: UOp) -> tuple[UOp, int]:
    """Return (rest, constant) of an index, whose sum it is."""
    if index.op is Ops.CONST:
        return UOp.index(0), int(index.arg)
    if index.op is Ops.ADD and index.dtype is dtypes.index:
        for rest, offset in (index.src, index.src[::-1]):
            if offset.op is Ops.CONST:
                return rest, int(offset.arg)
    return index, 0


def divisor(index: UOp) -> int:
    """Return a number that divides every value of `index`; 0 divides only zero."""
    done: dict[UOp, int] = {}
    for node in index.toposort():
        below = [done[s] for s in node.src]
        if node.op is Ops.CONST:
            done[node] = abs(int(node.arg))
        elif node.op is Ops.ADD:
            done[node] = math.gcd(*below)
        elif node.op is Ops.MUL:
            done[node] = below[0] * below[1]
        elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
            done[node] = below[0] << int(node.src[1].arg)
        else:
            done[node] = 1
    return done[index]


def _params(linear: tuple[UOp, ...]) -> tuple[UOp, ...]:
    found = {memory(n) for n in linear if n.op is Ops.INDEX}
    return tuple(sorted((n for n in found if n.op is Ops.PARAM), key=_slot))


def _slot(param: UOp) -> int:
    return int(param.arg[0])


def _scratch(linear: tuple[UOp, ...]) -> tuple[dict[UOp, int], int]:
    offsets: dict[UOp, int] = {}
    total = 0
    for node in linear:
        if node.op is Ops.DEFINE and node not in offsets:
            offsets[node] = total
            nbytes = elements(node) * node.dtype.itemsize
            total += -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return offsets, total


def elements(place: UOp) -> int:
    """Return the number of elements of a PARAM or of an array in scratch memory."""
    if place.op is Ops.PARAM:
        return int(place.arg[1])
    storage: Storage = place.arg
    return math.prod(storage.shape)


def _carried(linear: tuple[UOp, ...]) -> dict[int, tuple[UOp, ...]]:
    """Return the registers each loop changes whose old value is read first in it.

    A loop body runs from top to bottom, so the first thing that touches a register decides.
    """
    found: dict[int, tuple[UOp, ...]] = {}
    open_loops: list[tuple[int, dict[UOp, bool], dict[UOp, None]]] = []
    for position, node in enumerate(linear):
        if node.op is Ops.LOOP:
            open_loops.append((position, {}, {}))
        elif node.op is Ops.ENDLOOP:
            start, read_first, changed = open_loops.pop()
            found[start] = tuple(r for r in changed if read_first[r])
        else:
            reads = node.src[1:] if node.op is Ops.SET else node.src
            for _, read_first, changed in open_loops:
                for source in reads:
                    if source.op is Ops.REG:
                        read_first.setdefault(source, True)
                if node.op is Ops.SET:
                    read_first.setdefault(node.src[0], False)
                    changed[node.src[0]] = None
    return found


def _folded(linear: tuple[UOp, ...]) -> frozenset[UOp]:
    """Return the sums with a constant that only addresses use."""
    sums = {n for n in linear if n.op is Ops.ADD and split_offset(n)[0] is not n}
    for node in linear:
        used = node.src[2:] if node.op is Ops.INDEX else node.src
        sums.difference_update(used)
    return frozenset(sums)


def element_type(node: UOp) -> DType:
    """Return the dtype of one element of the memory an address points into."""
    return memory(node).dtype.scalar
