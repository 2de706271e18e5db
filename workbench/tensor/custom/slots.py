"""The slots of a kernel that a user wrote: outputs first, then inputs.

A user numbers the arguments as they are passed, and may read one that the kernel writes: that reads
the value before the kernel, which is an input of its own here, so that no step sees another one's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.words import plural
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.refuse import dtype_error, shape_error


class Operand(NamedTuple):
    """A tensor as an argument of a kernel."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


class SlotLayout(NamedTuple):
    """A kernel whose slots are those of the arguments `written`, then of those `read`."""

    kernel: UOp
    written: tuple[int, ...]
    read: tuple[int, ...]


def laid_out(kernel: UOp, name: str, operands: Sequence[Operand]) -> SlotLayout:
    """Return a SINK, whose slots are positions of arguments, with its outputs first.

    Errors: ShapeError or DTypeError where the slots are not those of the arguments.
    """
    params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
    check_arguments(name, {s: (p.dtype, p.length) for s, p in params.items()}, operands)
    written = kernel.outputs
    split = _reads_apart(kernel, params, written)
    loads = [n for n in split.toposort() if n.op is Ops.LOAD]
    slots = {n.place.param.slot for n in loads if n.place.param.op is Ops.PARAM}
    read = sorted(s - len(operands) if s >= len(operands) else s for s in slots - {*written})
    places = {slot: place for place, slot in enumerate(written)}
    places |= {
        (slot + len(operands) if slot in written else slot): place
        for place, slot in enumerate(read, len(written))
    }
    changes = {
        n: construct.param(n.dtype, places[n.slot], n.length)
        for n in split.toposort()
        if n.op is Ops.PARAM
    }
    return SlotLayout(split.substitute(changes), written, tuple(read))


def check_arguments(
    name: str, params: Mapping[int, tuple[DType, int]], operands: Sequence[Operand]
) -> None:
    """Errors: ShapeError or DTypeError where the slots of a kernel, each with a dtype and a number
    of elements, are not the tensors that it is called with."""
    count = len(operands)
    needed = {slot for slot, operand in enumerate(operands) if operand.size}
    if not needed <= params.keys() <= set(range(count)):
        slots = ", ".join(map(str, sorted(params))) or "none"
        raise shape_error(
            f"the kernel {name} is called with {plural(count, 'tensor')}",
            f"it uses the slots {slots}, and a tensor's slot is its position from 0 on",
            f"a tensor for each slot that it uses, {len(params)} in all",
        )
    for slot, (dtype, length) in sorted(params.items()):
        operand = operands[slot]
        if operand.dtype is not dtype:
            raise dtype_error(
                f"argument {slot} of the kernel {name} is {operand}",
                f"its slot {slot} holds {dtype}",
                f".cast(dtypes.{dtype})",
            )
        if operand.size != length:
            raise shape_error(
                f"argument {slot} of the kernel {name} is {operand}",
                f"its slot {slot} has {length} elements, and this has {operand.size}",
                f"a tensor of {length} elements, or a kernel for {operand.size}",
            )


def _reads_apart(kernel: UOp, params: Mapping[int, UOp], written: Sequence[int]) -> UOp:
    """Return the kernel in which a read of an argument that it writes is of another slot: what is
    ordered after its writes stays."""
    first = 1 + max(params)
    changes: dict[UOp, UOp] = {}
    for node in kernel.toposort():
        if node.op is Ops.LOAD and node.place.op is Ops.INDEX:
            memory = node.place.memory
            if memory.op is Ops.PARAM and memory.slot in written:
                before = construct.param(memory.dtype, memory.slot + first, memory.length)
                indexes = [i.substitute(changes) for i in node.place.indexes]
                changes[node] = construct.load(construct.index(before, *indexes))
    return kernel.substitute(changes) if changes else kernel
