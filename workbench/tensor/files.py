"""Files as tensors: `Tensor(pathlib.Path("data.bin"))` is on the device "DISK:/../data.bin".

A file computes nothing. A contiguous part of it can be read (`tolist`, `numpy`), copied to a device
(`to`), and written (`assign`, `t[2:4] = x`). Each of these happens at once, and reads or writes no
other bytes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.backends.device import Device
from workbench.backends.mapped_file import DISK, file_buffer
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType
from workbench.base.errors import FileError
from workbench.execution.buffers import buffer_on, memory_of, neighbours
from workbench.execution.memory_plan import to_numpy, without_detach
from workbench.execution.realize import realize
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.search.realization import tuned
from workbench.tensor.operands.arguments import dtype_error, where

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_file(device: str | None) -> bool:
    """Whether a device is a file."""
    return device is not None and device.startswith(DISK)


def file_device(name: str) -> str | None:
    """Return the device of a file that "disk:.." names, or None for a name of another kind."""
    if name[: len(DISK)].upper() != DISK:
        return None
    return f"{DISK}{Path(name[len(DISK) :]).resolve()}"


def computing_device(device: str) -> str:
    """Return the device that computes for `device`: the default one for a file, else itself."""
    return Device.DEFAULT if is_file(device) else device


def opened(path: Path, dtype: DType) -> UOp:
    """Return a file as a node: all of its bytes, as `dtype`.

    Errors: FileError for a path that cannot be opened.
    """
    return _node(file_buffer(path.resolve(), dtype))


def new_file(device: str, dtype: DType, shape: Shape) -> UOp:
    """Return the file of `device` as a node of `shape`. It is made, or made longer, where
    necessary."""
    nbytes = math.prod(shape) * dtype.itemsize
    memory = file_buffer(Path(device[len(DISK) :]), dtype, nbytes)
    return buffer_on(memory, shape)


def read_to(node: UOp, device: str) -> UOp:
    """Return `node` on `device`; the bytes of a file that it reads are copied there now.

    Errors: FileError for bytes that are not contiguous, or computations on several values.
    """
    if not node.size or not _needs_file(node):
        return node
    (node,) = without_detach([node])
    rest: list[UOp] = []
    while neighbours(node) is None:
        if node.op is Ops.BUFFER or len(node.src) != 1:
            raise _not_contiguous(node)
        rest.append(node)
        (node,) = node.src
    memory = Buffer(device, node.dtype, node.size)
    memory.copy_from(_part_memory(node))
    result = buffer_on(memory, node.shape)
    for step in reversed(rest):
        result = step.replace(src=(result,))
    return result


def saved(node: UOp, device: str) -> UOp:
    """Compute `node`, write it to the file of `device` at once, and return the file's node."""
    (result,) = realize([node], tuned)
    values = to_numpy(result)
    target = new_file(device, node.dtype, node.shape)
    write(target, values)
    return target


def reinterpreted(node: UOp, dtype: DType) -> UOp:
    """Return a contiguous part of a file with its bytes read as `dtype`, of any width.

    Shapes: the last axis has as many bytes as before. Errors: DTypeError if these are no whole
    elements, FileError if the part is not contiguous.
    """
    nbytes = (node.shape[-1] if node.shape else 1) * node.dtype.itemsize
    if nbytes % dtype.itemsize or (not node.shape and dtype.itemsize != nbytes):
        raise dtype_error(
            f"cannot bitcast {node.dtype} of shape {node.shape} to {dtype}",
            f"the last axis has {nbytes} bytes, and an element {dtype.itemsize}",
            f"a last axis of a multiple of {dtype.itemsize} bytes",
        )
    memory = _part_memory(node)
    size = memory.nbytes // dtype.itemsize
    shape = (*node.shape[:-1], nbytes // dtype.itemsize) if node.shape else ()
    return buffer_on(memory.part(0, dtype, size), shape)


def write(node: UOp, values: Any) -> None:
    """Write an array to a contiguous part of a file."""
    _part_memory(node).copy_in(values)


def check_readable(nodes: Iterable[UOp]) -> None:
    """Raise FileError for a node that reads a file, and is no contiguous part of it."""
    for node in without_detach(list(nodes)):
        if node.size and _needs_file(node) and neighbours(node) is None:
            raise _not_contiguous(node)


def _needs_file(node: UOp) -> bool:
    return any(n.op is Ops.BUFFER and is_file(n.device) for n in node.toposort())


def _node(memory: Buffer) -> UOp:
    if memory.size:
        return buffer_on(memory, (memory.size,))
    zero = UOp.const(memory.dtype, 0)
    return UOp(Ops.EXPAND, memory.dtype, (zero,), (0,))


def _part_memory(node: UOp) -> Buffer:
    """Return the memory of a contiguous part of a file."""
    (value,) = without_detach([node])
    stretch = neighbours(value)
    if stretch is None:
        raise _not_contiguous(value)
    buffer, start = stretch
    return memory_of(buffer).window(start, node.size)


def _not_contiguous(node: UOp) -> FileError:
    """Return the error for a node that is no contiguous part of a file."""
    below = node
    while below.op in MOVEMENT and below.op is not Ops.BUFFER:
        below = below.src[0]
    what = f"cannot compute {below.op.name} in a file"
    if below.op is Ops.BUFFER:
        what = f"these {node.size} elements are not contiguous in their file"
    return FileError(
        what,
        "a file computes nothing: contiguous parts of it can be read and written",
        f'.to("{Device.DEFAULT}") first, which takes them to a device',
        where(),
    )
