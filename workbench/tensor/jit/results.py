"""The results of a captured function: their structure, and the tensors that a replay puts into it.

A result that is new at each call has memory of its own. One that is an argument, or a tensor that
there was before, is that tensor; and a view of these is one: it sees what is written there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.execution.values import value_in_memory
from workbench.ir.gradient.occurrences import alias, duplicate
from workbench.ir.node.constants import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.autograd.leaves import own_node
from workbench.tensor.jit.containers import ObjectResults, copy_of, set_part
from workbench.tensor.jit.paths import Step
from workbench.tensor.jit.rebinding import Rebindings, is_whole
from workbench.tensor.jit.state import tensor_of
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.nest import changed
from workbench.tensor.tensor import Tensor
from workbench.tensor.versions import VersionedMemory, rebased


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """Placeholder for a new tensor: output number `output` of a replay, in `shape`."""

    output: int
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Placeholder for a new tensor of a known constant: it has no memory that says on which
    `device` it is."""

    node: UOp
    device: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """Placeholder for the argument number `place`."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Rebound:
    """Placeholder for the tensor in the place number `place` that the function binds anew."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Existing:
    """Placeholder for a tensor that there was before the capture."""

    tensor: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class ViewOf:
    """Placeholder for a view of another result, an argument, or memory: `view`, of `whole`."""

    source: Computed | Argument | Rebound | VersionedMemory
    view: UOp
    whole: UOp


@dataclass(frozen=True, slots=True, eq=False)
class MadeObject:
    """Placeholder for an object that the function makes: a copy of `template` with `parts`, each of
    which is an outline."""

    template: Any
    parts: list[tuple[Step, Any]]


class Outline:
    """The outline of a result, built at the capture: `structure` has a placeholder for each tensor;
    `nodes` are the BUFFERs of the outputs that a replay computes for it."""

    def __init__(
        self,
        result: Any,
        bindings: Rebindings,
        stand_ins: Sequence[Tensor],
        existing: Sequence[Tensor],
        state: Iterable[VersionedMemory],
        objects: ObjectResults,
    ):
        self.nodes: list[UOp] = []
        self._objects = objects
        self._placeholders: dict[int, Any] = {id(t): Existing(t) for t in existing}
        self._placeholders |= {id(t): Rebound(n) for n, t in enumerate(bindings.old)}
        self._placeholders |= {id(t): Argument(n) for n, t in enumerate(stand_ins)}
        self._memory: dict[VersionedMemory, Any] = {m: m for m in state}
        # Of one that is not computed, or a known constant, there may be views, too.
        self._memory |= {m: m for t in existing if (m := t._memory) is not None}
        for tensor in (*stand_ins, *bindings.old):
            if tensor._memory is not None:
                self._memory[tensor._memory] = self._placeholders[id(tensor)]
        self.existing_named: set[int] = set()
        """The tensors, by their identity, that there were before and that are results."""
        self.memory_named: list[VersionedMemory] = []
        """Memory that there was before, of which results are views."""
        self.tensors: list[tuple[Computed | Constant | ViewOf, Tensor]] = []
        """The tensors of the capture that are results as they are, with their placeholders."""
        self._names: Counter[VersionedMemory | None] = Counter()
        whole = [t for t in bindings.new if is_whole(t)]
        for tensor in bindings.new:
            if not is_whole(tensor):  # a replay reads all of a memory: it gets its own
                self._placeholder(tensor)
        fresh = {
            id(t): t._memory
            for t in (*whole, *objects.tensors_of(result))
            if id(t) not in self._placeholders
        }
        self._names.update(fresh.values())
        self.rebound = changed(bindings.new, self._placeholder)
        self.structure = changed(result, self._placeholder)

    def _placeholder(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return self._of_object(leaf)
        placeholder = self._placeholders.get(id(leaf))
        if isinstance(placeholder, Existing):
            self.existing_named.add(id(leaf))
        if placeholder is None:
            placeholder = self._placeholders[id(leaf)] = self._of_new(leaf)
            is_of_stand_in = isinstance(placeholder, ViewOf) and isinstance(
                placeholder.source, Argument
            )
            if not is_of_stand_in:
                self.tensors.append((placeholder, leaf))
        return placeholder

    def _of_object(self, leaf: Any) -> Any:
        """Return the placeholder of an object with new tensors; any other is a result as it is."""
        parts = self._objects.parts_of(leaf)
        if not parts:
            return leaf
        if id(leaf) not in self._placeholders:
            placeholder = self._placeholders[id(leaf)] = MadeObject(leaf, [])
            for step, part in parts:  # one may be the object itself
                placeholder.parts.append((step, changed(part, self._placeholder)))
        return self._placeholders[id(leaf)]

    def _of_new(self, tensor: Tensor) -> Computed | Constant | ViewOf:
        memory = tensor._memory
        is_view = memory is not None and memory in self._memory
        if not is_view and is_known(base(tensor.uop)):
            return Constant(tensor.uop, tensor._device)
        if memory is not None and not is_view:
            whole = value_in_memory(memory.value)
            if self._names[memory] > 1 and whole.op is Ops.BUFFER:
                self._memory[memory] = self._output(whole, memory.value.shape)
        if memory is None or memory not in self._memory:
            return self._output(value_in_memory(tensor.uop), tensor.shape)
        assert tensor._version is not None
        if isinstance(self._memory[memory], VersionedMemory):
            self.memory_named.append(memory)
        return ViewOf(self._memory[memory], tensor.uop, tensor._version)

    def _output(self, node: UOp, shape: Shape) -> Computed:
        self.nodes.append(node)
        return Computed(len(self.nodes) - 1, shape)


class Results:
    """The tensors of one call, by their placeholders: those of its outputs (`values`), of its
    arguments, and of the places that it binds anew. `tensors` are those that there are already."""

    def __init__(
        self,
        values: Sequence[UOp],
        arguments: Sequence[Tensor],
        rebound: Sequence[Tensor],
        tensors: dict[int, Any],
    ):
        self._values, self._arguments, self._rebound = values, arguments, rebound
        self._tensors = tensors

    def filled(self, structure: Any) -> Any:
        """Return the nest of tensors that `structure` is the outline of."""
        return changed(structure, self._filling)

    def _filling(self, leaf: Any) -> Any:
        match leaf:
            case Existing():
                return leaf.tensor
            case Argument():
                return self._arguments[leaf.place]
            case Rebound():
                return self._rebound[leaf.place]
            case Computed() | Constant() | ViewOf():
                if id(leaf) not in self._tensors:
                    self._tensors[id(leaf)] = self._new(leaf)
                return self._tensors[id(leaf)]
            case MadeObject():
                if id(leaf) not in self._tensors:
                    other = self._tensors[id(leaf)] = copy_of(leaf.template)
                    for step, part in leaf.parts:
                        set_part(other, step, self.filled(part))
                return self._tensors[id(leaf)]
        return leaf

    def _new(self, leaf: Computed | Constant | ViewOf) -> Tensor:
        if isinstance(leaf, Constant):
            return Tensor._on(duplicate(leaf.node), leaf.device)
        if isinstance(leaf, Computed):
            return tensor_on(self._values[leaf.output], leaf.shape)
        source = leaf.source
        own = tensor_of(source) if isinstance(source, VersionedMemory) else self._filling(source)
        if leaf.view is leaf.whole and isinstance(source, Computed):
            return own
        view = rebased(leaf.view, leaf.whole, own.uop)
        tensor = Tensor._on(alias(view), own._device)
        tensor._share(own)
        return tensor


def tensor_on(node: UOp, shape: Shape) -> Tensor:
    """Return a tensor on a BUFFER, or on a piece of one, without a record of the user's lines."""
    buffer = node
    while buffer.op is not Ops.BUFFER:
        (buffer,) = buffer.src
    return Tensor._on(own_node(reshaped(node, shape)), buffer.device)
