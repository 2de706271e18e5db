"""Occurrences of values: equal expressions are one node, but each tensor has a gradient of its own.

An occurrence is a DETACH of a value with a number. Its gradient flows to what the value was made of
(`duplicate`), or, where it was made of a tensor that has this value, to that (`alias`). It vanishes
before anything is scheduled, and of the graph of a gradient only targets stay (`merged.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from workbench.base.trace import derived_from, replaced
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_numbers = count(1)


class Occurrence(NamedTuple):
    """The arg of an occurrence."""

    number: int
    is_alias: bool


@dataclass(frozen=True, eq=False, repr=False)
class Twins:
    """The arg of a gradient in whose graph the `occurrences` were one with others: `differentiate`
    makes it with some of them apart, to be differentiated by these.
    """

    occurrences: frozenset[UOp]
    differentiate: Callable[[frozenset[UOp]], UOp]


def duplicate(value: UOp) -> UOp:
    """Return another occurrence of a float: a gradient of it does not count as one of `value`."""
    if isinstance(value.arg, Occurrence):
        return _occurrence(value.src[0], value.arg.is_alias)
    return _occurrence(value, False)


def alias(value: UOp) -> UOp:
    """Return an occurrence that was made of `value`, to which its gradient flows; a number, which
    has no gradient, as it is."""
    return value if value.is_const else _occurrence(value, True)


def with_twins(
    gradient: UOp, twins: frozenset[UOp], differentiate: Callable[[frozenset[UOp]], UOp]
) -> UOp:
    """Return a gradient that is made again where it is differentiated by some of `twins`."""
    if not twins:
        return gradient
    return UOp(Ops.DETACH, gradient.dtype, (gradient,), Twins(twins, differentiate))


def is_duplicate(node: UOp) -> bool:
    """Whether a node is another occurrence of its source, and not made of it."""
    return isinstance(node.arg, Occurrence) and not node.arg.is_alias


def is_alias(node: UOp) -> bool:
    """Whether a node is an occurrence that was made of its source."""
    return isinstance(node.arg, Occurrence) and node.arg.is_alias


def without_alias(node: UOp) -> UOp:
    """Return what a node was made as, whatever other tensors are made of it."""
    while is_alias(node):
        (node,) = node.src
    return node


def flows_on(node: UOp) -> bool:
    """Whether the gradient of a DETACH is that of its source."""
    return isinstance(node.arg, Occurrence | Twins)


def without_aliases(nodes: Sequence[UOp]) -> tuple[UOp, ...]:
    """Return nodes over graphs in which equal values are one node."""
    images = merged(nodes, ())
    return tuple([images[node] for node in nodes])


def merged(nodes: Sequence[UOp], separate: Collection[UOp]) -> dict[UOp, UOp]:
    """Return what each node under `nodes` is without aliases, but for those in `separate`."""
    images: dict[UOp, UOp] = {}
    with derived_from():
        for node in UOp.sink(*nodes).toposort():
            if node not in separate and (is_alias(node) or isinstance(node.arg, Twins)):
                images[node] = images[node.src[0]]
            else:
                images[node] = node.rebuild(tuple([images[s] for s in node.src]))
    replaced(images)
    return images


def _occurrence(value: UOp, is_alias: bool) -> UOp:
    if not value.dtype.is_float:
        return value  # it has no gradient
    number = Occurrence(next(_numbers), is_alias)
    return UOp(Ops.DETACH, value.dtype, (value,), number)
