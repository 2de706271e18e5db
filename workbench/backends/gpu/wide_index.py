"""64-bit indexes: the test for the few kernels that need them; a GPU is faster with 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_INT32 = 1 << 31
_SUMS = frozenset({Ops.ADD, Ops.MUL, Ops.NEG})


def needs_wide(linear: Sequence[UOp]) -> bool:
    """Return whether an index of a program may leave 32 bits where it matters.

    An address is right where its element is accessed, if the memory is small enough: sums and
    products wrap, and elsewhere it is not read. (An index from memory times a row's length has
    huge bounds, and a condition beside it.)
    """
    indexes = [n for n in linear if n.op is Ops.INDEX]
    if any(size_of(n.param) >= _INT32 for n in indexes):
        return True
    sums = _sums([n.src[1] for n in indexes])
    users = [n for n in linear if n.op is not Ops.INDEX]
    used = {s for n in users if n not in sums for s in n.src}
    parts = {s for n in sums for s in n.src} - sums
    checked = used | parts | {n.src[1] for n in indexes if n.src[1] not in sums}
    return any(_is_wide(n) for n in checked if n.dtype.scalar is dtypes.index)


def _sums(addresses: Sequence[UOp]) -> set[UOp]:
    """Return the sums and products that only lead to an address."""
    sums: set[UOp] = set()
    pending = list(addresses)
    while pending:
        node = pending.pop()
        if node.op in _SUMS and node not in sums:
            sums.add(node)
            pending += node.src
    return sums


def _is_wide(node: UOp) -> bool:
    return not (-_INT32 <= int(node.vmin) and int(node.vmax) < _INT32)
