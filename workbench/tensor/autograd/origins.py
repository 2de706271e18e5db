"""Origins of memory: the tensors that it was computed from, and whether a gradient is lost there.

A value keeps its expression after it is computed only if it leads to a leaf; a result of a replay
never has one. For such memory the tensors that a gradient would have reached are noted. A gradient
with respect to one of them is refused: the share of it that flows through that memory is unknown.

Sections: What a value was computed from; Gradients that would be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

from workbench.backends.native.host_memory import HOST
from workbench.ir.gradient.occurrences import gradient_sources, is_duplicate
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import base
from workbench.tensor.autograd.leaves import (
    Leaf,
    gradient_changes,
    leads_to_leaf,
    leaf_numbered,
    leaf_of,
    lets_through,
    number_of,
    plain_value,
)

# --------------------------------------------------------------------------------------------------
# What a value was computed from.


class GradientTarget(Leaf, Protocol):
    """The part of a tensor that this file reads."""

    _expression: ref[UOp] | None
    _memory: Any
    _replayed: Any

    @property
    def uop(self) -> UOp: ...

    def _own_nodes(self) -> set[UOp]: ...


T = TypeVar("T", bound=GradientTarget)
Origin = ref[GradientTarget] | ref[UOp] | int
"""A weak reference to a tensor, or to a node of its value; or the number of a leaf, from which a
replay computed the memory. Other memory that leads to leaves keeps its expression."""
_origins: WeakKeyDictionary[UOp, tuple[Origin, ...]] = WeakKeyDictionary()


def note_origins(
    computed: Iterable[tuple[UOp, UOp]], alive: Callable[[], Iterable[GradientTarget]]
) -> None:
    """Note the origins of computed values: `computed` has pairs of an expression and the node of
    its value now, a BUFFER or a known constant; `alive` returns the living tensors."""
    pairs = [
        (expression, value)
        for expression, value in computed
        if value is not expression and value.dtype.is_float and leaf_of(value) is None
    ]
    if not pairs:
        return
    gradient_changes.count += 1
    tensors, origin_numbers = tensors_by_node(alive()), dict[Origin, int]()
    places = {base(plain_value(value)) for _, value in pairs}
    inclusive: dict[UOp, int] = {}
    """The origins of a node and of the nodes below it: bit n is for the origin of number n."""
    below: dict[UOp, int] = {}
    root = UOp.sink(*[expression for expression, _ in pairs])
    ends: set[UOp] = set()

    def is_open(node: UOp) -> bool:
        if node is root or _flows(node):
            return True
        ends.add(node)
        return False

    for node in root.toposort(is_open):
        bits = 0
        for source in () if node in ends else node.src:
            bits |= inclusive[source]
        for origin in alive_origins(node):
            bits |= 1 << origin_numbers.setdefault(origin, len(origin_numbers))
        below[node] = bits
        # A BUFFER in `places` is an older version; host data is no tensor's value on a device.
        is_memory = node.op is Ops.BUFFER and node not in places and node.device != HOST
        own: list[Origin] = [ref(node)] if is_memory else [*map(ref, tensors.get(node, ()))]
        for origin in own:
            bits |= 1 << origin_numbers.setdefault(origin, len(origin_numbers))
        inclusive[node] = bits
    origins = list(origin_numbers)
    for expression, value in pairs:
        bits = below[expression]
        numbers = (n for n in range(bits.bit_length()) if bits >> n & 1)
        if bits or is_duplicate(value):  # its memory may be another tensor's: x * 1, x.detach()
            _origins[value] = tuple([origins[n] for n in numbers])
        else:
            _origins.pop(value, None)


def origins_of(value: UOp) -> list[Origin]:
    """Return the origins of what is computed from `value`: the nodes that a gradient reaches from
    there, the leaves among them, and the origins of their memory. It runs in each replay, so the
    common case, a BUFFER, comes first."""
    if value.op is Ops.BUFFER and value not in _origins and leaf_of(value) is None:
        return [ref(value)]
    origins: list[Origin] = []
    for node, is_itself in reached(value):
        if is_itself and node.dtype.is_float and not node.is_const:
            origins.append(ref(node))
        leaf = leaf_of(node)
        if leaf is not None:
            origins.append(number_of(leaf))
        else:
            origins += alive_origins(node)
    return origins


def origins_of_tensor(tensor: GradientTarget) -> list[Origin]:
    """Return the origins of what is computed from a tensor."""
    value = tensor._replayed
    if value is not None:
        return [ref(tensor), *filter(_is_alive, value[2])]
    number, node = number_of(tensor), tensor.uop
    if number:
        return [number, ref(tensor)]
    if node.op is Ops.BUFFER:  # the node says it: if the tensor is written, it has another one
        return [ref(node)] if node not in _origins else [ref(node), *alive_origins(node)]
    return [ref(tensor), *origins_of(node)]


def note_results(results: Iterable[UOp], origins: Iterable[Origin]) -> None:
    """Note the `origins` of results of a replay, nodes of their own. It runs in each replay."""
    noted = tuple(dict.fromkeys(origins))
    for node in results:
        _origins[node] = noted


def note_more(results: Iterable[UOp], node: UOp) -> None:
    """Note that results of a replay were computed from `node`, too."""
    gradient_changes.count += 1
    for result in results:
        note_results([result], (*_origins.get(result, ()), ref(node)))


def note_computed_from(
    more: Callable[[Origin], Iterable[Origin]], values: Iterable[tuple[UOp, Iterable[Origin]]]
) -> None:
    """Add to the origins of all memory those that `more` returns for one of them, and note `values`
    with their origins."""
    gradient_changes.count += 1
    for node, origins in _noted():
        added = [other for origin in origins for other in more(origin)]
        if added:
            note_results([node], (*origins, *added))
    for value, own in values:
        note_results([value], own)


def _noted() -> Iterator[tuple[UOp, tuple[Origin, ...]]]:
    """Yield all memory with its origins; another thread may add some meanwhile."""
    for reference in _origins.keyrefs():
        node = reference()
        if node is not None and node in _origins:
            yield node, _origins[node]


def rename_origins(names: Mapping[UOp, UOp]) -> None:
    """Give the new BUFFERs of memory, by the values that it had, the origins of these, and make
    them origins in the place of their BUFFERs."""
    gradient_changes.count += 1
    buffers = [(base(old), new) for old, new in names.items()]
    replaced: dict[Origin, Origin] = {ref(b): ref(n) for b, n in buffers if b.op is Ops.BUFFER}
    for old, new in names.items():
        origins = _origins_in(old)
        if origins:
            note_results([new], origins)
    for node, origins in _noted():
        if not replaced.keys().isdisjoint(origins):
            note_results([node], [replaced.get(origin, origin) for origin in origins])


def _origins_in(value: UOp) -> tuple[Origin, ...]:
    """Return the origins of a value in memory: those of its BUFFER, or of an occurrence of it."""
    while value not in _origins and value.op in (Ops.RESHAPE, Ops.DETACH) and _flows(value):
        value = value.src[0]
    return _origins.get(value, ())


def reached(root: UOp, ends: Collection[UOp] = ()) -> Iterator[tuple[UOp, bool]]:
    """Yield the nodes that a gradient of `root` reaches, down to leaves and to `ends`, and whether
    it reaches each one itself: the gradient of a duplicate flows past its value."""
    stack, visited = [(root, True)], {(root, True)}
    while stack:
        node, is_itself = pair = stack.pop()
        yield pair
        if (node in ends and is_itself) or not _flows(node):
            continue
        for source in gradient_sources(node):
            below = source, not is_duplicate(node)
            if below not in visited:
                visited.add(below)
                stack.append(below)


def tensors_by_node(tensors: Iterable[T]) -> dict[UOp, list[T]]:
    """Return tensors by their present nodes, and by those before they were computed."""
    by_node: dict[UOp, list[T]] = defaultdict(list)
    for tensor in tensors:
        memory = tensor._memory
        is_old = tensor._expression is not None if memory is None else memory.has_former
        for node in {tensor.uop, *tensor._own_nodes()} if is_old else (tensor.uop,):
            by_node[node].append(tensor)
    return by_node


def _flows(node: UOp) -> bool:
    """Whether a gradient flows on below a node: a leaf ends it, and so does a duplicate whose own
    origins were noted."""
    if leaf_of(node) is not None or not lets_through(node):
        return False
    return not (is_duplicate(node) and node in _origins)


def alive(origins: Iterable[Origin]) -> list[Origin]:
    """Return those of `origins` that are still there."""
    return [origin for origin in origins if _is_alive(origin)]


def alive_origins(node: UOp) -> Iterator[Origin]:
    """Return the origins of memory that are still there."""
    return filter(_is_alive, _origins.get(node, ()))


def _is_alive(origin: Origin) -> bool:
    return leaf_numbered(origin) is not None if isinstance(origin, int) else origin() is not None


# --------------------------------------------------------------------------------------------------
# Gradients that would be lost.


def is_computed_from(root: UOp, target: GradientTarget) -> bool:
    """Whether `target`, no leaf, is an origin of memory that a gradient of `root` reaches by a way
    that avoids the target itself."""
    nodes = {target.uop, *target._own_nodes()}
    names = {*map(id, (target, *nodes))}
    return any(
        not isinstance(origin, int) and id(origin()) in names
        for node in _below(root, nodes)
        for origin in _origins.get(node, ())
    )


def is_replayed_from(root: UOp, leaf: GradientTarget | None = None) -> bool:
    """Whether a gradient of `root` reaches the result of a replay that was computed from `leaf`
    (None: from any leaf)."""
    wanted = None if leaf is None else number_of(leaf)
    return any(
        isinstance(origin, int) and wanted in (None, origin) and _is_alive(origin)
        for node in _below(root)
        for origin in _origins.get(node, ())
    )


def depends_on_leaf(root: UOp) -> bool:
    """Whether `root` depends on a leaf, by its expression or through the result of a replay."""
    return leads_to_leaf(root) or is_replayed_from(root)


def _below(root: UOp, own: Collection[UOp] = ()) -> Iterator[UOp]:
    """Yield the nodes that a gradient of `root` reaches by a way that avoids `own` and ends at
    leaves."""
    stack, visited = [root], {root, *own}
    while stack:
        node = stack.pop()
        if leaf_of(node) is None and node not in own:
            yield node
            if _flows(node):
                new = [source for source in gradient_sources(node) if source not in visited]
                visited.update(new)
                stack += new
