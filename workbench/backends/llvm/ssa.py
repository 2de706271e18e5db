"""SSA form of a linear program, and the constant offsets of its addresses, for the LLVM renderer.

LLVM's values never change, so a register that a loop changes becomes a phi at the loop's head,
which must be known before the loop is written. Constant parts of indexes become offsets of
addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


@dataclass(frozen=True, slots=True)
class SSAPlan:
    """The values of a linear program in SSA form.

    `loop_carried` has, for the position of each LOOP, its loop-carried registers; `folded` are sums
    that are only offsets of addresses; `names` has the register that a value is computed for.

    Units: zero_bytes is the size of the widest load under a condition.
    """

    loop_carried: dict[int, tuple[UOp, ...]]
    folded: frozenset[UOp]
    names: dict[UOp, UOp]
    zero_bytes: int


def construct_ssa(linear: tuple[UOp, ...]) -> SSAPlan:
    """Walk a linear program once and return its values in SSA form."""
    gated = [n for n in linear if n.op is Ops.LOAD and len(n.src) > 1]
    zeros = [n.dtype.itemsize for n in gated if n.src[1].dtype.count == 1]
    return SSAPlan(
        loop_carried=_loop_carried(linear),
        folded=_folded(linear),
        names={n.src[1]: n.src[0] for n in linear if n.op is Ops.SET},
        zero_bytes=max(zeros, default=0),
    )


def _loop_carried(linear: tuple[UOp, ...]) -> dict[int, tuple[UOp, ...]]:
    """Return the registers each loop changes whose old value is read first in it.

    A loop body runs from top to bottom, so the first access of a register decides.
    """
    by_loop: dict[int, tuple[UOp, ...]] = {}
    open_loops: list[tuple[int, dict[UOp, bool], dict[UOp, None]]] = []
    for position, node in enumerate(linear):
        if node.op is Ops.LOOP:
            open_loops.append((position, {}, {}))
        elif node.op is Ops.ENDLOOP:
            start, read_first, changed = open_loops.pop()
            by_loop[start] = tuple(r for r in changed if read_first[r])
        else:
            reads = node.src[1:] if node.op is Ops.SET else node.src
            for _, read_first, changed in open_loops:
                for source in reads:
                    if source.op is Ops.REG:
                        read_first.setdefault(source, True)
                if node.op is Ops.SET:
                    read_first.setdefault(node.src[0], False)
                    changed[node.src[0]] = None
    return by_loop


def _folded(linear: tuple[UOp, ...]) -> frozenset[UOp]:
    """Return the sums with a constant that only addresses use."""
    sums = {n for n in linear if n.op is Ops.ADD and split_offset(n)[0] is not n}
    for node in linear:
        used = node.src[2:] if node.op is Ops.INDEX else node.src
        sums.difference_update(used)
    return frozenset(sums)


def split_offset(index: UOp) -> tuple[UOp, int]:
    """Return (rest, constant) of an index, whose sum it is."""
    if index.op is Ops.CONST:
        return UOp.index(0), int(index.arg)
    if index.op is Ops.ADD and index.dtype is dtypes.index:
        for rest, offset in (index.src, index.src[::-1]):
            if offset.op is Ops.CONST:
                return rest, int(offset.arg)
    return index, 0
