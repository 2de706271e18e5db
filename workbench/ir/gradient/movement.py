"""Gradients of movement ops: the gradient moves back, and the gradients of copies are summed. `g`
is the gradient of the node `n`, whose source is `x`.
"""

from __future__ import annotations

from workbench.ir.gradient.rule import GradientRule, reshaped, summed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def permuted_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` with its axes where they were."""
    order = tuple(n.arg.index(axis) for axis in range(len(n.arg)))
    return (UOp(Ops.PERMUTE, g.dtype, (g,), order),)


def summed_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return the sum over what EXPAND repeated."""
    new = len(n.shape) - len(x.shape)
    sizes = zip(x.shape, n.shape[new:], strict=True)
    repeated = [new + i for i, (size, wide) in enumerate(sizes) if size != wide]
    return (reshaped(summed(g, (*range(new), *repeated)), x.shape),)


def padded_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` with 0 for what SHRINK left out."""
    box = tuple((lo, size - hi) for (lo, hi), size in zip(n.arg, x.shape, strict=True))
    return (UOp(Ops.PAD, g.dtype, (g,), box),)


def cut_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` without what PAD added."""
    box = tuple((lo, lo + size) for (lo, _), size in zip(n.arg, x.shape, strict=True))
    return (UOp(Ops.SHRINK, g.dtype, (g,), box),)


def copied_back(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` on the device that the value was copied from."""
    memory = (m for m in reversed(x.toposort()) if m.op in (Ops.COPY, Ops.BUFFER))
    source = next(memory, None)
    if source is None:
        return (g,)
    return (UOp(Ops.COPY, g.dtype, (g,), source.device),)


# fmt: off
MOVEMENT: dict[Ops, GradientRule] = {
    Ops.RESHAPE:    lambda g, n, x: (reshaped(g, x.shape),),
    Ops.PERMUTE:    permuted_back,
    Ops.EXPAND:     summed_back,
    Ops.SHRINK:     padded_back,
    Ops.PAD:        cut_back,
    Ops.FLIP:       lambda g, n, x: (UOp(Ops.FLIP, g.dtype, (g,), n.arg),),
    Ops.CONTIGUOUS: lambda g, n, x: (g,),
    Ops.COPY:       copied_back,
}
# fmt: on
