"""The results of a captured function: their outline, and the tensors that a replay puts in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.execution.buffers import buffer_on
from workbench.ir.node.constants import is_known
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.nest import changed
from workbench.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class FreshTensor:
    """Placeholder for a tensor of a result whose memory a replay allocates."""

    shape: Shape


def outline(result: Any) -> Any:
    """Return a result with a placeholder for each tensor; known tensors stay."""

    def change(leaf: Any) -> Any:
        is_fresh = isinstance(leaf, Tensor) and not is_known(base(leaf.uop))
        return FreshTensor(leaf.shape) if is_fresh else leaf

    return changed(result, change)


def filled(structure: Any, memory: Iterator[Buffer], nodes: dict[int, UOp]) -> Any:
    """Return the result of a replay: new tensors on `memory`."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, FreshTensor):
            return tensor_on(next(memory), leaf.shape, nodes)
        return Tensor(leaf.uop) if isinstance(leaf, Tensor) else leaf

    return changed(structure, change)


def tensor_on(memory: Buffer, shape: Shape, nodes: dict[int, UOp]) -> Tensor:
    """Return a tensor on memory, without a record of the user's lines. `nodes` are the BUFFERs of
    state by the identity of their memory."""
    node = nodes.get(id(memory))
    if node is None:
        return Tensor._on(buffer_on(memory, shape), memory.device)
    return Tensor._on(reshaped(node, shape), memory.device)
