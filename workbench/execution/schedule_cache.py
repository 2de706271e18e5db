"""Schedules by structure: a graph that differs from an earlier one only in its memory is not
scheduled again.

The structure of a graph is the list of its nodes, in which each BUFFER is a number, a dtype, a
device and a shape. The graph is scheduled with BUFFERs of no memory in their places; that schedule
is kept, in memory and on disk for the next process, and its BUFFERs are replaced for each graph of
the structure. What depends on the memory itself (what is computed already, what may be written
over, which values share a block) is decided after that, for each graph anew. Source of the idea:
the schedule cache of tinygrad.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any

from workbench.backends.native.kept_results import keep_result, kept_result, result_key
from workbench.base.dtypes import DType
from workbench.base.interrupts import free_lock
from workbench.base.trace import observer
from workbench.execution.buffers import is_unset
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.rows import nodes_of, numbered, rows_of
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rules_in_force
from workbench.ir.schedule.plan import Schedule, ScheduleItem
from workbench.ir.schedule.schedule import schedule

MOST = 512
"""Most structures whose schedules are kept."""
MOST_NODES = 2_000
"""Most nodes of a graph whose schedule is kept in memory: a larger one holds much, and is rarer."""
MOST_ON_DISK = 100_000
"""Most nodes of a graph whose schedule is kept on disk."""

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
        len(nodes) > MOST_ON_DISK
        or observer() is not None
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
        template = _kept(device, key[-1], lambda: _Template.of(buffers, roots, device))
        with _lock:
            if len(nodes) <= MOST_NODES:
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


def _kept(device: str, structure: Sequence[Any], make: Callable[[], _Template]) -> _Template:
    """Return the template that an earlier process has kept on disk, or a new one, which is kept."""
    key = _disk_key(device, structure)
    kept = kept_result(key)
    if kept is not None:
        return _Template.of_plain(kept)
    template = make()
    if any(kernel is not None for kernel, _ in template.items):  # copies are planned in no time
        keep_result(key, template.plain())
    return template


def _disk_key(device: str, structure: Sequence[Any]) -> str | None:
    """Return the key of a structure on disk; None for one with values that have no plain text."""
    try:
        text = "\n".join(map(_text, structure))
    except TypeError:
        return None
    return result_key("schedule", device, text)


def _text(part: Any) -> str:
    if isinstance(part, tuple):
        return f"{type(part).__name__}({','.join(map(_text, part))})"
    if isinstance(part, float):  # its bits: -0.0 is not 0.0, and there are several NaN
        return struct.pack("<d", part).hex()
    if isinstance(part, UOp) and part.op is Ops.CONST:
        return f"{part.dtype!r} {_text(part.arg)}"
    if part is None or isinstance(part, (int, str, bytes, DType, Enum, type)):
        return repr(part)
    raise TypeError(f"{type(part).__name__} has no plain text")


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

    @staticmethod
    def of_plain(kept: Any) -> _Template:
        """Return the template of which `plain` has returned `kept`, with BUFFERs of its own."""
        rows, items, *buffers, stored, values = kept
        nodes = nodes_of(rows, _unnamed)
        own, targets = ([nodes[n] for n in numbers] for numbers in buffers)
        return _Template(
            [
                (None if kernel is None else nodes[kernel], tuple([nodes[n] for n in numbers]))
                for kernel, numbers in items
            ],
            own,
            targets,
            [(nodes[buffer], place) for buffer, place in stored],
            [nodes[value] for value in values],
        )

    def plain(self) -> Any:
        """Return the template as rows of plain values, and the numbers of those that it names."""
        kernels = [kernel for kernel, _ in self.items if kernel is not None]
        buffers = [buffer for _, each in self.items for buffer in each]
        stored = [buffer for buffer, _ in self.stored]
        rows = numbered([*kernels, *buffers, *self.own, *self.targets, *stored, *self.values])
        return (
            rows_of(rows),
            [
                (kernel and rows[kernel], [rows[b] for b in buffers])
                for kernel, buffers in self.items
            ],
            [rows[b] for b in self.own],
            [rows[b] for b in self.targets],
            [(rows[buffer], place) for buffer, place in self.stored],
            [rows[value] for value in self.values],
        )

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
