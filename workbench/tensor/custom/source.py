"""Custom kernels as IR: their slots, and source text that a user wrote.

Sections: The slots of a kernel that a user wrote; Source text that a user wrote, as IR that
declares only the memory of its arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from workbench.backends.contract import DeviceInfo
from workbench.backends.device import Device
from workbench.backends.program.text import Declaration
from workbench.base.dtypes import DType
from workbench.base.errors import plural
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.node.views import Shape, WrittenCode
from workbench.tensor.operands.arguments import device_error, dtype_error, shape_error

# --------------------------------------------------------------------------------------------------
# The slots of a kernel that a user wrote: outputs first, then inputs.
#
# A user numbers arguments as they are passed, and a kernel may read an argument that it writes.
# Such a read is of the value before the kernel: it becomes an input of its own, so that no step
# of a loop reads what another one writes.


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
    """A kernel whose slots are the arguments `written`, then those `read`, by position."""

    kernel: UOp
    written: tuple[int, ...]
    read: tuple[int, ...]


def laid_out(kernel: UOp, name: str, operands: Sequence[Operand]) -> SlotLayout:
    """Return the layout of a SINK whose slots are positions of arguments: outputs come first.

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
    """Errors: ShapeError or DTypeError unless the slots of a kernel, each with a dtype and a number
    of elements, fit the tensors that it is called with."""
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
    """Return `kernel` with new slots for reads of arguments that it writes; a read that is ordered
    after a write keeps its slot."""
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


# --------------------------------------------------------------------------------------------------
# Source text that a user wrote, as IR that declares only the memory of its arguments.

_ROOT = re.compile(r"^SINK\b", re.MULTILINE)
_FUNCTION = re.compile(r"\bvoid\s+[A-Za-z_]\w*\s*\(")


def is_source(text: str) -> bool:
    """Whether text is a function of a language like C; IR, unlike it, has a line with its SINK."""
    return _FUNCTION.search(text) is not None and _ROOT.search(text) is None


def source_layout(
    text: str, device: DeviceInfo, operands: Sequence[Operand], empty: Collection[int]
) -> SlotLayout | None:
    """Return the kernel of source text on a device; None if its outputs have no elements. An output
    is an input, too, unless it is one of the arguments `empty`, whose memory has no contents.

    Errors: DeviceError for a device that takes no text; ParseError for text that is not one
    function; ShapeError or DTypeError for a function of other arguments.
    """
    if not device.takes_text or device.language is None:
        takers = [d.name for d in Device if d.takes_text]
        raise device_error(
            f"{device.name} runs no kernel that is written as a function",
            "it runs what IR is compiled to",
            f'.to("{takers[0]}") for its tensors, or IR text' if takers else "IR text",
        )
    declared = device.declaration(text)
    written = _written(declared, operands)
    if not written:
        return None
    begun = tuple([slot for slot in written if slot not in empty])
    others = [slot for slot in range(len(operands)) if slot not in written]
    read = (*others, *begun)
    params = [
        construct.param(operands[slot].dtype, place, operands[slot].size)
        for place, slot in enumerate((*written, *read))
    ]
    own = dict(zip((*written, *others), params, strict=False))
    memory = [own[slot] for slot in range(len(operands))] + params[len(operands) :]
    code = WrittenCode(device.language.name, text.strip("\n"), begun)
    ends = [_end(param, memory, code) for param in params[: len(written)]]
    kernel = UOp.sink(*ends, arg=KernelInfo(declared.name, ()))
    return SlotLayout(kernel, written, read)


def _written(declared: Declaration, operands: Sequence[Operand]) -> tuple[int, ...]:
    """Return the arguments that a function writes and that have elements. Errors: ShapeError or
    DTypeError where it is not for these operands."""
    name, arguments = declared
    if len(arguments) != len(operands):
        raise shape_error(
            f"the kernel {name} is called with {plural(len(operands), 'tensor')}",
            f"its function has {plural(len(arguments), 'argument')}",
            "a tensor for each argument, in order",
        )
    both = zip(arguments, operands, strict=True)
    params = {slot: (a.dtype, o.size) for slot, (a, o) in enumerate(both)}
    check_arguments(name, params, operands)
    slots = [slot for slot, argument in enumerate(arguments) if argument.is_written]
    if not slots:
        raise shape_error(
            f"the kernel {name} writes nothing",
            "each of its arguments is a pointer to const",
            "no const before the type of what it writes",
        )
    return tuple([slot for slot in slots if operands[slot].size])


def _end(param: UOp, memory: Sequence[UOp], code: WrittenCode) -> UOp:
    """Return the END of a STORE by which source text writes the memory of `param`."""
    value = UOp(Ops.EXTERN, param.dtype, tuple(memory), code)
    place = construct.index(param, UOp.index(0))
    return construct.end(construct.store(place, value), ())
