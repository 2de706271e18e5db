"""Leaf tensors, those with requires_grad=True, and the nodes that stand for them.

Equal expressions are one node, but a gradient belongs to a tensor. So a leaf has a number, and a
node that stands for it and nothing else: a BUFFER that is its own, or else DETACH of its value with
that number. Memory that no leaf stands for any longer is free for another.

Sections: Leaf tensors, those with requires_grad=True, and the nodes that stand for them; Modes
of training and of gradients, which a `with` block or a decorated function sets.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from workbench.base.context import TRAINING
from workbench.base.interrupts import DynamicScope, scope
from workbench.ir.gradient.occurrences import alias, duplicate, gradient_sources
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Leaf tensors, those with requires_grad=True, and the nodes that stand for them.


@dataclass(slots=True)
class GradientState:
    """What a tensor knows of its gradient: `requires_grad` as the user set it, the `number` of a
    leaf (0: it is none), its `grad`; `is_spent`: backward() went through its expression."""

    requires_grad: bool | None = None
    number: int = 0
    grad: Any = None
    is_spent: bool = False


class Leaf(Protocol):
    """A tensor, as far as this file knows it."""

    _grad_state: GradientState | None


_tensors: WeakValueDictionary[int, Leaf] = WeakValueDictionary()
_numbers: WeakKeyDictionary[UOp, int] = WeakKeyDictionary()
"""The leaf that each BUFFER, or COPY of host data, stands for."""
_tensors_memory: WeakSet[UOp] = WeakSet()
"""The memory that is the node of a tensor."""
_next = count(1)


def new_leaf(tensor: Leaf) -> int:
    """Return the number of a tensor that becomes a leaf."""
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
    """Return the node that stands for a leaf whose node is `node` so far."""
    if _is_memory(node):
        _numbers[node] = number
    return leaf_node(number, node)


def own_node(value: UOp) -> UOp:
    """Return the node of a tensor that is made of no other one."""
    return value if claim(value) else duplicate(value)


def claim(value: UOp) -> bool:
    """Whether a value is memory that is the node of no tensor so far; from now on it is that of the
    one that asks. Several may be computed to the same memory."""
    is_free = _is_memory(value) and value not in _tensors_memory
    if is_free:
        _tensors_memory.add(value)
    return is_free


def plain_value(node: UOp) -> UOp:
    """Return a node without what tells it from its equals."""
    while node.op is Ops.DETACH:
        node = node.src[0]
    return node


def leaf_of(node: UOp) -> Leaf | None:
    """Return the leaf that a node stands for, or None."""
    number = node.arg if node.op is Ops.DETACH else _numbers.get(node)
    tensor = None if number is None else _tensors.get(number)
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
    """Whether a node under `root` stands for a leaf that nothing refers to any longer."""
    for node in root.toposort():
        number = node.arg if node.op is Ops.DETACH else _numbers.get(node)
        if isinstance(number, int) and number > 0 and number not in _tensors:
            return True
    return False


def leads_to_leaf(root: UOp) -> bool:
    """Whether a gradient flows from `root` to a leaf."""
    return next(leaves_below(root), None) is not None


_LEAVES = frozenset({Ops.DETACH, Ops.BUFFER, Ops.COPY})


def lets_through(node: UOp) -> bool:
    """Whether a gradient goes on below a node, or must be refused there: a bit cast has none."""
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
    """Whether memory is the node of no tensor but the leaf with a number."""
    return node not in _tensors_memory or _numbers.get(node) == number


# --------------------------------------------------------------------------------------------------
# Modes of training and of gradients, which a `with` block or a decorated function sets.

_gradient_numbers = count(1)
"""Numbers of detached values; those of leaves are positive."""
_FLOWS: ContextVar[bool] = ContextVar("gradients_flow", default=True)


class Training(DynamicScope[None]):
    """A block, or a function that it decorates, in which `Tensor.training` has a value."""

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
    """Return a block, or a decorator, in which results have gradients, or have none."""
    token = _FLOWS.set(is_on)
    try:
        yield
    finally:
        _FLOWS.reset(token)


def gradients_flow() -> bool:
    """Whether results have gradients here."""
    return _FLOWS.get()


def detached(value: UOp) -> UOp:
    """Return `value`, through which no gradient flows; a node of its own, but for a number."""
    if value.is_const or not value.dtype.is_float:
        return value
    return UOp(Ops.DETACH, value.dtype, (value,), -next(_gradient_numbers))


def occurrence(value: UOp) -> UOp:
    """Return `value` as that of one tensor, told from all others: of a float, a node of its own."""
    return alias(value) if gradients_flow() else detached(value)
