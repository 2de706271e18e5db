"""Computed values: the memory of each, by its expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from workbench.backends.native.host_memory import data_memory
from workbench.base.trace import observer, replaced
from workbench.execution.buffers import (
    Array,
    allocated,
    is_overwritten,
    overwriting_count,
    overwritten,
    read,
)
from workbench.execution.capture import is_capturing, note_to_others
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.construct import constant_of, is_known
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.ir.schedule.schedule import base

_SAME_VALUES = frozenset(
    {Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.EXPAND, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH}
)
"""What neither adds a value nor drops one."""
_CHEAP = MOVEMENT | _SAME_VALUES | {Ops.CAST}
"""What is little work for a processor that has the values."""
_MOST = 1 << 24
"""Values that are looked at before something is computed with them."""
_computed: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
_made_by: WeakKeyDictionary[UOp, RulesInForce] = WeakKeyDictionary()
"""The rules in force when a value was computed, where they were not the package's own: such a value
is what an equal expression means under the same rules alone."""
_plain: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""Graphs without DETACH, by those with it."""


_readable: dict[int, WeakSet[UOp]] = {}
"""Nodes that read no version that was written over, since as many of these were as the key."""


def mark_computed(nodes: Sequence[UOp], results: Sequence[UOp]) -> None:
    """Note the results, in memory, that are the values of `nodes`."""
    pairs = zip(without_detach(nodes), results, strict=True)
    _note({plain: result for plain, result in pairs if plain is not result})


def mark_stored(buffers: Mapping[UOp, UOp]) -> None:
    """Note the BUFFER of each value, of graphs without DETACH. A constant that a kernel reads from
    memory stays one: others of its value are the same node."""
    _note({n: b for n, b in buffers.items() if constant_of(n) is None})


def _note(results: Mapping[UOp, UOp]) -> None:
    _computed.update(results)
    note_to_others([*results, *map(base, results.values())])
    rules = rules_in_force()
    if any(rules):
        _made_by.update(dict.fromkeys(results, rules))
    elif _made_by:
        for node in results:
            _made_by.pop(node, None)


def with_computed(node: UOp, computed: Mapping[UOp, UOp] | None = None) -> UOp:
    """Return the graph with every value that was computed before replaced by its BUFFER, and
    without DETACH; `computed` has these BUFFERs where it is not about the present ones."""
    (node,) = without_detach([node])
    changes = computed_below([node]) if computed is None else computed
    return node.substitute(changes) if changes else node


def computed_below(nodes: Sequence[UOp]) -> dict[UOp, UOp]:
    """Return the BUFFERs of the values in the graphs of `nodes`, without DETACH, that were computed
    before."""
    root = UOp.sink(*without_detach(nodes))
    graph = root.toposort(lambda n: not _is_computed(n))
    return {n: _computed[n] for n in graph if _is_computed(n)}


def require_readable(node: UOp) -> None:
    """Errors: WorkbenchError where a value reads an old version that was written over."""
    count, (root,) = overwriting_count(), without_detach([node])
    if count not in _readable:
        _readable.clear()
    readable = _readable.setdefault(count, WeakSet())
    graph = root.toposort(lambda n: n not in readable and not _is_computed(n))
    for below in graph:
        if is_overwritten(below) and not _is_computed(below):
            raise overwritten(below)
    readable.update(graph)


def value_in_memory(node: UOp) -> UOp:
    """Return the BUFFER that a value is in, without RESHAPEs; the value, if it is in none."""
    return base(with_computed(node))


def results_of(nodes: Sequence[UOp]) -> list[UOp | None]:
    """Return the memory of each value that was computed before, or None."""
    return [_computed.get(n) for n in without_detach(nodes)]


def noted_results(nodes: Iterable[UOp]) -> list[UOp]:
    """Return the memory of those of `nodes`, as they are, that were computed before."""
    return [_computed[n] for n in nodes if n in _computed]


def is_realized(node: UOp) -> bool:
    """Whether a value needs no work: it is in memory, or a known constant."""
    under = value_in_memory(node)
    return under.op is Ops.BUFFER or is_known(under)


def to_numpy(node: UOp) -> Array:
    """Return a copy of a realised value, in its shape. Errors: DeviceError if it is too large."""
    data_memory.pool.check_room(node.size * node.dtype.itemsize)
    under = base(node)
    constant = constant_of(under)
    if constant is not None:
        return np.full(node.shape, constant.arg, node.dtype.numpy)
    if is_known(under):
        return np.array(interpret_tensor(under, {}), node.dtype.numpy).reshape(node.shape)
    return read(under).reshape(node.shape)


def values_at_hand(node: UOp) -> Array | None:
    """Return, in some order, the values of a constant, of what is in memory, or of movement and
    casts of these; what an EXPAND repeats may be there once. None where they must be computed, or
    are many millions, or while a function is captured."""
    while node.op in _SAME_VALUES and not _has_result(node):
        node = node.src[0]
    under, most = node, node.size
    while under.op in _CHEAP and not _has_result(under):
        under = under.src[0]
        most = max(most, under.size)
    result = with_computed(under)
    if is_capturing() or most > _MOST or base(result).op not in (Ops.CONST, Ops.BUFFER):
        return None
    buffers = [n for n in result.toposort() if n.op is Ops.BUFFER]
    if any(is_overwritten(n) or allocated(n) is None for n in buffers):
        return None
    memory = {n: read(n).reshape(n.shape) for n in buffers}
    (plain,) = without_detach([node.substitute({under: result})])
    value: np.ndarray[Any, Any] = interpret_tensor(plain, memory)
    return value


def _has_result(node: UOp) -> bool:
    return results_of([node])[0] is not None


def without_detach(roots: Sequence[UOp]) -> list[UOp]:
    """Return graphs without DETACH: it says where no gradient flows, and computes nothing."""
    is_watched = observer() is not None
    simple: dict[UOp, UOp] = {}
    top = UOp.sink(*roots)  # may be among the graphs, too
    graph = top.toposort(lambda n: is_watched or n is top or n not in _plain)
    for node in graph:
        if not is_watched and node in _plain:
            simple[node] = _plain[node]
        elif node.op is Ops.DETACH:
            simple[node] = simple[node.src[0]]
        else:
            simple[node] = node.rebuild(tuple([simple[s] for s in node.src]))
    replaced(simple)
    for root in roots:
        if simple[root] is not root:
            _plain[root] = simple[root]
    return [simple[root] for root in roots]


def _is_computed(node: UOp) -> bool:
    """Whether a value is in memory that is the value under the present rules, or the only one that
    is left of it."""
    result = _computed.get(node)
    if result is None or is_overwritten(base(result)):
        return False
    return _is_of_these_rules(node) or _reads_overwritten(node)


def _is_of_these_rules(node: UOp) -> bool:
    return node not in _made_by or _made_by[node] == rules_in_force()


def _reads_overwritten(node: UOp) -> bool:
    """Whether a value cannot be computed again: something below it was written over."""

    def is_kept(below: UOp) -> bool:
        result = _computed.get(below)
        is_there = result is not None and not is_overwritten(base(result))
        return is_there and _is_of_these_rules(below)

    graph = node.toposort(lambda n: n is node or not is_kept(n))
    return any(is_overwritten(n) and not is_kept(n) for n in graph)
