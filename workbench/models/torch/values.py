"""Values of PyTorch here, and dtypes by both names. Memory is shared where that is possible."""

from __future__ import annotations

from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DeviceError, DTypeError
from workbench.execution.buffers import memory_of
from workbench.ir.node.ops import Ops
from workbench.ir.schedule.plan import base
from workbench.tensor.tensor import Tensor

_DTYPES = {
    "bool": dtypes.bool,
    "uint8": dtypes.uint8,
    "uint16": dtypes.uint16,
    "uint32": dtypes.uint32,
    "uint64": dtypes.uint64,
    "int8": dtypes.int8,
    "int16": dtypes.int16,
    "int32": dtypes.int32,
    "int64": dtypes.int64,
    "float16": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "float32": dtypes.float32,
    "float64": dtypes.float64,
}


def is_dtype(dtype: Any) -> bool:
    """Whether there is a dtype here for a torch.dtype."""
    return _name(dtype) in _DTYPES


def dtype_of(dtype: Any) -> DType:
    """Return the dtype of a torch.dtype.

    Errors: DTypeError for complex, quantized and 8-bit floating-point numbers.
    """
    name = _name(dtype)
    if name not in _DTYPES:
        raise DTypeError(
            f"there is no dtype {name} here", "tensors have integers, bools and floats", "x.float()"
        )
    return _DTYPES[name]


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def torch_dtype(dtype: DType) -> Any:
    """Return the torch.dtype of a dtype."""
    import torch

    return getattr(torch, next(name for name, one in _DTYPES.items() if one is dtype))


def from_torch(value: Any) -> Tensor:
    """Return a Tensor on the memory of a torch.Tensor; on a copy if its elements have gaps.

    Errors: DTypeError for a sparse tensor, and for a dtype that is not here; DeviceError for a
    tensor without values.
    """
    import torch

    plain = value.detach()
    dtype = dtype_of(plain.dtype)
    if plain.is_meta:
        because = "it is on PyTorch's device meta, where tensors have a shape and no values"
        hint = 'module.to_empty(device="cpu"), and its weights; torch.zeros(shape) for an input'
        raise DeviceError("cannot read a tensor", because, hint)
    if plain.layout is not torch.strided:
        because = f"its layout is {str(plain.layout).removeprefix('torch.')}"
        raise DTypeError("cannot read a sparse tensor", because, "x.to_dense()")
    plain = plain.resolve_conj().resolve_neg().cpu()
    if not dtype.in_numpy:
        return from_torch(plain.view(torch.int16)).bitcast(dtype)
    return Tensor.from_dlpack(plain)


def to_torch(value: Tensor) -> Any:
    """Return a torch.Tensor of the values of a Tensor."""
    import torch

    if not value.dtype.in_numpy:
        return to_torch(value.bitcast(dtypes.int16)).view(torch_dtype(value.dtype))
    return torch.utils.dlpack.from_dlpack(value)


def handed_over(value: Tensor) -> Any:
    """Return a torch.Tensor on the memory of a result that nobody else holds: without the record
    that two libraries share it, which takes longer than a small kernel."""
    import torch

    node = base(value.uop)
    if node.op is not Ops.BUFFER or not value.dtype.in_numpy:
        return to_torch(value)
    memory = memory_of(node)
    if not memory.address or memory.is_adopted:
        return to_torch(value)
    return torch.from_numpy(memory.array.reshape(value.shape))
