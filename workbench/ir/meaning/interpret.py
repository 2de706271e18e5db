"""The reference interpreter: the value of a graph of the tensor or kernel level, by numpy.

It follows the definition of each level and knows nothing of lowering, so the results of every
device are compared with it. `widen=True` computes floats in float64: the oracle of `check`. Source
of the idea: definitional interpreters (Reynolds 1972).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.ir.meaning.casts import cast_array
from workbench.ir.meaning.evaluate import Array, array_dtype, constant, elementwise, reduce
from workbench.ir.meaning.interpret_kernel import interpret_kernel
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.verify.custom import custom_kernel

__all__ = ["interpret_kernel", "interpret_tensor", "interpret_tensors"]


def interpret_tensor(root: UOp, buffers: Mapping[UOp, Array], widen: bool = False) -> Array:
    """Return the value of a tensor-level graph; `buffers` holds what each BUFFER contains."""
    return interpret_tensors([root], buffers, widen)[0]


def interpret_tensors(
    roots: Sequence[UOp], buffers: Mapping[UOp, Array], widen: bool = False
) -> list[Array]:
    """Return the values of several roots; what they share is computed once."""
    values: dict[UOp, Array] = {}
    for root in roots:
        for node in root.toposort(lambda n: n not in values):
            if node not in values:
                values[node] = _tensor_value(node, values, buffers, widen)
    return [np.array(values[root]) for root in roots]


def _tensor_value(
    node: UOp, values: Mapping[UOp, Array], buffers: Mapping[UOp, Array], widen: bool
) -> Array:
    if node.op is Ops.CONST:
        return constant(node, widen)
    if node.op is Ops.BUFFER:
        return _buffer_value(node, buffers, widen)
    if node.op is Ops.IOTA:
        numbers = cast_array(np.arange(node.arg), dtypes.int64, node.dtype)
        return np.asarray(numbers, array_dtype(node.dtype, widen))
    sources = [values[s] for s in node.src]
    if node.op in ELEMENTWISE:
        return elementwise(node, sources, widen)
    if node.op is Ops.CUSTOM:
        return custom_value(node, sources, widen)
    move = _MOVES.get(node.op)
    if move is None:
        raise VerifyError(f"{node.op.name} is not an op of tensor-level values")
    return move(node, sources[0])


def _buffer_value(node: UOp, buffers: Mapping[UOp, Array], widen: bool) -> Array:
    array = buffers.get(node)
    if array is None:
        raise VerifyError(f"no array was given for {node!r}")
    if array.dtype != node.dtype.numpy or array.shape != node.shape:
        raise VerifyError(
            f"an array {array.dtype}{list(array.shape)} was given for {node!r}",
            f"it holds {node.dtype}{list(node.shape)}",
        )
    return array.astype(array_dtype(node.dtype, widen), copy=False)


def custom_value(node: UOp, sources: Sequence[Array], widen: bool) -> Array:
    """Return the value of a kernel that a user wrote, which reads its operands from memory."""
    kernel = custom_kernel(node.kernel_text)
    params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
    arrays = [np.zeros(params[slot].length, params[slot].dtype.numpy) for slot in kernel.outputs]
    operands = zip(sources, node.src, strict=True)
    arrays += [a.astype(s.dtype.numpy).reshape(-1) for a, s in operands]
    result = interpret_kernel(kernel, arrays, widen)[node.output]
    return result.reshape(node.shape)


def _pad(node: UOp, value: Array) -> Array:
    result = np.zeros(node.shape, value.dtype)
    result[tuple(slice(b, b + n) for n, (b, _) in zip(value.shape, node.arg, strict=True))] = value
    return result


_MOVES: dict[Ops, Callable[[UOp, Array], Array]] = {
    Ops.RESHAPE: lambda node, value: value.reshape(node.arg),
    Ops.PERMUTE: lambda node, value: value.transpose(node.arg),
    Ops.EXPAND: lambda node, value: np.broadcast_to(value, node.arg),
    Ops.SHRINK: lambda node, value: value[tuple(slice(lo, hi) for lo, hi in node.arg)],
    Ops.PAD: _pad,
    Ops.FLIP: lambda node, value: np.flip(value, node.arg),
    Ops.REDUCE_AXIS: lambda node, value: reduce(
        node.combines, value, node.reduced_axes, node.dtype, keepdims=True
    ),
    Ops.CONTIGUOUS: lambda node, value: value,
    Ops.COPY: lambda node, value: value,
    Ops.DETACH: lambda node, value: value,
}
