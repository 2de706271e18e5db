"""The IR and the slots of a kernel that a user wrote as a function, as IR text, or as C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.backends.device import Device
from workbench.base.errors import ParseError, VerifyError
from workbench.execution.buffers import allocated, is_absent
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.schedule.item import base
from workbench.ir.text.printer import to_text
from workbench.ir.verify.custom import custom_kernel, kernel_of
from workbench.tensor.base import Base
from workbench.tensor.custom.argument import Draft, KernelArgument
from workbench.tensor.custom.slots import Operand, SlotLayout, laid_out
from workbench.tensor.custom.source import is_source, source_layout
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.refuse import dtype_error, where

KernelFunction = Callable[..., UOp | str | None]


def layout_of(fxn: KernelFunction | str, tensors: Sequence[Base]) -> SlotLayout | None:
    """Return the kernel for `tensors` with its outputs first; None where these have no elements.

    Errors: DTypeError for what is not a kernel; else as `custom_kernel` of a tensor.
    """
    operands = [Operand(t.shape, t.dtype) for t in tensors]
    name = getattr(fxn, "__name__", "of this text").strip("<>")
    try:
        layout = _layout(fxn, name, operands, tensors)
        if layout is not None:
            name = str(layout.kernel.arg.name)
            custom_kernel(to_text(layout.kernel))
        return layout
    except (VerifyError, ParseError) as error:
        error.what = f"the kernel {name} is not valid: {error.what}"
        place = error.where
        if place:
            error.because = f"{error.because}: {place}" if error.because else place
        error.where = where()
        raise


def _layout(
    fxn: KernelFunction | str, name: str, operands: Sequence[Operand], tensors: Sequence[Base]
) -> SlotLayout | None:
    draft = Draft()
    kernel: Any = fxn
    if callable(fxn):
        arguments = [
            KernelArgument(draft, slot, o.shape, o.dtype, o.size) for slot, o in enumerate(operands)
        ]
        kernel = fxn(*arguments)
    if isinstance(kernel, str) and is_source(kernel):
        named = next((t._device for t in tensors if t._device), Device.DEFAULT)
        empty = [slot for slot, t in enumerate(tensors) if _is_empty(t.uop)]
        return source_layout(kernel, Device[named], operands, empty)
    if isinstance(kernel, str):
        kernel = kernel_of(kernel)
    elif kernel is None and draft.stores:
        kernel = draft.kernel(name)
        if kernel is None:
            return None
    if not isinstance(kernel, UOp) or kernel.op is not Ops.SINK:
        raise dtype_error(
            f"custom_kernel: {short(kernel)} is not a kernel",
            "fxn is text, or a function that writes to its arguments or returns a SINK",
            "def add(out, x, y): i = out.axis(0); out[i] = x[i] + y[i]",
        )
    if isinstance(kernel.arg, KernelInfo):
        name = kernel.arg.name
    if any(n.op is Ops.EXTERN for n in kernel.toposort()):
        raise ParseError(
            "its text is not in it",
            "the IR of a kernel in another language only names its memory",
            "the source text itself",
        )
    return laid_out(kernel, name, operands)


def _is_empty(node: UOp) -> bool:
    memory = base(node)
    is_memory = memory.op is Ops.BUFFER and not is_absent(memory)
    return is_memory and allocated(memory) is None
