"""Leaf tensors (requires_grad=True) and their nodes; the modes of training and of gradients.

Equal expressions are one node, but a gradient belongs to a tensor. So a leaf has a number and a
node of its own: its BUFFER (or COPY of host data), if no other tensor has that, or else a DETACH of
its value with the number.

Sections: Leaf tensors and their nodes; Modes of training and of gradients.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from workbench.base.context import TRAINING
from workbench.base.interrupts import DynamicScope, scope
from workbench.base.situation import Situational
from workbench.ir.gradient.occurrences import alias, duplicate, gradient_sources
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Leaf tensors and their nodes.


@dataclass(slots=True)
class GradientState:
    """The gradient fields of a tensor: `requires_grad` as the user set it; the `number` of a leaf
    (0: no leaf); its `grad`; `is_spent`: backward() was called on it."""

    requires_grad: bool | None = None
    number: int = 0
    grad: Any = None
    is_spent: bool = False


class Leaf(Protocol):
    """The part of a tensor that this file reads."""

    _grad_state: GradientState | None


_tensors: WeakValueDictionary[int, Leaf] = WeakValueDictionary()
_numbers: WeakKeyDictionary[UOp, int] = WeakKeyDictionary()
"""The number of the leaf that a BUFFER, or a COPY of host data, stands for."""
_tensors_memory: WeakSet[UOp] = WeakSet()
"""The BUFFERs and COPYs that are the node of a tensor."""
_next = count(1)


class _GradientChanges:
    """The count of changes of the leaves, and of what memory that there was before was computed
    from: while it is the same, the origins of a tensor are, too."""

    count = 0


gradient_changes = _GradientChanges()


def new_leaf(tensor: Leaf) -> int:
    """Return a number for a tensor that becomes a leaf."""
    gradient_changes.count += 1
    number = next(_next)
    _tensors[number] = tensor
    return number


def leaf_node(number: int, value: UOp) -> UOp:
    """Return the node that stands for a leaf with the value `value`."""
    if value.op is Ops.DETACH and value.arg == number:
        return value
    if _is_memory(value) and _is_free(value, number):
        _tensors_memory.add(value)
        _numbers[value] = number
        return value
    return UOp(Ops.DETACH, value.dtype, (value,), number)


def own_leaf_node(number: int, node: UOp) -> UOp:
    """Return the node of a tensor that becomes leaf `number`; until now it is `node`."""
    if _is_memory(node):
        _numbers[node] = number
    return leaf_node(number, node)


def own_node(value: UOp) -> UOp:
    """Return a node for a tensor of `value` that is made of no other tensor."""
    return value if claim(value) else duplicate(value)


def claim(value: UOp) -> bool:
    """Make memory the node of one tensor, and return True; False for a value that is no memory, or
    already another tensor's: several tensors may be computed to the same memory."""
    is_free = _is_memory(value) and value not in _tensors_memory
    if is_free:
        _tensors_memory.add(value)
    return is_free


def plain_value(node: UOp) -> UOp:
    """Return the value of a node without the DETACHes that distinguish equal values."""
    while node.op is Ops.DETACH:
        node = node.src[0]
    return node


def leaf_of(node: UOp) -> Leaf | None:
    """Return the leaf that a node stands for, or None."""
    number = node.arg if node.op is Ops.DETACH else _numbers.get(node)
    return None if number is None else leaf_numbered(number)


def leaf_numbered(number: int) -> Leaf | None:
    """Return the leaf that has a number; None if it is gone, or no leaf any more."""
    tensor = _tensors.get(number)
    return tensor if tensor is not None and number_of(tensor) == number else None


def number_of(tensor: Leaf) -> int:
    """Return the number of a leaf; 0 for another tensor."""
    return 0 if tensor._grad_state is None else tensor._grad_state.number


def leaves_below(root: UOp) -> Iterator[tuple[UOp, Leaf]]:
    """Yield the nodes under `root` that stand for leaves and that a gradient may reach, with the
    leaves."""
    for node in root.toposort(lets_through):
        tensor = leaf_of(node) if node.op in _LEAVES else None
        if tensor is not None:
            yield node, tensor


def leads_to_lost_leaf(root: UOp) -> bool:
    """Whether a node under `root` stands for a leaf that is no longer alive."""
    for node in root.toposort():
        number = node.arg if node.op is Ops.DETACH else _numbers.get(node)
        if isinstance(number, int) and number > 0 and number not in _tensors:
            return True
    return False


def leads_to_leaf(root: UOp) -> bool:
    """Whether a gradient flows from `root` to a leaf."""
    if not _tensors:  # there is no leaf at all
        return False
    return next(leaves_below(root), None) is not None


_LEAVES = frozenset({Ops.DETACH, Ops.BUFFER, Ops.COPY})


def lets_through(node: UOp) -> bool:
    """Whether a gradient flows on below a node, or must be refused there, as at a bit cast."""
    if node.op is Ops.DETACH:
        return bool(gradient_sources(node))
    if node.op is Ops.CAST and not node.dtype.is_float:
        return False
    return node.dtype.is_float or node.dtype.is_int


def _is_memory(node: UOp) -> bool:
    if node.op is Ops.COPY:
        return node.src[0].op is Ops.BUFFER
    return node.op is Ops.BUFFER


def _is_free(node: UOp, number: int) -> bool:
    """Whether memory is the node of no tensor, or of the leaf `number`."""
    return node not in _tensors_memory or _numbers.get(node) == number


# --------------------------------------------------------------------------------------------------
# Modes of training and of gradients.

_gradient_numbers = count(1)
"""Numbers of detached values; they are negated, since the numbers of leaves are positive."""
_FLOWS = Situational("gradients_flow", True)


class Training(DynamicScope[None]):
    """A `with` block, or decorator, in which `Tensor.training` has a value."""

    def __init__(self, mode: bool = True):
        self._value = int(mode)
        super().__init__(self._block)

    def _block(self) -> Generator[None, None, None]:
        before = TRAINING.value
        TRAINING.set(self._value)
        try:
            yield
        finally:
            TRAINING.set(before)


class TensorClass(type):
    """The class of `Tensor`, which has `Tensor.training`: a setting that one can assign to."""

    @property
    def training(cls) -> bool:
        """Whether a model is trained: the setting TRAINING."""
        return bool(TRAINING.value)

    @training.setter
    def training(cls, mode: bool) -> None:
        TRAINING.set(int(mode))


@scope
def flow(is_on: bool) -> Generator[None, None, None]:
    """Return a `with` block, or decorator, in which results have gradients, or have none."""
    token = _FLOWS.set(is_on)
    try:
        yield
    finally:
        _FLOWS.reset(token)


def gradients_flow() -> bool:
    """Whether results have gradients in the present block."""
    return _FLOWS.get()


def detached(value: UOp) -> UOp:
    """Return `value` as a new node without a gradient; constants and integers as they are."""
    if value.is_const or not value.dtype.is_float:
        return value
    return UOp(Ops.DETACH, value.dtype, (value,), -next(_gradient_numbers))


def occurrence(value: UOp) -> UOp:
    """Return a node of its own for one tensor of `value`; constants and integers as they are."""
    return alias(value) if gradients_flow() else detached(value)
