"""Source text that a user wrote, as IR that declares only the memory of its arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from workbench.backends.contract import DeviceInfo
from workbench.backends.device import Device
from workbench.backends.program.handwritten import Declaration
from workbench.base.words import plural
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.node.views import WrittenCode
from workbench.tensor.custom.slots import Operand, SlotLayout, check_arguments
from workbench.tensor.operands.refuse import device_error, shape_error

_ROOT = re.compile(r"^SINK\b", re.MULTILINE)
_FUNCTION = re.compile(r"\bvoid\s+[A-Za-z_]\w*\s*\(")


def is_source(text: str) -> bool:
    """Whether a text is a function of a language like C, not IR, which ends with its SINK."""
    return _FUNCTION.search(text) is not None and _ROOT.search(text) is None


def source_layout(
    text: str, device: DeviceInfo, operands: Sequence[Operand], empty: Collection[int]
) -> SlotLayout | None:
    """Return the kernel of source text on a device; None where its outputs have no elements.
    `empty` are the arguments whose memory holds nothing that the text could read.

    Errors: DeviceError for a device that takes no text; ParseError for a text that is not one
    function; ShapeError or DTypeError where it takes other arguments.
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
    """Return the statement that source text writes the memory of `param`."""
    value = UOp(Ops.EXTERN, param.dtype, tuple(memory), code)
    place = construct.index(param, UOp.index(0))
    return construct.end(construct.store(place, value), ())
