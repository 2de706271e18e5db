"""Schedules by structure: a graph that differs from an earlier one only in its memory is not
scheduled again.

The structure of a graph is the list of its nodes, in which each BUFFER is a number, a dtype, a
device and a shape. The graph is scheduled with BUFFERs of no memory in their places; that schedule
is kept, and its BUFFERs are replaced for each graph of the structure. What depends on the memory
itself (what is computed already, what may be written over, which values share a block) is decided
after that, for each graph anew. Source of the idea: the schedule cache of tinygrad.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from workbench.base.interrupts import free_lock
from workbench.base.trace import observer
from workbench.execution.buffers import is_unset
from workbench.execution.capture import is_capturing
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rules_in_force
from workbench.ir.schedule.plan import Schedule, ScheduleItem
from workbench.ir.schedule.schedule import schedule

MOST = 512
"""Most structures whose schedules are kept."""
MOST_NODES = 2_000
"""Most nodes of a graph whose schedule is kept: a larger one holds much memory, and is rarer."""

_numbers = count()
_templates: OrderedDict[Any, _Template] = OrderedDict()
_lock = free_lock()


def scheduled(roots: Sequence[UOp], device: str) -> tuple[Schedule, tuple[UOp, ...]]:
    """Return the schedule of `roots` on `device`, and where the value of each is: a BUFFER that the
    schedule stores, or what needs no kernel. A schedule from the cache has no nodes and decisions:
    it is to be run, and not to be read."""
    nodes = [*UOp.sink(*roots).toposort()][:-1]
    buffers = [node for node in nodes if node.op is Ops.BUFFER]
    if (
        len(nodes) > MOST_NODES
        or observer() is not None
        or is_capturing()
        or any(map(is_unset, buffers))
        or any(node.op is Ops.CUSTOM for node in nodes)
    ):
        plan, simple = schedule(roots, device)
        return plan, tuple([node.substitute(plan.stored) for node in simple])
    key = device, rules_in_force(), _structure(nodes, roots)
    with _lock:
        template = _templates.get(key)
        if template is not None:
            _templates.move_to_end(key)
    if template is None:
        template = _Template.of(buffers, roots, device)
        with _lock:
            _templates[key] = template
            while len(_templates) > MOST:
                _templates.popitem(last=False)
    return template.filled(nodes, buffers)


def _structure(nodes: Sequence[UOp], roots: Sequence[UOp]) -> tuple[Any, ...]:
    """Return a key that graphs have in common which differ only in their BUFFERs."""
    places: dict[UOp, int] = {}
    parts: list[Any] = []
    for place, node in enumerate(nodes):
        places[node] = place
        if node.op is Ops.BUFFER:
            parts.append((node.dtype, node.arg[1:]))
        elif node.op is Ops.CONST:  # its own key: -0.0 is not 0.0
            parts.append(node)
        else:  # the class, too: True is not 1
            sources = [places[source] for source in node.src]
            parts.append((node.op, node.dtype, node.arg, node.arg.__class__, *sources))
    return (*parts, *[places[root] for root in roots])


@dataclass(frozen=True, slots=True)
class _Template:
    """The schedule of a graph on BUFFERs of no memory. `items` have a kernel and BUFFERs each;
    `own` are the BUFFERs of the graph, in the order of its nodes, `targets` those that the schedule
    stores. `stored` has BUFFERs of stored values, each with the place of the value among the nodes
    of the graph (None: it is none of them). `values` are the values of the roots.

    It refers to no node of the graph but these BUFFERs and constants: a graph that reads no memory
    is its own structure, and what was computed of its nodes would live as long as they do."""

    items: Sequence[tuple[UOp | None, tuple[UOp, ...]]]
    own: Sequence[UOp]
    targets: Sequence[UOp]
    stored: Sequence[tuple[UOp, int | None]]
    values: Sequence[UOp]

    @staticmethod
    def of(buffers: Sequence[UOp], roots: Sequence[UOp], device: str) -> _Template:
        own = [_unnamed(node) for node in buffers]
        graph = UOp.sink(*roots).substitute(dict(zip(buffers, own, strict=True)))
        plan, simple = schedule(graph.src, device)
        values = tuple([node.substitute(plan.stored) for node in simple])
        places = {node: place for place, node in enumerate([*graph.toposort()][:-1])}
        results = {n for v in values for n in v.toposort() if n.op is Ops.BUFFER}
        stored = [
            (buffer, places.get(node))
            for node, buffer in plan.stored.items()
            if node in places or buffer not in results
        ]
        targets = dict.fromkeys(plan.stored.values())  # one without elements has no item
        targets.update((b, None) for item in plan.items for b in item.outputs)
        items = [(item.kernel, item.buffers) for item in plan.items]
        return _Template(items, own, [*targets], stored, values)

    def filled(
        self, nodes: Sequence[UOp], buffers: Collection[UOp]
    ) -> tuple[Schedule, tuple[UOp, ...]]:
        """Return the schedule for a graph of the same structure, of `nodes` and `buffers`, and the
        values of its roots."""
        memory = dict(zip(self.own, buffers, strict=True))
        memory.update((target, _unnamed(target)) for target in self.targets)
        items = [
            ScheduleItem(kernel, tuple([memory[b] for b in buffers]), (), ())
            for kernel, buffers in self.items
        ]
        stored = {
            memory[buffer] if place is None else nodes[place]: memory[buffer]
            for buffer, place in self.stored
        }
        return Schedule(tuple(items), stored, ()), tuple([_moved(v, memory) for v in self.values])


def _unnamed(node: UOp) -> UOp:
    """Return another BUFFER of the same kind."""
    _, device, shape = node.arg
    return construct.buffer(node.dtype, f"scheduled{next(_numbers)}", device, shape)


def _moved(value: UOp, memory: Mapping[UOp, UOp]) -> UOp:
    if value.op is Ops.BUFFER:
        return memory[value]
    return value.substitute(memory)
