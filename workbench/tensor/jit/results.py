"""The results of a captured function: their structure, and the tensors that a replay puts into it.

A result that is new at each call has memory of its own. A result that is an argument, or a tensor
from before the call, is that tensor. A view of one is a view again: it sees what is written there.

Sections: Tensors that a captured function replaces; The results of a captured function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import JitError
from workbench.execution.memory_plan import value_in_memory
from workbench.ir.gradient.occurrences import alias, duplicate
from workbench.ir.node.construct import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.ir.schedule.schedule import base
from workbench.tensor.autograd.leaves import own_node
from workbench.tensor.jit.containers import (
    ContainerChanges,
    ObjectResults,
    bind,
    container_changes,
    copy_of,
    set_part,
)
from workbench.tensor.jit.holders import Reached
from workbench.tensor.jit.parts import Path, Step, tensor_at, words_of
from workbench.tensor.jit.state import Kind, buffer_of, input_node, kind_of, tensor_of
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import changed
from workbench.tensor.versions import VersionedMemory, rebased

# --------------------------------------------------------------------------------------------------
# Tensors that a captured function replaces: `m.h = m.h + x` instead of an assignment.
#
# A replay runs no Python, so it does the same: it reads the tensor in such a place, and binds its
# result there. The places are found by comparing all that the function reaches before and after
# the capture.


@dataclass(frozen=True, slots=True)
class Rebindings:
    """The places that a function binds anew: their `paths`, the `old` and the `new` tensors, and
    the changes of `containers`."""

    paths: list[Path]
    old: list[Tensor]
    new: list[Tensor]
    containers: ContainerChanges

    @property
    def all_paths(self) -> set[Path]:
        """The paths of tensors and containers that are bound anew."""
        return {*self.paths, *self.containers.paths}

    def bind(self, root: Any, tensors: Sequence[Tensor], name: str) -> None:
        """Put tensors in these places after the function `name` has run.

        Errors: JitError where a container can neither be changed nor copied.
        """
        moved = self.containers.moved_in(root, is_done=True)
        try:
            bind(root, self.paths, tensors, self.containers, moved)
        except (TypeError, AttributeError, LookupError) as error:
            raise JitError(
                f"cannot capture {name}",
                f"it binds {', '.join(filter(None, map(words_of, self.paths))) or 'a variable'} to "
                f"another tensor, which a replay cannot do: {error}",
                "a list, a dict or an attribute for the tensor, or .assign(value)",
            ) from None


class ReboundPlaces:
    """The places that a function binds anew: their paths, and the kinds of the tensors there at the
    capture. `read` has the number of each one's memory in the state (None: it was not read)."""

    def __init__(self, bindings: Rebindings, read: Sequence[VersionedMemory]):
        self._paths, self._containers = bindings.paths, bindings.containers
        self._kinds: list[Kind] = [kind_of(t) for t in bindings.old]
        numbers = {memory: n for n, memory in enumerate(read)}
        memories = [t._memory for t in bindings.old]
        self._names = _same_as(bindings.old)
        self.read = [None if m is None else numbers.get(m) for m in memories]

    @property
    def is_empty(self) -> bool:
        return not self._paths and not self._containers.moved

    def tensors_at(self, root: Any) -> list[Any]:
        """Return what is in these places now."""
        return [tensor_at(root, path) for path in self._paths]

    def fit(self, root: Any, written: Collection[VersionedMemory]) -> bool:
        """Whether the tensors in these places are as at the capture: the same shapes, dtypes and
        devices, and one tensor where it was one. None may be on memory that is `written`: it would
        see the write."""
        if not self._paths:
            return True
        tensors = self.tensors_at(root)
        return self._names == _same_as(tensors) and all(
            isinstance(t, Tensor) and kind_of(t) == kind and t._memory not in written
            for t, kind in zip(tensors, self._kinds, strict=True)
        )

    def bind(self, root: Any, tensors: Sequence[Tensor]) -> None:
        """Put tensors in these places, and containers that the function moves."""
        if self.is_empty:
            return
        moved = self._containers.moved_in(root)
        bind(root, self._paths, tensors, self._containers, moved)


def rebindings(before: Reached, after: Reached) -> Rebindings:
    """Return the places with another tensor `after` a function than `before` it. Members of a set
    have no place, and gradients are not kept from call to call."""
    paths = [
        path
        for path, tensor in before.tensors.items()
        if after.tensors.get(path, tensor) is not tensor
        and path[-1].kind not in ("member", "gradient")
    ]
    old, new = ([reached.tensors[p] for p in paths] for reached in (before, after))
    containers = container_changes(before, after, paths)
    return Rebindings(paths, old, new, containers)


def name_conflict(
    bindings: Rebindings,
    after: Mapping[Path, Tensor],
    written: Collection[VersionedMemory],
    name: str,
) -> JitError | None:
    """Return the error if a tensor that the function `name` replaced, or a container that it moved,
    has another name, or such a tensor is written; else None."""
    for path, other_path in bindings.containers.doubtful:
        return JitError(
            f"cannot capture {name}",
            f"it binds {words_of(path)} to another object with tensors, which is also "
            f"{words_of(other_path)}: a replay could not tell these names apart",
            "the object as an argument, or a function for each",
        )
    bound = set(bindings.paths)
    others = {identity(t): words_of(p) for p, t in after.items() if p not in bound}
    news: dict[int, Tensor] = {}
    for path, old, new in zip(bindings.paths, bindings.old, bindings.new, strict=True):
        other = others.get(identity(old), "")
        if old._memory in written:
            other = "written"
        elif news.setdefault(identity(old), new) is not new:
            other = "in another place"
        if other:
            return JitError(
                f"cannot capture {name}",
                f"it binds {words_of(path)} to another tensor, and the one that was there is also "
                f"{other}: a replay could not tell them apart",
                f"{words_of(path)}.assign(value), which writes to the tensor",
            )
    return None


def compute_at(root: Any, paths: Sequence[Path]) -> None:
    """Compute the tensors that paths from `root` lead to; known constants get memory."""
    for tensor in [tensor_at(root, path) for path in paths]:
        if isinstance(tensor, Tensor):
            memory_at(tensor)


def memory_at(tensor: Tensor) -> VersionedMemory:
    """Return the memory of a tensor, computed if necessary; a view of a part gets memory of its
    own."""
    if tensor._memory is None:
        tensor._share(tensor)
    if is_whole(tensor):
        assert tensor._memory is not None
        buffer_of(tensor._memory)
        return tensor._memory
    return VersionedMemory(input_node(tensor), tensor.device, 0)


def _same_as(tensors: Sequence[Any]) -> list[int]:
    """Return, for each tensor, the position of the first one that is identical."""
    first: dict[int, int] = {}
    return [first.setdefault(id(tensor), n) for n, tensor in enumerate(tensors)]


def is_whole(tensor: Tensor) -> bool:
    """Whether a tensor is all of its memory, in its order."""
    memory = tensor._memory
    return memory is None or base(tensor.uop) is base(memory.value)


def identity(tensor: Tensor) -> int:
    """Return a number that is equal for tensors that see each other's writes."""
    return id(tensor if tensor._memory is None else tensor._memory)


# --------------------------------------------------------------------------------------------------
# The results of a captured function.


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """Placeholder for a new tensor: output number `output` of a replay, in `shape`."""

    output: int
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Placeholder for a new tensor of a known constant, whose node does not name its `device`."""

    node: UOp
    device: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """Placeholder for the argument number `place`."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Rebound:
    """Placeholder for the tensor in place number `place` of those that the function binds anew."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Existing:
    """Placeholder for a tensor from before the capture."""

    tensor: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class ViewOf:
    """Placeholder for a view of another result, an argument or memory, as `view` is of `whole`."""

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
    `nodes` are the BUFFERs of the outputs that a replay computes for it, `expressions` what they
    were computed from."""

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
        self.expressions: list[UOp] = []
        self._objects = objects
        self._placeholders: dict[int, Any] = {id(t): Existing(t) for t in existing}
        self._placeholders |= {id(t): Rebound(n) for n, t in enumerate(bindings.old)}
        self._placeholders |= {id(t): Argument(n) for n, t in enumerate(stand_ins)}
        self._memory: dict[VersionedMemory, Any] = {m: m for m in state}
        # Memory that is not computed, or a known constant, may have views, too.
        self._memory |= {m: m for t in existing if (m := t._memory) is not None}
        for tensor in (*stand_ins, *bindings.old):
            if tensor._memory is not None:
                self._memory[tensor._memory] = self._placeholders[id(tensor)]
        self.existing_named: set[int] = set()
        """The tensors from before the capture, by their identity, that are results."""
        self.memory_named: list[VersionedMemory] = []
        """Memory from before the capture of which results are views."""
        self.tensors: list[tuple[Computed | Constant | ViewOf, Tensor]] = []
        """The tensors of the capture that are results as they are, with their placeholders."""
        self._names: Counter[VersionedMemory | None] = Counter()
        whole = [t for t in bindings.new if is_whole(t)]
        for tensor in bindings.new:
            if not is_whole(tensor):  # a replay reads whole memory: this one gets its own
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
        """Return the placeholder of an object with new tensors; any other object itself."""
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
                self._memory[memory] = self._output(memory.value, memory.value.shape)
        if memory is None or memory not in self._memory:
            return self._output(tensor.uop, tensor.shape)
        assert tensor._version is not None
        if isinstance(self._memory[memory], VersionedMemory):
            self.memory_named.append(memory)
        return ViewOf(self._memory[memory], tensor.uop, tensor._version)

    def _output(self, expression: UOp, shape: Shape) -> Computed:
        self.nodes.append(value_in_memory(expression))
        self.expressions.append(expression)
        return Computed(len(self.nodes) - 1, shape)


class Results:
    """The tensors of one call, by their placeholders: from its outputs (`values`), its `arguments`,
    and the tensors that it binds anew (`rebound`). `tensors` has those that exist already, by the
    identity of the placeholder."""

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
        """Return the nest of tensors whose outline is `structure`."""
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
    """Return a tensor on a BUFFER, or on a piece of one, without lines of the user's code."""
    buffer = node
    while buffer.op is not Ops.BUFFER:
        (buffer,) = buffer.src
    return Tensor._on(own_node(reshaped(node, shape)), buffer.device)
