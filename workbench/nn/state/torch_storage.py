"""The storages of a PyTorch file, and the tensors that are views of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.backends.memory import Bytes
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import FileError
from workbench.ir.node.shapes import Shape
from workbench.nn.state.adopted_tensor import tensor_over
from workbench.tensor.operands.arguments import MOST_AXES
from workbench.tensor.tensor import Tensor


@dataclass(eq=False, slots=True)
class TorchStorage:
    """The bytes that tensors share; `dtype` is None where each tensor says it."""

    data: Bytes
    dtype: DType | None
    tensors: dict[DType, Tensor] = field(default_factory=dict)

    def flat(self, dtype: DType) -> Tensor:
        """Return all of it as one tensor: views of a storage are views of the same memory."""
        if dtype not in self.tensors:
            size = self.data.size // dtype.itemsize
            whole = self.data[: size * dtype.itemsize]
            self.tensors[dtype] = tensor_over(whole, dtype, (size,))
        return self.tensors[dtype]


def storage_view(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Tensor:
    """Return the tensor whose element (i, ..) is element `offset` + i * stride[0] + .. of a
    storage. Neighbours in order are in the memory of the storage, others are copied.

    Errors: FileError for one that would leave its storage.
    """
    if not isinstance(storage, TorchStorage):
        raise TypeError(f"a tensor of a {type(storage).__name__}")
    kind = storage.dtype if dtype is None else dtype
    if not isinstance(kind, DType):
        raise TypeError("a tensor without an element type")
    shape, steps = _checked(storage.data.size // kind.itemsize, offset, size, stride)
    count = math.prod(shape)
    if steps == _steps_of(shape) or not count:
        flat = storage.flat(kind)
        return flat[offset : offset + count].reshape(shape)
    elements = storage.data[offset * kind.itemsize :]
    elements = elements[: elements.size // kind.itemsize * kind.itemsize]
    # An axis of step 0 repeats one element, and takes no memory before its first use.
    once = tuple(n if step else 1 for n, step in zip(shape, steps, strict=True))
    view = np.lib.stride_tricks.as_strided(
        np.frombuffer(elements, kind.numpy), once, [step * kind.itemsize for step in steps]
    )
    return _tensor(view, kind).expand(*shape)


def _tensor(view: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    copy = np.ascontiguousarray(view).reshape(-1).view(np.uint8)
    return tensor_over(copy, dtype, view.shape)


def _checked(count: int, offset: Any, size: Any, stride: Any) -> tuple[Shape, tuple[int, ...]]:
    """Return shape and strides. Errors: FileError unless each element is one of `count`."""
    if not (isinstance(size, tuple) and isinstance(stride, tuple)):
        raise TypeError("a size or a stride that is not a tuple")
    numbers = (offset, *size, *stride)
    if not all(type(n) is int for n in numbers) or len(size) != len(stride):
        raise TypeError(f"a size of {size} with a stride of {stride}"[:200])
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    is_empty = 0 in size
    fits = offset <= count if is_empty else last < count
    in_range = math.prod(max(1, n) for n in size) < 1 << 63 and len(size) <= MOST_AXES
    if min(numbers) < 0 or not fits or not in_range:
        raise FileError(
            "refused to load a tensor that is not in its storage",
            f"shape {size}, stride {stride} and offset {offset} need"
            f" {'' if is_empty else f'element {last} of '}a storage of {count} elements"[:300],
        )
    return size, tuple(step if n > 1 else 0 for n, step in zip(size, stride, strict=True))


def _steps_of(shape: Shape) -> tuple[int, ...]:
    """Return the strides of neighbours in order; 0 for axes of one element."""
    steps = (math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return tuple(s if n > 1 else 0 for s, n in zip(steps, shape, strict=True))


STORAGE_DTYPES: dict[str, DType | None] = {
    "torch.DoubleStorage": dtypes.float64,
    "torch.FloatStorage": dtypes.float32,
    "torch.HalfStorage": dtypes.float16,
    "torch.BFloat16Storage": dtypes.bfloat16,
    "torch.LongStorage": dtypes.int64,
    "torch.IntStorage": dtypes.int32,
    "torch.ShortStorage": dtypes.int16,
    "torch.CharStorage": dtypes.int8,
    "torch.ByteStorage": dtypes.uint8,
    "torch.BoolStorage": dtypes.bool,
    "torch.storage.UntypedStorage": None,
}
"""Element types by the classes of PyTorch's storages."""
