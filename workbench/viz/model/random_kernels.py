"""Kernels that only draw random numbers, and the title of an expression with many of them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Kernel
from workbench.tensor.creation.threefry import PARITY

FEWEST = 2
"""Kernels that are worth a hint."""
KEY = (dtypes.uint32, 2)
REDUCTIONS = {Ops.REDUCE_AXIS, Ops.REDUCE}


def draws_numbers(kernel: UOp) -> bool:
    """Whether a kernel computes random numbers, and reads nothing but a generator's key. One that
    reduces them computes something of them: a mean, a share of hits."""
    nodes = kernel.toposort()
    written = {memory for n in nodes if n.op is Ops.STORE for memory in n.src[0].src}
    read = [n for n in nodes if n.op is Ops.PARAM and n not in written]
    is_key = all((memory.dtype, memory.arg[1]) == KEY for memory in read)
    is_drawn = any(n.op is Ops.CONST and n.arg == PARITY for n in nodes)
    return is_key and is_drawn and not any(n.op in REDUCTIONS for n in nodes)


def folded_kernels(kernels: Sequence[Kernel]) -> list[int]:
    """Return the places of the kernels that only draw random numbers, which are shown below the
    others; none where they are all of them, or one. The page's drawnKernels() has the same."""
    places = [k for k, kernel in enumerate(kernels) if draws_numbers(kernel.original)]
    return places if FEWEST <= len(places) < len(kernels) else []


def random_hint(kernels: Sequence[Kernel]) -> str:
    """Return what to do where several kernels only draw random numbers; "" where not."""
    count = sum(draws_numbers(kernel.original) for kernel in kernels)
    if count < FEWEST:
        return ""
    return (
        f"{count} of {len(kernels)} kernels only draw random numbers. Where those are the first"
        " weights of a model, draw them before: Tensor.realize(*nn.state.get_parameters(model))."
    )
