"""Kernels as Python code to paste, and kernels read from IR text."""

from __future__ import annotations

import json

from workbench.backends.device import Device
from workbench.base.errors import ParseError
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.ir.verify.tensor import kernel_of, verified
from workbench.kernel.runnable import RunnableKernel


def graph_of(text: object) -> UOp:
    """Return the kernel of IR text, verified; gates keep each gated index inside its buffer.

    Errors: ParseError for a text that is not a kernel; VerifyError for a kernel that breaks a rule.
    """
    if not isinstance(text, str):
        raise ParseError("a kernel is made from text", f"and not from {type(text).__name__}")
    return verified(kernel_of(text))


def to_python(kernel: RunnableKernel) -> str:
    """Return complete Python code that makes `kernel` again, on seeded random data, and names it
    `kernel`."""
    off = ", ".join(map(repr, kernel.rules_off))
    calls = device_call(kernel) + (f".without({off})" if off else "")
    applied = "".join(f"    {opt!r},\n" for opt in kernel.applied_opts)
    calls += f".apply(\n{applied})" if applied else ""
    text = to_text(kernel.original).replace("\\", "\\\\").replace("'", r"\'")
    return (
        "from workbench import Kernel, Opt, OptOps\n\n"
        f"kernel = Kernel.from_text('''\n{text}\n''', shape={kernel.shape}, "
        f"title={kernel.title!r}){calls}\n"
    )


def device_call(kernel: RunnableKernel) -> str:
    """Return the `.on(..)` call for a kernel of a machine that is not here; "" for others."""
    is_elsewhere = Device[kernel.device].is_elsewhere
    return f".on({json.dumps(kernel.device)}).kernel" if is_elsewhere else ""
