"""Origins of memory: the tensors it was computed from, for gradients by others than leaves.

Only what leads to leaves keeps its expression after it was computed. Of the rest, memory remembers
which tensors a gradient would have reached, so that a gradient by one of them is refused instead of
being one without the share that went through that memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary, ref

from workbench.backends.native.host_memory import HOST
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import base
from workbench.tensor.autograd.leaves import leaf_of, lets_through, plain_value
from workbench.tensor.base import Base, tensors_alive

Origin = ref[Base] | ref[UOp]
"""A tensor, or the memory that is its value."""
_origins: WeakKeyDictionary[UOp, tuple[Origin, ...]] = WeakKeyDictionary()


def note_origins(computed: Iterable[tuple[UOp, UOp]]) -> None:
    """Note what was computed from what: pairs of an expression, and of the node that stands for its
    value now, in memory or a known constant."""
    pairs = [
        (expression, value)
        for expression, value in computed
        if value is not expression and value.dtype.is_float and leaf_of(value) is None
    ]
    if not pairs:
        return
    tensors, found = _tensors_by_node(), dict[Origin, int]()
    places = {base(plain_value(value)) for _, value in pairs}
    up_to: dict[UOp, int] = {}
    """The origins of a node and below it: bit n is that of the one that was found as number n."""
    below: dict[UOp, int] = {}
    root = UOp.sink(*[expression for expression, _ in pairs])
    for node in root.toposort(lambda n: n is root or _flows(n)):
        bits = 0
        for source in node.src if _flows(node) else ():
            bits |= up_to[source]
        for origin in _alive(node):
            bits |= 1 << found.setdefault(origin, len(found))
        below[node] = bits
        own: list[Origin] = [*map(ref, tensors.get(node, ()))]
        # Those in `places` are older versions; host data is no tensor's value on a device.
        if _is_memory(node) and node not in places and node.device != HOST:
            own.append(ref(node))
        for origin in own:
            bits |= 1 << found.setdefault(origin, len(found))
        up_to[node] = bits
    origins = list(found)
    for expression, value in pairs:
        bits = below[expression]
        numbers = (n for n in range(bits.bit_length()) if bits >> n & 1)
        if bits:  # of the node, whose memory may be that of one of them: x * 1
            _origins[value] = tuple([origins[n] for n in numbers])
        else:
            _origins.pop(value, None)


def note_replay(results: Iterable[UOp], inputs: Iterable[Base], state: Iterable[UOp] = ()) -> None:
    """Note that a captured function computed `results` from its inputs and from memory, its state.
    Each replay does it."""
    memory = [m for m in map(base, map(plain_value, results)) if _is_memory(m)]
    memory = [m for m in memory if m.dtype.is_float]
    if not memory:
        return
    sources: list[Origin] = [*map(ref, inputs), *map(ref, state)]
    for node in (*[base(plain_value(t.uop)) for t in inputs], *state, *memory):
        if node in _origins:
            sources += _alive(node)
    of_values = tuple(dict.fromkeys(sources))
    _origins.update(dict.fromkeys(memory, of_values))


def is_computed_from(root: UOp, target: Base, own: Iterable[UOp | None]) -> bool:
    """Whether `target`, whose nodes are `own`, is an origin of memory that a gradient of `root`
    reaches without coming through one of these."""
    nodes = {n for n in own if n is not None}
    names = {*map(id, (target, *nodes)), *[id(plain_value(n)) for n in nodes]}
    reached = root.toposort(lambda n: n not in nodes and _flows(n))
    return any(
        id(origin()) in names
        for node in reached
        if node not in nodes
        for origin in _origins.get(node, ())
    )


def _tensors_by_node() -> dict[UOp, list[Base]]:
    """Return the tensors that a gradient may be asked by, by the nodes that stand for each."""
    tensors: dict[UOp, list[Base]] = defaultdict(list)
    for tensor in tensors_alive():
        memory = tensor._memory
        tensors[tensor._uop if memory is None else tensor.uop].append(tensor)
        former = tensor._expression if memory is None else memory.expression
        if former is not None and former() is not None:
            node = tensor._former_node()
            if node is not None:
                tensors[node].append(tensor)
    return tensors


def _flows(node: UOp) -> bool:
    """Whether a gradient goes on below a node, and does not end at a leaf."""
    return leaf_of(node) is None and lets_through(node)


def _is_memory(node: UOp) -> bool:
    return node.op is Ops.BUFFER


def _alive(node: UOp) -> Iterator[Origin]:
    return (origin for origin in _origins.get(node, ()) if origin() is not None)
