"""What the outputs of a captured function flow from: where gradients of them would be lost.

A captured function gets stand-ins for its arguments, and its state gets new BUFFERs. What its
outputs flow from, by the expressions of the capture, is found once; a replay notes what these
arguments and this state are at the call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from workbench.ir.node.uop import UOp
from workbench.tensor.autograd.leaves import leaf_of, number_of
from workbench.tensor.autograd.origins import (
    GradientTarget,
    Origin,
    alive_origins,
    note_computed_from,
    origins_of,
    origins_of_tensor,
    reached,
    tensors_by_node,
)
from workbench.tensor.base import Base, tensors_alive


class Flow(NamedTuple):
    """What outputs of a captured function flow from: arguments and memory of its state, by their
    numbers; `others`, which are the same in each replay; and `made`, what the function itself makes
    or writes: placeholders of new tensors, memory, and numbers of arguments."""

    inputs: tuple[int, ...]
    state: tuple[int, ...]
    others: tuple[Origin, ...]
    made: tuple[Any, ...]


FlowOfOutputs = tuple[list[int], Flow]
"""The numbers of outputs, and what these flow from."""


@dataclass(frozen=True, slots=True)
class CapturedTensors:
    """The tensors of a capture. `inputs` are the nodes of the stand-ins of its arguments, and
    `stand_ins` their tensors; `changed` the numbers of those that the function writes. `state` has
    the nodes that memory of the state had at the beginning, by number, and `memories` the numbers
    by the memory; `written` is the memory that the function writes. `made` has what stands for the
    tensors that it returns, by their identity; `existing` are the tensors that there were before.
    """

    inputs: Sequence[UOp]
    stand_ins: Sequence[Base]
    changed: Collection[int]
    state: Sequence[Collection[UOp]]
    memories: Mapping[Any, int]
    written: Collection[Any]
    made: Mapping[int, Any]
    existing: Collection[int]


class CapturedFlows:
    """The flows of a capture, from its tensors."""

    def __init__(self, tensors: CapturedTensors):
        self._of = tensors
        self._places = {node: n for n, node in enumerate(tensors.inputs)}
        states = enumerate(tensors.state, len(tensors.inputs))
        self._places |= {node: n for n, nodes in states for node in nodes}
        self._stand_ins = {id(tensor): n for n, tensor in enumerate(tensors.stand_ins)}
        known = {*tensors.existing, *tensors.made, *self._stand_ins}
        by_node = tensors_by_node(tensors_alive())
        self._by_node: dict[UOp, list[GradientTarget]] = {
            node: [t for t in some if id(t) in known] for node, some in by_node.items()
        }

    def grouped(self, roots: Sequence[UOp]) -> list[FlowOfOutputs]:
        """Return the numbers of the float values among `roots` by what they flow from."""
        groups: dict[Flow, list[int]] = {}
        for number, root in enumerate(roots):
            if root.dtype.is_float:
                groups.setdefault(self._flow(root), []).append(number)
        return [(numbers, flow) for flow, numbers in groups.items() if any(flow)]

    def note_inputs(self, tensors: Sequence[Base]) -> None:
        """Note that the stand-ins, and what was computed from them, have the origins of `tensors`,
        the arguments."""
        actual = [origins_of_tensor(t) for t in tensors]

        def more(origin: Origin) -> Sequence[Origin]:
            place = self._place_of(origin)
            return () if place is None or place >= len(actual) else actual[place]

        note_computed_from(more, zip(self._of.inputs, actual, strict=True))

    def _flow(self, root: UOp) -> Flow:
        places: set[int] = set()
        others: dict[Origin, None] = {}
        made: dict[Any, None] = {}
        for node, is_itself in reached(root, self._places):
            if is_itself and node in self._places:
                places.add(self._places[node])
                continue
            leaf = leaf_of(node)
            own: list[Origin] = [] if leaf is None else [number_of(leaf)]
            if is_itself and node is not root:
                own += [ref(tensor) for tensor in self._by_node.get(node, ())]
            for origin in (*own, *alive_origins(node)):
                at = None if isinstance(origin, int) else origin()
                if isinstance(at, UOp):  # the BUFFER of a tensor that the function made
                    found = [self._made_at(ref(t)) for t in self._by_node.get(at, ())]
                    made.update((new, None) for new in found if new is not None)
                place, new = self._place_of(origin), self._made_at(origin)
                if place is not None:
                    places.add(place)
                if new is not None:
                    made[new] = None
                if place is new is None or self._is_view(origin):
                    others[origin] = None
        first = len(self._of.inputs)
        for place in places:  # a replay adds the origins that its state has then
            for node in self._of.state[place - first] if place >= first else ():
                for origin in origins_of(node):
                    others.pop(origin, None)
        inputs, state = (sorted(n for n in places if (n < first) is it) for it in (True, False))
        return Flow(tuple(inputs), tuple([n - first for n in state]), tuple(others), tuple(made))

    def _place_of(self, origin: Origin) -> int | None:
        """Return the place of an origin among the arguments and the state; None if it has none."""
        at = None if isinstance(origin, int) else origin()
        if isinstance(at, UOp):
            return self._places.get(at)
        if at is None:
            return None
        place = self._stand_ins.get(id(at))
        number = self._of.memories.get(at._memory) if place is None else None
        return place if number is None else len(self._of.inputs) + number

    def _made_at(self, origin: Origin) -> Any:
        """Return what stands for an origin that the function made or wrote itself, or None."""
        at = None if isinstance(origin, int) else origin()
        if not isinstance(at, Base):
            return None
        number = self._stand_ins.get(id(at))
        if number is not None:
            return number if number in self._of.changed else None
        return at._memory if at._memory in self._of.written else self._of.made.get(id(at))

    def _is_view(self, origin: Origin) -> bool:
        """Whether an origin is a tensor from before that is a view: a target of its own."""
        at = None if isinstance(origin, int) else origin()
        if not isinstance(at, Base) or id(at) not in self._of.existing:
            return False
        return at._memory is not None and at.uop is not at._memory.value
