"""Copies of tensors, which share memory and leaves as the originals do.

Deep copies of several tensors, as of a model, are related as the originals are: a write to a copy
changes the copies of its views, and gradients flow to the copies of leaves. Tensors that are
pickled together share memory as before, but each has a graph of its own: no gradient flows from one
to another. `memo` is the argument of `__deepcopy__`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

from workbench.ir.gradient.occurrences import duplicate
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pickles import pickled, reference, referred
from workbench.portable import Portable, portable
from workbench.tensor.autograd.leaves import detached, leaf_node, leaf_of, leaves_below, number_of
from workbench.tensor.base import Base, canonical
from workbench.tensor.versions import Step, VersionedMemory, moved_by, op_and_arg, rebased, steps_to

Memo = dict[Any, Any]
Steps = tuple[Step, ...]
_NUMBERS = "leaves that are copies"
_NODES = "copies of expressions"


@pickled
class Copies(Base):
    """copy.copy, copy.deepcopy and pickle."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph with its data; of a view, the movement and the memory. In another
        process the tensor has memory of its own, and no `grad`."""
        state, memory = self._grad_state, self._memory
        fields = (self._device, state and state.requires_grad, self._is_weak)
        node = self.uop
        if memory is None:
            return restored_tensor, (reference(type(self)), portable(node), *fields)
        steps = _movement(node, memory.value)
        return restored_view, (reference(type(self)), memory, steps, *fields)

    def __copy__(self) -> Self:
        # No gradient flows from the copy of a leaf to that leaf.
        detach = detached if number_of(self) else duplicate
        return self._required_of(self._with(detach(self.uop)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        node, number, memory = self.uop, number_of(self), self._memory
        if memory is None:
            copy = self._with(detached(node) if number else _copied_node(node, memo))
            if not number:
                _note_copy(node, copy.uop, memo)
        else:
            if number and node is not memory.value and node.op is Ops.DETACH:
                node = node.src[0]  # a leaf that is a view: its copy gets a node of its own
            own = _copied_memory(memory, number, memo)
            view = _copied_view(node, memory.value, own, memo)
            copy = self._with(view)
            # The copy needs `view` itself: it may be the node of the memory, and so of a leaf.
            copy._uop, copy._memory, copy._version = view, own, own.value
        self._required_of(copy)
        _note_leaf(number_of(copy), memo)
        grad = None if self._grad_state is None else self._grad_state.grad
        if grad is not None and copy._grad_state is not None:
            copy._grad_state.grad = deepcopy(grad, memo)
        return copy

    def _required_of(self, copy: Self) -> Self:
        """Return `copy`, with this tensor's `requires_grad`."""
        state = self._grad_state
        if state is not None and state.requires_grad is not None:
            copy.requires_grad_(state.requires_grad)
        return copy


def restored_tensor(
    kind: type[Base] | str,
    graph: Portable,
    device: str | None,
    requires_grad: bool | None,
    is_weak: bool = False,
) -> Base:
    """Return the tensor of a pickled graph.

    Errors: DeviceError for a device that is missing here.
    """
    own = None if device is None else canonical(device)
    (uop,) = graph.restored()
    tensor: Base = referred(kind)._on(duplicate(uop), own, requires_grad)
    tensor._is_weak = is_weak
    return tensor


def restored_view(
    kind: type[Base] | str,
    memory: VersionedMemory,
    steps: Steps,
    device: str | None,
    requires_grad: bool | None,
    is_weak: bool,
) -> Base:
    """Return the tensor of a pickled view; `memory` is one object for all views of it."""
    own = None if device is None else canonical(device)
    tensor: Base = referred(kind)._on(_moved_by(steps, memory.value), own)
    tensor._memory, tensor._version = memory, memory.value
    tensor._is_weak = is_weak
    if requires_grad is not None:
        tensor.requires_grad_(requires_grad)
    return tensor


def _copied_node(node: UOp, memo: Memo) -> UOp:
    """Return a node of its own for the copy of an expression: its leaves, and expressions that were
    copied before, are replaced by their copies."""
    copies = {n: c for n, c in memo.get(_NODES, {}).items() if n is not node}
    inner = node.substitute(copies) if copies else node
    return duplicate(_of_copied_leaves(inner, memo))


def _of_copied_leaves(node: UOp, memo: Memo) -> UOp:
    changes: dict[UOp, UOp] = {}
    for below, leaf in leaves_below(node):
        if number_of(leaf) in memo.get(_NUMBERS, ()):
            continue
        value = below.src[0] if below.op is Ops.DETACH else below
        changes[below] = leaf_node(number_of(deepcopy(leaf, memo)), value)
    return node.substitute(changes) if changes else node


def _copied_memory(memory: VersionedMemory, number: int, memo: Memo) -> VersionedMemory:
    """Return the copy of a memory, one for all its views. `number` is the leaf number of the copied
    tensor (0: no leaf). If another tensor is the leaf of the memory, that one is copied first."""
    leaf = leaf_of(memory.value) if memory.leaf and memory.leaf != number else None
    if leaf is not None:
        deepcopy(leaf, memo)
    if id(memory) not in memo:
        value = memory.value
        if memory.leaf:
            value = detached(value)
        else:
            value = _copied_node(value, memo)
        memo[id(memory)] = VersionedMemory(value, memory.device, 0)
    copy: VersionedMemory = memo[id(memory)]
    return copy


def _copied_view(node: UOp, whole: UOp, copy: VersionedMemory, memo: Memo) -> UOp:
    """Return the view of `copy` that `node` is of `whole`, the value of the copied memory."""
    return _of_copied_leaves(rebased(node, whole, copy.value), memo)


def _note_copy(node: UOp, copy: UOp, memo: Memo) -> None:
    memo.setdefault(_NODES, {})[node] = copy


def _note_leaf(number: int, memo: Memo) -> None:
    memo.setdefault(_NUMBERS, set()).add(number)


def _movement(node: UOp, whole: UOp) -> Steps:
    """Return the movement that leads from `whole` to `node`, to be pickled."""
    steps = [s for s in steps_to(node, whole) if s.op is not Ops.DETACH]
    return tuple(op_and_arg(step) for step in reversed(steps))


def _moved_by(steps: Steps, whole: UOp) -> UOp:
    """Return `whole`, moved as a pickled view is."""
    for step in steps:
        whole = moved_by(step, whole)
    return whole
