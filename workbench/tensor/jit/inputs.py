"""The inputs of a captured function: the properties that must stay the same, and their memory."""

from __future__ import annotations

from workbench.backends.buffer import Buffer
from workbench.base.dtypes import DType
from workbench.execution.buffers import buffer_on
from workbench.execution.values import to_numpy, value_in_memory, with_computed
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.tensor import Tensor

Kind = tuple[Shape, DType, str]
"""The properties of an input that must stay the same: shape, dtype, device."""


def kind_of(tensor: Tensor) -> Kind:
    return tensor.shape, tensor.dtype, tensor.device


def input_node(tensor: Tensor) -> UOp:
    """Return the BUFFER of a tensor, computed where necessary; a constant gets a new one."""
    node = value_in_memory(tensor.uop)
    if node.op is not Ops.BUFFER:
        node = base(tensor._result())
    if node.op is Ops.BUFFER:
        return node
    constant = Buffer.of(tensor.device, tensor.dtype, to_numpy(with_computed(tensor.uop)))
    return buffer_on(constant, tensor.shape)
