"""What tinygrad computes for nodes, on copies of their memory: the user's tensors stay lazy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.models.memory import Array
from workbench.models.tinygrad.values import buffers_below
from workbench.tensor.tensor import Tensor

MOST_ELEMENTS = 1 << 20
"""The maximal number of elements of a node that is compared; outputs may have more."""
_VIEWS = frozenset({"EXPAND", "FLIP", "PAD", "PERMUTE", "RESHAPE", "SHRINK"})
_NO_TENSORS = frozenset({"BUFFER", "FUNCTION", "TUPLE"})


def reference_values(
    calls: Sequence[Any], roots: Sequence[Any], memory: Mapping[Any, Tensor]
) -> Iterator[tuple[Any, Array]]:
    """Yield (call, array) of the nodes that are compared: `roots`, and those that compute and have
    a known size. `memory` has the elements of buffers."""
    import tinygrad

    copies = {node: _copied(node, memory.get(node)) for node in buffers_below(roots)}
    compared = [call for call in calls if call.node in roots or _is_compared(call.node)]
    tensors = [tinygrad.Tensor(call.node.substitute(copies)) for call in compared]
    for call, tensor in zip(compared, tensors, strict=True):
        yield call, np.asarray(tensor.numpy())


def _is_compared(node: Any) -> bool:
    if node.op.name in _VIEWS | _NO_TENSORS or node.is_virtual:
        return False
    return all(isinstance(n, int) for n in node.shape) and node.numel() <= MOST_ELEMENTS


def _copied(node: Any, elements: Tensor | None) -> Any:
    """Return a node like a buffer on other memory, which has `elements`."""
    from tinygrad.device import Buffer

    copy = node.new_buffer(node.device, node.max_numel(), node.dtype)
    if elements is not None:
        data = memoryview(bytearray(elements.numpy().tobytes()))
        copy.buffer.ensure_allocated().copy_from(
            Buffer("PYTHON", copy.buffer.size, node.dtype, data)
        )
    return copy
