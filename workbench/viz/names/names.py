"""The user's names of values: `a` for the array that the variable `a` holds where `explore` is
called.

A variable names the node of its tensor. An array in memory also has the name of a tensor that is
all of it in another shape or on another device. A name of two steps (`net.weight`) counts where
there is none of one. A node may have several names: the first is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from workbench.execution.values import with_computed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Names = Mapping[UOp, tuple[str, ...]]
"""The user's names of nodes, the one to show first."""
_SAME_MEMORY = frozenset({Ops.RESHAPE, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH})
"""Ops whose first source has all elements of the node, and no others."""


def names_of(roots: Sequence[UOp], variables: Iterable[tuple[str, UOp]]) -> Names:
    """Return the names of the nodes under `roots`, by the user's variables; also of the same nodes
    where values that were computed before are arrays."""
    root = UOp.sink(*roots)
    nodes = {*root.toposort(), *with_computed(root).toposort()}
    named: dict[UOp, dict[str, None]] = {}
    of_arrays: dict[UOp, dict[str, None]] = {}
    all_named = list(variables)
    inside = [(name, n) for name, n in all_named if n in nodes]
    scheduled = with_computed(UOp.sink(*[node for _, node in inside])).src
    for (name, node), now in zip(inside, scheduled, strict=True):
        if now.is_const:  # literals are the same node
            continue
        named.setdefault(node, {})[name] = None
        named.setdefault(now, {})[name] = None
        all_named.append((name, now))
    for name, node in all_named:
        array = _array_of(node)
        if array in nodes and array.op is Ops.BUFFER:
            of_arrays.setdefault(array, {})[name] = None
    return {node: tuple(names) for node, names in (of_arrays | named).items()}


def _array_of(node: UOp) -> UOp:
    """Return the node that has the same elements as `node`, and moves none."""
    while node.op in _SAME_MEMORY:
        node = node.src[0]
    return node
