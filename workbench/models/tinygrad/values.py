"""Values of tinygrad here: dtypes, sizes, and memory, which is shared where that is possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DTypeError, ModelError
from workbench.models.memory import Array, on_memory
from workbench.tensor.tensor import Tensor

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("fp8e4m3", "fp8e5m2", "float16", "bfloat16", "float32", "float64"),
)
_WEAK = {"weakint": dtypes.int64, "weakfloat": dtypes.float64}
"""The types of Python's numbers, which take the dtype of what they are combined with."""


@cache
def _dtypes() -> dict[Any, DType]:
    from tinygrad import dtypes as theirs

    named = {name: getattr(dtypes, name) for name in _NAMES} | _WEAK
    return {getattr(theirs, name): dtype for name, dtype in named.items() if hasattr(theirs, name)}


def dtype_of(dtype: Any) -> DType:
    """Return the dtype of a tinygrad.DType.

    Errors: DTypeError for 8-bit floating-point numbers of the kinds "fnuz".
    """
    if dtype not in _dtypes():
        name = str(dtype).removeprefix("dtypes.")
        because = "tensors have integers, bools and floats"
        raise DTypeError(f"there is no dtype {name} here", because, "x.float()")
    return _dtypes()[dtype]


def stored_dtype(dtype: Any) -> DType:
    """Return the dtype in which tinygrad stores values of a tinygrad.DType."""
    from tinygrad.dtype import strong_dtype

    return dtype_of(strong_dtype(dtype))


def common_dtype(nodes: Iterable[Any]) -> DType:
    """Return the dtype to which tinygrad promotes nodes."""
    from tinygrad.dtype import least_upper_dtype

    return dtype_of(least_upper_dtype(*(node.dtype for node in nodes)))


def sizes_of(sizes: Iterable[Any]) -> tuple[int, ...]:
    """Return sizes as integers, those of variables as they are bound.

    Errors: ModelError for a size that depends on a variable without a value.
    """
    return tuple(map(_size, sizes))


def _size(size: Any) -> int:
    if isinstance(size, int):
        return size
    expression, bound = size.unbind_all()
    values = {variable.expr: value for variable, value in bound.items()}
    for variable in expression.variables():
        if variable.expr not in values:
            because = f"the variable {variable.expr} has no value"
            hint = f"{variable.expr}.bind(3) in its place"
            raise ModelError("cannot compute a tensor of an unknown size", because, hint)
    return int(expression.sym_infer(values))


class _HostMemory:
    """The bytes of a buffer for numpy, whose array keeps the buffer alive."""

    def __init__(self, buffer: Any):
        self._buffer = buffer
        self._bytes = buffer.as_memoryview(allow_zero_copy=True)
        self.__array_interface__ = np.frombuffer(self._bytes, np.uint8).__array_interface__


def memory_of(buffer: Any, copied: bool) -> Tensor:
    """Return a Tensor on the memory of a tinygrad.Buffer; on a copy where the processor cannot read
    it, or if it is to be `copied`. Shapes: (buffer.size,)."""
    array: Array = np.asarray(_HostMemory(buffer))
    elements = array.view(dtype_of(buffer.dtype).numpy)
    return Tensor(elements) if copied else on_memory(elements)


def computed_buffer(node: Any) -> Any:
    """Return the tinygrad.Buffer of a node that has values; None if nothing was written there. One
    on several devices is the same on each."""
    if isinstance(node.device, tuple):
        return None if node.realized is None else node.realized.bufs[0]
    if node.device.startswith(("DISK", "TINYFS")):
        return node.buffer.ensure_allocated()  # a file has values before it is opened
    return node.realized


def base_of(node: Any) -> Any:
    """Return the buffer of all elements of a node, if it only reshapes, copies or writes one; else
    the node where that ends."""
    while node.op.name in ("AFTER", "CONTIGUOUS", "COPY", "DETACH", "RESHAPE"):
        node = node.src[0]
    return node


def is_variable(node: Any) -> bool:
    """Whether a node stands for a number that is bound later."""
    return bool(node.op.name == "BUFFER" and node.is_variable)


def buffers_below(roots: Sequence[Any]) -> dict[Any, bool]:
    """Return the buffers below nodes, and whether one of them writes there."""
    below = dict.fromkeys(node for root in roots for node in root.toposort())
    written = {_target(node) for node in below if node.op.name == "STORE"}
    buffers = [node for node in below if node.op.name == "BUFFER" and not is_variable(node)]
    return {node: node in written for node in buffers}


def _target(store: Any) -> Any:
    """Return the node whose memory is written, below all views of it."""
    node = store
    while node.src and node.op.name != "BUFFER":
        node = node.src[0]
    return node
