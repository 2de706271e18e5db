"""Tensors over bytes that are already in memory, such as the pages of a file."""

from __future__ import annotations

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.backends.memory import Bytes
from workbench.backends.native.host_memory import HOST
from workbench.base.dtypes import DType
from workbench.execution.buffers import buffer_on
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.tensor import Tensor


def tensor_over(data: Bytes, dtype: DType, shape: Shape) -> Tensor:
    """Return a tensor on the default device whose values are `data`.

    Where the device shares this process's memory, and the elements are aligned, the tensor uses
    the bytes in place; elsewhere they are copied when it is computed.
    """
    if not data.size:
        return Tensor(np.empty(shape, dtype.numpy))
    device = Device.DEFAULT
    memory = Buffer.over(device, dtype, data)
    if memory is not None:
        return Tensor(buffer_on(memory, shape))
    host = Buffer.over(HOST, dtype, data)
    if host is None:
        host = Buffer(HOST, dtype, data.size // dtype.itemsize)
        host.array.view(np.uint8)[:] = data
    return Tensor(UOp(Ops.COPY, dtype, (buffer_on(host, shape),), device))
