"""The replay of a captured function: it checks inputs, launches kernels, and makes results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any
from weakref import ref

from workbench.backends.memory import Buffer, Lease
from workbench.base.errors import JitError
from workbench.base.situation import process_changes
from workbench.execution.buffers import (
    buffer_on,
    mark_lost,
    mark_overwritten,
    memory_of,
    piece_of,
    share,
)
from workbench.execution.capture import is_watched
from workbench.execution.realize import running
from workbench.execution.replay import NEW
from workbench.ir.node.uop import UOp
from workbench.tensor.autograd.leaves import detached
from workbench.tensor.autograd.origins import (
    Origin,
    alive,
    note_more,
    note_results,
    origins_of,
    origins_of_tensor,
)
from workbench.tensor.jit.function_capture import FunctionCapture
from workbench.tensor.jit.guard import NumberChanges, roots_of
from workbench.tensor.jit.parts import Path
from workbench.tensor.jit.quick_call import quick_call
from workbench.tensor.jit.results import Computed, Results, identity, memory_at, tensor_on
from workbench.tensor.jit.state import Kind, MemoryWritten, buffer_of, input_node, kind_of
from workbench.tensor.operands.arguments import short
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import equal_nests, without_tensors
from workbench.tensor.versions import VersionedMemory

Root = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A function and the arguments of a call."""


class FunctionReplay:
    """A captured function that runs again: inputs are checked, kernels launched, results made."""

    def __init__(self, capture: FunctionCapture):
        self.replay, self._state = capture.replay, capture.state
        self._capture = capture
        self._kinds = capture.kinds
        writes_inputs = bool(capture.written)
        self._writes = MemoryWritten(self._state.memory_written(writes_inputs), writes_inputs)
        self._flat = [Tensor] * len(self._kinds) if capture.is_flat else None
        self.quick = quick_call(capture)
        """The quick call, which holds from the end of one call in full to the next one."""
        self._notes_made = any(flow.made for _, flow in capture.flows)
        self._written = dict(self._state.written)
        self._inputs_before: list[UOp] = []
        self._changes = -1
        self._nodes: list[UOp] = []
        self._memory: list[Buffer] = []

    def has_other_state(self, root: Any) -> bool:
        """Whether the capture does not fit: a constant of the state was written, a tensor of it was
        replaced, or the guard or the places do not hold. Such constants and tensors get memory,
        which the next capture reads."""
        changes = self._state.changed_constants()
        for memory in changes:
            buffer_of(memory)
        places = self._capture.places
        return (
            bool(changes)
            or self._state.has_other_memory()
            or not self._capture.guard.holds(roots_of(*root))
            or not places.fit(root, self._writes.memory)
        )

    @property
    def changed_paths(self) -> list[Path]:
        """The paths of tensors that were constants at the capture, and have other values now."""
        return self._capture.guard.changed_paths

    @property
    def changes(self) -> NumberChanges | None:
        """The numbers that the function changed itself at the capture, if any."""
        return self._capture.changes

    def is_aliased(self, inputs: list[Tensor], root: Any) -> bool:
        """Whether an input shares memory that is written with another input or with state."""
        if self._writes.is_aliased(inputs):
            return True
        if not self._writes.inputs or not self._capture.places.read:
            return False
        rebound = self._capture.places.tensors_at(root)
        names = {identity(tensor) for tensor in rebound}
        return any(identity(tensor) in names for tensor in inputs)

    def __call__(self, root: Root, inputs: list[Any]) -> Any:
        """Return the result for `root`, whose tensors are `inputs`."""
        with running:
            if self.quick is None:
                return self._replayed(root, inputs)
            self.quick.situation = None
            result = self._replayed(root, inputs)
            self.quick.note(self._origins_for)
            return result

    def _origins_for(self, inputs: list[Any]) -> list[tuple[Origin, ...]]:
        """Return the origins of each output, for the inputs of a call that binds nothing."""
        origins: list[tuple[Origin, ...]] = [()] * len(self.replay.sources)
        for outputs, own in self._origins(inputs, []):
            for n in outputs:
                origins[n] = own
        return origins

    def _replayed(self, root: Root, inputs: list[Any]) -> Any:
        self._check_arguments(*root[1:])
        nodes_of_inputs = [tensor.uop for tensor in inputs]
        if nodes_of_inputs != self._inputs_before or self._changes != process_changes.count:
            self._check_inputs(inputs)
        rebound = self._capture.places.tensors_at(root)
        for tensor, place in zip(rebound, self._capture.places.read, strict=True):
            if place is not None:
                self._state.read[place] = memory_at(tensor)
        nodes, state, over = self._state.prepare(self._memory)
        present = [memory.version for memory in self._state.read]
        keys = [draw.renew() for draw in self._capture.draws]
        steady = self._capture.steady
        is_ours = not any(state[n].owner.is_shared for n in steady)
        versions = [present[n] for n in steady] if is_ours else None

        def publish(outputs: list[Buffer]) -> Any:
            for n in over:
                if (node := nodes[n]) is not None:
                    mark_overwritten(node)
            values = self._values(outputs, nodes)
            origins = self._note_origins(values, inputs, rebound)
            self._state.commit(values, outputs, origins)
            tensors: dict[int, Any] = {}
            result = self._result(root, values, inputs, rebound, tensors)
            if self._notes_made:
                self._note_made(values, inputs, tensors)
            return result

        def abandon(error: BaseException, complete: set[int], torn: set[int]) -> None:
            for n in over:
                place = len(self._memory) + n
                if place not in complete and place not in torn:
                    continue
                node = nodes[n] or self._state.node_of(n)
                if place in complete:
                    self._state.renew(n, buffer_on(memory_of(node), node.shape))
                    mark_overwritten(node)
                else:
                    mark_lost(node, error)

        memory = [*self._memory, *state, *keys]
        return self.replay(memory, versions, publish, abandon)

    def _note_origins(
        self, values: list[Any], inputs: list[Any], rebound: list[Any]
    ) -> list[tuple[Origin, ...]]:
        """Return what each output was computed from, and note it for those that have a node. It
        runs in each replay, so it must be quick."""
        origins: list[tuple[Origin, ...]] = [()] * len(values)
        for outputs, own in self._origins(inputs, rebound):
            note_results([values[n] for n in outputs if values[n] is not None], own)
            for n in outputs:
                origins[n] = own
        return origins

    def _origins(
        self, inputs: list[Any], rebound: list[Any]
    ) -> Iterator[tuple[list[int], tuple[Origin, ...]]]:
        """Yield the numbers of outputs, and what these are computed from. Many outputs of a step of
        training flow from the same arguments and state, so that the origins of each are looked up
        once."""
        flows = [flow for _, flow in self._capture.flows]
        of_inputs = {
            n: origins_of_tensor(inputs[n]) for n in set[int]().union(*[f.inputs for f in flows])
        }
        of_state: dict[int, list[Origin]] = {}
        for n in set[int]().union(*[flow.state for flow in flows]):
            memory = self._state.read[n]
            version = memory.replayed
            if version is not None:  # no tensor has its node
                of_state[n] = [memory.leaf] if memory.leaf else alive(version.origins)
            elif memory.leaf:
                of_state[n] = [memory.leaf, ref(buffer_of(memory))]
            else:
                of_state[n] = origins_of(memory.value)
        if rebound:  # a tensor there may be a view of its memory
            for tensor, place in zip(rebound, self._capture.places.read, strict=True):
                if place in of_state:
                    of_state[place] += origins_of_tensor(tensor)
        for outputs, flow in self._capture.flows:
            own = [of_inputs[n] for n in flow.inputs] + [of_state[n] for n in flow.state]
            yield outputs, tuple(dict.fromkeys([*chain(*own), *flow.others]))

    def _note_made(self, values: list[Any], inputs: list[Any], tensors: dict[int, Any]) -> None:
        """Note the outputs that were computed from what the function made or wrote: `tensors` are
        those of the result, by the identity of their placeholders."""
        for outputs, flow in self._capture.flows:
            for at in flow.made:
                if isinstance(at, VersionedMemory):
                    node = at.value
                else:
                    node = (inputs[at] if isinstance(at, int) else tensors[id(at)]).uop
                note_more([values[n] for n in outputs], node)

    def _result(
        self,
        root: Root,
        values: list[Any],
        inputs: list[Any],
        rebound: list[Any],
        tensors: dict[int, Any],
    ) -> Any:
        """Write the inputs and bind the places as the function did, and return its result. Its new
        tensors are added to `tensors`."""
        for place, output in self._capture.written.items():
            value = tensor_on(values[output], inputs[place].shape)
            inputs[place].assign(value).realize()
        structure = self._capture.structure
        if isinstance(structure, Computed) and self._capture.places.is_empty:
            tensors[id(structure)] = tensor_on(values[0], structure.shape)
            return tensors[id(structure)]
        results = Results(values, inputs, rebound, tensors)
        result = results.filled(structure)
        self._capture.places.bind(root, results.filled(self._capture.rebound))
        return result

    def _values(self, outputs: Sequence[Buffer], state: Sequence[UOp | None]) -> list[Any]:
        """Return the nodes of outputs, each on its memory: a view of an input, or a BUFFER. None
        for new versions of state that no other output shares, whose nodes are made when they are
        asked for."""
        values: list[UOp | None] = []
        owners: dict[Lease, UOp] = {}
        uses = Counter([memory.owner for memory in outputs])
        inputs = [*self._nodes, *state]
        overwritten = {len(self._nodes) + n for n in self._state.overwritten}
        is_quick = not self._notes_made and not is_watched()
        for n, (memory, source) in enumerate(zip(outputs, self.replay.sources, strict=True)):
            if source.place == NEW or source.place in overwritten:
                own = self._written.get(n) if is_quick and source.piece is None else None
                is_ours = own is not None and own.shared is None and not memory.owner.is_shared
                if is_ours and uses[memory.owner] == 1:
                    values.append(None)
                    continue
                node = buffer_on(memory, source.shape)
                first = owners.setdefault(memory.owner, node)
                if first is not node:
                    share(first, node)
            else:
                constant = source.constant
                whole = constant or inputs[source.place]
                if whole is None:
                    whole = self._state.node_of(source.place - len(self._nodes))
                node = detached(piece_of(whole, source.piece))
            values.append(node)
        return values

    def _check_inputs(self, inputs: list[Any]) -> None:
        """Check that inputs fit, and note their nodes and memory. A node has the same memory as
        long as it lives, so inputs of the last call need no second check."""
        memory: list[Buffer] = []
        nodes: list[UOp] = []
        for tensor, kind in zip(inputs, self._kinds, strict=True):
            node = input_node(tensor)
            buffer = memory_of(node)
            if (tensor.uop.shape, buffer.dtype, buffer.device) != kind:
                raise self._changed(len(memory), kind, kind_of(tensor))
            memory.append(buffer)
            nodes.append(node)
        self._memory, self._nodes = memory, nodes
        self._inputs_before = [tensor.uop for tensor in inputs]
        self._changes = process_changes.count

    def _check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise JitError unless the arguments, without their tensors, are those of the capture."""
        if not kwargs and [*map(type, args)] == self._flat:
            return
        others = without_tensors((args, kwargs))
        if not equal_nests(others, self._capture.others):
            raise JitError(
                f"{self._capture.name} is called otherwise than when it was captured",
                f"then it was {_call(self._capture.others)}, and now it is {_call(others)}",
                "the same arguments but for tensors, or .reset() to capture anew",
            )

    def _changed(self, place: int, kind: Kind, actual: Kind) -> JitError:
        names = ("shape", "dtype", "device")
        changes = [
            f"its {name} was {was} when {self._capture.name} was captured, and is {now}"
            for name, was, now in zip(names, kind, actual, strict=True)
            if was != now
        ]
        return JitError(
            f"input {place} of {self._capture.name} does not fit",
            "; ".join(changes),
            "another TinyJit for it, or .reset() to capture anew",
        )


def _call(others: Any) -> str:
    """Return the arguments of a call as text."""
    args, kwargs = others
    parts = [short(a) for a in args] + [f"{k}={short(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"
